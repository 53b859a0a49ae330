#include "storage/journal.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scratch.hpp"
#include "storage/schema.hpp"

using namespace campaign;
using namespace campaign::storage;
using campaign::storage::test::Scratch;
using campaign::storage::test::slurp;
using campaign::storage::test::spill;

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

/// Runs SQL on a closed database, as a stranger would.
void meddle(const std::filesystem::path& file, const char* sql) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(file.c_str(), &db), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(db, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
    sqlite3_close(db);
}

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

TEST(Open, TheSecondDaemonIsToldWhoHasIt) {
    Book book;
    const auto second = Journal::open(book.scratch / "journal.db");
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().kind, ErrorKind::conflict);
    EXPECT_EQ(second.error().why, "process " + std::to_string(::getpid()) + " has it open");
}

TEST(Open, ANewerSchemaIsRefusedAndUntouched) {
    Scratch scratch;
    { std::move(Journal::open(scratch / "journal.db")).value()->add_campaign(campaign_row("k25")).value(); }
    meddle(scratch / "journal.db", "PRAGMA user_version=99");
    const std::string before = slurp(scratch / "journal.db");
    const auto opened = Journal::open(scratch / "journal.db");
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().kind, ErrorKind::refused);
    EXPECT_NE(opened.error().what.find("newer campaignd"), std::string::npos);
    EXPECT_EQ(slurp(scratch / "journal.db"), before);
}

TEST(Open, AnOlderSchemaIsCopiedBeforeItIsMigrated) {
    Scratch scratch;
    meddle(scratch / "journal.db", "CREATE TABLE kept(note TEXT); INSERT INTO kept VALUES('from before')");
    ASSERT_TRUE(Journal::open(scratch / "journal.db"));
    const std::string copy = (scratch / "journal.db").string() + ".before-" + std::to_string(schema_version);
    EXPECT_NE(slurp(copy).find("from before"), std::string::npos);
}

TEST(Open, ADamagedFileIsSaidToBeDamaged) {
    Scratch scratch;
    spill(scratch / "journal.db", std::string(8192, 'x'));
    const auto opened = Journal::open(scratch / "journal.db");
    ASSERT_FALSE(opened);
    EXPECT_NE(opened.error().what.find("is damaged"), std::string::npos);
}

TEST(Open, NobodyElseMayReadTheFile) {
    Book book;
    struct stat info {};
    ASSERT_EQ(::stat((book.scratch / "journal.db").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 077U, 0U);
}
