#include "instruments/load/prompt.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace campaign::load {
namespace {

Spec spec_of(const std::string& more) {
    return parse_spec(R"({"schema":"campaign.load-spec/1","url":"http://h:81/base/v1/","model":"m","concurrency":[1])" +
                      more + "}")
        .value();
}

TEST(Prompt, HasAsManyWordsAsTokensAreWanted) {
    for (const std::uint32_t wanted : {1U, 2U, 32U, 1024U}) {
        const std::string text = make_prompt(1, 5, wanted);
        EXPECT_EQ(std::count(text.begin(), text.end(), ' ') + 1, static_cast<std::ptrdiff_t>(wanted));
    }
    const std::string half = make_prompt(1, 5, 100, 2.0);
    EXPECT_EQ(std::count(half.begin(), half.end(), ' ') + 1, 50);
}

TEST(Prompt, IsTheSameForTheSameSeedAndIndex) {
    EXPECT_EQ(make_prompt(7, 3, 200), make_prompt(7, 3, 200));
    EXPECT_NE(make_prompt(7, 3, 200), make_prompt(8, 3, 200));
}

TEST(Prompt, NoTwoIndicesShareTheirFirstWords) {
    std::set<std::string> seen;
    for (std::uint64_t i = 0; i < 5000; ++i) EXPECT_TRUE(seen.insert(make_prompt(1, i, 16)).second) << i;
    EXPECT_NE(make_prompt(1, 0, 16).substr(0, 3), make_prompt(1, 1, 16).substr(0, 3));
}

TEST(Prompt, LearnsFromTheServersOwnCount) {
    EXPECT_DOUBLE_EQ(tokens_per_word(100, 130), 1.3);
    EXPECT_DOUBLE_EQ(tokens_per_word(100, 0), 1.0);
}

TEST(Request, AsksForUsageAndTheExactLength) {
    const json::value body = json::parse(make_body(spec_of(R"(,"output_tokens":64)"), "hello"));
    EXPECT_EQ(body.at("prompt"), "hello");
    EXPECT_EQ(body.at("max_tokens"), 64);
    EXPECT_EQ(body.at("min_tokens"), 64);
    EXPECT_EQ(body.at("ignore_eos"), true);
    EXPECT_EQ(body.at("stream"), true);
    EXPECT_EQ(body.at("stream_options").at("include_usage"), true);
    const json::value chat = json::parse(make_body(spec_of(R"(,"route":"chat","ignore_eos":false)"), "hello"));
    EXPECT_EQ(chat.at("messages").at(0).at("content"), "hello");
    EXPECT_FALSE(chat.as_object().contains("ignore_eos"));
}

TEST(Request, GoesToTheRouteUnderTheUrlsBase) {
    const std::string text = make_request(spec_of(R"(,"route":"chat")"), "{}", "key");
    EXPECT_TRUE(text.starts_with("POST /base/v1/chat/completions HTTP/1.1\r\nHost: h:81\r\n"));
    EXPECT_NE(text.find("Authorization: Bearer key\r\n"), std::string::npos);
    EXPECT_NE(text.find("Accept-Encoding: identity\r\n"), std::string::npos);
    EXPECT_TRUE(text.ends_with("Content-Length: 2\r\n\r\n{}"));
    EXPECT_EQ(make_request(spec_of(""), "{}", "").find("Authorization"), std::string::npos);
}

}   // namespace
}   // namespace campaign::load
