#include "instruments/agent/commands.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <sstream>

#include "base/files.hpp"
#include "base/json.hpp"
#include "composed_trace.hpp"
#include "instruments/agent/write_file.hpp"

namespace campaign::agent {
namespace {

using namespace campaign::testing;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class AgentCommand : public InFolder {
protected:
    int call(std::vector<std::string> words) {
        out_.str({});
        err_.str({});
        return run(words, out_, err_);
    }
    std::string text(const std::filesystem::path& file) { return *read_text(file, std::size_t{1} << 20U); }
    std::ostringstream out_;
    std::ostringstream err_;
};

TEST_F(AgentCommand, WrongUsageIsToldFromFailure) {
    EXPECT_EQ(call({}), 2);
    EXPECT_EQ(call({"frobnicate"}), 2);
    EXPECT_THAT(err_.str(), HasSubstr("no command is called frobnicate"));
    EXPECT_EQ(call({"load", "one"}), 2);
    EXPECT_EQ(call({"analyze"}), 2);
    EXPECT_EQ(call({"analyze", "--out"}), 2);
    EXPECT_EQ(call({"analyze", "--what", "f"}), 2);
    EXPECT_EQ(call({"check"}), 2);
    EXPECT_EQ(call({"startup"}), 2);
}

TEST_F(AgentCommand, VersionSaysWhoItIs) {
    EXPECT_EQ(call({"version"}), 0);
    EXPECT_THAT(out_.str(), StartsWith("campaign-agent "));
}

TEST_F(AgentCommand, CheckGivesOneObjectALineAndFailsIfOneIsNotWhole) {
    const std::string whole = put("a.json", two_decode_steps());
    EXPECT_EQ(call({"check", whole}), 0);
    EXPECT_EQ(call({"check", whole, put("b.json", two_decode_steps().substr(0, 900))}), 1);
    std::istringstream lines{out_.str()};
    std::string first;
    std::string second;
    ASSERT_TRUE(std::getline(lines, first) && std::getline(lines, second));
    EXPECT_TRUE(*bool_at(*parse_json(first, "line"), "complete"));
    EXPECT_EQ(int_at(*parse_json(first, "line"), "kernels"), 7);
    EXPECT_FALSE(*bool_at(*parse_json(second, "line"), "complete"));
    EXPECT_EQ(string_at(*parse_json(second, "line"), "why"), "the list of events is cut off");
}

TEST_F(AgentCommand, AnalyzeWritesTheResultAndSaysTheAnswer) {
    const std::filesystem::path result = folder_ / "result.json";
    EXPECT_EQ(call({"analyze", "--out", result, put("a.json", two_decode_steps())}), 0);
    EXPECT_THAT(out_.str(), StartsWith("all-reduce: 60.0 µs"));
    const Result<json::value> analysis = parse_json(text(result), "result");
    EXPECT_EQ(string_at(*analysis, "schema"), "campaign.trace/1");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator{folder_}, {}), 2) << "no temporary file stays behind";
}

TEST_F(AgentCommand, AnalyzeShowsPeopleATableAndProgramsTheObject) {
    const std::string file = put("a.json", two_decode_steps(1, 2));
    EXPECT_EQ(call({"analyze", file}), 0);
    EXPECT_EQ(out_.str(),
              R"(all-reduce: 60.0 µs of 100 µs a decode step over 2 operations (60.0 %)
  note    1 of 2 ranks are missing: 0

rank 1, device 0: 7 kernels, busy 0.70 of 0.90 ms
  steps: 2 decode, 1 prefill, 0 mixed; a decode step takes 100.0 us (p90 100.0)
  category                                       us a step  n a step  of busy
  comm.allreduce                                      60.0       2.0   60.0 %
  gemm                                                40.0       1.0   40.0 %
  kernel                                         us a step  n a step  of busy
  void vllm::cross_device_reduc...loat16, 8>()        60.0       2.0   60.0 %
  nvjet_tst_64x8                                      40.0       1.0   40.0 %
)");
    EXPECT_EQ(call({"analyze", "--json", file}), 0);
    EXPECT_EQ(string_at(*parse_json(out_.str(), "analysis"), "schema"), "campaign.analysis/1");
}

