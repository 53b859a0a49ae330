#include "daemon/report/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <optional>

#include "daemon/report/markdown.hpp"

using namespace campaign;
using namespace campaign::storage;
using testing::HasSubstr;
using testing::Not;

namespace {

constexpr const char* sweep = R"({"schema":"campaign.load/1","complete":true,"tunnelled":false,"levels":[
 {"concurrency":1,"requests":8,"completed":8,"failed":0,"output_throughput":81.25,"output_tokens_source":"usage","ttft_ms":{"n":8,"p50":12.3,"p99":15.0},
  "tpot_ms":{"n":8,"p50":12.41,"p95":12.9},"itl_ms":{"n":100,"p99":14.5},"e2el_ms":{"n":8,"p50":400.0},"client":{"late":true},"notes":[]},
 {"concurrency":128,"requests":3,"completed":0,"failed":3,"failures":{"http_status":3},"output_throughput":0,"output_tokens_source":"usage","ttft_ms":null,"tpot_ms":null}],
 "plateau":{"concurrency":1,"output_throughput":81.25,"reached":false}})";

constexpr const char* analysis =
    R"json({"schema":"campaign.trace/1","answer":"all-reduce: 6.81 ms of 13.2 ms a decode step over 122 operations (51.5 %)",
 "ranks":[{"rank":0,"decode_step_us":{"n":20,"p50":13200.0},"categories":[{"name":"comm.allreduce","per_step_us":6810.0,"count_per_step":122.0,"share":0.515},
 {"name":"unseen","per_step_us":null,"count_per_step":null,"share":0.1}],"top_kernels":[{"name":"k<a|b>","per_step_us":1.5,"count_per_step":2.0,"share":0.01}]}],
 "notes":["one note"]})json";

/// A small campaign in a real journal and vault.
class Report : public testing::Test {
protected:
    Report() {
        std::string pattern = (std::filesystem::temp_directory_path() / "campaign-report-XXXXXX").string();
        folder_ = ::mkdtemp(pattern.data());
        journal_ = std::move(Journal::open(folder_ / "journal.db")).value();
        reader_ = std::move(Reader::open(folder_ / "journal.db")).value();
        vault_.emplace(Vault::open(folder_ / "vault").value());
        CampaignRow row;
        row.name = "k25";
        row.state = "done";
        row.state_detail = "done; production verified";
        row.submitted_by = "ana";
        campaign_ = journal_->add_campaign(row).value();
    }
    ~Report() override {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }

    Id step(const std::string& path, StepState state = StepState::done, const std::string& outcome = "{}",
            const std::string& evidence = "") {
        StepRow row;
        row.campaign = campaign_;
        row.path = path;
        row.input_hash = "h";
        row.host = "gpu1";
        row.command = "campaign-agent load spec.json result.json";
        const Id id = journal_->begin_step(row).value();
        EXPECT_TRUE(journal_->end_step(id, state, outcome, evidence, 1));
        return id;
    }

    std::string artifact(Id from, const std::string& kind, const std::string& name, const std::string& bytes) {
        const Stored stored = vault_->put(bytes).value();
        ArtifactRow row;
        row.campaign = campaign_;
        row.step = from;
        row.kind = kind;
        row.name = name;
        row.sha256 = stored.sha256;
        row.size = stored.size;
        row.origin = "gpu1:/x";
        EXPECT_TRUE(journal_->add_artifact(row));
        return stored.sha256;
    }

    void phase(int ordinal, const std::string& name, const std::string& state, const std::string& method,
               const std::string& summary) {
        PhaseRow row;
        row.campaign = campaign_;
        row.ordinal = ordinal;
        row.name = name;
        row.state = state;
        row.method = method;
        row.summary_json = summary;
        EXPECT_TRUE(journal_->put_phase(row));
    }

    void event(const std::string& kind, const std::string& data) {
        EventRow row;
        row.campaign = campaign_;
        row.kind = kind;
        row.data_json = data;
        EXPECT_TRUE(journal_->add_event(row));
    }

    std::string text() { return report::markdown(*reader_, *vault_, campaign_).value(); }

    std::filesystem::path folder_;
    std::unique_ptr<Journal> journal_;
    std::unique_ptr<Reader> reader_;
    std::optional<Vault> vault_;
    Id campaign_ = 0;
};

}   // namespace

TEST_F(Report, EveryNumberLeadsToItsStepCommandAndHash) {
    const Id from = step("how-fast/macro/5/collect-result");
    const std::string hash = artifact(from, "load-result", "sweep.json", sweep);
    const std::string shown = text();
    EXPECT_THAT(shown,
                HasSubstr("| 1 | 8 | 8 | 0 | 81.2 | 12.3 | 15.0 | 12.41 | 12.90 | 14.50 | 400.0 | client late | [^1] |"));
    EXPECT_THAT(shown, HasSubstr("[^1]: step s1 (`how-fast/macro/5/collect-result`), command: campaign-agent load spec.json "
                                 "result.json; artifact sweep.json from gpu1:/x, SHA-256 `" +
                                 hash + "`"));
}

