#include "instruments/load/vllm.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "base/json.hpp"
#include "instruments/load/recorder.hpp"
#include "instruments/load/result.hpp"

namespace campaign::load {
namespace {

constexpr Stamp ms = 1'000'000;

RequestRecord good(std::uint64_t index, Stamp started, std::vector<Stamp> choices, std::optional<std::int64_t> tokens) {
    RequestRecord record;
    record.index = index;
    record.started = started;
    record.first_choice = record.first_token = choices.front();
    record.last_choice = record.last_token = choices.back();
    for (std::size_t i = 1; i < choices.size(); ++i) record.choice_gaps.push_back(choices[i] - choices[i - 1]);
    record.token_events = choices.size();
    if (tokens) record.usage = Usage{5, *tokens, {}, {}};
    return record;
}

RequestRecord bad(std::uint64_t index) {
    RequestRecord record;
    record.index = index;
    record.failure_class = "http_status";
    record.error_message = "busy";
    return record;
}

json::object told(const VllmTally& tally, double duration_s) {
    json::object out;
    tally.into(out, duration_s);
    return out;
}

double number(const json::object& level, const std::string& key) {
    return level.at(key).to_number<double>();
}

TEST(VllmTally, CountsGoodputOnlyWhereEveryLimitHolds) {
    struct Row {
        Goodput limits;
        double good;
    };
    const Row rows[] = {{{100.0, {}, {}}, 2}, {{99.0, {}, {}}, 1},    {{{}, 50.0, {}}, 2},
                        {{{}, 49.0, {}}, 1},  {{100.0, 49.0, {}}, 1}, {{{}, {}, 100.0}, 1}};
    for (const Row& row : rows) {
        VllmTally tally({5, row.limits, false});
        tally.add(good(0, 0, {100 * ms, 150 * ms, 200 * ms}, 3));   // tpot 50
        tally.add(good(1, 0, {40 * ms}, 1));                        // one token: tpot counts as 0
        tally.add(bad(2));
        EXPECT_DOUBLE_EQ(number(told(tally, 1), "request_goodput"), row.good);
    }
    EXPECT_TRUE(told(VllmTally({}), 1).at("request_goodput").is_null());
}

TEST(VllmTally, PeaksAreOfWholeSecondsFromTheBeginning) {
    VllmTally tally({});
    tally.begin(7'000 * ms);
    tally.add(good(0, 7'000 * ms, {900 * ms, 1'100 * ms, 1'200 * ms}, 30));
    tally.add(good(1, 8'500 * ms, {100 * ms}, 1));
    const json::object got = told(tally, 2);
    EXPECT_DOUBLE_EQ(number(got, "max_output_tokens_per_s"), 3);
    EXPECT_DOUBLE_EQ(number(got, "max_concurrent_requests"), 2) << "both touch second 1, though never at the same time";
    EXPECT_DOUBLE_EQ(number(got, "peak_output_tokens_per_s"), 21);
}

TEST(VllmTally, ListsAreInTheOrderOfSendingAndKeepFailures) {
    VllmTally tally({9, {}, true});
    tally.add(bad(1));
    tally.add(good(0, 3'000 * ms, {100 * ms, 150 * ms}, {}));
    const json::object got = told(tally, 1);
    EXPECT_EQ(json::serialize(got.at("input_lens")), "[9,9]") << "without usage the length asked for";
    EXPECT_EQ(json::serialize(got.at("output_lens")), "[2,0]");
    EXPECT_EQ(json::serialize(got.at("ttfts")), "[1E-1,0E0]");
    EXPECT_EQ(json::serialize(got.at("itls")), "[[5E-2],[]]");
    EXPECT_EQ(json::serialize(got.at("start_times")), "[3E0,0E0]");
    EXPECT_EQ(json::serialize(got.at("errors")), R"(["","http_status: busy"])");
}

TEST(VllmTally, NothingMeasuredIsNullAndTokensBelowTwoHaveNoTpot) {
    VllmTally tally({});
    tally.add(good(0, 0, {10 * ms}, 1));
    const json::object got = told(tally, 0);
    EXPECT_TRUE(got.at("p99_tpot_ms").is_null());
    EXPECT_DOUBLE_EQ(number(got, "p99_ttft_ms"), 10);
    EXPECT_DOUBLE_EQ(number(got, "output_throughput"), 0);
}

// --- docs/load-results.md ---

std::string document() {
    std::ifstream file(std::string{CAMPAIGN_SOURCE_DIR} + "/docs/load-results.md");
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

/// Cells of the first table whose header begins with `head`.
std::vector<std::vector<std::string>> table(const std::string& head) {
    std::vector<std::vector<std::string>> rows;
    std::istringstream lines{document()};
    std::string line;
    bool in = false;
    while (std::getline(lines, line)) {
        if (!in) {
            in = line.starts_with("| " + head + " |");
            continue;
        }
        if (!line.starts_with("|")) break;
        if (line.starts_with("| ---")) continue;
        std::vector<std::string> cells;
        std::istringstream parts{line.substr(2)};
        for (std::string cell; std::getline(parts, cell, '|');) {
            cell.erase(0, cell.find_first_not_of(' '));
            cell.erase(cell.find_last_not_of(' ') + 1);
            cells.push_back(cell);
        }
        rows.push_back(cells);
    }
    return rows;
}

/// The request of the example, read from the line of its events.
RequestRecord example_request() {
    const std::string text = document();
    const std::regex event(
        R"((\d+) (role only|"\w+"|finish_reason, no text|usage: prompt_tokens (\d+), completion_tokens (\d+)|\[DONE\]))");
    Recorder recorder(false);
    recorder.bytes("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", 0);
    for (std::sregex_iterator it(text.begin(), text.end(), event), end; it != end && !recorder.finished(); ++it) {
        const std::string what = (*it)[2];
        std::string data = R"({"choices":[{"delta":{"role":"assistant","content":""}}]})";
        if (what.starts_with('"')) data = R"({"choices":[{"delta":{"content":)" + what + "}}]}";
        if (what.starts_with("finish")) data = R"({"choices":[{"delta":{},"finish_reason":"stop"}]})";
        if (what.starts_with("usage"))
            data = R"({"choices":[],"usage":{"prompt_tokens":)" + (*it)[3].str() + R"(,"completion_tokens":)" +
                   (*it)[4].str() + "}}";
        if (what == "[DONE]") data = what;
        recorder.bytes("data: " + data + "\n\n", std::stol((*it)[1]) * ms);
    }
    return recorder.take();
}

TEST(LoadResultsDoc, TheExampleIsTrue) {
    LevelTally tally(2);
    tally.begin(0);
    tally.add(example_request());
    tally.add(bad(1));
    const json::object got = tally.to_json(1, {});
    const auto rows = table("figure");
    ASSERT_GE(rows.size(), 16U);
    for (const auto& row : rows) {
        const json::value& value = got.at(row[0]);
        const double found = value.is_object() ? value.at("mean").to_number<double>() : value.to_number<double>();
        EXPECT_NEAR(found, std::stod(row[1]), 1e-9) << row[0];
    }
}

TEST(LoadResultsDoc, ListsExactlyTheFieldsThatAreWritten) {
    std::set<std::string> listed;
    for (const auto& row : table("field")) {
        std::istringstream names{row[0]};
        for (std::string name; std::getline(names, name, ',');) listed.insert(name.substr(name.find_first_not_of(' ')));
    }
    LevelTally tally(1, {1, {}, true});
    const json::object level = tally.to_json(1, {});
    for (const std::string& name : listed) EXPECT_TRUE(level.contains(name)) << name;
    const std::set<std::string> header{
        "date",         "endpoint_type", "backend",      "label",      "model_id",
        "tokenizer_id", "num_prompts",   "request_rate", "burstiness", "peak_output_tokens_per_s"};
    std::set<std::string> written;
    for (const auto& [key, value] : vllm_result({{"began", "2026-12-07T09:05:01.5Z"}}, level)) {
        if (!header.contains(key)) written.insert(key);
    }
    EXPECT_EQ(written, listed);
}

TEST(VllmResult, HasVllmsHeader) {
    const json::object result{{"began", "2026-12-07T09:05:01.500000Z"}, {"route", "chat"}, {"model", "m"}};
    const json::object got = vllm_result(result, LevelTally(4).to_json(1, {}));
    EXPECT_EQ(got.at("date"), "20261207-090501");
    EXPECT_EQ(got.at("backend"), "openai-chat");
    EXPECT_EQ(got.at("model_id"), "m");
    EXPECT_EQ(number(got, "max_concurrency"), 4);
    EXPECT_EQ(got.at("request_rate"), "inf");
}

}   // namespace
}   // namespace campaign::load
