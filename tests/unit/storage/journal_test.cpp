#include "storage/journal.hpp"

#include <gtest/gtest.h>

#include "fault_vfs.hpp"
#include "scratch.hpp"

using namespace campaign;
using namespace campaign::storage;
using campaign::storage::test::Scratch;

namespace {

CampaignRow campaign_row(const std::string& name) {
    CampaignRow row;
    row.name = name;
    row.plan_text = "campaign: " + name;
    row.state = "queued";
    row.submitted_by = "ana";
    return row;
}

StepRow step_row(Id campaign, const std::string& path) {
    StepRow row;
    row.campaign = campaign;
    row.path = path;
    row.input_hash = "h";
    row.effect = Effect::transition;
    row.before_json = R"({"invocation":"5d1e"})";
    return row;
}

/// An open journal with one campaign.
struct Book {
    Scratch scratch;
    std::unique_ptr<Journal> journal = std::move(Journal::open(scratch / "journal.db")).value();
    std::unique_ptr<Reader> reader = std::move(Reader::open(scratch / "journal.db")).value();
    Id campaign = journal->add_campaign(campaign_row("k25")).value();
};

}   // namespace

TEST(Journal, GivesLaterCampaignsOfANameANumber) {
    Book book;
    book.journal->add_campaign(campaign_row("k25")).value();
    book.journal->add_campaign(campaign_row("k25")).value();
    const auto rows = book.reader->campaigns().value();
    ASSERT_EQ(rows.size(), 3U);
    EXPECT_EQ(rows[0].name, "k25-3");
    EXPECT_EQ(rows[1].name, "k25-2");
    EXPECT_EQ(rows[2].name, "k25");
}

TEST(Journal, NumbersStepsPerCampaignAndKeepsWhatTheySaw) {
    Book book;
    const Id other = book.journal->add_campaign(campaign_row("other")).value();
    const Id first = book.journal->begin_step(step_row(book.campaign, "a/1/x")).value();
    book.journal->begin_step(step_row(other, "a/1/x")).value();
    const Id second = book.journal->begin_step(step_row(book.campaign, "a/2/y")).value();
    EXPECT_EQ(book.journal->step_number(first).value(), 1);
    EXPECT_EQ(book.journal->step_number(second).value(), 2);
    ASSERT_TRUE(book.journal->end_step(first, StepState::done, R"({"value":{}})", "seen", 7));
    const auto steps = book.reader->steps(book.campaign).value();
    ASSERT_EQ(steps.size(), 2U);
    EXPECT_EQ(steps[0].state, StepState::done);
    EXPECT_EQ(steps[0].evidence, "seen");
    EXPECT_EQ(steps[0].before_json, R"({"invocation":"5d1e"})");
    EXPECT_EQ(steps[1].state, StepState::intent);
}

TEST(Journal, AnIntentBegunAgainCountsAnAttempt) {
    Book book;
    const Id first = book.journal->begin_step(step_row(book.campaign, "a/1/x")).value();
    EXPECT_EQ(book.journal->begin_step(step_row(book.campaign, "a/1/x")).value(), first);
    EXPECT_EQ(book.reader->steps(book.campaign).value()[0].attempts, 2);
}

TEST(Journal, AStepWithAnOutcomeIsNotBegunAgain) {
    Book book;
    const Id step = book.journal->begin_step(step_row(book.campaign, "a/1/x")).value();
    ASSERT_TRUE(book.journal->end_step(step, StepState::done, "{}", "", 1));
    const auto again = book.journal->begin_step(step_row(book.campaign, "a/1/x"));
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().kind, ErrorKind::conflict);
}

TEST(Journal, AnIntentOfAnotherInputIsAConflict) {
    Book book;
    book.journal->begin_step(step_row(book.campaign, "a/1/x")).value();
    StepRow other = step_row(book.campaign, "a/1/x");
    other.input_hash = "another";
    EXPECT_EQ(book.journal->begin_step(other).error().kind, ErrorKind::conflict);
}

TEST(Journal, ForgottenStepsStayButAreOutOfTheWay) {
    Book book;
    const Id step = book.journal->begin_step(step_row(book.campaign, "deep/1/x")).value();
    ASSERT_TRUE(book.journal->end_step(step, StepState::failed, "{}", "", 1));
    ASSERT_TRUE(book.journal->forget_steps(book.campaign, "deep/"));
    EXPECT_TRUE(book.journal->begin_step(step_row(book.campaign, "deep/1/x")));
    EXPECT_EQ(book.reader->steps(book.campaign).value().size(), 2U);
}

