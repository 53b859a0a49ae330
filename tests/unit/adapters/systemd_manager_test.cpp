// The flows of a systemd unit, with the real scripts run by a real sh; only systemctl and its like are the test's own.
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "adapters/servers/server.hpp"
#include "adapters/systemd/systemd.hpp"
#include "adapters/systemd/unit_text.hpp"
#include "base/json.hpp"
#include "base/sha256.hpp"
#include "base/text.hpp"
#include "sh_host.hpp"

namespace campaign::systemd {
namespace {

namespace fs = std::filesystem;
using List = std::vector<std::string>;
using test::await;
using test::slurp;
using test::spill;

const std::string unit = "vllm.service";

/// systemd as far as the scripts see it: what is loaded changes only by a reload.
class Systemd : public ::testing::Test {
protected:
    Systemd() : host{std::make_shared<test::ShHost>(folder.path())}, manager{make_manager(host, servers::detect_kind)} {
        host->program("systemctl", R"sh(#!/bin/sh
echo "$*" >>"$FAKE/asked"
case $1 in
    show) case "$*" in
              *--value*LoadState*) cat "$FAKE/load" ;;
              *--value*ActiveState*) echo inactive ;;
              *) cat "$FAKE/show" ;;
          esac ;;
    daemon-reload) [ ! -e "$FAKE/no-reload" ] || { echo denied >&2; exit 1; } ;;
    restart|stop) [ ! -e "$FAKE/no-restart" ] || { echo "Job failed" >&2; exit 1; } ;;
esac
)sh");
        host->program("busctl", "#!/bin/sh\ncat \"$FAKE/exec\" 2>/dev/null || { echo 'no bus' >&2; exit 1; }\n");
        load_unit({});
        host->before = [this](const host::Command& ran) {
            if (ran.argv.size() > 3 && ran.argv[3] == "reload") reload();
        };
    }

    /// What systemd makes of the fragment and our drop-in.
    virtual void reload() {
        List drop_ins;
        for (const auto& entry : fs::recursive_directory_iterator{host->units()}) {
            if (entry.is_regular_file()) drop_ins.push_back(entry.path().string());
        }
        load_unit(drop_ins);
    }

    void load_unit(const List& drop_ins) {
        List argv = command;
        std::string paths;
        for (const std::string& path : drop_ins) {
            const std::string real = host->units().string();   // what systemd knows as its own folder
            paths += (paths.empty() ? "" : " ") +
                     (path.starts_with(real) ? "/run/systemd/system" + path.substr(real.size()) : path);
            for (const std::string& line : split(slurp(path), '\n')) {
                if (line.starts_with("ExecStart=") && line.size() > 10) argv = split_words(line.substr(10)).value_or(List{});
            }
        }
        json::array words;
        for (const std::string& word : argv) words.emplace_back(word);
        spill(folder.path() / "exec",
              json::serialize(json::object{{"data", json::array{json::array{argv[0], words, json::array{}}}}}));
        spill(folder.path() / "load", load + "\n");
        spill(folder.path() / "show", "LoadState=" + load +
                                          "\nActiveState=active\nSubState=running\nMainPID=" + std::to_string(::getpid()) +
                                          "\nControlGroup=/no-such-group-here\nType=simple\nFragmentPath=/etc/"
                                          "hostname\nInvocationID=abc\nDropInPaths=" +
                                          paths + "\n");
    }

    std::string asked() const { return slurp(folder.path() / "asked"); }
    host::Change change() {
        host::Baseline baseline;
        baseline.state.loadable = true;
        baseline.how = "direct";
        baseline.configured_argv = command;
        baseline.exec_path = command[0];
        host::Override wanted;
        wanted.arguments = {"--profiler-config.profiler=torch", "--odd=50% \"$x\""};
        auto rendered = manager->render(unit, baseline, wanted);
        EXPECT_TRUE(rendered);
        return *rendered;
    }
    fs::path drop_in() const { return host->units() / (unit + ".d") / "zz-campaignd.conf"; }

    List command{"/opt/vllm/bin/vllm", "serve", "/m"};
    std::string load = "loaded";
    test::TempFolder folder;
    std::shared_ptr<test::ShHost> host;
    std::unique_ptr<host::ServiceManager> manager;
};

