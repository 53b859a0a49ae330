#include "instruments/load/spec.hpp"

#include <gtest/gtest.h>

namespace campaign::load {
namespace {

std::string with(const std::string& more) {
    return R"({"schema":"campaign.load-spec/1","url":"http://127.0.0.1:8000","model":"m")" + more + "}";
}

TEST(LoadSpec, ReadsTheDocumentedOne) {
    const auto spec = parse_spec(
        R"({"schema": "campaign.load-spec/1", "url": "http://127.0.0.1:8000", "unix_socket": null, "route": "completions", "model": "m",
 "api_key_file": null, "concurrency": [1, 2, 4], "auto": {"max": 256}, "requests": null, "duration_s": null,
 "input_tokens": 1024, "output_tokens": 256, "ignore_eos": true, "seed": 1, "request_timeout_s": 600, "warmup_requests": 1})");
    ASSERT_TRUE(spec) << describe(spec.error());
    EXPECT_EQ(spec->url.host, "127.0.0.1");
    EXPECT_EQ(spec->url.port, 8000);
    EXPECT_EQ(spec->concurrency, (std::vector<std::uint32_t>{1, 2, 4}));
    EXPECT_FALSE(spec->auto_max) << "given levels win";
    EXPECT_FALSE(spec->requests);
}

TEST(LoadSpec, SearchesWhereNoLevelsAreGiven) {
    EXPECT_EQ(parse_spec(with(R"(,"concurrency":[],"auto":{"max":64})"))->auto_max, 64U);
}

TEST(LoadSpec, SaysWhatIsWrong) {
    const std::pair<std::string, std::string> table[] = {
        {"[]", "JSON object"},
        {"{", ""},
        {"{}", "schema"},
        {with(""), "concurrency"},
        {with(R"(,"concurrency":[0])"), "concurrency"},
        {with(R"(,"concurrency":1)"), "concurrency"},
        {with(R"(,"auto":{"max":0})"), "auto"},
        {with(R"(,"concurrency":[1],"route":"embeddings")"), "route"},
        {with(R"(,"concurrency":[1],"requests":0)"), "requests"},
        {with(R"(,"concurrency":[1],"duration_s":-1)"), "duration_s"},
        {with(R"(,"concurrency":[1],"ignore_eos":"yes")"), "ignore_eos"},
        {with(R"(,"concurrency":[1],"output_token":5)"), "output_token"},
        {with(R"(,"concurrency":[1],"goodput":{})"), "goodput"},
        {with(R"(,"concurrency":[1],"goodput":{"itl":5})"), "goodput"},
        {with(R"(,"concurrency":[1],"goodput":{"ttft":-5})"), "goodput"},
        {R"({"schema":"campaign.load-spec/1","url":"http://h","concurrency":[1]})", "model"},
        {R"({"schema":"campaign.load-spec/2","url":"http://h","model":"m","concurrency":[1]})", "schema"},
    };
    for (const auto& [text, word] : table) {
        const auto spec = parse_spec(text);
        ASSERT_FALSE(spec) << text;
        EXPECT_NE(spec.error().what.find(word), std::string::npos) << describe(spec.error());
    }
    EXPECT_EQ(parse_spec(with(R"(,"concurrency":[1],"output_token":5)")).error().next, "did you mean 'output_tokens'?");
}

TEST(LoadUrl, IsTakenApart) {
    const auto url = parse_url("http://[::1]:8080/prefix/v1/");
    ASSERT_TRUE(url);
    EXPECT_EQ(url->host, "::1");
    EXPECT_EQ(url->port, 8080);
    EXPECT_EQ(url->authority, "[::1]:8080");
    EXPECT_EQ(url->base_path, "/prefix");
    EXPECT_EQ(parse_url("http://gpu07")->port, 80);
}

TEST(LoadUrl, RefusesWhatItCannotOrMustNotUse) {
    for (const char* text : {"", "gpu07:8000", "ftp://h", "http://", "http://:80", "http://h:0", "http://h:99999",
                             "http://h:x", "http://[::1", "http://h/a?b=c", "http://h\r\nX: y", "http://user:pw@h"}) {
        EXPECT_FALSE(parse_url(text)) << text;
    }
    const auto secret = parse_url("http://user:hunter2@h");
    EXPECT_EQ(describe(secret.error()).find("hunter2"), std::string::npos);
    const auto tls = parse_url("https://h");
    ASSERT_FALSE(tls);
    EXPECT_EQ(tls.error().kind, ErrorKind::unavailable);
    EXPECT_FALSE(tls.error().next.empty());
}

}   // namespace
}   // namespace campaign::load