TEST_F(Report, WhatWasNotMeasuredIsSaidAndFailedRequestsStandApart) {
    artifact(step("how-fast/macro/5/collect-result"), "load-result", "sweep.json", sweep);
    const std::string shown = text();
    EXPECT_THAT(shown, HasSubstr("| 128 | 3 | 0 | 3 | not measured | not measured | not measured | not measured |"));
    EXPECT_THAT(
        shown, HasSubstr("concurrency 128: 3 requests failed with http\\_status; they are in no latency and no throughput"));
}

TEST_F(Report, TheAnswerComesFirst) {
    artifact(step("deep/torch-profile/19/analyze"), "analysis", "analysis.json", analysis);
    event(
        "production",
        R"({"subject":"kimi","host":"gpu1","unit":"vllm.service","state":"verified","detail":"= argv","downtime_s":4320,"undos":0})");
    const std::string shown = text();
    EXPECT_THAT(
        shown,
        HasSubstr(
            "- Where a decode step goes: all-reduce: 6.81 ms of 13.2 ms a decode step over 122 operations (51.5 %) [^1]"));
    EXPECT_THAT(shown, HasSubstr("| comm.allreduce | 6810.0 | 122.0 | 51.5 % |"));
    EXPECT_THAT(shown, HasSubstr("| unseen | not measured | not measured | 10.0 % |"));
    EXPECT_THAT(shown, HasSubstr("- Production: kimi: verified."));
    EXPECT_THAT(shown, HasSubstr("**verified**, down 1 h 12 min in all."));
}

TEST_F(Report, AnArtifactWhoseBytesChangedGivesNoNumber) {
    const std::string hash = artifact(step("how-fast/macro/5/collect-result"), "load-result", "sweep.json", sweep);
    const auto place = vault_->find(hash).value();
    std::filesystem::permissions(place, std::filesystem::perms::owner_all);
    std::filesystem::resize_file(place, 40);
    const std::string shown = text();
    EXPECT_THAT(shown, Not(HasSubstr("81.2")));
    EXPECT_THAT(shown, HasSubstr("is missing or damaged in the vault"));
}

TEST_F(Report, NamesEveryCandidateAndWhyItLost) {
    DecisionRow decision;
    decision.campaign = campaign_;
    decision.phase = "deep";
    decision.question = "where a decode step goes";
    decision.chosen = "macro";
    decision.policy = "no downtime is allowed";
    decision.cannot_show = "kernel names";
    decision.state = "final";
    decision.candidates_json =
        R"([{"method":"torch-profile","verdict":"forbidden","why":"policy.restart is never","shows":"kernels","evidence":"404","downtime_s":[4320,4560]},
      {"method":"macro","verdict":"chosen","why":"works without downtime","shows":"latency","evidence":"","downtime_s":[0,0]}])";
    ASSERT_TRUE(journal_->add_decision(decision));
    const std::string shown = text();
    EXPECT_THAT(
        shown,
        HasSubstr("| torch-profile | 1 h 12 min to 1 h 16 min | kernels | forbidden | policy.restart is never | 404 |"));
    EXPECT_THAT(shown, HasSubstr("What the chosen method cannot show: kernel names."));
}

TEST_F(Report, AFailedStepIsSaidWithItsCause) {
    step(
        "session/kimi/profiler/4/await-ready", StepState::failed,
        R"({"value":{},"error":{"kind":"failed","what":"vllm.service did not become ready","why":"cuda_oom","evidence":"CUDA out of memory"}})");
    EXPECT_THAT(text(), HasSubstr("step s1 failed: vllm.service did not become ready: cuda\\_oom"));
}

TEST_F(Report, HostileTextIsNoMarkup) {
    event("note", "{\"text\":\"[x](javascript:1) <script>|\\u001b[31m\",\"mark\":\"m\"}");
    const std::string shown = text();
    EXPECT_THAT(shown, HasSubstr("\\[x\\](javascript:1) &lt;script&gt;\\|"));
    EXPECT_THAT(shown, Not(HasSubstr("<script>")));
    EXPECT_THAT(shown, Not(HasSubstr("\x1b")));
}