TEST_F(Systemd, LooksWithOneCommandAndWithoutRights) {
    const auto state = await(manager->look(unit));
    ASSERT_TRUE(state) << describe(state.error());
    EXPECT_TRUE(state->loadable);
    EXPECT_EQ(state->invocation, "abc");
    EXPECT_EQ(state->boot_id.size(), 36u);
    ASSERT_EQ(host->ran.size(), 1u);
    EXPECT_FALSE(host->ran[0].as_root);
}

TEST_F(Systemd, TakesABaselineWithoutAnySecretLeavingTheHost) {
    // This very test process stands for the server: its argv and environment are read from /proc.
    command = {slurp("/proc/self/cmdline").c_str()};
    ::setenv("SECRET_FOR_TEST", "hunter2", 1);
    load_unit({});
    const auto baseline = await(manager->baseline(unit));
    ASSERT_TRUE(baseline) << describe(baseline.error());
    EXPECT_EQ(baseline->configured_argv, command);
    ASSERT_EQ(host->ran.size(), 1u);
    EXPECT_TRUE(host->ran[0].as_root);
    EXPECT_EQ(json::serialize(to_json(*baseline)).find("hunter2"), std::string::npos);
    // PATH was there when the process began; its hash is that of the value.
    const auto path = baseline->environment_hashes.find("PATH");
    if (baseline->server_pid == ::getpid()) {
        ASSERT_NE(path, baseline->environment_hashes.end());
        EXPECT_EQ(path->second, sha256(std::getenv("PATH")));
    }
}

TEST_F(Systemd, AUnitThatIsNotThereIsNotFound) {
    load = "not-found";
    load_unit({});
    EXPECT_EQ(await(manager->baseline(unit)).error().kind, ErrorKind::not_found);
    EXPECT_FALSE(await(manager->look(unit))->exists);
}

TEST_F(Systemd, WithoutABusTheCommandLineIsUnavailable) {
    fs::remove(folder.path() / "exec");
    const auto baseline = await(manager->baseline(unit));
    ASSERT_FALSE(baseline);
    EXPECT_EQ(baseline.error().kind, ErrorKind::unavailable);
    EXPECT_NE(baseline.error().evidence.find("no bus"), std::string::npos);
}

TEST_F(Systemd, InstallsAndReadsBackExactlyWhatWasPlanned) {
    const host::Change planned = change();
    const auto installed = await(manager->install(unit, planned));
    ASSERT_TRUE(installed) << describe(installed.error());
    EXPECT_EQ(slurp(drop_in()), planned.content);
    EXPECT_EQ(installed->at("sha256").as_string(), planned.sha256);
    EXPECT_TRUE(await(manager->install(unit, planned)));   // safe to repeat

    const auto removed = await(manager->remove(unit, planned.path, planned.sha256));
    ASSERT_TRUE(removed) << describe(removed.error());
    EXPECT_TRUE(removed->at("removed").as_bool());
    EXPECT_FALSE(fs::exists(drop_in().parent_path()));
    const auto again = await(manager->remove(unit, planned.path, planned.sha256));
    ASSERT_TRUE(again) << describe(again.error());
    EXPECT_FALSE(again->at("removed").as_bool());
}

TEST_F(Systemd, RemovesADropInThatLoadsDifferently) {
    const host::Change planned = change();
    host->before = [this](const host::Command& ran) {
        if (ran.argv.size() > 3 && ran.argv[3] == "reload")
            load_unit({"/run/systemd/system/" + unit + ".d/zz-campaignd.conf"});
    };
    const auto installed = await(manager->install(unit, planned));   // systemd still shows the old command
    ASSERT_FALSE(installed);
    EXPECT_NE(installed.error().evidence.find("planned:"), std::string::npos);
    EXPECT_NE(installed.error().evidence.find("loaded:"), std::string::npos);
    EXPECT_FALSE(fs::exists(drop_in()));
    EXPECT_EQ(asked().find("restart"), std::string::npos);
}

TEST_F(Systemd, RemovesADropInThatMakesTheUnitUnloadable) {
    const host::Change planned = change();
    host->before = [this](const host::Command& ran) {
        if (ran.argv.size() <= 3 || ran.argv[3] != "reload") return;
        load = fs::exists(drop_in()) ? "bad-setting" : "loaded";
        reload();
    };
    const auto installed = await(manager->install(unit, planned));
    ASSERT_FALSE(installed);
    EXPECT_EQ(installed.error().kind, ErrorKind::failed);
    EXPECT_NE(installed.error().evidence.find("bad-setting"), std::string::npos);
    EXPECT_FALSE(fs::exists(drop_in()));
}

