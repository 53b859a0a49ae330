// What a look at a unit means, and the drop-in that follows from it.
#include "adapters/systemd/facts.hpp"

#include <gtest/gtest.h>

#include "adapters/servers/server.hpp"
#include "adapters/systemd/base64.hpp"
#include "base/text.hpp"

namespace campaign::systemd {
namespace {

using List = std::vector<std::string>;
const std::string unit = "vllm-kimi.service";

/// A healthy unit that starts vLLM itself.
UnitFacts healthy(List command = {"/opt/vllm/bin/vllm", "serve", "/m", "--port", "8000"}) {
    UnitFacts facts;
    facts.boot_id = "01234567-89ab-cdef-0123-456789abcdef";
    facts.properties = {
        {"LoadState", "loaded"}, {"ActiveState", "active"}, {"SubState", "running"},       {"MainPID", "10"},
        {"Type", "simple"},      {"User", "llm"},           {"KillMode", "control-group"}, {"TimeoutStopUSec", "1min 30s"},
        {"StartLimitBurst", "5"}};
    ProcessFact server;
    server.pid = 10;
    server.parent = 1;
    server.started = 1000;
    server.argv = command;
    server.argv.insert(server.argv.begin(), "/opt/vllm/bin/python3");
    server.environment_hashes = {{"HF_HOME", "h"}};
    facts.processes = {server, {11, 10, 1001, {"VLLM::EngineCore"}, false, {}}, {12, 10, 1001, server.argv, false, {}}};
    facts.start = {{command[0], std::move(command), {}}};
    return facts;
}

host::Baseline look_at(const UnitFacts& facts) {
    return judge(unit, facts, servers::detect_kind);
}

std::string first_code(const UnitFacts& facts) {
    const host::Baseline baseline = look_at(facts);
    return baseline.obstacles.empty() ? "" : baseline.obstacles.front().code;
}

host::Override profiler() {
    host::Override change;
    change.arguments = {"--profiler-config.profiler=torch"};
    change.marker = "campaign 7 of anna\nexpires 2026-12-02";
    return change;
}

Result<host::Change> render(const UnitFacts& facts, const host::Override& change = profiler()) {
    return render_drop_in(unit, look_at(facts), change, servers::detect_kind);
}

std::string refusal(const UnitFacts& facts, const host::Override& change = profiler()) {
    const auto rendered = render(facts, change);
    return rendered ? "not refused" : rendered.error().why.substr(0, rendered.error().why.find(':'));
}

TEST(Judge, FindsTheServerAmongItsWorkers) {
    const host::Baseline baseline = look_at(healthy());
    EXPECT_EQ(baseline.server_pid, 10);
    EXPECT_EQ(baseline.server_kind, "vllm");
    EXPECT_EQ(baseline.how, "direct");
    EXPECT_EQ(baseline.user, "llm");
    EXPECT_EQ(baseline.stop_timeout_us, 90'000'000u);
    EXPECT_EQ(baseline.environment_hashes.count("HF_HOME"), 1u);
    EXPECT_TRUE(baseline.obstacles.empty());
}

TEST(Judge, LeavesOutWhatSystemdSetsAnewAtEachStart) {
    UnitFacts facts = healthy();
    for (const char* name : {"INVOCATION_ID", "JOURNAL_STREAM", "SYSTEMD_EXEC_PID"})
        facts.processes[0].environment_hashes[name] = "h";
    const host::Baseline baseline = look_at(facts);
    EXPECT_EQ(baseline.environment_hashes, (std::map<std::string, std::string>{{"HF_HOME", "h"}}));
}

TEST(Judge, TakesAnUnknownProgramThatTheUnitStartsItself) {
    UnitFacts facts = healthy({"/opt/own-server", "--port", "1"});
    facts.processes.resize(1);
    const host::Baseline baseline = look_at(facts);
    EXPECT_EQ(baseline.server_pid, 10);
    EXPECT_EQ(baseline.server_kind, "");
    EXPECT_TRUE(baseline.obstacles.empty());
    EXPECT_TRUE(render(facts));
}

TEST(Judge, NamesEachReasonNotToRestart) {
    UnitFacts two = healthy();
    two.processes.push_back({20, 1, 1000, {"vllm", "serve", "/other"}, false, {}});
    EXPECT_EQ(first_code(two), "several-servers");

    UnitFacts none = healthy();
    none.processes = {{10, 1, 1000, {"ray", "start", "--block"}, false, {}}};
    EXPECT_EQ(first_code(none), "no-server");

    UnitFacts down = healthy();
    down.properties["ActiveState"] = "inactive";
    down.processes.clear();
    EXPECT_EQ(first_code(down), "no-server");

    UnitFacts masked = healthy();
    masked.properties["LoadState"] = "masked";
    EXPECT_EQ(first_code(masked), "masked");

    UnitFacts transient = healthy();
    transient.properties["Transient"] = "yes";
    EXPECT_EQ(first_code(transient), "transient");

    UnitFacts edited = healthy();
    edited.properties["NeedDaemonReload"] = "yes";
    EXPECT_EQ(first_code(edited), "pending-edit");

    UnitFacts reloaded = healthy();   // daemon-reload was run, the restart not
    reloaded.start[0].argv.emplace_back("--new-flag");
    EXPECT_EQ(first_code(reloaded), "pending-edit");

    UnitFacts file = healthy();
    file.modified["/etc/default/vllm"] = 5000;
    EXPECT_EQ(first_code(file), "pending-edit");

    UnitFacts detached = healthy();
    detached.properties["KillMode"] = "process";
    detached.properties["MainPID"] = "0";
    EXPECT_EQ(first_code(detached), "detached");

    UnitFacts depended = healthy();
    depended.properties["BoundBy"] = "gateway.service multi-user.target";
    EXPECT_EQ(first_code(depended), "dependents");
    EXPECT_NE(look_at(depended).obstacles[0].sentence.find("gateway.service"), std::string::npos);

    UnitFacts leftover = healthy();
    leftover.properties["DropInPaths"] = "/run/systemd/system/" + unit + ".d/zz-campaignd.conf";
    EXPECT_EQ(first_code(leftover), "leftover");

    UnitFacts many = healthy();
    many.start.push_back(many.start[0]);
    EXPECT_EQ(first_code(many), "several-commands");
}

TEST(Judge, AFileThatIsOlderThanTheServerIsNoEdit) {
    UnitFacts facts = healthy();
    facts.modified = {{"/etc/default/vllm", 900}, {"/run/systemd/generator/x.service", 5000}};
    EXPECT_EQ(first_code(facts), "");
}

TEST(State, OfAUnitThatDoesNotExistSaysNothingElse) {
    const auto state = parse_look(
        "01234567-89ab-cdef-0123-456789abcdef\nLoadState=not-found\nActiveState=inactive\nResult=success\nExecMainStatus="
        "0\n");
    ASSERT_TRUE(state);
    EXPECT_FALSE(state->exists);
    EXPECT_EQ(state->result, "");
    EXPECT_EQ(state->exit_status, std::nullopt);
}

TEST(State, KnowsAKilledProcessFromAnExitedOne) {
    const std::string head = "01234567-89ab-cdef-0123-456789abcdef\nLoadState=loaded\nActiveState=failed\n";
    const auto killed = parse_look(head + "ExecMainCode=2\nExecMainStatus=9\n");
    ASSERT_TRUE(killed);
    EXPECT_EQ(killed->exit_status, 137);
    const auto exited = parse_look(head + "ExecMainCode=1\nExecMainStatus=2\nNRestarts=3\nJob=77\n");
    ASSERT_TRUE(exited);
    EXPECT_EQ(exited->exit_status, 2);
    EXPECT_EQ(exited->restarts, 3);
    EXPECT_TRUE(exited->job_pending);
    const auto running = parse_look(head + "ExecMainCode=0\nExecMainStatus=0\n");
    ASSERT_TRUE(running);
    EXPECT_EQ(running->exit_status, std::nullopt);
}

TEST(State, CutOffAnswersAreErrors) {
    EXPECT_FALSE(parse_look(""));
    EXPECT_FALSE(parse_look("bash: systemctl: not found\n"));
    EXPECT_FALSE(parse_look("01234567-89ab-cdef-0123-456789abcdef\n"));
    EXPECT_FALSE(parse_facts("boot 01234567-89ab-cdef-0123-456789abcdef\nshow TG9h\n"));
}

TEST(Render, RestatesTheCommandWithOursAtItsEnd) {
    UnitFacts facts = healthy({"/opt/vllm/bin/vllm", "serve", "${MODEL}", "--x", "{\"a\": \"50%\"}", "$ARGS"});
    facts.processes[0].argv = {
        "/opt/vllm/bin/python3", "/opt/vllm/bin/vllm", "serve", "/m", "--x", "{\"a\": \"50%\"}", "--y", "1"};
    facts.processes.resize(1);
    facts.start[0].flags = {"ignore-failure"};
    host::Override change = profiler();
    change.arguments.emplace_back("--price=$5");
    const auto rendered = render(facts, change);
    ASSERT_TRUE(rendered) << describe(rendered.error());
    EXPECT_EQ(rendered->path, "/run/systemd/system/vllm-kimi.service.d/zz-campaignd.conf");
    EXPECT_EQ(rendered->content,
              "# campaign 7 of anna\n# expires 2026-12-02\n[Service]\nExecStart=\n"
              "ExecStart=-/opt/vllm/bin/vllm serve ${MODEL} --x \"{\\\"a\\\": \\\"50%%\\\"}\" $ARGS "
              "--profiler-config.profiler=torch --price=$$5\n");
    EXPECT_EQ(rendered->effective_argv.back(), "--price=$$5");
    EXPECT_EQ(rendered->effective_argv[4], "{\"a\": \"50%\"}");
}

TEST(Render, LeavesTheCommandAloneWhenOnlyVariablesChange) {
    host::Override change;
    change.environment = {{"VLLM_TORCH_PROFILER_DIR", "/t/a b"}};
    const auto rendered = render(healthy(), change);
    ASSERT_TRUE(rendered);
    EXPECT_EQ(rendered->content, "[Service]\nEnvironment=\"VLLM_TORCH_PROFILER_DIR=/t/a b\"\n");
    EXPECT_EQ(rendered->effective_argv, healthy().start[0].argv);
}

TEST(Render, PutsAVariableInFrontWhenAnEnvironmentFileWouldBeatIt) {
    UnitFacts facts = healthy();
    facts.properties["EnvironmentFiles"] = "/etc/default/vllm (ignore_errors=no)";
    host::Override change;
    change.environment = {{"HF_HOME", "/other"}, {"NEW", "1"}};
    const auto rendered = render(facts, change);
    ASSERT_TRUE(rendered);
    EXPECT_NE(rendered->content.find("Environment=NEW=1\n"), std::string::npos);
    EXPECT_NE(rendered->content.find("ExecStart=/usr/bin/env HF_HOME=/other /opt/vllm/bin/vllm serve"), std::string::npos);
}

TEST(Render, ReplacesAnOptionInsteadOfAddingASecond) {
    UnitFacts facts = healthy({"/opt/vllm/bin/vllm", "serve", "/m", "--profiler-config", "{\"profiler\": \"cuda\"}",
                               "--port", "1", "--profiler-config.with_stack=true"});
    host::Override change = profiler();
    change.removes = {"--profiler-config"};
    const auto rendered = render(facts, change);
    ASSERT_TRUE(rendered);
    EXPECT_EQ(rendered->effective_argv,
              (List{"/opt/vllm/bin/vllm", "serve", "/m", "--port", "1", "--profiler-config.profiler=torch"}));
}

TEST(Render, PutsNsysInsideTheLaunchers) {
    UnitFacts facts = healthy({"/usr/bin/numactl", "--membind=0", "--", "/opt/vllm/bin/vllm", "serve", "/m"});
    facts.processes[0].argv = {"/opt/vllm/bin/python3", "/opt/vllm/bin/vllm", "serve", "/m"};
    facts.processes.resize(1);
    facts.properties["Type"] = "notify";
    host::Override change;
    change.prefix = {"/usr/bin/nsys", "launch"};
    const auto rendered = render(facts, change);
    ASSERT_TRUE(rendered);
    EXPECT_EQ(rendered->effective_argv, (List{"/usr/bin/numactl", "--membind=0", "--", "/usr/bin/nsys", "launch",
                                              "/opt/vllm/bin/vllm", "serve", "/m"}));
    for (const char* line : {"KillMode=mixed\n", "TimeoutStopSec=600\n", "NotifyAccess=all\n"}) {
        EXPECT_NE(rendered->content.find(line), std::string::npos) << line;
    }
}

TEST(Render, ContinuesAShellStringWithBothLayersOfQuoting) {
    UnitFacts facts = healthy({"/bin/bash", "-lc", "source /a && exec vllm serve /m"});
    facts.processes[0].argv = {"/opt/python3", "/opt/vllm", "serve", "/m"};
    facts.processes.resize(1);
    host::Override change = profiler();
    change.arguments = {"--name=it's $5"};
    const auto rendered = render(facts, change);
    ASSERT_TRUE(rendered) << describe(rendered.error());
    EXPECT_EQ(rendered->effective_argv[2], R"(source /a && exec vllm serve /m '--name=it'\''s $$5')");
    facts.start[0].argv[2] += " | tee /log";
    EXPECT_EQ(refusal(facts), "shell-string-complex");
}

TEST(Render, TrustsAScriptOnlyWhenItsArgumentsAreSeenInTheServer) {
    UnitFacts passes = healthy({"/usr/local/bin/serve-llm", "/m", "--port", "8000"});
    passes.processes[0].argv = {"python3", "/opt/vllm", "serve", "/m", "--port", "8000", "--fixed"};
    passes.processes.resize(1);
    EXPECT_TRUE(render(passes));
    UnitFacts fixed = healthy({"/opt/start.sh", "/m"});   // "$1" alone may have been passed on
    fixed.processes[0].argv = {"python3", "/opt/vllm", "serve", "/m", "--fixed"};
    fixed.processes.resize(1);
    EXPECT_EQ(refusal(fixed), "wrapper-fixed-args");
}

TEST(Render, OpensTheSandboxOnlyWhereThereIsOne) {
    host::Override change = profiler();
    change.writable = {"/var/lib/campaignd-profiles/kimi"};
    EXPECT_EQ(render(healthy(), change)->content.find("ReadWritePaths="), std::string::npos);
    UnitFacts strict = healthy();
    strict.properties["ProtectSystem"] = "strict";
    strict.properties["PrivateTmp"] = "yes";
    EXPECT_NE(render(strict, change)->content.find("ReadWritePaths=/var/lib/campaignd-profiles/kimi\n"), std::string::npos);
    change.writable = {"/tmp/traces"};
    EXPECT_EQ(refusal(strict, change), "folder");
}

TEST(Render, MountsTheFolderIntoAContainer) {
    UnitFacts facts = healthy({"/usr/bin/docker", "run", "--rm", "--name", "vllm", "vllm/vllm-openai:v1", "--model", "/m"});
    facts.processes = {{10, 1, 1000, facts.start[0].argv, false, {}},
                       {30, 29, 1000, {"python3", "/usr/bin/vllm", "serve", "--model", "/m"}, false, {}}};
    host::Override change = profiler();
    change.writable = {"/t"};
    change.environment = {{"A", "1"}};
    const auto rendered = render(facts, change);
    ASSERT_TRUE(rendered) << describe(rendered.error());
    EXPECT_EQ(rendered->effective_argv, (List{"/usr/bin/docker", "run", "--rm", "--name", "vllm", "-v", "/t:/t", "-e", "A=1",
                                              "vllm/vllm-openai:v1", "--model", "/m", "--profiler-config.profiler=torch"}));
    facts.start[0].argv = {"/usr/bin/docker", "start", "-a", "vllm"};
    EXPECT_EQ(refusal(facts), "container-created-elsewhere");
    facts.start[0].argv = {"/usr/bin/docker", "run", "--novel", "x", "image"};
    EXPECT_EQ(refusal(facts), "container-options-unknown");
}

TEST(DropInName, SortsBehindEveryOther) {
    EXPECT_EQ(drop_in_name({}), "zz-campaignd.conf");
    EXPECT_EQ(drop_in_name({"/etc/systemd/system/a.service.d/10-gpu.conf"}), "zz-campaignd.conf");
    EXPECT_EQ(drop_in_name({"/etc/systemd/system/service.d/zzz-local.conf"}), "zzzz-campaignd.conf");
    EXPECT_EQ(drop_in_name({"/etc/systemd/system/a.service.d/zz-campaignd.conf"}),
              "zzz-campaignd.conf");   // it would hide ours
    EXPECT_EQ(drop_in_name({"/etc/systemd/system/a.service.d/~last.conf"}), "");
}

TEST(Base64, RefusesWhatIsCutOff) {
    EXPECT_EQ(from_base64("YWI="), "ab");
    EXPECT_EQ(from_base64("YQ=="), "a");
    EXPECT_EQ(from_base64("YWJj"), "abc");
    EXPECT_EQ(from_base64(""), "");
    for (const char* bad : {"YWJ", "Y===", "YW J", "=AAA"}) EXPECT_EQ(from_base64(bad), std::nullopt) << bad;
}

}   // namespace
}   // namespace campaign::systemd
