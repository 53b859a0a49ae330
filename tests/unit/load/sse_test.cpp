#include "instruments/load/sse.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace campaign::load {
namespace {

struct Seen final : SseSink {
    std::vector<std::string> events;
    std::vector<Stamp> stamps;
    bool event(std::string_view data, Stamp at) override {
        events.emplace_back(data);
        stamps.push_back(at);
        return data != "last";
    }
};

using Events = std::vector<std::string>;

Events parse(std::string_view text, std::size_t step) {
    SseParser parser;
    Seen seen;
    for (std::size_t i = 0; i < text.size(); i += step) parser.feed(text.substr(i, step), static_cast<Stamp>(i), seen);
    parser.finish(seen);
    return seen.events;
}

TEST(Sse, NothingBehindTheLastEventIsLookedAt) {
    for (const std::size_t step : {1U, 3U, 100U}) {
        EXPECT_EQ(parse("data: a\n\ndata: last\n\ndata: b\n\n: x\n\ndata: c", step), (Events{"a", "last"})) << step;
    }
    SseParser parser;
    Seen seen;
    parser.feed("data: last\n\n: comment\n\n" + std::string(9U << 20U, 'x'), 1, seen);
    EXPECT_EQ(parser.comments(), 0U);
    EXPECT_FALSE(parser.overflowed());
}

struct Case {
    const char* name;
    std::string text;
    Events events;
};

const Case table[] = {
    {"LF", "data: a\n\ndata: b\n\n", {"a", "b"}},
    {"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", {"a", "b"}},
    {"CR", "data: a\r\rdata: b\r\r", {"a", "b"}},
    {"all three mixed", "data: a\r\n\ndata: b\n\rdata: c\r\r\n", {"a", "b", "c"}},
    {"a byte order mark at the beginning only",
     "\xef\xbb\xbf"
     "data: a\n\n\xef\xbb\xbf"
     "data: b\n\n",
     {"a"}},
    {"no blank after the colon", "data:a\n\n", {"a"}},
    {"only one blank goes", "data:  a\n\n", {" a"}},
    {"several data lines are one event", "data: a\ndata: b\n\n", {"a\nb"}},
    {"an empty data line is an event of its own", "data\n\ndata:\n\n", {"", ""}},
    {"comments and other fields are no events", ": ping\nevent: x\nid: 1\nretry: 5\n\n", {}},
    {"a field name that only begins with data", "database: a\n\n", {}},
    {"no blank line at the end of the body", "data: a\n\ndata: b\n", {"a", "b"}},
    {"no line end at the end of the body", "data: a\n\ndata: b", {"a", "b"}},
    {"characters of several bytes", "data: \xe4\xb8\xad\xf0\x9f\x9a\x80\n\n", {"\xe4\xb8\xad\xf0\x9f\x9a\x80"}},
};

TEST(Sse, GivesTheSameEventsInAnySplit) {
    for (const Case& each : table) {
        for (std::size_t step = 1; step <= each.text.size(); ++step) {
            EXPECT_EQ(parse(each.text, step), each.events) << each.name << ", " << step << " bytes a read";
        }
    }
}

TEST(Sse, AnEventHasTheTimeOfTheReadThatEndedItsDataLine) {
    SseParser parser;
    Seen seen;
    parser.feed("data: a", 10, seen);
    parser.feed("bc\n", 20, seen);
    EXPECT_TRUE(seen.events.empty());
    parser.feed("\n", 30, seen);
    EXPECT_EQ(seen.events, Events{"abc"});
    EXPECT_EQ(seen.stamps, std::vector<Stamp>{20});
}

TEST(Sse, CountsComments) {
    SseParser parser;
    Seen seen;
    parser.feed(": a\n:\ndata: x\n\n", 0, seen);
    EXPECT_EQ(parser.comments(), 2U);
}

TEST(Sse, AnEventWithoutEndIsBounded) {
    SseParser parser;
    Seen seen;
    const std::string block(1U << 20U, 'x');
    for (int i = 0; i < 20; ++i) parser.feed(block, i, seen);
    EXPECT_TRUE(parser.overflowed());
    parser.feed("\n\ndata: late\n\n", 21, seen);
    EXPECT_TRUE(seen.events.empty());
}

}   // namespace
}   // namespace campaign::load
