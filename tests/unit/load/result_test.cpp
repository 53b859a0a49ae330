#include "instruments/load/result.hpp"

#include <gtest/gtest.h>

namespace campaign::load {
namespace {

constexpr Stamp ms = 1'000'000;

RequestRecord good(Stamp ttft, Stamp e2e, std::optional<std::int64_t> tokens) {
    RequestRecord record;
    record.first_choice = record.first_token = record.first_output = ttft;
    record.last_token = e2e;
    record.gaps = {e2e - ttft};
    record.token_events = 2;
    if (tokens) record.usage = Usage{10, *tokens, {}, {}};
    return record;
}

RequestRecord bad(const std::string& failure) {
    RequestRecord record;
    record.failure_class = failure;
    record.error_message = "said " + failure;
    record.token_events = 3;
    return record;
}

TEST(LevelTally, AddsUpSuccessesAndKeepsFailuresApart) {
    LevelTally tally(4);
    tally.add(good(10 * ms, 110 * ms, 11));
    tally.add(good(30 * ms, 230 * ms, 21));
    tally.add(bad("http_status"));
    tally.add(bad("http_status"));
    tally.add(bad("timeout"));
    tally.add(bad("cancelled"));
    const json::object got = tally.to_json(2.0, {});
    EXPECT_EQ(got.at("requests").to_number<int>(), 6);
    EXPECT_EQ(got.at("completed").to_number<int>(), 2);
    EXPECT_EQ(got.at("failed").to_number<int>(), 3);
    EXPECT_EQ(got.at("cancelled").to_number<int>(), 1);
    EXPECT_EQ(got.at("failures").at("http_status").to_number<int>(), 2);
    EXPECT_EQ(got.at("failures").at("timeout").to_number<int>(), 1);
    EXPECT_EQ(got.at("failure_samples").at("timeout"), "said timeout");
    EXPECT_EQ(got.at("output_tokens").to_number<int>(), 32);
    EXPECT_DOUBLE_EQ(got.at("output_throughput").to_number<double>(), 16.0);
    EXPECT_DOUBLE_EQ(got.at("request_throughput").to_number<double>(), 1.0);
    EXPECT_EQ(got.at("output_tokens_source"), "usage");
    EXPECT_DOUBLE_EQ(got.at("ttft_ms").at("mean").to_number<double>(), 20.0);
    EXPECT_DOUBLE_EQ(got.at("tpot_ms").at("p50").to_number<double>(), 10.0);
    EXPECT_EQ(got.at("tokens_before_failure").to_number<int>(), 9);
}

TEST(LevelTally, WhatWasNotMeasuredIsNull) {
    LevelTally tally(1);
    tally.add(bad("connect_failed"));
    const json::object got = tally.to_json(0, {});
    EXPECT_TRUE(got.at("ttft_ms").is_null());
    EXPECT_EQ(got.at("output_tokens_source"), "none");
    EXPECT_DOUBLE_EQ(got.at("output_throughput").to_number<double>(), 0.0);
}

TEST(LevelTally, SaysWhereTokensWereOnlyCountedAsEvents) {
    LevelTally tally(1);
    tally.add(good(ms, 2 * ms, std::nullopt));
    EXPECT_EQ(tally.to_json(1, {}).at("output_tokens_source"), "events");
    tally.add(good(ms, 2 * ms, 5));
    EXPECT_EQ(tally.to_json(1, {}).at("output_tokens_source"), "mixed");
}

TEST(LevelTally, AClientThatWasLateIsMarked) {
    const LevelTally tally(1);
    EXPECT_EQ(tally.to_json(1, {{0.1, 0.2, 0.1}, 0.1}).at("client").at("late"), false);
    EXPECT_EQ(tally.to_json(1, {{0.1, 50, 50}, 0.1}).at("client").at("late"), true);
    EXPECT_EQ(tally.to_json(1, {{0.1}, 0.99}).at("client").at("late"), true);
}

}   // namespace
}   // namespace campaign::load
