#include "storage/open.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "base/sha256.hpp"
#include "scratch.hpp"
#include "storage/journal.hpp"

using namespace campaign;
using namespace campaign::storage;
using campaign::storage::test::meddle;
using campaign::storage::test::Scratch;
using campaign::storage::test::slurp;
using campaign::storage::test::spill;

namespace {

CampaignRow named(const std::string& name) {
    CampaignRow row;
    row.name = name;
    row.state = "running";
    return row;
}

unsigned mode_of(const std::filesystem::path& file) {
    struct stat info {};
    EXPECT_EQ(::stat(file.c_str(), &info), 0) << file;
    return info.st_mode & 0777U;
}

std::string pragma(Database& database, const std::string& name) {
    Use use = database.prepare("PRAGMA " + name).value();
    EXPECT_TRUE(use.step().value());
    return use.text(0);
}

}   // namespace

TEST(Open, TheSecondDaemonIsToldWhoHasIt) {
    Scratch scratch;
    const auto first = std::move(Journal::open(scratch / "journal.db")).value();
    const auto second = Journal::open(scratch / "journal.db");
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().kind, ErrorKind::conflict);
    EXPECT_EQ(second.error().why, "process " + std::to_string(::getpid()) + " has it open");
}

TEST(Open, OfManyProcessesAtOnceOneHasIt) {
    Scratch scratch;
    std::array<int, 2> go{};
    std::array<int, 2> stay{};
    std::array<int, 2> told{};
    ASSERT_EQ(::pipe(go.data()) + ::pipe(stay.data()) + ::pipe(told.data()), 0);
    std::vector<pid_t> children;
    for (int i = 0; i < 8; ++i) {
        const pid_t child = ::fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            ::close(go[1]);
            ::close(stay[1]);
            char byte = 0;
            (void)!::read(go[0], &byte, 1);   // all are let go by the end of the pipe
            const auto journal = Journal::open(scratch / "journal.db");
            byte = journal ? '+' : journal.error().kind == ErrorKind::conflict ? '-' : '?';
            (void)!::write(told[1], &byte, 1);
            (void)!::read(stay[0], &byte, 1);
            ::_exit(0);
        }
        children.push_back(child);
    }
    ::close(go[1]);
    std::string answers(8, ' ');
    for (char& answer : answers) ASSERT_EQ(::read(told[0], &answer, 1), 1);
    ::close(stay[1]);
    for (const pid_t child : children) ::waitpid(child, nullptr, 0);
    for (const int fd : {go[0], stay[0], told[0], told[1]}) ::close(fd);
    EXPECT_EQ(std::count(answers.begin(), answers.end(), '+'), 1) << answers;
    EXPECT_EQ(std::count(answers.begin(), answers.end(), '-'), 7) << answers;
}

TEST(Open, SetsWhatKeepsAnAcknowledgedRow) {
    Scratch scratch;
    Opened opened = std::move(open_for_writing(scratch / "journal.db")).value();
    EXPECT_EQ(pragma(opened.database, "journal_mode"), "wal");
    EXPECT_EQ(pragma(opened.database, "synchronous"), "2");
    EXPECT_EQ(pragma(opened.database, "foreign_keys"), "1");
    EXPECT_EQ(pragma(opened.database, "wal_autocheckpoint"), "300");
    EXPECT_EQ(pragma(opened.database, "journal_size_limit"), "16777216");
    EXPECT_EQ(pragma(opened.database, "application_id"), std::to_string(application_id));
}

TEST(Open, ANewerSchemaIsRefusedAndUntouched) {
    Scratch scratch;
    std::move(Journal::open(scratch / "journal.db")).value()->add_campaign(named("k25")).value();
    meddle(scratch / "journal.db", "PRAGMA user_version=99");
    const std::string before = sha256(slurp(scratch / "journal.db"));
    const auto opened = Journal::open(scratch / "journal.db");
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().kind, ErrorKind::refused);
    EXPECT_NE(opened.error().what.find("newer campaignd"), std::string::npos);
    EXPECT_EQ(sha256(slurp(scratch / "journal.db")), before);
}