TEST_F(Systemd, AnnouncesAMaskedDropIn) {
    const host::Change planned = change();
    host->before = [](const host::Command&) {};   // no reload ever lists our file
    const auto installed = await(manager->install(unit, planned));
    ASSERT_FALSE(installed);
    EXPECT_NE(installed.error().evidence.find("masked"), std::string::npos);
}

TEST_F(Systemd, DoesNotTouchAFileOfAnotherContent) {
    const host::Change planned = change();
    spill(drop_in(), "[Service]\n# somebody else's\n");
    const auto removed = await(manager->remove(unit, planned.path, planned.sha256));
    ASSERT_FALSE(removed);
    EXPECT_EQ(removed.error().kind, ErrorKind::conflict);
    EXPECT_TRUE(fs::exists(drop_in()));
}

TEST_F(Systemd, ALostLinkDuringTheReloadStaysInDoubt) {
    const host::Change planned = change();
    host->fault = [](const host::Command& ran) -> std::optional<Error> {
        if (ran.argv.size() > 3 && ran.argv[3] == "reload") return Error{ErrorKind::in_doubt, "the link went", "", "", ""};
        return std::nullopt;
    };
    EXPECT_EQ(await(manager->install(unit, planned)).error().kind, ErrorKind::in_doubt);
    EXPECT_TRUE(fs::exists(drop_in()));   // nothing is undone blindly
}

TEST_F(Systemd, InstallTakesOnlyADropInOfOurs) {
    host::Change foreign = change();
    foreign.path = "/etc/systemd/system/vllm.service.d/zz-campaignd.conf";
    EXPECT_EQ(await(manager->install(unit, foreign)).error().kind, ErrorKind::usage);
    EXPECT_EQ(await(manager->install("-x.service", change())).error().kind, ErrorKind::usage);
}

TEST_F(Systemd, RestartsOnceAfterClearingTheStartLimit) {
    ASSERT_TRUE(await(manager->restart(unit)));
    EXPECT_NE(asked().find("reset-failed -- vllm.service\nrestart --no-block -- vllm.service\n"), std::string::npos);
    EXPECT_TRUE(host->ran.back().as_root);
}

TEST_F(Systemd, NeverRestartsAUnitThatDoesNotLoad) {
    load = "bad-setting";
    load_unit({});
    EXPECT_EQ(await(manager->restart(unit)).error().kind, ErrorKind::conflict);
    EXPECT_EQ(asked().find("restart"), std::string::npos);
}

TEST_F(Systemd, ARefusedRestartSaysWhy) {
    spill(folder.path() / "no-restart", "");
    const auto restarted = await(manager->restart(unit));
    ASSERT_FALSE(restarted);
    EXPECT_EQ(restarted.error().kind, ErrorKind::refused);
    EXPECT_NE(restarted.error().evidence.find("Job failed"), std::string::npos);
}

TEST_F(Systemd, ReadsTheJournalAfterACursorAndNoticesAGap) {
    host->program("journalctl", R"sh(#!/bin/sh
echo "$*" >>"$FAKE/journal-asked"
case "$*" in
    *--cursor=c1*-u*) printf '%s\n' '{"__CURSOR":"c1","MESSAGE":"seen before"}' '{"__CURSOR":"c2","MESSAGE":"loading"}' 'noise' '{"__CURSOR":"c3","MESSAGE":"ready"}' ;;
    *--cursor=c1*) echo '{"__CURSOR":"c1"}' ;;
    *--cursor=*) echo '{"__CURSOR":"c9"}' ;;
    *) echo '{"__CURSOR":"c1","_PID":"1"}' ;;
esac
)sh");
    EXPECT_EQ(*await(manager->log_cursor(unit)), "c1");
    EXPECT_EQ(slurp(folder.path() / "journal-asked").find("-u"),
              std::string::npos);   // a silent unit has no cursor of its own
    const auto lines = await(manager->read_log(unit, "c1", 10));
    ASSERT_TRUE(lines);
    ASSERT_EQ(lines->size(), 2u);
    EXPECT_EQ((*lines)[1].cursor, "c3");
    EXPECT_EQ(await(manager->read_log(unit, "c1", 1))->size(), 1u);
    List heard;
    const auto stopped = await(manager->follow_log(unit, "c1", [&](const host::LogLine& line) {
        heard.push_back(line.text);
        return line.text != "ready";
    }));
    ASSERT_TRUE(stopped);
    EXPECT_TRUE(*stopped);
    EXPECT_EQ(heard, (List{"loading", "ready"}));
    EXPECT_EQ(await(manager->read_log(unit, "vacuumed", 10)).error().kind, ErrorKind::not_found);
}

