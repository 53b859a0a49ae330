#include "instruments/trace/answer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "composed_trace.hpp"
#include "instruments/trace/report.hpp"
#include "instruments/trace/trace.hpp"

namespace campaign::trace {
namespace {

using namespace campaign::testing;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AnswerFromTraces : public InFolder {
protected:
    static std::string said(const json::object& analysis, std::string_view key) {
        const json::value& value = analysis.at(key);
        return value.is_string() ? std::string{value.as_string()} : "";
    }
    static std::string notes(const json::object& analysis) { return json::serialize(analysis.at("notes")); }
    json::object of(std::initializer_list<std::filesystem::path> files) { return analyze(std::vector(files)); }
};

TEST_F(AnswerFromTraces, NamesTheLargestShareOfADecodeStep) {
    const json::object analysis = of({put("t.json", two_decode_steps())});
    EXPECT_EQ(said(analysis, "answer"), "all-reduce: 60.0 µs of 100 µs a decode step over 2 operations (60.0 %)");
    EXPECT_TRUE(analysis.at("cannot_answer").is_null());
}

TEST_F(AnswerFromTraces, GivesEachCategoryAndKernelAStep) {
    const json::object analysis = of({put("t.json", two_decode_steps())});
    const json::value& rank = analysis.at("ranks").as_array().at(0);
    EXPECT_DOUBLE_EQ(rank.at("busy_us").as_double(), 700.0);
    EXPECT_DOUBLE_EQ(rank.at("decode_step_us").at("mean").as_double(), 100.0);
    const json::value& gemm = rank.at("categories").as_array().at(0);
    EXPECT_EQ(gemm.at("name").as_string(), "gemm");   // with the prefill; in decode steps it is second
    EXPECT_DOUBLE_EQ(gemm.at("sum_us").as_double(), 580.0);
    EXPECT_DOUBLE_EQ(gemm.at("per_step_us").as_double(), 40.0);
    EXPECT_DOUBLE_EQ(gemm.at("count_per_step").as_double(), 1.0);
    const json::value& kernel = rank.at("top_kernels").as_array().at(1);
    EXPECT_EQ(kernel.at("category").as_string(), "comm.allreduce");
    EXPECT_DOUBLE_EQ(kernel.at("per_step_us").as_double(), 60.0);
    EXPECT_DOUBLE_EQ(kernel.at("count_per_step").as_double(), 2.0);
}

TEST_F(AnswerFromTraces, SaysWhichRanksAreMissing) {
    const json::object analysis = of({put("a.json", two_decode_steps(0, 4)), put("b.json", two_decode_steps(2, 4))});
    EXPECT_THAT(notes(analysis), HasSubstr("2 of 4 ranks are missing: 1, 3"));
    EXPECT_EQ(analysis.at("ranks").as_array().size(), 2U);
}

TEST_F(AnswerFromTraces, SaysThatARankIsThereTwice) {
    const json::object analysis = of({put("a.json", two_decode_steps()), put("b.json", two_decode_steps())});
    EXPECT_THAT(notes(analysis), HasSubstr("rank 0 is in 2 files"));
}

TEST_F(AnswerFromTraces, WithoutKernelsSaysHowToCaptureAgain) {
    const json::object analysis = of({put("t.json", document(launch(1, 1, "cudaGraphLaunch")))});
    EXPECT_TRUE(analysis.at("answer").is_null());
    EXPECT_THAT(said(analysis, "cannot_answer"), HasSubstr("no kernel was recorded though 1 CUDA graphs were launched"));
    EXPECT_THAT(said(analysis, "cannot_answer"), HasSubstr("capture again"));
}

TEST_F(AnswerFromTraces, WithoutMarksOfStepsDoesNotPassBusySharesOffAsDecode) {
    const json::object analysis =
        of({put("t.json", document(mark("ProfilerStep#1", 0, 9) + "," + launch(1, 1) + "," + kernel("a", 5, 5, 1)))});
    EXPECT_TRUE(analysis.at("answer").is_null());
    EXPECT_THAT(said(analysis, "cannot_answer"), HasSubstr("nothing in the trace marks decode steps"));
}

TEST_F(AnswerFromTraces, WithPrefillOnlySaysWhenToBegin) {
    const json::object analysis = of({put("t.json", document(mark("execute_context_1(5)_generation_0(0)", 0, 9) + "," +
                                                             launch(1, 1) + "," + kernel("a", 5, 5, 1)))});
    EXPECT_THAT(said(analysis, "cannot_answer"), HasSubstr("begin the capture when all requests are already generating"));
}

TEST_F(AnswerFromTraces, KeepsAFileThatCannotBeReadInTheList) {
    const json::object analysis = of({put("t.json", two_decode_steps()), folder_ / "absent"});
    const json::value& absent = analysis.at("files").as_array().at(1);
    EXPECT_FALSE(absent.at("complete").as_bool());
    EXPECT_TRUE(absent.at("sha256").is_null());
    EXPECT_FALSE(said(analysis, "answer").empty());
}

TEST_F(AnswerFromTraces, SaysThatADeviceWaitsForItsHost) {
    const std::string events = mark("execute_context_0(0)_generation_1(1)", 0, 50) + "," + launch(1, 1) + "," +
                               launch(9, 2) + "," + kernel("nvjet_a", 100, 10, 1) + "," + kernel("nvjet_a", 190, 10, 2);
    EXPECT_THAT(notes(of({put("t.json", document(events))})), HasSubstr("idles in 80.0 % of a decode step"));
}

DeviceSummary device(Nanoseconds all_reduce_a_step) {
    DeviceSummary summary;
    summary.device = "0";
    summary.decode_steps = 1;
    summary.decode_durations = {13'200'000};
    summary.decode_busy = 13'200'000;
    Share share;
    share.name = share.category = "comm.allreduce";
    share.in_decode = all_reduce_a_step;
    share.decode_count = 122;
    summary.categories = {share};
    return summary;
}

TEST(Answer, IsTheSentenceOfTheCampaign) {
    EXPECT_EQ(answer({RankSummary{0, device(6'810'000)}}, Held{.annotated = true, .marks_kinds = true}).answer,
              "all-reduce: 6.81 ms of 13.2 ms a decode step over 122 operations (51.6 %)");
}

TEST(Answer, TellsWaitingForTheSlowestRankFromTransfer) {
    const Answer skewed =
        answer({RankSummary{0, device(6'000'000)}, RankSummary{1, device(2'000'000)}}, Held{.marks_kinds = true});
    EXPECT_THAT(skewed.notes,
                Contains(HasSubstr("rank 1 spends least in all-reduce (2.00 ms a decode step, others up to 6.00 ms)")));
    EXPECT_THAT(
        answer({RankSummary{0, device(6'000'000)}, RankSummary{1, device(6'100'000)}}, Held{.marks_kinds = true}).notes,
        IsEmpty());
}

TEST(Answer, ShowsThreeDigitsThatCount) {
    EXPECT_EQ(format_short(6'814'000), "6.81 ms");
    EXPECT_EQ(format_short(13'240'000), "13.2 ms");
    EXPECT_EQ(format_short(412'300), "412 µs");
    EXPECT_EQ(format_short(999'900), "1.00 ms");
    EXPECT_EQ(format_short(1'880'000'000), "1.88 s");
    EXPECT_EQ(format_short(0), "0.00 ns");
}

TEST(RankFromName, ReadsTheFormsOfServersAndTools) {
    EXPECT_EQ(rank_from_name("dp0_pp0_tp3_dcp0_ep3_rank3.1773709742341309550.pt.trace.json.gz"), 3);
    EXPECT_EQ(rank_from_name("1700000000-TP-5.trace.json.gz"), 5);
    EXPECT_EQ(rank_from_name("rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz"), 34);
    EXPECT_EQ(rank_from_name("worker0.1623212756351.pt.trace.json.gz"), 0);
    EXPECT_EQ(rank_from_name("trace.json"), std::nullopt);
}

TEST(RankNotes, StayShortForAHugeWorld) {
    const std::vector<std::string> notes = rank_notes({0}, 300);
    ASSERT_EQ(notes.size(), 1U);
    EXPECT_EQ(notes[0], "299 of 300 ranks are missing: 1, 2, 3, 4, 5, 6, 7, 8, ...");
    EXPECT_THAT(rank_notes({0}, 1), IsEmpty());
    EXPECT_THAT(rank_notes({0}, std::int64_t{1} << 60), IsEmpty());
}

}   // namespace
}   // namespace campaign::trace
