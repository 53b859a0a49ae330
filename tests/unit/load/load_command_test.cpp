// `load` as it is typed: options to specification, the files it leaves, its exit status.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "base/files.hpp"
#include "base/json.hpp"
#include "instruments/agent/commands.hpp"
#include "instruments/agent/load_options.hpp"
#include "instruments/agent/load_table.hpp"
#include "instruments/load/spec.hpp"
#include "replay_server.hpp"

namespace campaign::agent {
namespace {

using load::testing::Answer;
using load::testing::ReplayServer;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<std::string> least{"http://127.0.0.1:8000", "--model", "m"};

std::vector<std::string> with(std::vector<std::string> more) {
    std::vector<std::string> words = least;
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

std::string refused(const std::vector<std::string>& words) {
    const auto asked = read_load_options(words);
    EXPECT_FALSE(asked);
    return asked ? "" : describe(asked.error());
}

TEST(LoadOptions, EachOptionIsAMemberOfTheSpecification) {
    struct Row {
        std::vector<std::string> words;
        std::string member;
        std::string value;
    };
    const std::vector<Row> rows = {
        {{"--api", "chat"}, "route", R"("chat")"},
        {{"--api=completions"}, "route", R"("completions")"},
        {{"--concurrency", "1,8, 32"}, "concurrency", "[1,8,32]"},
        {{"--auto", "64"}, "auto", R"({"max":64})"},
        {{"--requests", "100"}, "requests", "100"},
        {{"--duration", "90s"}, "duration_s", "9E1"},
        {{"--duration", "5m"}, "duration_s", "3E2"},
        {{"--timeout", "2.5"}, "request_timeout_s", "2.5E0"},
        {{"--input-tokens", "7"}, "input_tokens", "7"},
        {{"--max-tokens", "9"}, "output_tokens", "9"},
        {{"--output-tokens", "9"}, "output_tokens", "9"},
        {{"--seed", "4"}, "seed", "4"},
        {{"--warmup", "3"}, "warmup_requests", "3"},
        {{"--api-key-file", "k"}, "api_key_file", R"("k")"},
        {{"--unix-socket", "/s"}, "unix_socket", R"("/s")"},
        {{"--stop-at-eos"}, "ignore_eos", "false"},
        {{"--tunnelled"}, "tunnelled", "true"},
        {{"--detailed"}, "detailed", "true"},
        {{"--goodput", "ttft:500,tpot:20"}, "goodput", R"({"ttft":5E2,"tpot":2E1})"},
    };
    for (const Row& row : rows) {
        const auto asked = read_load_options(with(row.words));
        ASSERT_TRUE(asked) << row.words[0] << ": " << describe(asked.error());
        EXPECT_EQ(json::serialize(asked->spec.at(row.member)), row.value) << row.words[0];
        EXPECT_TRUE(load::parse_spec(json::serialize(asked->spec))) << row.words[0];
    }
}

TEST(LoadOptions, WithoutMoreItIsOneRequestAtATimeAndNoWarmUp) {
    const auto asked = read_load_options(least);
    ASSERT_TRUE(asked);
    EXPECT_EQ(json::serialize(asked->spec.at("concurrency")), "[1]");
    EXPECT_EQ(json::serialize(asked->spec.at("warmup_requests")), "0");
}

TEST(LoadOptions, WhatIsWrongIsSaidWithTheWayOn) {
    EXPECT_THAT(refused({}), HasSubstr("needs the server's URL"));
    EXPECT_THAT(refused({"http://h:1"}), AllOf(HasSubstr("--model"), HasSubstr("/v1/models")));
    EXPECT_THAT(refused(with({"--concurency", "4"})), HasSubstr("did you mean --concurrency?"));
    EXPECT_THAT(refused(with({"--concurrency"})), HasSubstr("needs a value"));
    EXPECT_THAT(refused(with({"--concurrency", "4;rm"})), HasSubstr("a list like 1,8,32"));
    EXPECT_THAT(refused(with({"--requests", "many"})), HasSubstr("a whole number, not 'many'"));
    EXPECT_THAT(refused(with({"--requests", "99999999999999999999"})), HasSubstr("a whole number"));
    EXPECT_THAT(refused(with({"--duration", "soon"})), HasSubstr("a time like 90s"));
    EXPECT_THAT(refused(with({"--seed", "1", "--seed", "2"})), HasSubstr("given twice"));
    EXPECT_THAT(refused(with({"--json=yes"})), HasSubstr("takes no value"));
    EXPECT_THAT(refused(with({"--goodput", "ttft=5"})), HasSubstr("like ttft:500"));
    EXPECT_THAT(refused(with({"--api", "soap"})), HasSubstr("chat or completions"));
    EXPECT_THAT(refused(with({"http://other"})), HasSubstr("one server at a time"));
    EXPECT_THAT(refused(with({"--bad\x1b[31m"})), Not(HasSubstr("\x1b")));
}

class LoadCommand : public ::testing::Test {
protected:
    LoadCommand() : folder_{std::filesystem::temp_directory_path() / ("load-command-" + std::to_string(::getpid()))} {
        std::filesystem::create_directories(folder_);
    }
    ~LoadCommand() override { std::filesystem::remove_all(folder_); }

    int call(std::vector<std::string> words) {
        words.insert(words.begin(), "load");
        return run(words, out_, err_);
    }
    std::string file(const std::string& name) { return *read_text(folder_ / name, std::size_t{1} << 20U); }
    std::string path(const std::string& name) { return (folder_ / name).string(); }

    std::filesystem::path folder_;
    std::ostringstream out_, err_;
};

Answer three_tokens() {
    Answer answer;
    const std::string token = R"(data: {"choices":[{"text":"a"}]})"
                              "\n\n";
    answer.segments = {
        {1, token},
        {3, token + token + "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":8,\"completion_tokens\":3}}\n\n"},
        {4, "data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n"}};
    answer.end_at_ms = 4;
    return answer;
}

TEST_F(LoadCommand, LeavesTheRecordsInTheOrderOfSendingTheResultAndATable) {
    const ReplayServer server(three_tokens());
    const std::string url = "http://127.0.0.1:" + std::to_string(server.port());
    EXPECT_EQ(call({url, "--model", "m", "--concurrency", "1,4", "--requests", "10", "--requests-out", path("r.jsonl"), "-o",
                    path("result.json"), "--vllm-out", path("vllm.jsonl"), "--detailed"}),
              0)
        << err_.str();
    std::istringstream lines{file("r.jsonl")};
    std::string line;
    int count = 0;
    while (std::getline(lines, line)) {
        const auto record = parse_json(line, "record");
        ASSERT_TRUE(record) << line;
        EXPECT_EQ(int_at(*record, "index"), count++);
        EXPECT_EQ(string_at(*record, "outcome"), "success");
        EXPECT_EQ(int_at(*record, "output_tokens"), 3);
    }
    EXPECT_EQ(count, 20);
    const auto result = parse_json(file("result.json"), "result");
    ASSERT_TRUE(result);
    EXPECT_EQ(string_at(*result, "schema"), "campaign.load/1");
    EXPECT_EQ(result->at("levels").as_array().size(), 2U);
    EXPECT_EQ(int_at(*result, "warmup_requests"), 0);
    EXPECT_EQ(server.requests().size(), 20U);
    std::istringstream vllm{file("vllm.jsonl")};
    for (const int concurrency : {1, 4}) {
        ASSERT_TRUE(std::getline(vllm, line));
        const auto level = parse_json(line, "level");
        ASSERT_TRUE(level);
        EXPECT_EQ(int_at(*level, "max_concurrency"), concurrency);
        EXPECT_EQ(int_at(*level, "total_output_tokens"), 30);
        EXPECT_EQ(level->at("itls").as_array().size(), 10U);
    }
    EXPECT_THAT(out_.str(), AllOf(HasSubstr("TTFT ms"), HasSubstr("     4     10      0")));
    EXPECT_THAT(err_.str(), HasSubstr("concurrency 4: 10 completed, 0 failed"));
}

TEST_F(LoadCommand, ARunOfFailuresIsNoSuccessAndItsReasonIsShown) {
    Answer answer;
    answer.status = 404;
    answer.headers = "Content-Type: application/json\r\n";
    answer.segments = {{0, R"({"error":{"message":"The model `m` does not exist.","code":404}})"}};
    const ReplayServer server(answer);
    EXPECT_EQ(call({"http://127.0.0.1:" + std::to_string(server.port()), "--model", "m", "--requests", "3", "--json"}), 1);
    const auto result = parse_json(out_.str(), "result");
    ASSERT_TRUE(result);
    EXPECT_THAT(load_table(result->as_object()), HasSubstr("failed 3 x http_status: The model `m` does not exist."));
}

TEST_F(LoadCommand, WhatCannotBeWrittenIsSaidBeforeARequestIsSent) {
    const ReplayServer server(three_tokens());
    EXPECT_EQ(call({"http://127.0.0.1:" + std::to_string(server.port()), "--model", "m", "--requests-out", path("no/r")}),
              1);
    EXPECT_THAT(err_.str(), HasSubstr("cannot be written to"));
    EXPECT_TRUE(server.requests().empty());
}

TEST_F(LoadCommand, AFullDiskKeepsTheFiguresAndFails) {
    const ReplayServer server(three_tokens());
    EXPECT_EQ(call({"http://127.0.0.1:" + std::to_string(server.port()), "--model", "m", "--requests", "2", "--requests-out",
                    "/dev/full"}),
              1);
    EXPECT_THAT(err_.str(), HasSubstr("was not written whole"));
    EXPECT_THAT(out_.str(), HasSubstr("     1      2      0"));
}

TEST_F(LoadCommand, HelpAndWrongUsage) {
    EXPECT_EQ(call({"--help"}), 0);
    EXPECT_THAT(out_.str(), HasSubstr("--requests-out FILE"));
    EXPECT_EQ(call({"http://127.0.0.1:1", "--model", "m", "--concurrency", "0"}), 2);
    EXPECT_EQ(call({"https://", "--model", "m"}), 2);
}

}   // namespace
}   // namespace campaign::agent