TEST(Open, ANewerJournalWhoseDaemonWasKilledKeepsItsLogToo) {
    Scratch scratch;
    const auto file = scratch / "journal.db";
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        const auto journal = Journal::open(file);
        sqlite3* db = nullptr;
        sqlite3_open(file.c_str(), &db);
        sqlite3_exec(db, "PRAGMA user_version=99", nullptr, nullptr, nullptr);
        ::kill(::getpid(), SIGKILL);
    }
    ::waitpid(child, nullptr, 0);
    const std::string log = slurp(file.string() + "-wal");
    ASSERT_FALSE(log.empty());
    const std::string database = slurp(file);
    const auto opened = Journal::open(file);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().kind, ErrorKind::refused);
    EXPECT_TRUE(slurp(file) == database);
    EXPECT_TRUE(slurp(file.string() + "-wal") == log);
}

TEST(Open, AnotherProgramsDatabaseIsRefusedAndUntouched) {
    Scratch scratch;
    meddle(scratch / "journal.db", "CREATE TABLE theirs(note TEXT)");
    const std::string before = slurp(scratch / "journal.db");
    const auto opened = Journal::open(scratch / "journal.db");
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().kind, ErrorKind::refused);
    EXPECT_NE(opened.error().what.find("another program's database"), std::string::npos);
    EXPECT_TRUE(slurp(scratch / "journal.db") == before);
}

TEST(Open, AVersionZeroJournalIsCopiedBeforeItIsMigrated) {
    Scratch scratch;
    const std::string fixture = "PRAGMA application_id=" + std::to_string(application_id) +
                                ";CREATE TABLE notes(note TEXT); INSERT INTO notes VALUES('from before')";
    meddle(scratch / "journal.db", fixture.c_str());
    ASSERT_TRUE(Journal::open(scratch / "journal.db"));
    const std::filesystem::path copy = (scratch / "journal.db").string() + ".before-" + std::to_string(schema_version);
    EXPECT_NE(slurp(copy).find("from before"), std::string::npos);
    EXPECT_EQ(mode_of(copy), 0600U);
}

TEST(Open, AMigrationKeepsTheCampaignInTheMiddleOfIt) {
    Scratch scratch;
    const auto file = scratch / "journal.db";
    std::move(Journal::open(file)).value()->add_campaign(named("k25")).value();
    const std::array<const char*, 2> steps{migrations()[0],
                                           "ALTER TABLE campaigns ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'"};
    {
        Opened opened = std::move(open_for_writing(file, steps)).value();
        Use use = opened.database.prepare("SELECT name,state,colour FROM campaigns").value();
        ASSERT_TRUE(use.step().value());
        EXPECT_EQ(use.text(0) + " " + use.text(1) + " " + use.text(2), "k25 running red");
        EXPECT_EQ(pragma(opened.database, "user_version"), "2");
    }
    Database copy = std::move(Database::open(file.string() + ".before-2", Database::Mode::read)).value();
    EXPECT_EQ(pragma(copy, "user_version"), "1");
    EXPECT_EQ(Journal::open(file).error().kind, ErrorKind::refused) << "the older program";
}

TEST(Open, AMigrationThatFailsChangesNothing) {
    Scratch scratch;
    const auto file = scratch / "journal.db";
    std::move(Journal::open(file)).value()->add_campaign(named("k25")).value();
    const std::array<const char*, 3> steps{migrations()[0], "CREATE TABLE fresh(a) STRICT", "CREATE TABLE nonsense"};
    ASSERT_FALSE(open_for_writing(file, steps));
    const auto journal = std::move(Journal::open(file)).value();
    EXPECT_EQ(std::move(Reader::open(file)).value()->campaigns().value().at(0).name, "k25");
    Database database = std::move(Database::open(file, Database::Mode::read)).value();
    EXPECT_FALSE(database.prepare("SELECT * FROM fresh"));
}

