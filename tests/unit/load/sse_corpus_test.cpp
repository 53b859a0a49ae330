// Plays every streaming case of the corpus (CAMPAIGN_CORPUS/sse) on loopback and compares the client's record with what a
// right client reports. Times are compared within the case's own tolerance; a case that misses only by time is played again,
// since a loaded machine is late now and then.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>

#include "base/json.hpp"
#include "instruments/load/load.hpp"
#include "replay_server.cpp"   // this test is one file to whoever registers it

namespace campaign::load {
namespace {

namespace fs = std::filesystem;
using testing::Answer;
using testing::ReplayServer;

fs::path folder() {
    const char* corpus = std::getenv("CAMPAIGN_CORPUS");
    return fs::path(corpus == nullptr ? "" : corpus) / "sse";
}

std::vector<std::string> cases() {
    std::vector<std::string> out;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder(), none)) {
        if (fs::exists(entry.path() / "replay.json")) out.push_back(entry.path().filename().string());
    }
    std::sort(out.begin(), out.end());
    return out;
}

std::string text_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

json::object object_of(const fs::path& path) {
    const auto value = parse_json(text_of(path), path.string());
    if (!value || !value->is_object()) throw std::runtime_error("not a JSON object: " + path.string());
    return value->get_object();
}

Answer answer_of(const fs::path& place) {
    const json::object replay = object_of(place / "replay.json");
    const std::string body = text_of(place / *string_at(replay, "body_file"));
    Answer answer;
    answer.status = static_cast<int>(*int_at(replay, "status"));
    answer.headers.clear();
    for (const auto& [key, value] : replay.at("headers").as_object()) {
        answer.headers += std::string(key) + ": " + std::string(value.as_string()) + "\r\n";
    }
    answer.framing = *string_at(replay, "framing");
    answer.headers_at_ms = *number_at(replay, "headers_at_ms");
    for (const json::value& segment : replay.at("segments").as_array()) {
        const auto from = static_cast<std::size_t>(*int_at(segment, "from"));
        const auto to = static_cast<std::size_t>(*int_at(segment, "to"));
        answer.segments.push_back({*number_at(segment, "at_ms"), body.substr(from, to - from)});
    }
    answer.end = *string_at(replay.at("end"), "how");
    answer.end_at_ms = *number_at(replay.at("end"), "at_ms");
    answer.close_reused_once = *string_at(replay, "server_mode") == "close_reused_once";
    return answer;
}

Spec spec_for(const json::object& expected, std::uint16_t port) {
    json::object spec{
        {"schema", "campaign.load-spec/1"}, {"url", "http://127.0.0.1:" + std::to_string(port)}, {"model", "m"}};
    const json::value& request = expected.at("request");
    spec["route"] = string_at(request, "api")->starts_with("chat") ? "chat" : "completions";
    spec["output_tokens"] = *int_at(request, "max_tokens");
    spec["concurrency"] = json::array(1, json::value(1));
    spec["input_tokens"] = 4;
    spec["ignore_eos"] = false;
    return parse_spec(json::serialize(spec)).value();
}

struct Verdict {
    std::vector<std::string> wrong;
    std::vector<std::string> late;   // within nothing but the times
};

double tolerance(const json::object& expected, const std::string& key) {
    const double base = *number_at(expected, "tolerance_ms");
    if (key == "gaps_ms") return 2 * base;
    if (!key.starts_with("tpot")) return base;
    const double events = static_cast<double>(int_at(expected, "output_tokens").value_or(*int_at(expected, "token_events")));
    return std::max(2.0, 2 * base / std::max(1.0, events - 1));
}

bool near(const json::value& want, const json::value& got, double within) {
    if (want.is_null() || got.is_null()) return want.is_null() && got.is_null();
    return std::abs(want.to_number<double>() - got.to_number<double>()) <= within;
}

bool gaps_agree(const json::array& want, const json::array& got, double within, bool& count_differs) {
    count_differs = want.size() != got.size();
    if (count_differs) return false;
    for (std::size_t i = 0; i < want.size(); ++i) {
        if (!near(want[i], got[i], within)) return false;
        if (want[i].to_number<double>() == 0 && got[i].to_number<double>() != 0) return false;
    }
    return true;
}

Verdict compare(const json::object& expected, const json::object& got) {
    static const std::set<std::string> told{
        "case", "request", "tolerance_ms", "level_expectation", "also_accepted", "slot_free_before_ms"};
    static const std::set<std::string> not_of_failures{"tpot_ms", "done_seen", "stream_end_ms"};
    const bool failed = *string_at(expected, "outcome") == "failed";
    Verdict verdict;
    for (const auto& [name, want] : expected) {
        const std::string key{name};
        if (told.contains(key) || (failed && not_of_failures.contains(key))) continue;
        const json::value* found = got.if_contains(key);
        const json::value have = found == nullptr ? json::value(nullptr) : *found;
        const std::string line = key + ": expected " + json::serialize(want) + ", got " + json::serialize(have);
        if (key == "gaps_ms") {
            bool count_differs = false;
            if (!have.is_array() || !gaps_agree(want.as_array(), have.as_array(), tolerance(expected, key), count_differs)) {
                (count_differs ? verdict.wrong : verdict.late).push_back(line);
            }
        } else if (key == "coalesced_events" && have != want) {
            verdict.late.push_back(line);   // two segments in one read: a client that was late
        } else if (key.ends_with("_ms")) {
            if (!near(want, have, tolerance(expected, key)))
                (want.is_null() == have.is_null() ? verdict.late : verdict.wrong).push_back(line);
        } else if (want.is_double()) {
            if (!have.is_number() || std::abs(want.get_double() - have.to_number<double>()) > 1e-6)
                verdict.wrong.push_back(line);
        } else if (have != want) {
            verdict.wrong.push_back(line);
        }
    }
    return verdict;
}

Verdict play(const fs::path& place) {
    const json::object expected = object_of(place / "expected.json");
    const Answer answer = answer_of(place);
    const ReplayServer server(answer);
    const std::uint32_t count = answer.close_reused_once ? 2 : 1;
    const auto records = measure_each(spec_for(expected, server.port()), count);
    if (!records) return {{describe(records.error())}, {}};
    if (records->size() != count) return {{"a record for each request"}, {}};
    return compare(expected, to_json(records->back()));
}

class Corpus : public ::testing::TestWithParam<std::string> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Corpus);

TEST_P(Corpus, IsMeasuredAsARightClientReportsIt) {
    Verdict verdict;
    for (int attempt = 0; attempt < 3; ++attempt) {
        verdict = play(folder() / GetParam());
        if (!verdict.wrong.empty() || verdict.late.empty()) break;
    }
    for (const std::string& line : verdict.wrong) ADD_FAILURE() << line;
    for (const std::string& line : verdict.late) ADD_FAILURE() << line;
}

INSTANTIATE_TEST_SUITE_P(Sse, Corpus, ::testing::ValuesIn(cases()), [](const auto& item) {
    std::string name = item.param;
    std::replace_if(
        name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
    return name;
});

TEST(SseCorpus, IsThere) {
    EXPECT_GE(cases().size(), 21U) << "no streaming cases in " << folder();
}

}   // namespace
}   // namespace campaign::load
