#include "plans/parse.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace campaign::plans {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

const std::string base = R"(campaign: c
hosts:
  gpu1: {ssh: gpu1}
services:
  kimi: {host: gpu1, unit: kimi.service, url: "http://127.0.0.1:8000"}
)";
const std::string quick = "phases:\n  - {name: how-fast, measure: throughput}\n";

Plan accepted(const std::string& yaml) {
    auto result = parse(yaml);
    if (const auto* found = std::get_if<Diagnostics>(&result)) {
        ADD_FAILURE() << render(*found, "plan.yaml", yaml);
        return {};
    }
    return std::get<Plan>(std::move(result));
}

std::string codes(const std::string& yaml) {
    const auto result = parse(yaml);
    std::string out;
    if (const auto* found = std::get_if<Diagnostics>(&result))
        for (const Diagnostic& one : *found) out += (out.empty() ? "" : " ") + one.code;
    return out;
}

std::string example(const std::string& name) {
    std::ifstream in{std::filesystem::path{PLANS_EXAMPLES} / name};
    return {std::istreambuf_iterator<char>{in}, {}};
}

TEST(Parse, TheSketchOfTheDesignIsAPlan) {
    const Plan plan = accepted(R"(
campaign: decode-step-of-kimi
hosts:
  gpu1: {ssh: gpu1}                 # an alias of the ssh configuration
services:
  kimi: {host: gpu1, unit: vllm-kimi.service, url: "http://127.0.0.1:8000"}   # server, model, ranks: found out
policy:
  restart: ask                      # never | ask | window | allow
  window: "22:00-06:00 Europe/Zurich"
  max_downtime: 90m
phases:
  - name: how-fast
    measure: throughput             # TTFT, TPOT, ITL, tok/s over concurrency
    load: {concurrency: auto, input_tokens: 1024, output_tokens: 256}
    slo: {ttft_p99: 2s, tpot_p95: 25ms}
  - name: where-does-decode-go
    measure: decode-step            # best allowed method wins
    at: {concurrency: [1, 128]}
    capture: {warmup: 5, steps: 20}
    artifacts: {traces: excerpt}    # fetch | excerpt | leave
restore:
  probe: within 5%                  # of the same probe before the campaign
)");
    EXPECT_EQ(plan.name, "decode-step-of-kimi");
    EXPECT_EQ(plan.hosts.at("gpu1").ssh, "gpu1");
    EXPECT_EQ(plan.services.at("kimi").unit, "vllm-kimi.service");
    EXPECT_EQ(plan.policy.restart, Restart::ask);
    EXPECT_EQ(plan.policy.window, "22:00-06:00 Europe/Zurich");
    EXPECT_EQ(plan.policy.max_downtime, 90min);
    ASSERT_EQ(plan.phases.size(), 2U);
    EXPECT_EQ(plan.phases[0].service, "kimi");
    EXPECT_TRUE(plan.phases[0].load.concurrency.empty());
    EXPECT_EQ(plan.phases[0].slo_ttft_p99, 2s);
    EXPECT_EQ(plan.phases[0].slo_tpot_p95, 25ms);
    EXPECT_THAT(plan.phases[0].methods, ElementsAre(MethodKind::macro));
    EXPECT_THAT(plan.phases[1].methods, ElementsAre(MethodKind::torch_profile, MethodKind::nsys, MethodKind::macro));
    EXPECT_THAT(plan.phases[1].load.concurrency, ElementsAre(1, 128));
    EXPECT_EQ(plan.phases[1].capture.concurrency, 1);
    EXPECT_EQ(plan.phases[1].capture.steps, 20);
    EXPECT_EQ(plan.phases[1].traces, Traces::excerpt);
    EXPECT_DOUBLE_EQ(plan.restore.probe_within, 0.05);
    EXPECT_TRUE(plan.restore.verify_probe);
}

TEST(Parse, TheExamplesArePlans) {
    EXPECT_EQ(accepted(example("reference.yaml")).phases.size(), 3U);
    EXPECT_EQ(accepted(example("reference.yaml")).services.at("kimi").load_time, 36min);
    EXPECT_EQ(accepted(example("minimal.yaml")).phases.front().service, "kimi");
    EXPECT_EQ(accepted(example("window.yaml")).policy.restart, Restart::window);
    const Plan process = accepted(example("process.yaml"));
    EXPECT_TRUE(process.hosts.at("here").local);
    ASSERT_TRUE(process.services.at("pod").process.has_value());
    EXPECT_THAT(process.services.at("pod").process->command,
                ElementsAre("/usr/local/bin/vllm", "serve", "/models/kimi", "--port", "8000"));
    EXPECT_EQ(process.services.at("pod").process->environment.at("TOKENIZERS_PARALLELISM"), "false");
}