TEST(Open, EveryTableIsStrict) {
    Scratch scratch;
    Opened opened = std::move(open_for_writing(scratch / "journal.db")).value();
    Use use =
        opened.database
            .prepare("SELECT count(*),sum(strict) FROM pragma_table_list WHERE schema='main' AND name NOT LIKE 'sqlite%'")
            .value();
    ASSERT_TRUE(use.step().value());
    EXPECT_GE(use.integer(0), 11);
    EXPECT_EQ(use.integer(0), use.integer(1));
}

TEST(Open, ADamagedFileIsSaidToBeDamaged) {
    Scratch scratch;
    spill(scratch / "journal.db", std::string(8192, 'x'));
    const auto opened = Journal::open(scratch / "journal.db");
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().kind, ErrorKind::io);
    EXPECT_NE(opened.error().what.find("journal.db is damaged"), std::string::npos);
    EXPECT_NE(opened.error().next.find(".before-"), std::string::npos) << "which copy to look at";
}

TEST(Open, AfterTheFirstSignOfDamageNothingMoreIsWritten) {
    Scratch scratch;
    const auto file = scratch / "journal.db";
    const auto journal = std::move(Journal::open(file)).value();
    CampaignRow row = named("k25");
    row.plan_text = std::string(100'000, 'p');
    for (int i = 0; i < 5; ++i) journal->add_campaign(row).value();
    journal->checkpoint();
    {   // all pages but the first, which says whether anything changed
        std::fstream stream{file, std::ios::in | std::ios::out | std::ios::binary};
        stream.seekp(4096);
        stream << std::string(std::filesystem::file_size(file) - 4096, '\xee');
    }
    meddle(file, "PRAGMA user_version=1");   // makes the writer drop the pages that it holds
    const auto damaged = journal->add_campaign(named("late"));
    ASSERT_FALSE(damaged);
    EXPECT_EQ(damaged.error().kind, ErrorKind::io);
    const auto begun = journal->begin();
    ASSERT_FALSE(begun);
    EXPECT_NE(begun.error().what.find("is damaged"), std::string::npos);
}

TEST(Open, NobodyElseMayReadTheFiles) {
    Scratch scratch;
    const mode_t old = ::umask(0);
    const auto journal = std::move(Journal::open(scratch / "journal.db")).value();
    journal->add_campaign(named("k25")).value();
    ::umask(old);
    for (const char* name : {"journal.db", "journal.db-wal", "journal.db-shm", "journal.db.lock"})
        EXPECT_EQ(mode_of(scratch / name), 0600U) << name;
}

TEST(Open, ALinkIsNoJournal) {
    Scratch scratch;
    spill(scratch / "elsewhere", "");
    std::filesystem::create_symlink(scratch / "elsewhere", scratch / "journal.db");
    const auto opened = Journal::open(scratch / "journal.db");
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().kind, ErrorKind::refused);
}

TEST(Open, AFolderThatIsNotThereIsNamed) {
    Scratch scratch;
    const auto opened = Journal::open(scratch.path() / "absent" / "journal.db");
    ASSERT_FALSE(opened);
    EXPECT_NE(opened.error().what.find("/absent"), std::string::npos);
}

TEST(Open, KnowsNetworkFileSystemsByTheirNumbers) {
    EXPECT_EQ(network_file_system(0x6969), "NFS");
    EXPECT_EQ(network_file_system(0xFF534D42), "CIFS");
    EXPECT_EQ(network_file_system(0xFE534D42), "SMB2");
    EXPECT_EQ(network_file_system(0x01021997), "9p");
    for (const unsigned long local : {0xEF53UL, 0x9123683EUL, 0x58465342UL, 0x01021994UL, 0x65735546UL})
        EXPECT_EQ(network_file_system(local), std::nullopt) << local;
}