TEST(Journal, ChangingWhatIsNotThereIsAnError) {
    Book book;
    EXPECT_EQ(book.journal->end_step(99, StepState::done, "{}", "", 1).error().kind, ErrorKind::not_found);
    EXPECT_EQ(book.journal->end_undo(99, UndoState::done, "", 1).error().kind, ErrorKind::not_found);
}

TEST(Journal, LabelsDecisionsAndFindsTheLatestEventOfASubject) {
    Book book;
    DecisionRow decision;
    decision.campaign = book.campaign;
    book.journal->add_decision(decision).value();
    book.journal->add_decision(decision).value();
    EXPECT_EQ(book.reader->decisions(book.campaign).value()[1].label, "D2");
    for (const char* data : {R"({"subject":"kimi","state":"down"})", R"({"subject":"glm","state":"as_found"})",
                             R"({"subject":"kimi","state":"verified"})"}) {
        EventRow event;
        event.campaign = book.campaign;
        event.kind = "production";
        event.data_json = data;
        book.journal->add_event(event).value();
    }
    EXPECT_EQ(book.reader->latest_event(book.campaign, "production", "kimi").value()->data_json,
              R"({"subject":"kimi","state":"verified"})");
    EXPECT_EQ(book.reader->latest_event(book.campaign, "production", "absent").value(), std::nullopt);
    EXPECT_EQ(book.reader->events(book.campaign, 1, 10).value().size(), 2U);
    EXPECT_EQ(book.reader->last_event().value(), 3);
}

TEST(Journal, TheSameArtifactTwiceIsOneRow) {
    Book book;
    ArtifactRow artifact;
    artifact.campaign = book.campaign;
    artifact.step = book.journal->begin_step(step_row(book.campaign, "a/1/x")).value();
    artifact.name = "trace.json.gz";
    artifact.sha256 = std::string(64, 'a');
    EXPECT_EQ(book.journal->add_artifact(artifact).value(), book.journal->add_artifact(artifact).value());
    EXPECT_EQ(book.reader->artifacts(book.campaign).value().size(), 1U);
}

TEST(Journal, AReaderSeesCommittedWorkOnly) {
    Book book;
    ASSERT_TRUE(book.journal->begin());
    book.journal->add_campaign(campaign_row("unseen")).value();
    EXPECT_EQ(book.reader->campaigns().value().size(), 1U);
    ASSERT_TRUE(book.journal->commit());
    EXPECT_EQ(book.reader->campaigns().value().size(), 2U);
}

TEST(Journal, AStepPathIsUniqueInItsCampaignOnly) {
    Book book;
    const Id other = book.journal->add_campaign(campaign_row("other")).value();
    const Id here = book.journal->begin_step(step_row(book.campaign, "a/1/x")).value();
    EXPECT_NE(book.journal->begin_step(step_row(other, "a/1/x")).value(), here);
    EXPECT_EQ(book.reader->steps(book.campaign).value().size(), 1U);
}

TEST(Journal, EventNumbersAreNeverUsedTwice) {
    Book book;
    EventRow event;
    event.campaign = book.campaign;
    event.kind = "note";
    event.data_json = "{}";
    EXPECT_EQ(book.journal->add_event(event).value(), 1);
    ASSERT_TRUE(book.journal->begin());
    ASSERT_TRUE(book.journal->savepoint());
    EXPECT_EQ(book.journal->add_event(event).value(), 2);
    ASSERT_TRUE(book.journal->release());
    ASSERT_TRUE(book.journal->commit());
    test::meddle(book.scratch / "journal.db", "DELETE FROM events");
    EXPECT_EQ(book.journal->add_event(event).value(), 3) << "also when the newest were removed";
}

TEST(Journal, ARowOfACampaignThatIsNotThereIsAConflict) {
    Book book;
    const auto step = book.journal->begin_step(step_row(99, "a/1/x"));
    ASSERT_FALSE(step);
    EXPECT_EQ(step.error().kind, ErrorKind::conflict);
    EXPECT_NE(step.error().what.find("journal.db"), std::string::npos);
}