TEST_F(AgentCommand, AnalyzeGivesProgramsEveryFileByItselfAndTheRanksCompared) {
    const std::string one = put("rank0.json", two_decode_steps());
    std::string later = two_decode_steps();
    EXPECT_EQ(call({"analyze", "--json", "--out", folder_ / "brief.json", one}), 0);
    EXPECT_EQ(string_at(*parse_json(text(folder_ / "brief.json"), "brief"), "schema"), "campaign.trace/1");
    const json::value full = *parse_json(out_.str(), "analysis");
    const json::value& file = full.at("files").at(0);
    EXPECT_EQ(string_at(file, "format"), "kineto");
    EXPECT_EQ(int_at(file.at("events"), "kernel"), 7);
    const json::value& device = file.at("devices").at("0");
    EXPECT_EQ(int_at(device, "busy_ns"), 700'000);
    EXPECT_EQ(int_at(device, "idle_ns"), 200'000);
    EXPECT_EQ(int_at(device.at("categories").at("comm.allreduce"), "n"), 4);
    EXPECT_EQ(file.at("steps").as_array().size(), 3U);
    EXPECT_TRUE(full.at("ranks").is_null());
}

TEST_F(AgentCommand, AnalyzeOfABrokenFileSaysWhatIsWrongWithIt) {
    EXPECT_EQ(call({"analyze", put("cut.json", two_decode_steps().substr(0, 900))}), 0);
    EXPECT_THAT(out_.str(), HasSubstr("broken  cut.json: the list of events is cut off"));
    EXPECT_EQ(call({"analyze", folder_ / "absent.json"}), 1);
    EXPECT_THAT(out_.str(), HasSubstr("cannot read"));
}

TEST_F(AgentCommand, AnalyzeThatFailedSaysWhyInTheResult) {
    const std::filesystem::path result = folder_ / "result.json";
    EXPECT_EQ(call({"analyze", "--out", result, folder_ / "absent.json"}), 1);
    EXPECT_THAT(text(result), HasSubstr("cannot read"));
}

TEST_F(AgentCommand, AResultThatCannotBeWrittenIsAFailure) {
    EXPECT_EQ(call({"analyze", "--out", folder_ / "no" / "such", put("a.json", two_decode_steps())}), 1);
    EXPECT_THAT(err_.str(), HasSubstr("cannot write"));
}

TEST_F(AgentCommand, LoadThatCannotBeginSaysWhyInTheResult) {
    const std::filesystem::path result = folder_ / "result.json";
    EXPECT_EQ(call({"load", put("spec.json", "{\"schema\": 1"), result}), 1);
    const Result<json::value> written = parse_json(text(result), "result");
    EXPECT_EQ(bool_at(*written, "complete"), false);
    ASSERT_NE(member(*written, "error"), nullptr);
    EXPECT_EQ(call({"load", folder_ / "absent", result}), 1);
    EXPECT_THAT(text(result), HasSubstr("not_found"));
}

TEST_F(AgentCommand, StartupSaysWhereAServerStands) {
    const std::string log = put("log", "INFO vLLM API server version 0.10.0\nINFO:     Application startup complete.\n");
    EXPECT_EQ(call({"startup", log}), 0);
    EXPECT_THAT(out_.str(), StartsWith("ready, phase ready 100 %"));
    EXPECT_EQ(call({"startup", "--json", log}), 0);
    EXPECT_EQ(string_at(*parse_json(out_.str(), "state"), "outcome"), "ready");
    EXPECT_EQ(call({"startup", folder_ / "absent"}), 1);
}

TEST_F(AgentCommand, StartupTellsTheAgeAndTheLoadByTheLogsOwnTimes) {
    const std::string ready = put("log",
                                  "INFO 08-18 14:11:41 [a.py:1] vLLM server version 0.25.0\n"
                                  "INFO 08-18 14:12:41 [b.py:2] Starting to load model m...\n"
                                  "INFO:     Application startup complete.\n");
    EXPECT_EQ(call({"startup", "--json", "--now", "1787062401", "--year", "2026", ready}), 0);
    const json::value seen = *parse_json(out_.str(), "state");
    EXPECT_EQ(number_at(seen, "load_seconds"), 60.0);
    EXPECT_EQ(string_at(seen, "engine_version"), "0.25.0");
    EXPECT_EQ(int_at(seen, "progress_percent"), 100);
    EXPECT_EQ(string_at(seen, "evidence_line"), "INFO:     Application startup complete.");
    EXPECT_EQ(call({"startup", "--year", "soon", ready}), 2);
    EXPECT_EQ(call({"startup", "--colour", ready}), 2);
    EXPECT_EQ(call({"startup", ready, ready}), 2);
}

TEST_F(AgentCommand, StartupCallsALoadStalledAfterAQuarterOfAnHourOfRepeatedRemarks) {
    const std::string log =
        put("log",
            "INFO 08-18 14:00:00 [a.py:1] vLLM server version 0.25.0\n"
            "INFO 08-18 14:00:10 [b.py:2] vLLM is using nccl==2.27\n"
            "INFO 08-18 14:16:00 [c.py:3] No available shared memory broadcast block found in 60 seconds.\n");
    struct timespec times[2] = {{1787062560, 0}, {1787062560, 0}};   // 2026-08-18 14:16:00 UTC
    ASSERT_EQ(::utimensat(AT_FDCWD, log.c_str(), times, 0), 0);
    EXPECT_EQ(call({"startup", "--json", "--now", "1787062561", "--year", "2026", log}), 0);
    const json::value seen = *parse_json(out_.str(), "state");
    EXPECT_EQ(string_at(seen, "outcome"), "stalled");
    EXPECT_EQ(number_at(seen, "last_activity_seconds"), 951.0);
    EXPECT_EQ(string_at(seen, "failure_kind"), std::nullopt);
}

TEST_F(AgentCommand, AWrittenFileReplacesTheOldOneWhole) {
    const std::filesystem::path file = put("r", "old");
    ASSERT_TRUE(write_whole(file, "new content"));
    EXPECT_EQ(text(file), "new content");
    EXPECT_FALSE(write_whole(folder_ / "absent" / "r", "x"));
}

}   // namespace
}   // namespace campaign::agent
