#include "daemon/engine/policy.hpp"

#include <gtest/gtest.h>

using namespace campaign;
using namespace campaign::engine;
using namespace std::chrono_literals;
using plans::MethodKind;

namespace {

Candidate torch() {
    Candidate candidate;
    candidate.method = MethodKind::torch_profile;
    candidate.mode = Mode::profiler;
    candidate.can = Can::yes;
    candidate.shows = "kernels";
    return candidate;
}

Candidate nsys_absent() {
    Candidate candidate;
    candidate.method = MethodKind::nsys;
    candidate.mode = Mode::nsys;
    candidate.can = Can::no;
    candidate.reason = "there is no nsys on the host";
    return candidate;
}

Candidate macro() {
    Candidate candidate;
    candidate.method = MethodKind::macro;
    candidate.can = Can::yes;
    candidate.cannot_show = "kernel names";
    return candidate;
}

/// The reference campaign's question: 36 minute loads, nsys not installed.
DecideInput question(plans::Restart restart, Millis max_downtime = 90min) {
    DecideInput input;
    input.question = "where a decode step goes";
    input.ladder = {torch(), nsys_absent(), macro()};
    input.policy.restart = restart;
    input.policy.max_downtime = max_downtime;
    input.load = {36min, 38min, 9};
    return input;
}

Verdict verdict_of(const Decision& decision, MethodKind method) {
    for (const Judged& judged : decision.candidates) {
        if (judged.candidate.method == method) return judged.verdict;
    }
    return Verdict::not_needed;
}

std::string why(const Decision& decision, MethodKind method) {
    for (const Judged& judged : decision.candidates) {
        if (judged.candidate.method == method) return judged.why;
    }
    return "";
}

}   // namespace

TEST(Decide, PivotsToTheBestMethodWithoutDowntimeWhenARestartMustBeAskedFor) {
    const Decision decision = decide(question(plans::Restart::ask));
    EXPECT_EQ(decision.chosen, MethodKind::macro);
    EXPECT_EQ(decision.cannot_show, "kernel names");
    EXPECT_EQ(verdict_of(decision, MethodKind::torch_profile), Verdict::deferred);
    EXPECT_EQ(why(decision, MethodKind::torch_profile), "needs approval");
    EXPECT_EQ(decision.deferred, std::vector<MethodKind>{MethodKind::torch_profile});
    EXPECT_EQ(why(decision, MethodKind::nsys), "there is no nsys on the host");
}

TEST(Decide, TakesWhatAPersonApproved) {
    DecideInput input = question(plans::Restart::ask);
    input.approved = MethodKind::torch_profile;
    const Decision decision = decide(input);
    EXPECT_EQ(decision.chosen, MethodKind::torch_profile);
    EXPECT_EQ(decision.mode, Mode::profiler);
    EXPECT_EQ(verdict_of(decision, MethodKind::macro), Verdict::not_needed);
    EXPECT_TRUE(decision.deferred.empty());
}

TEST(Decide, NeverIsNotAQuestionOfApproval) {
    const Decision decision = decide(question(plans::Restart::never));
    EXPECT_EQ(decision.chosen, MethodKind::macro);
    EXPECT_EQ(verdict_of(decision, MethodKind::torch_profile), Verdict::forbidden);
    EXPECT_TRUE(decision.deferred.empty());
}

TEST(Decide, AnApprovalDoesNotLiftTheDowntimeLimit) {
    DecideInput input = question(plans::Restart::ask, 60min);
    input.approved = MethodKind::torch_profile;
    const Decision decision = decide(input);
    EXPECT_EQ(decision.chosen, MethodKind::macro);
    EXPECT_EQ(verdict_of(decision, MethodKind::torch_profile), Verdict::forbidden);
    EXPECT_EQ(why(decision, MethodKind::torch_profile),
              "it would take production down for about 1 h 16 min, the plan allows 1 h 00 min in all");
}

TEST(Decide, DowntimeSpentCounts) {
    DecideInput input = question(plans::Restart::allow);
    EXPECT_EQ(decide(input).chosen, MethodKind::torch_profile);
    input.downtime_spent = 20min;
    EXPECT_EQ(decide(input).chosen, MethodKind::macro);
}

TEST(Decide, AllowedRestartWithoutAnyEstimateStillAsks) {
    DecideInput input = question(plans::Restart::allow);
    input.load = {};
    const Decision decision = decide(input);
    EXPECT_EQ(verdict_of(decision, MethodKind::torch_profile), Verdict::deferred);
    input.operator_load = 36min;
    EXPECT_EQ(decide(input).chosen, MethodKind::torch_profile);
}

TEST(Decide, AProfilerThatIsOnNeedsNoRestart) {
    DecideInput input = question(plans::Restart::never);
    input.ladder[0].mode = Mode::production;
    const Decision decision = decide(input);
    EXPECT_EQ(decision.chosen, MethodKind::torch_profile);
    EXPECT_EQ(decision.mode, Mode::production);
}

TEST(Decide, NothingPossibleChoosesNothingAndSaysWhyForEach) {
    DecideInput input = question(plans::Restart::never);
    input.ladder.pop_back();
    const Decision decision = decide(input);
    EXPECT_FALSE(decision.chosen);
    for (const Judged& judged : decision.candidates) EXPECT_FALSE(judged.why.empty());
}

TEST(Decide, EveryCandidateIsOnRecordWithDowntimeAndReason) {
    const boost::json::array list = candidates_json(decide(question(plans::Restart::ask)));
    ASSERT_EQ(list.size(), 3U);
    EXPECT_EQ(list[0].at("verdict").as_string(), "deferred");
    EXPECT_EQ(list[0].at("downtime_s").as_array()[1].as_double(), 2 * 38 * 60.0);
    EXPECT_EQ(list[2].at("downtime_s").as_array()[0].as_double(), 0.0);
}

TEST(PolicyInWords, SaysWhatIsAllowed) {
    plans::Policy policy;
    EXPECT_EQ(policy_in_words(policy), "no downtime is allowed");
    policy.restart = plans::Restart::ask;
    policy.max_downtime = 90min;
    EXPECT_EQ(policy_in_words(policy), "a restart needs an approval; at most 1 h 30 min down in all");
}