TEST(Journal, UndosApprovalsLoadsAndObservationsComeBackAsTheyWentIn) {
    Book book;
    const Id step = book.journal->begin_step(step_row(book.campaign, "a/1/x")).value();
    UndoRow undo;
    undo.campaign = book.campaign;
    undo.step = step;
    undo.kind = "service-as-found";
    undo.data_json = R"({"unit":"vllm.service"})";
    undo.registered = 5;
    const Id registered = book.journal->add_undo(undo).value();
    ASSERT_TRUE(book.journal->end_undo(registered, UndoState::done, "as found", 9));
    const UndoRow undone = book.reader->undos(book.campaign).value().at(0);
    EXPECT_EQ(undone.state, UndoState::done);
    EXPECT_EQ(undone.finished, 9);
    EXPECT_EQ(undone.data_json, undo.data_json);

    ApprovalRow approval;
    approval.campaign = book.campaign;
    approval.decision = "D1";
    approval.candidate = "torch-profile";
    approval.by = "ana";
    approval.expires = 77;
    book.journal->add_approval(approval).value();
    EXPECT_EQ(book.reader->approvals(book.campaign).value().at(0).by, "ana");

    LoadRow load;
    load.host = "gpu1";
    load.service = "kimi";
    load.seconds = 2160.5;
    load.finished = true;
    for (int i = 0; i < 60; ++i) book.journal->add_load(load).value();
    const auto loads = book.reader->loads("gpu1", "kimi").value();
    ASSERT_EQ(loads.size(), 50U);
    EXPECT_GT(loads.front().id, loads.back().id);
    EXPECT_DOUBLE_EQ(loads.front().seconds, 2160.5);

    ObservationRow seen;
    seen.campaign = book.campaign;
    seen.step = step;
    seen.kind = "probe";
    seen.data_json = "{}";
    book.journal->add_observation(seen).value();
    EXPECT_EQ(book.reader->observations(book.campaign, step, 10).value().size(), 1U);
    EXPECT_EQ(book.reader->observations(book.campaign, step + 1, 10).value().size(), 0U);
    EXPECT_EQ(book.reader->observations(book.campaign, 0, 10).value().size(), 1U);
}

TEST(Journal, APhaseIsOneRowThatChanges) {
    Book book;
    PhaseRow phase;
    phase.campaign = book.campaign;
    phase.ordinal = 2;
    phase.name = "how-fast";
    phase.state = "running";
    const Id id = book.journal->put_phase(phase).value();
    phase.state = "done";
    phase.ended = 8;
    EXPECT_EQ(book.journal->put_phase(phase).value(), id);
    const auto phases = book.reader->phases(book.campaign).value();
    ASSERT_EQ(phases.size(), 1U);
    EXPECT_EQ(phases[0].state, "done");
    EXPECT_EQ(phases[0].ended, 8);
}

TEST(Journal, KeepsWhoResolvedAStepInDoubt) {
    Book book;
    const Id step = book.journal->begin_step(step_row(book.campaign, "a/1/x")).value();
    ASSERT_TRUE(book.journal->end_step(step, StepState::in_doubt, "{}", "the link was cut", 1));
    ASSERT_TRUE(book.journal->resolve_step(step, StepState::done, R"({"value":{}})", "seen by ana", "ana", 2));
    const StepRow row = *book.reader->step(step).value();
    EXPECT_EQ(row.state, StepState::done);
    EXPECT_EQ(row.resolved_by, "ana");
}

TEST(Journal, UnfinishedCampaignsComeOldestFirst) {
    Book book;
    const Id second = book.journal->add_campaign(campaign_row("second")).value();
    const Id third = book.journal->add_campaign(campaign_row("third")).value();
    ASSERT_TRUE(book.journal->set_campaign_state(second, "done", "", 5, ""));
    const auto open = book.reader->unfinished().value();
    ASSERT_EQ(open.size(), 2U);
    EXPECT_EQ(open[0].id, book.campaign);
    EXPECT_EQ(open[1].id, third);
}

TEST(Journal, TheLogBeginsAnewAfterACheckpoint) {
    Book book;
    const auto log = [&book] { return std::filesystem::file_size(book.scratch / "journal.db-wal"); };
    const auto until_due = [&book] {
        int commits = 0;
        while (!book.journal->checkpoint_due() && commits < 1000) {
            EXPECT_TRUE(book.journal->begin());
            EXPECT_TRUE(book.journal->add_campaign(campaign_row("k25")));
            EXPECT_TRUE(book.journal->commit());
            ++commits;
        }
        return commits;
    };
    EXPECT_LT(until_due(), 100);
    const auto size = log();
    for (int round = 0; round < 10; ++round) {
        book.journal->checkpoint();
        EXPECT_FALSE(book.journal->checkpoint_due());
        until_due();
    }
    EXPECT_LE(log(), size + size / 4);
}

TEST(Journal, ACheckpointDoesNotWaitForAReaderThatHoldsOn) {
    test::FaultVfs disk;
    Book book;
    sqlite3* reader = nullptr;
    ASSERT_EQ(sqlite3_open((book.scratch / "journal.db").c_str(), &reader), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(reader, "BEGIN; SELECT count(*) FROM campaigns", nullptr, nullptr, nullptr), SQLITE_OK);
    book.journal->add_campaign(campaign_row("later")).value();
    book.journal->checkpoint();
    EXPECT_EQ(disk.sleeps(), 0);
    EXPECT_TRUE(book.journal->add_campaign(campaign_row("latest")));
    sqlite3_close(reader);
}
