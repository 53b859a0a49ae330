#include "instruments/trace/ranks.hpp"

#include <gtest/gtest.h>

namespace campaign::trace {
namespace {

RankCollectives rank_with(std::vector<Nanoseconds> reduces, std::vector<Nanoseconds> gathers = {}) {
    RankCollectives rank;
    for (const Nanoseconds took : reduces) rank.communication += took;
    for (const Nanoseconds took : gathers) rank.communication += took;
    if (!reduces.empty()) rank.durations["comm.allreduce"] = std::move(reduces);
    if (!gathers.empty()) rank.durations["comm.allgather"] = std::move(gathers);
    return rank;
}

TEST(Ranks, WhoTookLeastCameLastAndTheOthersWaited) {
    const json::object got = compare_ranks({{0, rank_with({10, 50})}, {1, rank_with({30, 20})}, {5, rank_with({30, 20})}});
    EXPECT_EQ(json::serialize(got.at("ranks")), "[0,1,5]");
    const json::value& first = got.at("collectives").at(0);
    EXPECT_EQ(first.at("last_arriver").as_int64(), 0);
    EXPECT_EQ(first.at("skew_ns").as_int64(), 20);
    EXPECT_EQ(got.at("collectives").at(1).at("last_arriver").as_int64(), 1) << "of equals the lowest rank";
    EXPECT_EQ(got.at("per_rank").at("0").at("wait_ns").as_int64(), 30);
    EXPECT_EQ(got.at("per_rank").at("5").at("wait_ns").as_int64(), 20);
    EXPECT_EQ(got.at("per_rank").at("1").at("times_last").to_number<int>(), 1);
    EXPECT_FALSE(got.contains("unmatched"));
}

TEST(Ranks, CountsThatDifferAreNamedAndComparedAsFarAsTheyGo) {
    const json::object got = compare_ranks({{0, rank_with({10, 50}, {5})}, {1, rank_with({30})}});
    ASSERT_EQ(got.at("unmatched").as_array().size(), 2U);
    EXPECT_EQ(json::serialize(got.at("unmatched").at(0)), R"({"category":"comm.allgather","counts":{"0":1,"1":0}})");
    EXPECT_EQ(got.at("collectives").as_array().size(), 1U);
}

TEST(Ranks, CollectivesAreTakenInTheOrderTheyRan) {
    Recording recording;
    const auto add = [&recording](const char* name, Nanoseconds start, Nanoseconds took) {
        GpuEvent event;
        event.start = start;
        event.end = start + took;
        event.name = recording.names.id(name);
        recording.gpu.push_back(event);
    };
    add("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 100, 7);
    add("gemm", 0, 40);
    add("vllm::cross_device_reduce_1stage", 50, 3);
    const RankCollectives got = collectives_of(recording, Taxonomy{});
    EXPECT_EQ(got.durations.at("comm.allreduce"), (std::vector<Nanoseconds>{3, 7}));
    EXPECT_EQ(got.communication, 10);
    EXPECT_EQ(got.busy, 50);
    EXPECT_EQ(got.span, 107);
}

}   // namespace
}   // namespace campaign::trace