class Jobs : public Systemd {
protected:
    Jobs() {
        load = "not-found";
        load_unit({});
        // Runs the command at once, with '$' halved as systemd does, and remembers the options.
        host->program("systemd-run", R"sh(#!/bin/sh
echo "$*" >>"$FAKE/options"
while [ "$1" != -- ]; do shift; done; shift
[ ! -e "$FAKE/taken" ] || { echo "Unit campaignd-j.service already exists." >&2; exit 1; }
sh=$1 c=$2 text=$(printf '%s' "$3" | sed 's/\$\$/$/g'); shift 3
"$sh" "$c" "$text" "$@"
exit 0
)sh");
        job.name = "c7-s3-1";
        job.directory = (folder.path() / "jobs").string();
        job.argv = {"sh", "-c", "echo out; echo err >&2; exit 3"};
    }
    void show(const std::string& text) { spill(folder.path() / "show", text); }
    host::Job job;
};

TEST_F(Jobs, LeaveTheirOutputAndStatusInFiles) {
    job.limit = Millis{90'500};
    job.cpus = {2, 3};
    ASSERT_TRUE(await(manager->start_job(job)));
    const auto state = await(manager->job_state(job));
    ASSERT_TRUE(state);
    EXPECT_EQ(state->is, host::JobState::Is::ended);
    EXPECT_EQ(state->exit_code, 3);
    EXPECT_EQ(slurp(state->output_file), "out\n");
    EXPECT_EQ(slurp(state->errors_file), "err\n");
    const std::string options = slurp(folder.path() / "options");
    for (const char* option :
         {"--unit=campaignd-c7-s3-1.service", "RemainAfterExit=yes", "RuntimeMaxSec=91", "CPUAffinity=2 3"}) {
        EXPECT_NE(options.find(option), std::string::npos) << option;
    }
}

TEST_F(Jobs, AreNeverStartedTwice) {
    ASSERT_TRUE(await(manager->start_job(job)));
    EXPECT_EQ(await(manager->start_job(job)).error().kind, ErrorKind::conflict);   // its result is there
    job.name = "c7-s3-2";
    load = "loaded";
    load_unit({});
    EXPECT_EQ(await(manager->start_job(job)).error().kind, ErrorKind::conflict);   // its unit is there
    load = "not-found";
    load_unit({});
    spill(folder.path() / "taken", "");
    EXPECT_EQ(await(manager->start_job(job)).error().kind, ErrorKind::conflict);   // made by another in between
}

TEST_F(Jobs, AnAbsentUnitIsNoSuccess) {
    show("LoadState=not-found\nActiveState=inactive\nResult=success\nExecMainStatus=0\n");
    EXPECT_EQ(await(manager->job_state(job))->is, host::JobState::Is::absent);
}

TEST_F(Jobs, TellRunningKilledAndTimedOutApart) {
    show("LoadState=loaded\nActiveState=active\nSubState=running\n");
    EXPECT_EQ(await(manager->job_state(job))->is, host::JobState::Is::running);
    show("LoadState=loaded\nActiveState=failed\nSubState=failed\nResult=signal\nExecMainCode=2\nExecMainStatus=9\n");
    EXPECT_EQ(await(manager->job_state(job))->exit_code, 137);
    show("LoadState=loaded\nActiveState=failed\nSubState=failed\nResult=timeout\nExecMainCode=2\nExecMainStatus=15\n");
    EXPECT_EQ(await(manager->job_state(job))->exit_code, 124);
}

TEST_F(Jobs, WithOddNamesAreRefused) {
    for (const char* name : {"", "A", "a b", "a/../b", "a;b"}) {
        job.name = name;
        EXPECT_EQ(await(manager->start_job(job)).error().kind, ErrorKind::usage) << name;
    }
    EXPECT_TRUE(host->ran.empty());
}

TEST_F(Jobs, AreClearedByStopAndReset) {
    ASSERT_TRUE(await(manager->clear_job(job)));
    EXPECT_NE(asked().find("stop -- campaignd-c7-s3-1.service\nreset-failed -- campaignd-c7-s3-1.service\n"),
              std::string::npos);
}

}   // namespace
}   // namespace campaign::systemd
