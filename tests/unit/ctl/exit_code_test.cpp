#include "ctl/exit_code.hpp"

#include <gtest/gtest.h>

#include "base/json.hpp"

namespace campaign::ctl {
namespace {

json::value campaign(const std::string& state, const std::string& production, const std::string& needs = "[]") {
    const std::string services = production.empty() ? "[]" : R"([{"state":")" + production + R"("}])";
    return parse_json(R"({"state":")" + state + R"(","production":)" + services + R"(,"needs":)" + needs + "}", "test")
        .value();
}

constexpr const char* one_need = R"([{"what":"approve"}])";

TEST(ExitCode, AnEndIsToldByItsCause) {
    EXPECT_EQ(exit_of_campaign(campaign("done", "verified")), Exit::as_asked);
    EXPECT_EQ(exit_of_campaign(campaign("failed", "verified")), Exit::failed);
    EXPECT_EQ(exit_of_campaign(campaign("cancelled", "as_found")), Exit::cancelled);
    EXPECT_EQ(exit_of_campaign(campaign("in_doubt", "as_found")), Exit::person_needed);
    EXPECT_EQ(exit_of_campaign(campaign("waiting", "as_found")), Exit::person_needed);
    EXPECT_EQ(exit_of_campaign(campaign("running", "down")), Exit::as_asked);
}

TEST(ExitCode, ProductionThatIsNotBackGoesBeforeEverythingElse) {
    for (const char* state : {"done", "failed", "cancelled", "in_doubt", "waiting"}) {
        for (const char* production : {"changed", "down", "restoring", "unknown"})
            EXPECT_EQ(exit_of_campaign(campaign(state, production)), Exit::not_as_found) << state << " " << production;
    }
    EXPECT_EQ(exit_of_campaign(campaign("restoring", "down", one_need)), Exit::not_as_found);
}

TEST(ExitCode, ACampaignThatNeverTouchedAHostLeftItAsItWas) {
    EXPECT_EQ(exit_of_campaign(campaign("failed", "")), Exit::failed);
    EXPECT_TRUE(production_as_found(campaign("failed", "")));
}

TEST(ExitCode, OfErrorsFollowsTheTable) {
    const auto of = [](ErrorKind kind, bool plan = false) { return exit_of(Error{kind, "", "", "", ""}, plan); };
    EXPECT_EQ(of(ErrorKind::usage), Exit::usage);
    EXPECT_EQ(of(ErrorKind::conflict), Exit::usage);
    EXPECT_EQ(of(ErrorKind::invalid), Exit::usage);
    EXPECT_EQ(of(ErrorKind::invalid, true), Exit::plan_refused);
    EXPECT_EQ(of(ErrorKind::not_found), Exit::not_found);
    EXPECT_EQ(of(ErrorKind::refused), Exit::refused);
    EXPECT_EQ(of(ErrorKind::unreachable), Exit::no_daemon);
    EXPECT_EQ(of(ErrorKind::timed_out), Exit::timed_out);
    EXPECT_EQ(of(ErrorKind::bug), Exit::bug);
    EXPECT_EQ(of(ErrorKind::io), Exit::bug);
}

TEST(Wait, EndsAtAnyEnd) {
    for (const WaitFor what : {WaitFor::done, WaitFor::restored, WaitFor::decision}) {
        EXPECT_TRUE(wait_over(campaign("done", "verified"), what));
        EXPECT_TRUE(wait_over(campaign("failed", "verified"), what));
        EXPECT_TRUE(wait_over(campaign("cancelled", "down"), what));
        EXPECT_TRUE(wait_over(campaign("in_doubt", "down"), what));
        EXPECT_FALSE(wait_over(campaign("running", "down"), what));
        EXPECT_FALSE(wait_over(campaign("restoring", "restoring"), what));
        EXPECT_FALSE(wait_over(campaign("queued", ""), what));
    }
}

TEST(Wait, ForRestoredAsksForProductionAlone) {
    EXPECT_EQ(wait_over(campaign("failed", "verified"), WaitFor::restored), Exit::as_asked);
    EXPECT_EQ(wait_over(campaign("cancelled", "restoring"), WaitFor::restored), Exit::not_as_found);
    EXPECT_EQ(wait_over(campaign("failed", "verified"), WaitFor::done), Exit::failed);
}

TEST(Wait, ForADecisionEndsWhenAPersonIsAsked) {
    EXPECT_EQ(wait_over(campaign("running", "as_found", one_need), WaitFor::decision), Exit::as_asked);
    EXPECT_FALSE(wait_over(campaign("running", "as_found", one_need), WaitFor::done)) << "it goes on without the answer";
    EXPECT_EQ(wait_over(campaign("failed", "verified"), WaitFor::decision), Exit::failed);
}

}   // namespace
}   // namespace campaign::ctl
