#include "instruments/load/event.hpp"

#include <gtest/gtest.h>

namespace campaign::load {
namespace {

using Kind = EventFacts::Kind;

TEST(Event, KnowsWhatBearsAToken) {
    const std::pair<const char*, bool> table[] = {
        {R"({"choices":[{"delta":{"role":"assistant","content":""}}]})", false},
        {R"({"choices":[{"delta":{"content":"a"}}]})", true},
        {R"({"choices":[{"delta":{"content":null}}]})", false},
        {R"({"choices":[{"delta":{"reasoning_content":"r"}}]})", true},
        {R"({"choices":[{"delta":{"reasoning":"r"}}]})", true},
        {R"({"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":""}}]}}]})", true},
        {R"({"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{}"}}]}}]})", true},
        {R"({"choices":[{"delta":{"tool_calls":[{"function":{"name":"","arguments":""}}]}}]})", false},
        {R"({"choices":[{"text":"a"}]})", true},
        {R"({"choices":[{"text":""}]})", false},
        {R"({"choices":[],"usage":{"completion_tokens":3}})", false},
        {R"({"choices":[{"delta":{},"finish_reason":"stop"}]})", false},
        {R"({"choices":{"not":"a list"}})", false},
        {R"({"choices":[7]})", false},
        {R"({"choices":[{"delta":{"content":["parts"]}}]})", false},
    };
    EventReader reader;
    for (const auto& [text, token] : table) {
        const EventFacts& facts = reader.read(text);
        EXPECT_EQ(facts.kind, Kind::chunk) << text;
        EXPECT_EQ(facts.bears_token(), token) << text;
    }
}

TEST(Event, BothNamesOfReasoningAreOneText) {
    EventReader reader;
    EXPECT_EQ(reader.read(R"({"choices":[{"delta":{"reasoning":"why","reasoning_content":"why"}}]})").reasoning, "why");
}

TEST(Event, ReadsUsageInEachPlaceWhereServersPutIt) {
    EventReader reader;
    const EventFacts& facts = reader.read(
        R"({"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":5,"completion_tokens_details":{"reasoning_tokens":2},"prompt_tokens_details":{"cached_tokens":4}}})");
    ASSERT_TRUE(facts.usage);
    EXPECT_EQ(facts.usage->prompt_tokens, 9);
    EXPECT_EQ(facts.usage->completion_tokens, 5);
    EXPECT_EQ(facts.usage->reasoning_tokens, 2);
    EXPECT_EQ(facts.usage->cached_tokens, 4);
    EXPECT_EQ(reader.read(R"({"choices":[],"usage":{"reasoning_tokens":7}})").usage->reasoning_tokens, 7);
    EXPECT_FALSE(reader.read(R"({"choices":[],"usage":null})").usage) << "nothing is left of the event before";
}

TEST(Event, KnowsErrorsInEachForm) {
    EventReader reader;
    const EventFacts& facts = reader.read(R"({"error":{"message":"engine\u001b[2J died","code":500}})");
    EXPECT_EQ(facts.kind, Kind::error);
    EXPECT_EQ(facts.error.message.find('\x1b'), std::string::npos) << "safe for a terminal";
    EXPECT_EQ(facts.error.code, json::value(500));
    EXPECT_EQ(reader.read(R"({"error":"plain words"})").error.message, "plain words");
    EXPECT_EQ(reader.read(R"({"object":"error","message":"old vLLM","code":40001})").kind, Kind::error);
    EXPECT_EQ(reader.read(R"({"error":null,"choices":[]})").kind, Kind::chunk);
}

TEST(Event, WhatIsNoJsonObjectIsBadJson) {
    EventReader reader;
    for (const char* text : {"", "{", "null", "[1]", "{\"a\":1} x", "[done]"})
        EXPECT_EQ(reader.read(text).kind, Kind::bad_json) << text;
    EXPECT_EQ(reader.read(std::string(2000, '[')).kind, Kind::bad_json) << "deep nesting is refused";
    EXPECT_EQ(reader.read("[DONE]").kind, Kind::done);
}

TEST(Event, ReadsTheMessageOfARefusal) {
    EXPECT_EQ(error_of_status(R"({"error":{"message":"slow down"}})").message, "slow down");
    EXPECT_EQ(error_of_status(R"({"detail":"Not Found"})").message, "Not Found");
    EXPECT_EQ(error_of_status("<html>502</html>").message, "<html>502</html>");
}

}   // namespace
}   // namespace campaign::load
