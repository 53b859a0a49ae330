#include "instruments/trace/steps.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "composed_trace.hpp"
#include "instruments/trace/summary.hpp"
#include "instruments/trace/trace.hpp"

namespace campaign::trace {
namespace {

using namespace campaign::testing;

StepKind kind(std::string_view name) {
    const auto step = step_from_name(name);
    return step ? step->kind : StepKind::unknown;
}

TEST(StepNames, SayWhatTheServerDid) {
    EXPECT_EQ(kind("execute_context_0(0)_generation_8(8)"), StepKind::decode);
    EXPECT_EQ(kind("execute_context_2(900)_generation_0(0)"), StepKind::prefill);
    EXPECT_EQ(kind("execute_context_1(888_788544)_generation_3(3)"), StepKind::mixed);
    EXPECT_EQ(kind("execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32sqsk55086)"), StepKind::decode);
    EXPECT_EQ(kind("execute_context_0(0)_generation_0(0)"), StepKind::empty);
    EXPECT_EQ(kind("step[DECODE bs=32]"), StepKind::decode);
    EXPECT_EQ(kind("step[TARGET_VERIFY bs=4]"), StepKind::decode);
    EXPECT_EQ(kind("step[EXTEND bs=15 toks=15360]"), StepKind::prefill);
    EXPECT_EQ(kind("execute_new_2_cached_0"), StepKind::prefill);
}

TEST(StepNames, SayWhereADecodeStepIsOnlyLikely) {
    EXPECT_TRUE(step_from_name("execute_new_0_cached_8")->likely);
    EXPECT_FALSE(step_from_name("execute_context_0(0)_generation_8(8)")->likely);
}

TEST(StepNames, OtherAnnotationsAreNoSteps) {
    for (const char* const name : {"", "execute_", "execute_model", "execute_context_x(0)_generation_1(1)",
                                   "execute_context_1(5)_generation_", "capture_32_DECODE", "step[", "ProfilerStep#x"})
        EXPECT_FALSE(step_from_name(name).has_value()) << name;
}

class StepsOfATrace : public InFolder {};

TEST_F(StepsOfATrace, AreThoseOfTheLaunchNotOfTheDevicesOwnTime) {
    const Recording recording = *read_trace(put("t.json", two_decode_steps()));
    const Steps steps = assign_steps(recording);
    EXPECT_THAT(steps.of_event, ::testing::ElementsAre(0, 1, 1, 1, 2, 2, 2));
    EXPECT_EQ(steps.by_launch, 7U);
}

TEST_F(StepsOfATrace, HoldTheDurationFromFirstToLastKernel) {
    const Recording recording = *read_trace(put("t.json", two_decode_steps()));
    const std::vector<DeviceSummary> devices = summarize(recording, assign_steps(recording), Taxonomy{});
    ASSERT_EQ(devices.size(), 1U);
    EXPECT_EQ(devices[0].decode_steps, 2U);
    EXPECT_EQ(devices[0].prefill_steps, 1U);
    EXPECT_THAT(devices[0].decode_durations, ::testing::ElementsAre(100'000, 100'000));
    EXPECT_EQ(devices[0].busy, 700'000);
    EXPECT_EQ(devices[0].span, 900'000);
}

TEST_F(StepsOfATrace, CountWorkSideBySideOnceInAUnionAndTwiceInASum) {
    const std::string events = mark("execute_context_0(0)_generation_1(1)", 0, 100) + "," + launch(1, 1) + "," +
                               launch(2, 2) + "," + kernel("nvjet_a", 1000, 40, 1) + "," + kernel("nvjet_b", 1020, 40, 2);
    const Recording recording = *read_trace(put("t.json", document(events)));
    const std::vector<DeviceSummary> devices = summarize(recording, assign_steps(recording), Taxonomy{});
    ASSERT_EQ(devices.at(0).categories.size(), 1U);
    EXPECT_EQ(devices[0].categories[0].sum, 80'000);
    EXPECT_EQ(devices[0].categories[0].covered, 60'000);
    EXPECT_EQ(devices[0].categories[0].in_decode, 60'000);
    EXPECT_EQ(devices[0].busy, 60'000);
}

TEST_F(StepsOfATrace, TakeAWholeGraphReplayByItsOneLaunch) {
    std::string events = mark("execute_context_0(0)_generation_4(4)", 0, 50) + "," + launch(5, 9, "cudaGraphLaunch");
    for (int i = 0; i < 20; ++i) events += "," + kernel("nvjet_g", 5000 + 10 * i, 10, 9);
    const Recording recording = *read_trace(put("t.json", document(events)));
    EXPECT_EQ(assign_steps(recording).by_launch, 20U);
    EXPECT_TRUE(recording.launches.at(9).graph);
}

TEST_F(StepsOfATrace, FallBackToTheDevicesAnnotationWhereTheLaunchIsNotOnRecord) {
    const std::string events = mark("execute_context_0(0)_generation_4(4)", 0, 50) + "," +
                               event("gpu_user_annotation", "execute_context_0(0)_generation_4(4)", 999, 100, "", 0) + "," +
                               kernel("nvjet_g", 1000, 50, 77) + "," + kernel("nvjet_g", 3000, 50, 78);
    const Recording recording = *read_trace(put("t.json", document(events)));
    const Steps steps = assign_steps(recording);
    EXPECT_EQ(steps.by_gpu_window, 1U);
    EXPECT_EQ(steps.unassigned, 1U);
}

}   // namespace
}   // namespace campaign::trace
