// The runner against real sockets. Order, counts and classes are asserted; never how fast this machine is.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "instruments/load/load.hpp"
#include "replay_server.hpp"

namespace campaign::load {
namespace {

using testing::Answer;
using testing::ReplayServer;

std::string token(const std::string& text) {
    return R"(data: {"choices":[{"text":")" + text + "\"}]}\n\n";
}
const std::string stop_event = "data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"length\"}]}\n\n";
const std::string usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":8,\"completion_tokens\":3}}\n\n";
const std::string done = "data: [DONE]\n\n";

Answer good() {
    Answer answer;
    answer.segments = {{5, token("a")}, {10, token("b")}, {15, token("c") + stop_event + usage}, {15, done}};
    answer.end_at_ms = 15;
    return answer;
}

Spec spec_for(std::uint16_t port, const std::string& more) {
    auto spec = parse_spec(R"({"schema":"campaign.load-spec/1","url":"http://127.0.0.1:)" + std::to_string(port) +
                           R"(","model":"m","input_tokens":8,"output_tokens":3)" + more + "}");
    EXPECT_TRUE(spec) << describe(spec.error());
    return *std::move(spec);
}

const StopFlag never{false};

RequestRecord one(const Answer& answer, const std::string& more = "") {
    const ReplayServer server(answer);
    const auto record = measure_one(spec_for(server.port(), R"(,"concurrency":[1])" + more));
    EXPECT_TRUE(record);
    return record ? *record : RequestRecord{};
}

int count(const json::value& level, const char* key) {
    return level.at(key).to_number<int>();
}

TEST(LoadRun, HoldsTheConcurrencyOnKeptConnections) {
    const ReplayServer server(good());
    std::vector<std::string> events;
    const Spec spec = spec_for(server.port(), R"(,"concurrency":[2,4],"requests":12)");
    const json::object got = run(
        spec, [&](const json::object& line) { events.emplace_back(line.at("event").as_string()); }, never);
    EXPECT_EQ(got.at("complete"), true);
    ASSERT_EQ(got.at("levels").as_array().size(), 2U);
    for (const json::value& level : got.at("levels").as_array()) {
        EXPECT_EQ(count(level, "completed"), 12);
        EXPECT_EQ(count(level, "failed"), 0);
        EXPECT_EQ(count(level, "output_tokens"), 36);
        EXPECT_EQ(count(level, "input_tokens"), 96);
        EXPECT_EQ(level.at("ttft_ms").at("n").to_number<int>(), 12);
        EXPECT_GE(level.at("ttft_ms").at("min").to_number<double>(), 4.0);
    }
    EXPECT_EQ(server.requests().size(), 25U) << "one warm-up, and nothing twice";
    EXPECT_LE(server.most_at_once(), 4);
    EXPECT_GE(server.most_at_once(), 2);
    std::erase(events, "progress");
    EXPECT_EQ(events, (std::vector<std::string>{"level_begin", "level_end", "level_begin", "level_end"}));
}

TEST(LoadRun, NoTwoRequestsHaveTheSamePrompt) {
    const ReplayServer server(good());
    const json::object got = run(spec_for(server.port(), R"(,"concurrency":[4],"requests":16)"), {}, never);
    std::vector<std::string> requests = server.requests();
    std::sort(requests.begin(), requests.end());
    EXPECT_EQ(std::unique(requests.begin(), requests.end()), requests.end());
    EXPECT_EQ(got.at("complete"), true);
}

TEST(LoadRun, SearchesForThePlateauByItself) {
    const ReplayServer server(good());
    const json::object got = run(spec_for(server.port(), R"(,"auto":{"max":4},"requests":8)"), {}, never);
    ASSERT_GE(got.at("levels").as_array().size(), 2U);
    EXPECT_EQ(count(got.at("levels").at(0), "concurrency"), 1);
    EXPECT_EQ(count(got.at("levels").at(1), "concurrency"), 2);
    EXPECT_TRUE(got.at("plateau").is_object());
}

TEST(LoadRun, TellsTheFailuresApart) {
    struct Case {
        const char* failure;
        Answer answer;
    };
    const auto stream = [](std::vector<testing::Segment> segments, const char* end) {
        Answer answer;
        answer.segments = std::move(segments);
        answer.end = end;
        answer.end_at_ms = 10;
        return answer;
    };
    const auto plain = [](int status, const char* type, const char* body) {
        Answer answer;
        answer.status = status;
        answer.headers = std::string("Content-Type: ") + type + "\r\n";
        answer.framing = "content-length";
        answer.segments = {{0, body}};
        return answer;
    };
    const Case table[] = {
        {"http_status", plain(503, "application/json", R"({"error":{"message":"overloaded"}})")},
        {"inband_error", stream({{0, token("a")}, {5, "data: {\"error\":{\"message\":\"x\"}}\n\n" + done}}, "keepalive")},
        {"truncated_stream", stream({{0, token("a")}}, "keepalive")},
        {"connection_reset", stream({{0, token("a")}}, "rst")},
        {"connection_reset", stream({{0, token("a")}}, "close")},
        {"empty_response", stream({{0, stop_event + usage + done}}, "keepalive")},
        {"bad_json", stream({{0, "data: {oops\n\n" + done}}, "keepalive")},
        {"non_sse_body", plain(200, "text/html", "<html>login</html>")},
    };
    for (const Case& each : table) {
        const RequestRecord record = one(each.answer);
        EXPECT_EQ(record.failure_class, each.failure);
        EXPECT_FALSE(record.client_fault());
    }
}

