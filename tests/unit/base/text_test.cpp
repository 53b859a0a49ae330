#include "base/text.hpp"

#include <gtest/gtest.h>

using namespace campaign;
using namespace std::chrono_literals;

TEST(Printable, StripsTerminalEscapes) {
    EXPECT_EQ(printable("\x1b[31mred\x1b[0m"), "red");
    EXPECT_EQ(printable("\x1b]0;title\atext"), "text");
    EXPECT_EQ(printable("\x1b]8;;http://x\x1b\\link"), "link");
}

TEST(Printable, ReplacesControlsAndBrokenUtf8) {
    EXPECT_EQ(printable("a\x01z"), "a?z");
    EXPECT_EQ(printable("a\nb\tc"), "a b c");
    EXPECT_EQ(printable("\xff"), "\xef\xbf\xbd");
    EXPECT_EQ(printable("\xc2\x9b"
                        "31m"),
              "\xef\xbf\xbd\xef\xbf\xbd"
              "31m");   // C1 CSI
    EXPECT_EQ(printable("\xe4\xb8\xad"), "\xe4\xb8\xad");
}

TEST(Printable, IsBounded) {
    EXPECT_EQ(printable("abcdef", 3), "abc...");
}

TEST(ParseDuration, NeedsAUnit) {
    EXPECT_EQ(parse_duration("36m"), 36min);
    EXPECT_EQ(parse_duration("250ms"), 250ms);
    EXPECT_EQ(parse_duration("1h30m"), 90min);
    EXPECT_EQ(parse_duration("1.5h"), 90min);
    EXPECT_EQ(parse_duration("36"), std::nullopt);
    EXPECT_EQ(parse_duration("-5s"), std::nullopt);
    EXPECT_EQ(parse_duration("5 s"), std::nullopt);
    EXPECT_EQ(parse_duration(""), std::nullopt);
    EXPECT_EQ(parse_duration("99999999999999999999d"), std::nullopt);
    EXPECT_EQ(parse_duration("infs"), std::nullopt);
}

TEST(ParseSize, KnowsBinaryAndDecimal) {
    EXPECT_EQ(parse_size("2GiB"), 2ULL << 30);
    EXPECT_EQ(parse_size("10MB"), 10'000'000ULL);
    EXPECT_EQ(parse_size("10"), std::nullopt);
    EXPECT_EQ(parse_size("10MBx"), std::nullopt);
}

TEST(FormatSpan, ReadsAsPeopleSayIt) {
    EXPECT_EQ(format_span(850ms), "850 ms");
    EXPECT_EQ(format_span(12s), "12 s");
    EXPECT_EQ(format_span(245s), "4 min 05 s");
    EXPECT_EQ(format_span(164min), "2 h 44 min");
}

TEST(Time, SurvivesTheRoundTrip) {
    const auto when = parse_time("2026-12-01T22:31:07.120Z");
    ASSERT_TRUE(when);
    EXPECT_EQ(format_time(*when), "2026-12-01T22:31:07.120Z");
    EXPECT_EQ(format_clock(*when), "22:31:07");
    EXPECT_EQ(parse_time("2026-13-01T00:00:00Z"), std::nullopt);
    EXPECT_EQ(parse_time("yesterday"), std::nullopt);
}

TEST(DidYouMean, FindsASlipAndNothingElse) {
    const std::vector<std::string> words{"max_downtime", "restart", "window"};
    EXPECT_EQ(did_you_mean("max_downtme", words), "max_downtime");
    EXPECT_EQ(did_you_mean("restrat", words), "restart");
    EXPECT_EQ(did_you_mean("banana", words), std::nullopt);
    EXPECT_EQ(did_you_mean("", words), std::nullopt);
}
