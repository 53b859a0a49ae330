#include "daemon/api/views.hpp"

#include <gtest/gtest.h>

#include "base/json.hpp"
#include "fake_reader.hpp"

namespace campaign::api {
namespace {

using test::at;
using test::FakeReader;

About about() {
    return About{"0.3.0", WallTime{std::chrono::microseconds{at("22:49:31")}}};
}

Digest digest_of(FakeReader& reader) {
    Digest digest;
    EXPECT_TRUE(digest.advance(reader));
    return digest;
}

json::value status_of(FakeReader& reader) {
    const Digest digest = digest_of(reader);
    return status_view(reader, digest, about()).value();
}

json::value campaign_of(FakeReader& reader, const std::string& name) {
    const Digest digest = digest_of(reader);
    return campaign_view(reader, digest, find_campaign(reader, name).value(), about()).value();
}

std::string production_event(const std::string& state, const std::string& host = "gpu03") {
    return R"({"subject":"kimi","host":")" + host + R"(","unit":"vllm-k25.service","state":")" + state +
           R"(","detail":"by the test","downtime_s":60,"undos":3})";
}

TEST(Digest, ReadsEachEventOnce) {
    FakeReader reader;
    reader.add_campaign("k25", "running");
    for (int i = 0; i < 10; ++i) reader.add_event(1, "22:00:00", "note", R"({"text":"x"})");
    Digest digest;
    ASSERT_TRUE(digest.advance(reader));
    ASSERT_TRUE(digest.advance(reader));
    EXPECT_EQ(reader.events_read, 10U);
    EXPECT_EQ(digest.position(), 10);
}

TEST(Digest, AClosedNeedIsNoNeed) {
    FakeReader reader;
    reader.add_campaign("k25", "waiting");
    reader.add_event(1, "22:00:00", "need", R"({"subject":"D2","what":"approve it","command":"c","state":"open"})");
    Digest digest;
    ASSERT_TRUE(digest.advance(reader));
    EXPECT_EQ(digest.of(1).needs.size(), 1U);
    reader.add_event(1, "22:01:00", "need", R"({"subject":"D2","state":"closed"})");
    ASSERT_TRUE(digest.advance(reader));
    EXPECT_TRUE(digest.of(1).needs.empty());
}

TEST(Digest, SurvivesDamagedEvents) {
    FakeReader reader;
    reader.add_campaign("k25", "running");
    reader.add_event(1, "22:00:00", "production", "{not json");
    reader.add_event(1, "22:00:00", "production", "[1]");
    Digest digest;
    ASSERT_TRUE(digest.advance(reader));
    EXPECT_TRUE(digest.of(1).production.empty());
}

TEST(Status, AnEmptyJournalIsAWholeAnswer) {
    FakeReader reader;
    const json::value status = status_of(reader);
    EXPECT_EQ(string_at(status, "schema"), "campaignctl.status/1");
    EXPECT_EQ(string_at(status, "now"), "2026-12-01T22:49:31.000Z");
    EXPECT_TRUE(member(status, "production")->get_array().empty());
    EXPECT_TRUE(member(status, "campaigns")->get_array().empty());
    EXPECT_EQ(member(status, "last_decision"), nullptr);
}

TEST(Status, TheNewestWordOnAServiceWinsWhicheverCampaignSaidIt) {
    FakeReader reader;
    reader.add_campaign("old", "failed");
    reader.add_campaign("new", "done");
    reader.add_event(1, "20:00:00", "production", production_event("down"));
    reader.add_event(2, "21:00:00", "production", production_event("verified"));
    const json::value status = status_of(reader);
    const json::array& production = member(status, "production")->get_array();
    ASSERT_EQ(production.size(), 1U);
    EXPECT_EQ(string_at(production[0], "state"), "verified");
    EXPECT_EQ(string_at(production[0], "campaign"), "new");
}

TEST(Status, ProductionIsAwaySinceItsStateChangedNotSinceItsLastEvent) {
    FakeReader reader;
    reader.add_campaign("k25", "running");
    reader.add_event(1, "22:27:00", "production", production_event("down"));
    reader.add_event(1, "22:40:00", "production", production_event("down"));
    const json::value status = status_of(reader);
    EXPECT_EQ(string_at(member(status, "production")->get_array()[0], "since"), "2026-12-01T22:27:00.000Z");
}

TEST(Status, ShowsTheNewestTwentyOfTheFinishedAndAllThatAreNot) {
    FakeReader reader;
    reader.add_campaign("first", "running");
    for (int i = 0; i < 30; ++i) reader.add_campaign("c" + std::to_string(i), "done");
    const json::value status = status_of(reader);
    const json::array& campaigns = member(status, "campaigns")->get_array();
    EXPECT_EQ(campaigns.size(), 21U);
    EXPECT_EQ(string_at(campaigns.front(), "name"), "c29");
    EXPECT_EQ(string_at(campaigns.back(), "name"), "first");
    EXPECT_EQ(int_at(status, "campaigns_total"), 31);
}