TEST(LoadRun, ReadsStreamsHoweverTheyAreCutAndEnded) {
    Answer crlf;
    crlf.segments = {{0, "data: {\"choices\":[{\"text\":\"\xe4\xb8"},
                     {5, "\xad\"}]}\r"},
                     {10, "\n\r\ndata: {\"choices\":[{\"text\":\"b\",\"finish_reason\":\"stop\"}]}\r\n\r\n"}};
    crlf.framing = "close";
    crlf.end_at_ms = 12;
    const RequestRecord record = one(crlf);
    EXPECT_EQ(record.failure_class, "");
    EXPECT_EQ(record.content,
              "\xe4\xb8\xad"
              "b");
    EXPECT_EQ(record.warnings, (std::vector<std::string>{"missing_done", "usage_missing"}));
}

TEST(LoadRun, EventsThatComeTogetherAreCounted) {
    Answer burst;
    burst.segments = {{0, token("a") + token("b") + token("c") + stop_event + usage + done}};
    const RequestRecord record = one(burst);
    EXPECT_EQ(record.coalesced_events, 2U);
    EXPECT_EQ(record.gaps, (std::vector<Stamp>{0, 0}));
}

TEST(LoadRun, ABodyHeldOpenAfterDoneDoesNotHoldTheSlot) {
    Answer held = good();
    held.end_at_ms = 700;
    const ReplayServer server(held);
    const auto records = measure_each(spec_for(server.port(), R"(,"concurrency":[1])"), 2);
    ASSERT_TRUE(records);
    EXPECT_EQ(server.connections(), 2) << "not a clean connection: not used again";
    for (const RequestRecord& record : *records) {
        EXPECT_TRUE(record.success());
        EXPECT_FALSE(record.connection_reusable);
    }
}

TEST(LoadRun, AConnectionClosedJustAsItIsReusedIsNoFailure) {
    Answer racing = good();
    racing.close_reused_once = true;
    racing.framing = "content-length";   // so that the last event ends the body too, however slow this machine is
    const ReplayServer server(racing);
    const auto records = measure_each(spec_for(server.port(), R"(,"concurrency":[1])"), 3);
    ASSERT_TRUE(records);
    ASSERT_EQ(records->size(), 3U);
    std::uint32_t retries = 0;
    for (const RequestRecord& record : *records) {
        EXPECT_TRUE(record.success()) << record.failure_class;
        retries += record.transport_retries;
    }
    EXPECT_EQ(retries, 1U);
}

TEST(LoadRun, ARequestHasItsTimeLimit) {
    Answer silent;
    silent.headers_at_ms = 400;
    const RequestRecord record = one(silent, R"(,"request_timeout_s":0.05)");
    EXPECT_EQ(record.failure_class, "timeout");
    EXPECT_FALSE(record.http_status);
}

TEST(LoadRun, StopEndsItWithWhatWasMeasured) {
    const ReplayServer server(good());
    StopFlag stop{false};
    std::uint64_t seen = 0;
    const json::object got =
        run(spec_for(server.port(), R"(,"concurrency":[2,4],"requests":1000000)"), {}, stop, [&](const RequestRecord&) {
            if (++seen == 10) stop = true;
        });
    EXPECT_EQ(got.at("complete"), false);
    ASSERT_EQ(got.at("levels").as_array().size(), 1U);
    EXPECT_GE(count(got.at("levels").at(0), "completed"), 1);
    EXPECT_EQ(count(got.at("levels").at(0), "failed"), 0) << "what we cut off ourselves is no failure of the server";
}

TEST(LoadRun, AServerThatIsNotThereEndsTheRun) {
    std::uint16_t port = 0;
    {
        const ReplayServer gone(good());
        port = gone.port();
    }
    const json::object got = run(spec_for(port, R"(,"concurrency":[1,2],"requests":1000000)"), {}, never);
    EXPECT_EQ(got.at("complete"), false);
    ASSERT_EQ(got.at("levels").as_array().size(), 1U);
    EXPECT_GE(got.at("levels").at(0).at("failures").at("connect_failed").to_number<int>(), 8);
    EXPECT_TRUE(got.at("plateau").is_null());
}

TEST(LoadRun, TheKeyIsSentAndNeverWritten) {
    const std::string path = ::testing::TempDir() + "load-key-" + std::to_string(::getpid());
    std::ofstream(path) << "sk-very-secret\n";
    const ReplayServer server(good());
    const Spec spec = spec_for(server.port(), R"(,"concurrency":[1],"requests":1,"api_key_file":")" + path + "\"");
    const json::object got = run(spec, {}, never);
    EXPECT_NE(server.requests().at(0).find("Authorization: Bearer sk-very-secret"), std::string::npos);
    EXPECT_EQ(json::serialize(got).find("sk-very"), std::string::npos);
    std::remove(path.c_str());
    const json::object without = run(spec, {}, never);
    EXPECT_EQ(without.at("complete"), false);
    EXPECT_TRUE(without.at("error").is_object());
}

/// In a process of its own: a hard limit cannot be raised again.
[[noreturn]] void run_with_few_files() {
    const ReplayServer server(good());
    const rlimit low{64, 64};
    setrlimit(RLIMIT_NOFILE, &low);
    const Spec spec = spec_for(server.port(), R"(,"concurrency":[100],"requests":100,"warmup_requests":0)");
    int ours = 0;
    const json::object got =
        run(spec, {}, never, [&](const RequestRecord& record) { ours += record.client_fault() ? 1 : 0; });
    const json::value& level = got.at("levels").at(0);
    const bool right =
        ours == 100 && level.at("reason") == "client_fd_limit" && server.requests().empty() && count(level, "failed") == 0;
    std::_Exit(right ? 0 : 1);
}

TEST(LoadRun, TooFewFilesIsTheClientsOwnFault) {
    EXPECT_EXIT(run_with_few_files(), ::testing::ExitedWithCode(0), "");
}

}   // namespace
}   // namespace campaign::load