TEST_F(Report, HostileNamesStayInTheirCells) {
    StepRow row;
    row.campaign = campaign_;
    row.path = "a`|b/1/x";
    row.input_hash = "h";
    row.command = "cat '[x](http://evil)' | sh\n## heading";
    const Id from = journal_->begin_step(row).value();
    artifact(from, "load-result", "<img src=x>|`.json", "{}");
    artifact(from, "load-result", "sweep.json", "[[[[");
    const std::string shown = text();
    EXPECT_THAT(shown, HasSubstr("| &lt;img src=x&gt;\\|\\`.json | load-result | s1 | 2 B |"));
    EXPECT_THAT(shown, HasSubstr("## a\\`\\|b: what a client sees\n\nThe result cannot be read, so no number is shown."));
    EXPECT_THAT(shown, HasSubstr("sweep.json (SHA-256"));
    EXPECT_THAT(shown, Not(HasSubstr("\n## heading")));
    EXPECT_THAT(shown, Not(HasSubstr("[x](")));
}

TEST_F(Report, ALevelThatWasNotRunHasItsReasonAndNoNumber) {
    artifact(
        step("how-fast/macro/5/collect-result"), "load-result", "sweep.json",
        R"({"complete":false,"error":"the server went away","tunnelled":true,"levels":[{"concurrency":64,"status":"not_run",
             "reason":"the time was over","requests":0,"completed":0,"failed":0,"output_throughput":0,"output_tokens_source":"none"}]})");
    const std::string shown = text();
    EXPECT_THAT(shown, HasSubstr("| 64 | 0 | 0 | 0 | not measured | not measured |"));
    EXPECT_THAT(shown, HasSubstr("not run: the time was over"));
    EXPECT_THAT(
        shown,
        HasSubstr("**The run did not end by itself:** what it had measured until then follows. the server went away"));
    EXPECT_THAT(shown, HasSubstr("through an ssh tunnel"));
    EXPECT_THAT(shown, HasSubstr("- Nothing was measured yet."));
}

TEST_F(Report, QuotesTheSweepThatFoundThePlateau) {
    const std::string with_plateau =
        R"({"levels":[{"concurrency":128,"completed":9,"output_throughput":1536.0}],"plateau":{"concurrency":128,"output_throughput":1536.0,"reached":true}})";
    artifact(step("deep/macro/5/collect-result"), "load-result", "sweep.json", sweep);
    artifact(step("how-fast/macro/5/collect-result"), "load-result", "sweep.json", with_plateau);
    EXPECT_THAT(text(), HasSubstr("- Output throughput levels off at 1536 tok/s at concurrency 128 [^"));
}

TEST_F(Report, AP99OfFewRequestsSaysSo) {
    artifact(step("how-fast/macro/5/collect-result"), "load-result", "sweep.json", sweep);
    EXPECT_THAT(text(), HasSubstr("TTFT p99 at concurrency 1 comes from fewer than 100 requests"));
}

TEST_F(Report, TheWarmUpIsPreliminary) {
    artifact(step("warm-up/warm-up/5/collect-result"), "load-result", "warm-up.json", sweep);
    const std::string shown = text();
    EXPECT_THAT(shown, HasSubstr("## warm-up: warm-up (preliminary: the server may have been cold)"));
    EXPECT_THAT(shown, HasSubstr("- Nothing was measured yet.")) << "a warm-up is no answer";
}

TEST_F(Report, TimesBesideACaptureAreNotShown) {
    artifact(step("deep/torch-profile/19/analyze"), "analysis", "analysis.json", analysis);
    artifact(step("deep/torch-profile/12/collect-result"), "load-result", "capture-load.json", sweep);
    const std::string shown = text();
    EXPECT_THAT(shown, HasSubstr("capture-load.json holds the requests that ran beside the capture."));
    EXPECT_THAT(shown, Not(HasSubstr("81.2")));
}

TEST_F(Report, AnAnalysisWithoutAnswerSaysWhy) {
    artifact(step("deep/torch-profile/19/analyze"), "analysis", "analysis.json",
             R"({"answer":null,"cannot_answer":"rank 1 is not complete","ranks":[{"rank":0,"decode_step_us":null}]})");
    const std::string shown = text();
    EXPECT_THAT(shown, HasSubstr("No answer: rank 1 is not complete [^1]"));
    EXPECT_THAT(shown, HasSubstr("Rank 0: no decode steps"));
}

TEST_F(Report, ShowsEachCheckOfTheLastVerification) {
    step(
        "restore/1/r1/5/verify-as-found", StepState::failed,
        R"({"value":{"checks":[{"check":"health","ok":false,"seen":"503"}]},"error":{"kind":"failed","what":"not as found","why":"health: 503"}})");
    EXPECT_THAT(text(), HasSubstr("| health | **NOT as found** | 503 |\n\nnot as found: health: 503"));
    step("restore/1/r2/5/verify-as-found", StepState::done,
         R"({"value":{"checks":[{"check":"health","ok":true,"seen":"200"}]}})");
    const std::string shown = text();
    EXPECT_THAT(shown, HasSubstr("| health | as found | 200 |"));
    EXPECT_THAT(shown, Not(HasSubstr("**NOT as found**")));
}

