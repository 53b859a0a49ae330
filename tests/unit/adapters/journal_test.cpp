#include "adapters/systemd/journal.hpp"

#include <gtest/gtest.h>

namespace campaign::systemd {
namespace {

TEST(JournalLine, ReadsTextBytesAndNull) {
    const auto text = parse_journal_line(
        R"({"__CURSOR":"s=1;i=2","__REALTIME_TIMESTAMP":"1796125115708385","_PID":"9124","MESSAGE":"loading 1/8"})");
    ASSERT_TRUE(text);
    EXPECT_EQ(text->text, "loading 1/8");
    EXPECT_EQ(text->cursor, "s=1;i=2");
    EXPECT_EQ(text->realtime_us, 1796125115708385u);
    EXPECT_EQ(text->pid, 9124);
    EXPECT_FALSE(text->from_manager);

    const auto bytes = parse_journal_line(R"({"__CURSOR":"c","MESSAGE":[27,91,49,109,255]})");
    ASSERT_TRUE(bytes);
    EXPECT_EQ(bytes->text, "\x1b[1m\xff");

    const auto null = parse_journal_line(R"({"__CURSOR":"c","MESSAGE":null})");
    ASSERT_TRUE(null);
    EXPECT_EQ(null->text, "");

    const auto repeated = parse_journal_line(R"({"__CURSOR":"c","MESSAGE":["first","second"]})");
    ASSERT_TRUE(repeated);
    EXPECT_EQ(repeated->text, "first");
}

TEST(JournalLine, KnowsSystemdsOwnWord) {
    const auto line = parse_journal_line(R"({"__CURSOR":"c","_PID":"1","UNIT":"vllm.service","MESSAGE":"Started."})");
    ASSERT_TRUE(line);
    EXPECT_TRUE(line->from_manager);
}

TEST(JournalLine, IsNothingWithoutACursor) {
    for (const char* bad : {"", "-- cursor: s=1", "{", R"({"MESSAGE":"x"})", R"({"__CURSOR":""})", R"(["__CURSOR"])"}) {
        EXPECT_FALSE(parse_journal_line(bad)) << bad;
    }
}

TEST(JournalLine, BoundsALongMessage) {
    const auto line = parse_journal_line(R"({"__CURSOR":"c","MESSAGE":")" + std::string(200000, 'x') + R"("})");
    ASSERT_TRUE(line);
    EXPECT_EQ(line->text.size(), 64u << 10);
}

}   // namespace
}   // namespace campaign::systemd
