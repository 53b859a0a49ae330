// Plain processes, started and ended for real on this machine.
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <csignal>

#include "adapters/process/facts.hpp"
#include "adapters/process/log.hpp"
#include "adapters/process/process.hpp"
#include "base/sha256.hpp"
#include "base/text.hpp"
#include "sh_host.hpp"

namespace campaign::process {
namespace {

namespace fs = std::filesystem;
using List = std::vector<std::string>;
using test::await;
using test::slurp;
using test::spill;
using Is = host::JobState::Is;

/// Neither gone nor a zombie that its parent has not collected yet.
bool lives(int pid) {
    const std::string stat = slurp("/proc/" + std::to_string(pid) + "/stat");
    const auto at = stat.rfind(") ");
    return at != std::string::npos && stat[at + 2] != 'Z' && stat[at + 2] != 'X';
}

class Process : public ::testing::Test {
protected:
    Process() : host{std::make_shared<test::ShHost>(folder.path())} {
        host->program("serve", "#!/bin/sh\necho \"start $* mode=$MODE\"\nexec sleep 600\n");
        spec.name = "stand-in";
        // A number of its own, so that no other process of the machine has equal words.
        spec.command = {"sleep", "600." + std::to_string(::getpid())};
        spec.environment = {{"MODE", "production"}};
        spec.log = (folder.path() / "log").string();
        spec.state_dir = (folder.path() / "state").string();
        spec.stop_timeout = Millis{2000};
        renew();
    }
    ~Process() override {
        const auto stopped = await(manager->stop("svc"));
        EXPECT_TRUE(stopped) << describe(stopped.error());
    }
    void renew() { manager = make_manager(host, clock, {{"svc", spec}}); }
    host::ServiceState look() { return *await(manager->look("svc")); }
    void start() {
        const auto started = await(manager->restart("svc"));
        ASSERT_TRUE(started) << describe(started.error());
    }
    /// Waits until the process has become its program: the starter's own words vanish with its exec.
    host::Baseline settled() {
        while (true) {
            auto baseline = await(manager->baseline("svc"));
            EXPECT_TRUE(baseline) << describe(baseline.error());
            if (!baseline || baseline->running_argv.empty() || baseline->running_argv[0] != "sh") return *baseline;
        }
    }

