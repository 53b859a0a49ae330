#include "base/json.hpp"

#include <gtest/gtest.h>

using namespace campaign;

TEST(Canonical, TheSameValueHasOneText) {
    const auto a = parse_json(R"({"b": 1, "a": [true, null, "x\ny"]})", "a");
    const auto b = parse_json(R"({ "a":[true,null,"x\ny"],"b":1 })", "b");
    ASSERT_TRUE(a && b);
    EXPECT_EQ(canonical(*a), canonical(*b));
    EXPECT_EQ(canonical(*a), R"({"a":[true,null,"x\ny"],"b":1})");
}

TEST(ParseJson, IsBoundedInDepth) {
    const std::string deep(100, '[');
    const auto parsed = parse_json(deep + std::string(100, ']'), "answer of GET /v1/models");
    ASSERT_FALSE(parsed);
    EXPECT_EQ(parsed.error().kind, ErrorKind::invalid);
    EXPECT_NE(parsed.error().what.find("answer of GET /v1/models"), std::string::npos);
}

TEST(Members, AreNothingWhenOfAnotherType) {
    const auto value = parse_json(R"({"n": 3, "s": "x", "z": null})", "v");
    ASSERT_TRUE(value);
    EXPECT_EQ(int_at(*value, "n"), 3);
    EXPECT_EQ(number_at(*value, "n"), 3.0);
    EXPECT_EQ(string_at(*value, "n"), std::nullopt);
    EXPECT_EQ(string_at(*value, "z"), std::nullopt);
    EXPECT_EQ(member(*value, "z"), nullptr);
    EXPECT_EQ(int_at(*value, "absent"), std::nullopt);
}

TEST(Errors, SurviveTheRoundTrip) {
    const Error error{ErrorKind::in_doubt, "what", "why", "seen", "next"};
    EXPECT_EQ(error_from_json(json::value(to_json(error))), error);
}
