#include "instruments/load/recorder.hpp"

#include <gtest/gtest.h>

namespace campaign::load {
namespace {

constexpr Stamp ms = 1'000'000;

std::string chunk(const std::string& bytes) {
    std::string size;
    for (std::size_t n = bytes.size(); n > 0; n /= 16) size.insert(size.begin(), "0123456789abcdef"[n % 16]);
    return size + "\r\n" + bytes + "\r\n";
}

const std::string head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const std::string last = "0\r\n\r\n";
const std::string done = "data: [DONE]\n\n";
std::string token(const std::string& text) {
    return R"(data: {"choices":[{"delta":{"content":")" + text + "\"}}]}\n\n";
}
const std::string stop = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
std::string usage(int tokens) {
    return "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":" + std::to_string(tokens) + "}}\n\n";
}

/// An answer: what comes when, and how it ends.
class Story {
public:
    Story() { recorder.bytes(head, 5 * ms); }
    Story& at(int when, const std::string& events) {
        recorder.bytes(chunk(events), when * ms);
        return *this;
    }
    RequestRecord ends(int when) {
        recorder.bytes(last, when * ms);
        EXPECT_TRUE(recorder.finished());
        return recorder.take();
    }
    RequestRecord closes(int when, bool reset) {
        recorder.closed(when * ms, reset);
        EXPECT_TRUE(recorder.finished());
        return recorder.take();
    }
    Recorder recorder{true};
};

TEST(Recorder, TheFirstTokenIsTheFirstThatBearsText) {
    const RequestRecord got = Story()
                                  .at(20, "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n")
                                  .at(140, token("a"))
                                  .at(180, token("b"))
                                  .at(181, stop)
                                  .at(182, usage(5))
                                  .at(183, done)
                                  .ends(183);
    EXPECT_TRUE(got.success());
    EXPECT_EQ(got.first_choice, 20 * ms);
    EXPECT_EQ(got.first_token, 140 * ms);
    EXPECT_EQ(got.last_token, 180 * ms);
    EXPECT_EQ(got.stream_end, 183 * ms);
    EXPECT_EQ(got.gaps, std::vector<Stamp>{40 * ms});
    EXPECT_EQ(got.output_tokens(), 5);
    EXPECT_EQ(got.tpot_ms(), 10.0);
    EXPECT_EQ(got.content, "ab");
    EXPECT_TRUE(got.warnings.empty());
}

TEST(Recorder, EventsOfOneReadHaveOneTime) {
    const RequestRecord got =
        Story().at(10, token("a")).at(90, token("b") + token("c") + token("d")).at(91, stop + usage(4) + done).ends(91);
    EXPECT_EQ(got.gaps, (std::vector<Stamp>{80 * ms, 0, 0}));
    EXPECT_EQ(got.coalesced_events, 2U);
}

TEST(Recorder, WithoutUsageTokensAreUnknownAndSaidSo) {
    const RequestRecord got = Story().at(10, token("a")).at(20, token("b")).at(21, stop + done).ends(21);
    EXPECT_TRUE(got.success());
    EXPECT_FALSE(got.output_tokens());
    EXPECT_EQ(got.warnings, std::vector<std::string>{"usage_missing"});
    EXPECT_EQ(to_json(got).at("output_tokens_estimate"), json::value(2));
}

