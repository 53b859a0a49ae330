// Every start-up log of the corpus (CAMPAIGN_CORPUS/startup-logs) against what a careful reader found in it: server,
// outcome, phase, percentage, kind of failure and the line that decides. The reader has no clock, so a stalled start is one
// that loads. Not compared, because the reader does not give them: load_seconds, exit_status, degraded, and the version of
// an SGLang.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/files.hpp"
#include "base/json.hpp"
#include "instruments/startup/startup.hpp"

namespace campaign::startup {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t limit = std::size_t{16} << 20U;

fs::path folder() {
    const char* corpus = std::getenv("CAMPAIGN_CORPUS");
    return fs::path(corpus == nullptr ? "" : corpus) / "startup-logs";
}

std::vector<std::string> names() {
    std::vector<std::string> found;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder(), none))
        if (entry.path().extension() == ".log") found.push_back(entry.path().stem().string());
    std::sort(found.begin(), found.end());
    return found;
}

/// The value under `key`, or one of those under `others`, is `value`.
bool one_of(const json::value& want, std::string_view key, std::string_view others, const json::value& value) {
    const json::value* const main = member(want, key);
    if (main == nullptr ? value.is_null() : *main == value) return true;
    const json::value* const list = member(want, others);
    return list != nullptr && std::find(list->as_array().begin(), list->as_array().end(), value) != list->as_array().end();
}

class CorpusLog : public ::testing::TestWithParam<std::string> {
protected:
    json::value want_ = *parse_json(*read_text(folder() / (GetParam() + ".expected.json"), limit), GetParam());
    std::string log_ = *read_text(folder() / (GetParam() + ".log"), limit);
    [[nodiscard]] std::string want(std::string_view key) const { return string_at(want_, key).value_or(""); }

    Progress read(std::size_t piece) const {
        Reader reader;
        for (std::size_t at = 0; at < log_.size(); at += piece) reader.feed(std::string_view{log_}.substr(at, piece));
        reader.finish();
        return reader.progress();
    }
};

TEST_P(CorpusLog, IsReadAsWhatItIs) {
    const Progress state = read(log_.size());
    EXPECT_EQ(state.server, want("server"));
    EXPECT_EQ(to_string(state.outcome), want("outcome") == "stalled" ? "loading" : want("outcome"));
    EXPECT_EQ(state.failure_kind, want("failure_kind"));
    EXPECT_TRUE(one_of(want_, "phase", "phase_alternatives", json::value(to_string(state.phase)))) << to_string(state.phase);
    const json::value percent = state.percent ? json::value(*state.percent) : json::value(nullptr);
    EXPECT_TRUE(one_of(want_, "progress_percent", "progress_alternatives", percent)) << percent;
    const std::string& decides = state.evidence.empty() ? state.last_line : state.evidence;
    EXPECT_TRUE(one_of(want_, "evidence_line", "evidence_alternatives", json::value(decides))) << decides;
    if (state.server != "sglang") {
        EXPECT_EQ(state.version, want("engine_version"));
    }
    if (const auto runs = int_at(want_, "runs")) {
        EXPECT_EQ(state.runs, *runs);
    }
    if (const auto restarts = int_at(want_, "restarts")) {
        EXPECT_EQ(state.restarts, *restarts);
    }
    if (const auto pending = bool_at(want_, "restart_pending")) {
        EXPECT_EQ(state.restart_pending, *pending);
    }
    if (const auto ready = bool_at(want_, "was_ready")) {
        EXPECT_EQ(state.was_ready, *ready);
    }
}

TEST_P(CorpusLog, IsReadTheSameInAnyPieces) {
    const Progress whole = read(log_.size());
    for (const std::size_t piece : {1, 2, 7, 64, 4096}) {
        const Progress state = read(piece);
        EXPECT_EQ(state.outcome, whole.outcome);
        EXPECT_EQ(state.phase, whole.phase);
        EXPECT_EQ(state.percent, whole.percent);
        EXPECT_EQ(state.evidence, whole.evidence);
        EXPECT_EQ(state.evidence_line, whole.evidence_line);
        EXPECT_EQ(state.last_line, whole.last_line);
        EXPECT_EQ(state.version, whole.version);
        EXPECT_EQ(state.runs, whole.runs);
    }
}

TEST(StartupCorpus, IsThere) {
    EXPECT_GE(names().size(), 27U);
}

std::string test_name(const ::testing::TestParamInfo<std::string>& log) {
    std::string name = log.param;
    for (char& c : name)
        if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
    return name;
}

INSTANTIATE_TEST_SUITE_P(Logs, CorpusLog, ::testing::ValuesIn(names()), test_name);

}   // namespace
}   // namespace campaign::startup