TEST_F(Report, APivotSaysWhatItCannotShowAndWhyTheOthersLost) {
    phase(1, "deep", "pivoted", "macro", R"({"cannot_show":"kernel names"})");
    DecisionRow decision;
    decision.campaign = campaign_;
    decision.phase = "deep";
    decision.chosen = "macro";
    decision.state = "final";
    decision.candidates_json =
        R"([{"method":"torch-profile","verdict":"deferred","why":"needs approval","downtime_s":null},{"method":"macro","verdict":"chosen"}])";
    ASSERT_TRUE(journal_->add_decision(decision));
    const std::string shown = text();
    EXPECT_THAT(shown, HasSubstr("- deep is pivoted (macro); it cannot show kernel names"));
    EXPECT_THAT(shown, HasSubstr("- deep by torch-profile: deferred, needs approval (D1)"));
    EXPECT_THAT(shown, HasSubstr("Deferred until it is allowed: torch-profile."));
    EXPECT_THAT(shown, HasSubstr("| torch-profile | unknown |"));
}

TEST_F(Report, AFailedCampaignBeginsWithItsCause) {
    ASSERT_TRUE(journal_->set_campaign_state(
        campaign_, "failed", "preflight failed", 1'764'600'000'000'000,
        R"({"kind":"refused","what":"gpu1 refused the key","why":"Permission denied","evidence":"publickey","next":"ssh-add"})"));
    const std::string shown = text();
    EXPECT_THAT(shown, HasSubstr("State: **failed**, preflight failed."));
    EXPECT_THAT(shown,
                HasSubstr("**It failed:** gpu1 refused the key: Permission denied\n\nSeen: publickey\n\nNext: ssh-add"));
    EXPECT_THAT(shown, HasSubstr("- No phase of the plan was begun."));
    EXPECT_THAT(shown, HasSubstr("- Nothing was measured.\n"));
}

TEST_F(Report, AStepInDoubtIsNoResult) {
    step("session/kimi/profiler/9/start-profile", StepState::in_doubt, "{}", "the link was cut before the answer");
    EXPECT_THAT(text(), HasSubstr("- step s1 is in doubt: the link was cut before the answer [^1]"));
}

TEST_F(Report, TheTimelineTellsDowntimeAndWhoApproved) {
    event("approval", R"({"subject":"D3","candidate":"torch-profile","by":"ana","state":"given"})");
    event("production", R"({"subject":"kimi","state":"changed","detail":"serves in profiler mode","downtime_s":2160})");
    event("level", R"({"subject":"how-fast","concurrency":64})");
    const std::string shown = text();
    EXPECT_THAT(shown, HasSubstr("| 1970-01-01 00:00:00 | approval D3: given | torch-profile by ana |"));
    EXPECT_THAT(shown, HasSubstr("| production kimi: changed | serves in profiler mode; down 36 min 00 s so far |"));
    EXPECT_THAT(shown, Not(HasSubstr("| level")));
}

TEST_F(Report, TheEnvironmentIsWhatPreflightSaw) {
    step("preflight/kimi/2/read-baseline", StepState::done,
         R"({"value":{"baseline":{"running_argv":["vllm","serve","kimi","--api-key=***"]}}})", "active, invocation 5d1e");
    const std::string shown = text();
    EXPECT_THAT(shown, HasSubstr("- gpu1, read-baseline: active, invocation 5d1e [^1]"));
    EXPECT_THAT(shown, HasSubstr("  - command line: vllm serve kimi --api-key=\\*\\*\\*"));
}

TEST_F(Report, SaysSoWhenNothingWasMeasured) {
    EXPECT_THAT(text(), HasSubstr("- Nothing was measured yet."));
}

TEST_F(Report, AnUnknownCampaignIsAnError) {
    EXPECT_EQ(report::markdown(*reader_, *vault_, 99).error().kind, ErrorKind::not_found);
}

TEST(Markdown, NothingIsNoNumber) {
    EXPECT_EQ(report::number(std::nullopt, 2), "not measured");
    EXPECT_EQ(report::number(1e300, 0).size(), 301U);
}

TEST(Markdown, ACodeSpanCannotBeLeft) {
    EXPECT_EQ(report::code("a`b|c"), "`a'b'c`");
    EXPECT_EQ(report::code(""), "-");
}

TEST(Markdown, NumbersHaveFixedDigits) {
    EXPECT_EQ(report::number(12.345, 2), "12.35");
    EXPECT_EQ(report::row({"a", ""}), "| a | - |\n");
}