TEST(Recorder, TheFirstFailureDecidesItsClass) {
    const std::string error = "data: {\"error\":{\"message\":\"engine died\",\"code\":500}}\n\n";
    struct Case {
        RequestRecord got;
        const char* failure;
        std::optional<Stamp> at;
    };
    const Case table[] = {
        {Story().at(10, error + done).ends(11), "inband_error", 10 * ms},
        {Story().at(10, token("a")).at(20, error).at(21, done).ends(21), "inband_error", 20 * ms},
        {Story().at(10, token("a")).at(20, "data: {\"choices\":[{\"finish_reason\":\"abort\"}]}\n\n").at(21, done).ends(21),
         "inband_error", 20 * ms},
        {Story().at(10, token("a")).ends(30), "truncated_stream", 30 * ms},
        {Story().at(10, token("a")).closes(30, false), "connection_reset", 30 * ms},
        {Story().at(10, token("a")).at(11, stop).closes(30, true), "connection_reset", 30 * ms},
        {Story().at(10, stop + usage(0)).at(12, done).ends(12), "empty_response", 12 * ms},
        {Story().at(10, token("a")).at(20, "data: {broken\n\n" + error).at(21, done).ends(21), "bad_json", 20 * ms},
    };
    for (const Case& each : table) {
        EXPECT_EQ(each.got.failure_class, each.failure);
        EXPECT_EQ(each.got.failed_at, each.at) << each.failure;
        EXPECT_FALSE(each.got.tpot_ms()) << each.failure;
    }
    EXPECT_EQ(table[6].got.output_tokens(), 0) << "a proper end that says zero";
    EXPECT_FALSE(table[1].got.output_tokens());
}

RequestRecord whole(const std::string& status_and_headers, const std::string& body) {
    Recorder recorder(true);
    recorder.bytes(
        "HTTP/1.1 " + status_and_headers + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body,
        15 * ms);
    EXPECT_TRUE(recorder.finished());
    return recorder.take();
}

TEST(Recorder, ABodyThatIsNoStreamIsJudgedByStatusAndContent) {
    const RequestRecord busy = whole("429 X\r\nRetry-After: 2", "{\"error\":{\"message\":\"slow down\"}}");
    EXPECT_EQ(busy.failure_class, "http_status");
    EXPECT_EQ(busy.http_status, 429);
    EXPECT_EQ(busy.retry_after_s, 2);
    EXPECT_EQ(busy.error_message, "slow down");
    EXPECT_EQ(whole("200 OK", "{\"error\":\"so sad\"}").failure_class, "inband_error");
    EXPECT_EQ(whole("200 OK\r\nContent-Type: text/html", "<html>").failure_class, "non_sse_body");
    EXPECT_EQ(whole("200 OK\r\nContent-Type: application/json", "{}").failure_class, "non_sse_body");
}

TEST(Recorder, FinishReasonOrDoneIsEnough) {
    EXPECT_EQ(Story().at(10, token("a")).at(11, stop).at(12, usage(1)).ends(13).warnings,
              std::vector<std::string>{"missing_done"});
    EXPECT_EQ(Story().at(10, token("a")).at(12, usage(1) + done).ends(13).warnings,
              std::vector<std::string>{"missing_finish_reason"});
}

TEST(Recorder, ReadsNothingAfterDoneAndIsReusableOnlyAfterTheBodysEnd) {
    Story story;
    story.at(10, token("a") + stop + usage(1) + done);
    EXPECT_TRUE(story.recorder.finished());
    EXPECT_FALSE(story.recorder.reusable());
    story.recorder.drain(last);
    EXPECT_TRUE(story.recorder.reusable());
    EXPECT_EQ(story.recorder.take().token_events, 1U);
}

TEST(Recorder, OurOwnReasonsEndARequestToo) {
    Story story;
    story.at(10, token("a"));
    story.recorder.give_up("timeout", "too long", 99 * ms);
    const RequestRecord got = story.recorder.take();
    EXPECT_EQ(got.failure_class, "timeout");
    EXPECT_EQ(got.token_events, 1U);
    EXPECT_FALSE(got.client_fault());
}

TEST(Recorder, TheRecordDoesNotDependOnTheSplit) {
    const std::string all = head + chunk(token("\xe4\xb8\xad") + token("b")) + chunk(stop + usage(4)) + chunk(done) + last;
    Recorder at_once(true);
    at_once.bytes(all, ms);
    const json::object expected = to_json(at_once.take());
    for (std::size_t step = 1; step < all.size(); ++step) {
        Recorder recorder(true);
        for (std::size_t i = 0; i < all.size(); i += step) recorder.bytes(std::string_view{all}.substr(i, step), ms);
        ASSERT_TRUE(recorder.finished()) << step;
        EXPECT_EQ(to_json(recorder.take()), expected) << step;
    }
}

}   // namespace
}   // namespace campaign::load
