#include "adapters/systemd/unit_text.hpp"

#include <gtest/gtest.h>

#include <random>

namespace campaign::systemd {
namespace {

std::vector<std::string> words(std::string_view line) {
    return split_words(line).value_or(std::vector<std::string>{"<refused>"});
}

using List = std::vector<std::string>;

// What systemd 252 made of these lines.
TEST(SplitWords, ReadsLinesAsSystemdDoes) {
    EXPECT_EQ(words(R"(a 'b c' "d e")"), (List{"a", "b c", "d e"}));
    EXPECT_EQ(words(R"(--a={"b":"c"})"), (List{"--a={b:c}"}));   // quotes count anywhere and vanish
    EXPECT_EQ(words(R"(x"y z"w)"), (List{"xy zw"}));
    EXPECT_EQ(words(R"('{"b":"c"}')"), (List{R"({"b":"c"})"}));
    EXPECT_EQ(words(R"('\x41')"), (List{"A"}));   // C escapes inside single quotes too
    EXPECT_EQ(words(R"(\\d)"), (List{R"(\d)"}));
    EXPECT_EQ(words(R"(a\sb)"), (List{"a b"}));
    EXPECT_EQ(words(R"(a\ b)"), (List{R"(a\ b)"}));   // one word that keeps the backslash
    EXPECT_EQ(words("100%% $X ${Y}"), (List{"100%", "$X", "${Y}"}));
    EXPECT_EQ(words(R"("")"), (List{""}));
    EXPECT_EQ(words(""), List{});
    EXPECT_EQ(words("50%"), (List{"50%"}));   // '%' before nothing is literal
}

TEST(SplitWords, RefusesWhatSystemdRefusesOrOnlySystemdKnows) {
    for (const char* line : {R"("open)", "'open", "%z", "%h/x", "5%5"}) EXPECT_EQ(split_words(line), std::nullopt) << line;
}

TEST(QuoteWord, KeepsPlainWordsReadable) {
    EXPECT_EQ(quote_word("--profiler-config.profiler=torch"), "--profiler-config.profiler=torch");
    EXPECT_EQ(quote_word("${MODEL}"), "${MODEL}");
    EXPECT_EQ(quote_word("$ARGS"), "$ARGS");
    EXPECT_EQ(quote_word(R"({"a": 1})"), R"("{\"a\": 1}")");
    EXPECT_EQ(quote_word("100%"), "100%%");
    EXPECT_EQ(quote_word(""), R"("")");
    EXPECT_EQ(quote_word(";"), R"(";")");   // unquoted it would separate two commands
    EXPECT_EQ(quote_word("a\nb"), R"("a\nb")");
}

TEST(QuoteWord, EveryWordComesBackAsItWas) {
    std::mt19937 random{20261201};
    const std::string alphabet = "ab01 \t\n\r\\\"'%$;#{}[]()&|<>*?!~`=,.:/-_@+\x01\x7f\xc3\xa9";
    for (int round = 0; round < 20000; ++round) {
        List original(1 + random() % 4);
        for (std::string& word : original) {
            const std::size_t length = random() % 12;
            for (std::size_t i = 0; i < length; ++i) word += alphabet[random() % alphabet.size()];
        }
        const std::string line = quote_words(original);
        ASSERT_EQ(line.find('\n'), std::string::npos) << line;
        ASSERT_EQ(words(line), original) << line;
    }
}

TEST(LiteralDollars, DoublesEach) {
    EXPECT_EQ(literal_dollars("$a$$"), "$$a$$$$");
}

TEST(ValidUnit, TakesServicesAndNothingElse) {
    for (const char* good : {"vllm.service", "vllm@coder.service", "a-b_c.d.service", R"(dev-\x2d.service)"})
        EXPECT_TRUE(valid_unit(good)) << good;
    for (const char* bad :
         {"", ".service", "vllm", "vllm.socket", "-f.service", "a b.service", "a/b.service", "a;b.service", "a\n.service"}) {
        EXPECT_FALSE(valid_unit(bad)) << bad;
    }
    EXPECT_FALSE(valid_unit(std::string(300, 'a') + ".service"));
}

TEST(ObjectPath, EscapesWhatDBusDoesNotTake) {
    EXPECT_EQ(object_path("vllm@coder.service"), "/org/freedesktop/systemd1/unit/vllm_40coder_2eservice");
    EXPECT_EQ(object_path("3d.service"), "/org/freedesktop/systemd1/unit/_33d_2eservice");
}

TEST(ParseShow, JoinsRepeatedKeysAndKeepsEqualsSigns) {
    const Properties p = parse_show("A=1\nB=x=y\nF=/a (ignore_errors=yes)\nF=/b (ignore_errors=no)\nnoise\n");
    EXPECT_EQ(property(p, "B"), "x=y");
    EXPECT_EQ(property(p, "F"), "/a (ignore_errors=yes)\n/b (ignore_errors=no)");
    EXPECT_EQ(number(p, "A"), 1u);
    EXPECT_EQ(property(p, "absent"), "");
    EXPECT_EQ(number(p, "B"), 0u);
}

TEST(ParseSpan, ReadsSystemdsSpans) {
    EXPECT_EQ(parse_span("1min 30s"), 90'000'000u);
    EXPECT_EQ(parse_span("100ms"), 100'000u);
    EXPECT_EQ(parse_span("1h"), 3'600'000'000u);
    EXPECT_EQ(parse_span("infinity"), UINT64_MAX);
    EXPECT_EQ(parse_span("0"), 0u);
    EXPECT_EQ(parse_span("1.5s"), 1'500'000u);
    for (const char* bad : {"", "soon", "3parsecs", "-1s"}) EXPECT_EQ(parse_span(bad), std::nullopt) << bad;
}

TEST(ParseExec, KeepsEveryWordExactly) {
    const auto commands = parse_exec(
        R"j({"type":"a(sasasttttuii)","data":[["/bin/x",["/bin/x","a b","${Y}"],["ignore-failure"],0,0,0,0,0,0,0]]})j");
    ASSERT_TRUE(commands);
    ASSERT_EQ(commands->size(), 1u);
    EXPECT_EQ((*commands)[0].argv, (List{"/bin/x", "a b", "${Y}"}));
    EXPECT_EQ((*commands)[0].flags, (List{"ignore-failure"}));
}

TEST(ParseExec, RefusesOtherShapes) {
    for (const char* bad : {"", "[]", R"({"data":1})", R"({"data":[["/x"]]})", R"({"data":[["/x",[1],[]]]})"}) {
        const auto commands = parse_exec(bad);
        EXPECT_FALSE(commands) << bad;
    }
}

TEST(ExecPrefix, WritesFlagsAsUnitFilesDo) {
    EXPECT_EQ(exec_prefix({}, false), "");
    EXPECT_EQ(exec_prefix({"ignore-failure", "no-env-expand"}, false), "-:");
    EXPECT_EQ(exec_prefix({"privileged"}, true), "@+");
}

}   // namespace
}   // namespace campaign::systemd
