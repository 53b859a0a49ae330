#include "ctl/layout.hpp"

#include <gtest/gtest.h>

#include "base/json.hpp"
#include "base/text.hpp"

namespace campaign::ctl {
namespace {

using Lines = std::vector<std::string>;

TEST(Layout, WrapsAtBlanksAndLosesNothing) {
    EXPECT_EQ(wrap("one two three four", 9), (Lines{"one two", "three", "four"}));
    EXPECT_EQ(wrap("", 9), Lines{""});
    EXPECT_EQ(wrap("abcdefghijkl", 8), (Lines{"abcdefgh", "ijkl"})) << "a word longer than the line goes on in the next";
}

TEST(Layout, NothingFromAHostReachesTheTerminalAsItIs) {
    EXPECT_EQ(ascii("\x1b[31mred\x1b[0m\a\n\xe2\x80\xa6"), "red? ?");
    EXPECT_EQ(wrap("a\x1b[2Jb", 20), Lines{"ab"});
}

TEST(Layout, ACommandIsNeverBroken) {
    const std::string command =
        "campaignctl approve a-campaign-with-a-rather-long-name-indeed D2 torch-profile --socket=/run/x.sock";
    Sheet sheet{Style{}};
    sheet.with_command(2, "k25: approve it", command);
    EXPECT_EQ(sheet.text(), "  k25: approve it\n    " + command + "\n");
}

TEST(Layout, ColourIsBesideTheSignNeverInsteadOfIt) {
    EXPECT_EQ(paint(Style{80, false}, Tone::failed, "x FAILED"), "x FAILED");
    EXPECT_EQ(paint(Style{80, true}, Tone::failed, "x FAILED"), "\x1b[1;31mx FAILED\x1b[0m");
}

TEST(Layout, TimesAreClocksFirst) {
    const WallTime now = parse_time("2026-12-01T22:49:31Z").value();
    EXPECT_EQ(clock_text(parse_time("2026-12-01T22:31:07Z").value(), now), "22:31");
    EXPECT_EQ(clock_text(parse_time("2026-11-30T22:31:07Z").value(), now), "30 Nov 22:31");
    EXPECT_EQ(date_text(now), "Tue 1 Dec 22:49:31 UTC");
    EXPECT_EQ(span_text(12), "12 s");
    EXPECT_EQ(span_text(18 * 60), "18 min");
    EXPECT_EQ(span_text(9870), "2 h 45 min");
    EXPECT_EQ(span_text(19.0 * 86400), "19 days");
    EXPECT_EQ(span_text(-5), "0 s");
}

TEST(Layout, DowntimeIsARangeOrIsUnknown) {
    const auto text = [](const char* json) {
        const json::value range = parse_json(json, "test").value();
        return downtime_text(&range);
    };
    EXPECT_EQ(text("[4080, 4620]"), "68-77 min");
    EXPECT_EQ(text("[4320, 4320]"), "72 min");
    EXPECT_EQ(text("[60, 80]"), "60-80 s");
    EXPECT_EQ(text("[0, 0]"), "0");
    EXPECT_EQ(text("null"), "unknown");
    EXPECT_EQ(text("[1]"), "unknown");
    EXPECT_EQ(downtime_text(nullptr), "unknown");
}

TEST(Layout, ABarIsAsFullAsItsShare) {
    EXPECT_EQ(bar(50, 10), "[#####.....]");
    EXPECT_EQ(bar(0, 4), "[....]");
    EXPECT_EQ(bar(250, 4), "[####]");
}

}   // namespace
}   // namespace campaign::ctl