    test::TempFolder folder;
    std::shared_ptr<test::ShHost> host;
    SystemClock clock;
    ProcessSpec spec;
    std::unique_ptr<host::ServiceManager> manager;
};

TEST_F(Process, IsInactiveUntilStartedAndKnownByItsIdentity) {
    EXPECT_EQ(look().active, "inactive");
    start();
    const host::ServiceState state = look();
    EXPECT_EQ(state.active, "active");
    EXPECT_GT(state.main_pid, 0);
    EXPECT_TRUE(state.invocation.starts_with(state.boot_id + ":" + std::to_string(state.main_pid) + ":"));
    EXPECT_EQ(look().invocation, state.invocation);
    const host::Baseline baseline = settled();
    EXPECT_EQ(baseline.running_argv, spec.command);
    EXPECT_EQ(baseline.environment_hashes.at("MODE"), sha256("production"));
    EXPECT_TRUE(baseline.obstacles.empty());
}

TEST_F(Process, ARestartEndsTheOldOneAndBeginsANew) {
    start();
    const host::ServiceState before = look();
    start();
    const host::ServiceState after = look();
    EXPECT_EQ(after.active, "active");
    EXPECT_NE(after.invocation, before.invocation);
    EXPECT_FALSE(lives(before.main_pid));
}

TEST_F(Process, ReadsAPidfileOfAnotherProcessAsNone) {
    start();
    const std::string good = slurp(spec.state_dir + "/stand-in.pid");
    spill(spec.state_dir + "/stand-in.pid", look().boot_id + " " + std::to_string(::getpid()) + " 1\n");
    settled();
    EXPECT_NE(look().main_pid, ::getpid());   // found by its words, not by a pid that was given away
    EXPECT_GT(look().main_pid, 0);
    spill(spec.state_dir + "/stand-in.pid", good);
}

TEST_F(Process, IsFoundByItsWordsWithoutAPidfile) {
    start();
    const int pid = settled().server_pid;
    fs::remove(spec.state_dir + "/stand-in.pid");
    EXPECT_EQ(look().main_pid, pid);
}

TEST_F(Process, StartsWithTheOverrideAndAgainWithoutIt) {
    start();
    host::Override wanted;
    wanted.arguments = {"0.5"};
    wanted.environment = {{"MODE", "it's\n\"profile\" \\ $x"}};
    wanted.marker = "campaign 7";
    const auto change = manager->render("svc", settled(), wanted);
    ASSERT_TRUE(change) << describe(change.error());
    ASSERT_TRUE(await(manager->install("svc", *change)));
    start();
    const host::Baseline profiling = settled();
    EXPECT_EQ(profiling.running_argv.back(), "0.5");
    EXPECT_EQ(profiling.environment_hashes.at("MODE"), sha256("it's\n\"profile\" \\ $x"));
    EXPECT_EQ(profiling.state.drop_ins, List{change->path});
    ASSERT_EQ(profiling.obstacles.size(), 1u);
    EXPECT_EQ(profiling.obstacles[0].code, "leftover");

    EXPECT_EQ(await(manager->remove("svc", change->path, std::string(64, '0'))).error().kind, ErrorKind::conflict);
    ASSERT_TRUE(await(manager->remove("svc", change->path, change->sha256)));
    start();
    const host::Baseline restored = settled();
    EXPECT_EQ(restored.running_argv, spec.command);
    EXPECT_EQ(restored.environment_hashes.at("MODE"), sha256("production"));
}

TEST_F(Process, EndsAStubbornOneByKill) {
    host->program("stubborn", "#!/bin/sh\ntrap '' TERM\necho up\nwhile :; do sleep 0.1; done\n");
    spec.command = {(folder.path() / "bin/stubborn").string()};
    spec.stop_timeout = Millis{300};
    renew();
    start();
    while (slurp(spec.log).find("up") == std::string::npos) ::usleep(10'000);
    const int pid = look().main_pid;
    ASSERT_TRUE(await(manager->stop("svc")));
    EXPECT_FALSE(lives(pid));
    EXPECT_EQ(look().active, "inactive");
}

TEST_F(Process, KeepsTheRunningOneWhenItsOverrideCannotBeRead) {
    start();
    const auto before = look();
    spill(spec.state_dir + "/stand-in.override", "rm -rf /\n");
    EXPECT_FALSE(await(manager->restart("svc")));
    EXPECT_TRUE(lives(before.main_pid));
    fs::remove(spec.state_dir + "/stand-in.override");
    EXPECT_EQ(look().invocation, before.invocation);
}

TEST_F(Process, UnknownServicesAreNotFound) {
    EXPECT_EQ(await(manager->look("other")).error().kind, ErrorKind::not_found);
}

TEST_F(Process, ReadsItsLogFromAPositionAcrossRotation) {
    spill(spec.log, "old\n");
    const auto cursor = await(manager->log_cursor("svc"));
    ASSERT_TRUE(cursor);
    std::ofstream{spec.log, std::ios::app} << "one\ntwo\n";
    auto lines = await(manager->read_log("svc", *cursor, 100));
    ASSERT_TRUE(lines) << describe(lines.error());
    ASSERT_EQ(lines->size(), 2u);
    EXPECT_EQ((*lines)[1].text, "two");
    // From each line's own position only what follows it is read: nothing twice, nothing lost.
    EXPECT_EQ((*await(manager->read_log("svc", (*lines)[0].cursor, 100)))[0].text, "two");

    std::ofstream{spec.log, std::ios::app} << "three\n";
    fs::rename(spec.log, spec.log + ".1");
    std::ofstream{spec.log} << "four\n";
    lines = await(manager->read_log("svc", (*lines)[1].cursor, 100));
    ASSERT_TRUE(lines);
    ASSERT_EQ(lines->size(), 2u);
    EXPECT_EQ((*lines)[0].text, "three");
    EXPECT_EQ((*lines)[1].text, "four");
}

TEST_F(Process, MarksAGapWhenTheLogWasCutOff) {
    spill(spec.log, "a long first line\nsecond\n");
    const auto cursor = await(manager->log_cursor("svc"));
    spill(spec.log, "new\n");
    const auto lines = await(manager->read_log("svc", *cursor, 100));
    ASSERT_TRUE(lines);
    ASSERT_EQ(lines->size(), 2u);
    EXPECT_TRUE((*lines)[0].from_manager);
    EXPECT_EQ((*lines)[1].text, "new");
}

TEST_F(Process, FollowsItsLogThroughRotation) {
    spill(spec.log, "before\n");
    const auto cursor = await(manager->log_cursor("svc"));
    std::ofstream{spec.log, std::ios::app} << "one\nhalf";
    List heard;
    const auto stopped = await(manager->follow_log("svc", *cursor, [&](const host::LogLine& line) {
        heard.push_back(line.text);
        if (line.text == "one") std::ofstream{spec.log, std::ios::app} << " done\n";
        if (line.text == "half done") {
            fs::rename(spec.log, spec.log + ".1");
            std::ofstream{spec.log + ".1", std::ios::app} << "late\n";
            std::ofstream{spec.log} << "fresh\n";
        }
        return line.text != "fresh";
    }));
    ASSERT_TRUE(stopped);
    EXPECT_TRUE(*stopped);
    EXPECT_EQ(heard, (List{"one", "half done", "late", "fresh"}));
}

TEST_F(Process, JobsOutliveTheirStarterAndLeaveFiles) {
    host::Job job;
    job.name = "c7-s1";
    job.directory = (folder.path() / "jobs").string();
    job.argv = {"sh", "-c", "echo \"$WORD\"; while [ ! -e go ]; do sleep 0.02; done; exit 5"};
    job.argv[2] = "cd " + folder.path().string() + "; " + job.argv[2];
    job.environment = {{"WORD", "a b"}};
    EXPECT_EQ(await(manager->job_state(job))->is, Is::absent);
    const auto started = await(manager->start_job(job));
    ASSERT_TRUE(started) << describe(started.error());
    EXPECT_EQ(await(manager->job_state(job))->is, Is::running);
    EXPECT_EQ(await(manager->start_job(job)).error().kind, ErrorKind::conflict);
    spill(folder.path() / "go", "");
    host::JobState state;
    do state = *await(manager->job_state(job));
    while (state.is == Is::running);
    EXPECT_EQ(state.is, Is::ended);
    EXPECT_EQ(state.exit_code, 5);
    EXPECT_EQ(slurp(state.output_file), "a b\n");
    EXPECT_EQ(await(manager->start_job(job)).error().kind, ErrorKind::conflict);
}

TEST_F(Process, AJobThatIsClearedEnds) {
    host::Job job;
    job.name = "c7-s2";
    job.directory = (folder.path() / "jobs").string();
    job.argv = {"sleep", "600"};
    ASSERT_TRUE(await(manager->start_job(job)));
    ASSERT_TRUE(await(manager->clear_job(job)));
    EXPECT_EQ(await(manager->job_state(job))->is, Is::ended);
}

TEST(ProcessFacts, LeaveOutWhatTheStartersSessionSet) {
    const std::string hash(64, 'a');
    const auto facts = parse_facts("boot 01234567-89ab-cdef-0123-456789abcdef\npid 7\nstart 100\nticks 100\nenv " + hash +
                                   " SSH_CONNECTION\nenv " + hash + " SHLVL\nenv " + hash + " MODE\nend .\n");
    ASSERT_TRUE(facts);
    EXPECT_EQ(facts->environment_hashes, (std::map<std::string, std::string>{{"MODE", hash}}));
    EXPECT_EQ(facts->age_us, 1'000'000u);
    EXPECT_FALSE(parse_facts("boot 01234567-89ab-cdef-0123-456789abcdef\npid 7\n"));   // cut off
}

TEST(Override, ComesBackAsItWasWritten) {
    ProcessSpec spec;
    spec.name = "s";
    spec.state_dir = "/s";
    spec.command = {"vllm", "serve", "--profiler-config", "{}", "m"};
    host::Override change;
    change.prefix = {"nsys", "launch"};
    change.arguments = {"--x=a\nb\\n c", ""};
    change.environment = {{"E", "1\n2"}};
    change.removes = {"--profiler-config"};
    const host::Change rendered = render_override(spec, change);
    const auto start = parse_override(rendered.content);
    ASSERT_TRUE(start);
    EXPECT_EQ(start->command, (List{"nsys", "launch", "vllm", "serve", "m", "--x=a\nb\\n c", ""}));
    EXPECT_EQ(start->command, rendered.effective_argv);
    EXPECT_EQ(start->environment.at("E"), "1\n2");
    EXPECT_FALSE(parse_override("# only a comment\n"));
}

TEST(LogPosition, IsReadWholeOrNotAtAll) {
    const auto position = parse_position("2049:17:4096:0123456789abcdef/64");
    ASSERT_TRUE(position);
    EXPECT_EQ(to_text(*position), "2049:17:4096:0123456789abcdef/64");
    for (const char* bad : {"", "1:2:3", "1:2:x:h/1", "1:2:3:h", "1:2:3:h/65", "a:2:3:h/1", "s=1;i=2"})
        EXPECT_FALSE(parse_position(bad)) << bad;
}

}   // namespace
}   // namespace campaign::process
