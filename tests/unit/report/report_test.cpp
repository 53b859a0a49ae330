#include "daemon/report/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "daemon/report/markdown.hpp"

using namespace campaign;
using namespace campaign::storage;
using testing::HasSubstr;
using testing::Not;

namespace {

constexpr const char* sweep = R"({"schema":"campaign.load/1","complete":true,"tunnelled":false,"levels":[
 {"concurrency":1,"completed":8,"failed":0,"output_throughput":81.25,"output_tokens_source":"usage","ttft_ms":{"n":8,"p50":12.3,"p99":15.0},
  "tpot_ms":{"n":8,"p50":12.41,"p95":12.9},"itl_ms":{"n":100,"p99":14.5},"e2el_ms":{"n":8,"p50":400.0},"client":{"late":true},"notes":[]},
 {"concurrency":128,"completed":0,"failed":3,"failures":{"http_status":3},"output_throughput":null,"output_tokens_source":"usage","ttft_ms":null,"tpot_ms":null}],
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
    EXPECT_THAT(shown, HasSubstr("| 1 | 8 | 0 | 81.2 | 12.3 | 15.0 | 12.41 | 12.90 | 14.50 | 400.0 | client late | [^1] |"));
    EXPECT_THAT(shown, HasSubstr("[^1]: step s1 (`how-fast/macro/5/collect-result`), command: campaign-agent load spec.json "
                                 "result.json; artifact sweep.json from gpu1:/x, SHA-256 `" +
                                 hash + "`"));
}

TEST_F(Report, WhatWasNotMeasuredIsSaidAndFailedRequestsStandApart) {
    artifact(step("how-fast/macro/5/collect-result"), "load-result", "sweep.json", sweep);
    const std::string shown = text();
    EXPECT_THAT(shown, HasSubstr("| 128 | 0 | 3 | not measured | not measured | not measured | not measured |"));
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
    EXPECT_THAT(shown, HasSubstr("| unseen | not measured | - | 10.0 % |"));
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
    EXPECT_THAT(shown,
                HasSubstr("| torch-profile | about 1 h 16 min | kernels | forbidden | policy.restart is never | 404 |"));
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

TEST_F(Report, SaysSoWhenNothingWasMeasured) {
    EXPECT_THAT(text(), HasSubstr("- Nothing was measured yet."));
}

TEST_F(Report, AnUnknownCampaignIsAnError) {
    EXPECT_EQ(report::markdown(*reader_, *vault_, 99).error().kind, ErrorKind::not_found);
}

TEST(Markdown, NumbersHaveFixedDigits) {
    EXPECT_EQ(report::number(12.345, 2), "12.35");
    EXPECT_EQ(report::row({"a", ""}), "| a | - |\n");
}