TEST(Status, AWaitThatALaterStepOvertookIsOver) {
    FakeReader reader;
    reader.add_campaign("k25", "running");
    reader.add_event(1, "22:49:00", "wait", R"({"subject":"x","for":"model ready","percent":61,"state":"waiting"})");
    EXPECT_NE(member(member(status_of(reader), "campaigns")->get_array()[0], "wait"), nullptr);
    reader.add_event(1, "22:49:10", "step", R"({"subject":"x","state":"done"})");
    EXPECT_EQ(member(member(status_of(reader), "campaigns")->get_array()[0], "wait"), nullptr);
}

TEST(Status, AWaitThatEndedIsNotShown) {
    FakeReader reader;
    reader.add_campaign("k25", "running");
    reader.add_event(1, "22:49:00", "wait", R"({"subject":"x","for":"model ready","state":"over"})");
    EXPECT_EQ(member(member(status_of(reader), "campaigns")->get_array()[0], "wait"), nullptr);
}

TEST(Status, WhatAHostSaidComesWithoutEscapeSequences) {
    FakeReader reader;
    reader.add_campaign("k25", "running");
    reader.add_event(1, "22:00:00", "need",
                     R"({"subject":"D2","what":"\u001b[31mred\u001b[0m\nsecond","command":"c","state":"open"})");
    const json::value status = status_of(reader);
    EXPECT_EQ(string_at(member(status, "needs")->get_array()[0], "what"), "red second");
}

TEST(Status, TheLastDecisionIsTheNewestOfAllCampaigns) {
    FakeReader reader;
    reader.add_campaign("a", "running");
    reader.add_campaign("b", "running");
    storage::DecisionRow decision;
    decision.campaign = 1;
    decision.label = "D1";
    decision.at = at("22:26:00");
    decision.candidates_json = R"([{"method":"macro","verdict":"chosen"}])";
    reader.decision_rows.push_back(decision);
    decision.campaign = 2;
    decision.at = at("21:00:00");
    reader.decision_rows.push_back(decision);
    const json::value status = status_of(reader);
    EXPECT_EQ(string_at(*member(status, "last_decision"), "campaign"), "a");
}

TEST(Campaign, IsFoundByTheBeginningOfItsNameWhenOnlyOneBeginsSo) {
    FakeReader reader;
    reader.add_campaign("k25", "done");
    reader.add_campaign("k25-2", "done");
    reader.add_campaign("glm5", "done");
    EXPECT_EQ(find_campaign(reader, "g").value().name, "glm5");
    EXPECT_EQ(find_campaign(reader, "k25").value().name, "k25") << "an exact name is no prefix";
    const auto ambiguous = find_campaign(reader, "k");
    ASSERT_FALSE(ambiguous);
    EXPECT_EQ(ambiguous.error().kind, ErrorKind::not_found);
    EXPECT_EQ(ambiguous.error().why, "k25-2, k25");
}

TEST(Campaign, ASlipInTheNameIsAnsweredWithTheNearestOne) {
    FakeReader reader;
    reader.add_campaign("deep-k25", "done");
    const auto none = find_campaign(reader, "depe-k25");
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().why, "did you mean deep-k25?");
    EXPECT_FALSE(find_campaign(reader, ""));
}

TEST(Campaign, ItsPhasesNameTheirStepsAndTheirFinding) {
    FakeReader reader;
    reader.add_campaign("k25", "running");
    storage::PhaseRow phase;
    phase.campaign = 1;
    phase.name = "macro";
    phase.state = "done";
    phase.method = "macro";
    reader.phase_rows.push_back(phase);
    for (int number = 12; number <= 14; ++number) {
        storage::StepRow step;
        step.id = number;
        step.campaign = 1;
        step.number = number;
        step.path = "macro/macro/" + std::to_string(number) + "/load";
        step.state = storage::StepState::done;
        reader.step_rows.push_back(step);
    }
    reader.add_event(1, "20:58:00", "phase", R"({"subject":"macro","state":"done","detail":"plateau 1536 tok/s at 128"})");
    const json::value view = campaign_of(reader, "k25");
    const json::value& shown = member(view, "phases")->get_array()[0];
    EXPECT_EQ(string_at(shown, "detail"), "plateau 1536 tok/s at 128");
    EXPECT_EQ(json::serialize(*member(shown, "steps")), R"(["s12","s14"])");
    EXPECT_EQ(int_at(view, "steps_total"), 3);
}

TEST(Campaign, AStepInDoubtSaysWhatWasSentInWords) {
    FakeReader reader;
    reader.add_campaign("k25", "in_doubt");
    storage::StepRow step;
    step.id = 7;
    step.campaign = 1;
    step.number = 42;
    step.path = "deep/torch-profile/3/restart-unit";
    step.state = storage::StepState::in_doubt;
    step.outcome_json = R"({"value":{},"error":{"kind":"in_doubt","what":"link closed before an answer"}})";
    reader.step_rows.push_back(step);
    reader.add_event(
        1, "22:31:07", "step",
        R"({"subject":"deep/torch-profile/3/restart-unit","title":"restart vllm-k25.service","state":"intent"})");
    const json::value view = campaign_of(reader, "k25");
    const json::value& shown = member(view, "steps")->get_array()[0];
    EXPECT_EQ(string_at(shown, "title"), "restart vllm-k25.service");
    EXPECT_EQ(string_at(shown, "label"), "s42");
    EXPECT_EQ(string_at(*member(shown, "error"), "what"), "link closed before an answer");
}

TEST(Campaign, ALongHistoryShowsItsNewestSteps) {
    FakeReader reader;
    reader.add_campaign("k25", "running");
    for (int number = 1; number <= 500; ++number) {
        storage::StepRow step;
        step.campaign = 1;
        step.number = number;
        step.path = "p/m/" + std::to_string(number) + "/x";
        step.state = storage::StepState::done;
        reader.step_rows.push_back(step);
    }
    const json::value view = campaign_of(reader, "k25");
    EXPECT_EQ(member(view, "steps")->get_array().size(), 200U);
    EXPECT_EQ(string_at(member(view, "steps")->get_array().back(), "label"), "s500");
    EXPECT_EQ(int_at(view, "steps_total"), 500);
}

TEST(Decision, ComesWithItsApprovalsAndEveryCandidate) {
    FakeReader reader;
    reader.add_campaign("k25", "running");
    storage::DecisionRow decision;
    decision.campaign = 1;
    decision.label = "D2";
    decision.at = at("20:06:00");
    decision.question = "where a decode step goes";
    decision.candidates_json = R"([{"method":"torch-profile","verdict":"deferred","why":"needs approval"}])";
    reader.decision_rows.push_back(decision);
    storage::ApprovalRow approval;
    approval.campaign = 1;
    approval.decision = "D2";
    approval.candidate = "torch-profile";
    approval.by = "ana";
    reader.approval_rows.push_back(approval);
    const auto row = find_campaign(reader, "k25").value();
    const json::value view = decision_view(reader, row, "D2").value();
    EXPECT_EQ(string_at(view, "schema"), "campaignctl.decision/1");
    EXPECT_EQ(member(view, "candidates")->get_array().size(), 1U);
    EXPECT_EQ(string_at(member(view, "approvals")->get_array()[0], "by"), "ana");
    const auto none = decision_view(reader, row, "D9");
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().kind, ErrorKind::not_found);
    EXPECT_EQ(none.error().why, "it has D2");
}

