#include "daemon/engine/pacing.hpp"

#include <gtest/gtest.h>

using namespace campaign;
using namespace campaign::engine;
using namespace std::chrono_literals;

namespace {

int probes_until(Seconds ready, const ProbeSchedule& schedule) {
    int probes = 1;
    for (Seconds t{0}; t < ready; ++probes) t = schedule.next_after(t);
    return probes;
}

}   // namespace

TEST(ProbeSchedule, LooksSeldomBeforeTheFastestLoadEverSeen) {
    const PastLoad history[] = {{30min, true}, {36min, true}};
    EXPECT_LE(probes_until(30min, ProbeSchedule{history}), 17);
}

TEST(ProbeSchedule, FindsAUsualLoadWithinOneTightStep) {
    const PastLoad history[] = {{30min, true}, {36min, true}};
    const ProbeSchedule schedule{history};
    Seconds t{0};
    while (t < 33min) t = schedule.next_after(t);
    EXPECT_LE(t - Seconds{33min}, Seconds{5});
}

TEST(ProbeSchedule, ALoadThatWasGivenUpMovesTheLateEndOnly) {
    const PastLoad history[] = {{30min, true}, {50min, false}};
    const ProbeSchedule schedule{history};
    EXPECT_EQ(schedule.next_after(45min), Seconds{45min} + Seconds{5});
}

TEST(ProbeSchedule, WithoutHistoryStartsTightAndBacksOff) {
    const ProbeSchedule schedule{{}};
    EXPECT_EQ(schedule.next_after(0s), Seconds{5});
    EXPECT_EQ(schedule.next_after(40min), Seconds{50min});
}

TEST(ProbeSchedule, OnlyUnfinishedLoadsMeanItMayBeReadyAnyTime) {
    const PastLoad history[] = {{10min, false}};
    EXPECT_EQ(ProbeSchedule{history}.next_after(0s), Seconds{5});
}

TEST(LoadEstimate, NamesLoadsThatHappened) {
    const PastLoad history[] = {{30min, true}, {36min, true}, {33min, true}, {90min, false}};
    const LoadEstimate told = estimate(history);
    EXPECT_EQ(told.loads, 3);
    EXPECT_EQ(told.p50, Seconds{33min});
    EXPECT_EQ(told.p90, Seconds{36min});
}

TEST(LoadEstimate, KnowsNothingWithoutAFinishedLoad) {
    const PastLoad history[] = {{90min, false}};
    EXPECT_EQ(estimate(history).loads, 0);
}