TEST(Parse, TheStoredSchemaIsTheOneThatValidates) {
    EXPECT_EQ(example("plan.schema.json"), json_schema());
}

TEST(Parse, WhatIsAbsentHasItsDocumentedDefault) {
    const Plan plan = accepted(base + quick);
    const Plan written = accepted(R"(campaign: c
hosts:
  gpu1: {ssh: gpu1, local: false, work_dir: /var/lib/campaignd-host, sudo: false}
services:
  kimi: {host: gpu1, unit: kimi.service, url: "http://127.0.0.1:8000", server: auto}
policy: {restart: never, max_downtime: 0s, approval_expires: 24h}
phases:
  - name: how-fast
    measure: throughput
    methods: [macro]
    service: kimi
    load: {concurrency: auto, input_tokens: 1024, output_tokens: 256, max_concurrency: 256}
    artifacts: {traces: fetch}
    time_limit: 4h
limits: {load: 90m, stall: 15m, command: 60s}
restore: {probe: within 25%, time_limit: 2h}
)");
    EXPECT_EQ(plan.hosts.at("gpu1").work_dir, written.hosts.at("gpu1").work_dir);
    EXPECT_EQ(plan.hosts.at("gpu1").sudo, written.hosts.at("gpu1").sudo);
    EXPECT_EQ(plan.services.at("kimi").server, written.services.at("kimi").server);
    EXPECT_EQ(plan.policy.restart, written.policy.restart);
    EXPECT_EQ(plan.policy.max_downtime, written.policy.max_downtime);
    EXPECT_EQ(plan.policy.approval_expires, written.policy.approval_expires);
    const Phase& one = plan.phases.at(0);
    const Phase& two = written.phases.at(0);
    EXPECT_EQ(one.service, two.service);
    EXPECT_EQ(one.methods, two.methods);
    EXPECT_EQ(one.load.concurrency, two.load.concurrency);
    EXPECT_EQ(one.load.input_tokens, two.load.input_tokens);
    EXPECT_EQ(one.load.output_tokens, two.load.output_tokens);
    EXPECT_EQ(one.load.max_concurrency, two.load.max_concurrency);
    EXPECT_EQ(one.traces, two.traces);
    EXPECT_EQ(one.time_limit, two.time_limit);
    EXPECT_EQ(plan.limits.load, written.limits.load);
    EXPECT_EQ(plan.limits.stall, written.limits.stall);
    EXPECT_EQ(plan.limits.command, written.limits.command);
    EXPECT_EQ(plan.restore.probe_within, written.restore.probe_within);
    EXPECT_EQ(plan.restore.time_limit, written.restore.time_limit);
    const Plan deep =
        accepted(base +
                 "phases:\n  - {name: d, measure: decode-step, capture: {warmup: 5, steps: 20, concurrency: 1, "
                 "input_tokens: 128, output_tokens: 64, stop_limit: 60m}}\n");
    const Capture usual;
    EXPECT_EQ(deep.phases[0].capture.warmup_steps, usual.warmup_steps);
    EXPECT_EQ(deep.phases[0].capture.steps, usual.steps);
    EXPECT_EQ(deep.phases[0].capture.input_tokens, usual.input_tokens);
    EXPECT_EQ(deep.phases[0].capture.output_tokens, usual.output_tokens);
    EXPECT_EQ(deep.phases[0].capture.stop_limit, usual.stop_limit);
}

TEST(Parse, ConcurrencyMayBeANumberAListOrAuto) {
    const auto levels = [](const std::string& text) {
        return accepted(base + "phases:\n  - {name: a, measure: throughput, load: {concurrency: " + text + "}}\n")
            .phases[0]
            .load.concurrency;
    };
    EXPECT_THAT(levels("8"), ElementsAre(8));
    EXPECT_THAT(levels("[1, 8, 64]"), ElementsAre(1, 8, 64));
    EXPECT_THAT(levels("auto"), ElementsAre());
}

TEST(Parse, TheProbeCanBeSwitchedOff) {
    EXPECT_FALSE(accepted(base + quick + "restore: {probe: off}\n").restore.verify_probe);
}