TEST(Artifacts, NameTheStepTheyCameFrom) {
    FakeReader reader;
    reader.add_campaign("k25", "done");
    storage::StepRow step;
    step.id = 31;
    step.campaign = 1;
    step.number = 9;
    step.path = "macro/macro/1/load";
    reader.step_rows.push_back(step);
    storage::ArtifactRow artifact;
    artifact.id = 4;
    artifact.campaign = 1;
    artifact.step = 31;
    artifact.kind = "load-result";
    artifact.name = "result.json";
    artifact.size = 1200000;
    artifact.sha256 = std::string(64, 'a');
    reader.artifact_rows.push_back(artifact);
    const json::value view = artifacts_view(reader, find_campaign(reader, "k25").value()).value();
    const json::value& shown = member(view, "artifacts")->get_array()[0];
    EXPECT_EQ(string_at(shown, "id"), "a4");
    EXPECT_EQ(string_at(shown, "step"), "s9");
    EXPECT_EQ(int_at(shown, "size"), 1200000);
}

TEST(ErrorView, KeepsTheLinesOfDiagnostics) {
    const Error error{ErrorKind::invalid, "the plan is refused", "", "error[P012]: unknown key\n  --> k25.yaml:14:3\x1b[2J",
                      ""};
    const json::value view = error_view(error);
    EXPECT_EQ(string_at(view, "schema"), "campaignctl.error/1");
    EXPECT_EQ(string_at(*member(view, "error"), "evidence"), "error[P012]: unknown key\n  --> k25.yaml:14:3");
}

}   // namespace
}   // namespace campaign::api