TEST(Parse, AJumpHostOfThePlanIsSpelledAsProxyJumpHasIt) {
    const Plan plan = accepted(R"(campaign: c
hosts:
  gate: {ssh: gw.example.org, user: ops, port: 2222}
  gpu1: {ssh: gpu1, jump: gate}
  gpu2: {ssh: gpu2, jump: ana@elsewhere}
services:
  kimi: {host: gpu1, unit: kimi.service, url: "http://127.0.0.1:8000"}
)" + quick);
    EXPECT_EQ(plan.hosts.at("gpu1").jump, "ops@gw.example.org:2222");
    EXPECT_EQ(plan.hosts.at("gpu2").jump, "ana@elsewhere");
}

TEST(Parse, SecretsAreAcceptedByReference) {
    const Plan plan = accepted(R"(campaign: c
hosts: {gpu1: {ssh: gpu1}}
services:
  a: {host: gpu1, unit: a.service, url: "http://[::1]:8000/", api_key: {file: /etc/campaignd/keys/a}}
  b: {host: gpu1, unit: b.service, url: "http://127.0.0.1:8001", api_key: {credential: keys_b}}
phases:
  - {name: x, measure: warm-up, service: a}
)");
    EXPECT_EQ(plan.services.at("a").api_key->file, "/etc/campaignd/keys/a");
    EXPECT_EQ(plan.services.at("b").api_key->credential, "keys_b");
    EXPECT_EQ(plan.services.at("a").url, "http://[::1]:8000");
}

TEST(Parse, TextThatOnlyLooksOddIsAccepted) {
    EXPECT_EQ(accepted(base + quick + "description: it's {not} a [list], nor a \"quote\" & more\n").description,
              "it's {not} a [list], nor a \"quote\" & more");
    EXPECT_EQ(accepted(base + quick + "description: |\n  \"one\n  [two\n  *three\n  \tfour\n").name, "c");
    EXPECT_EQ(accepted(base + quick + "description: 'it''s # no comment'   # but this is: \"\n").description,
              "it's # no comment");
    EXPECT_EQ(accepted("---\n" + base + quick).name, "c");
}

TEST(Parse, WindowsLineEndsAreAccepted) {
    std::string yaml;
    for (const char c : base + quick) yaml += c == '\n' ? std::string{"\r\n"} : std::string{c};
    EXPECT_EQ(accepted(yaml).name, "c");
}

TEST(Parse, AMissingKeyIsNotReportedTwiceWhenASlipExplainsIt) {
    EXPECT_EQ(codes(base + "phase:\n  - {name: a, measure: throughput}\n"), "P012");
    EXPECT_EQ(codes(base + quick + "policy: {restart: ask, max_downtme: 90m}\n"), "P012");
}

TEST(Parse, ErrorsAfterAnUnclosedQuoteAreStillFound) {
    EXPECT_EQ(codes("campaign: c\ndescription: \"open\n" + base.substr(12) + quick +
                    "policy: {restart: alow}\nlimits: {load: 5}\n"),
              "P002 P013 P015");
}

TEST(Parse, DeepNestingAndManyValuesEndInOneErrorEach) {
    EXPECT_NE(codes(std::string(100'000, '[')), "");
    EXPECT_NE(codes("a: " + std::string(2'000, '[') + std::string(2'000, ']') + "\n").find("P006"), std::string::npos);
    std::string many = base + quick + "description: [";
    for (int i = 0; i < 60'000; ++i) many += "1,";
    EXPECT_NE(codes(many + "]\n").find("P006"), std::string::npos);   // the line is too long
    std::string lines = base + quick + "description:\n";
    for (int i = 0; i < 30'000; ++i) lines += "- 1\n";
    EXPECT_NE(codes(lines).find("P006"), std::string::npos);
}

TEST(Parse, ThousandsOfErrorsAreCut) {
    std::string many;
    for (int i = 0; i < 5'000; ++i) many += "k" + std::to_string(i) + ": 1\n";
    const auto result = parse(many);
    const auto& found = std::get<Diagnostics>(result);
    EXPECT_EQ(found.size(), 201U);
    EXPECT_EQ(found.back().code, "P006");
}

TEST(Parse, EveryBeginningOfAPlanIsAPlanOrAClearError) {
    const std::string whole = example("reference.yaml");
    ASSERT_GT(whole.size(), 1000U);
    for (std::size_t size = 0; size < whole.size(); ++size) {
        const std::string part = whole.substr(0, size);
        const auto result = parse(part);
        if (const auto* found = std::get_if<Diagnostics>(&result)) {
            ASSERT_FALSE(found->empty()) << size;
            ASSERT_FALSE(found->front().message.empty()) << size;
        }
    }
}

}   // namespace
}   // namespace campaign::plans
