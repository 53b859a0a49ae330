#include "ctl/confirm.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.hpp"
#include "screens.hpp"

namespace campaign::ctl {
namespace {

using testing::HasSubstr;

json::value screen(const char* text) {
    return parse_json(text, "screen").value();
}

TEST(Confirm, CancelDuringALoadSaysThatAnotherLoadFollows) {
    EXPECT_EQ(
        cost_of("cancel", "", screen(test::campaign_loading)),
        "k25 is loading a model. To cancel restores vllm-k25 on gpu03 now: production is down for one more model load, "
        "serving again about 23:25. What was gathered is kept.");
    EXPECT_EQ(question("cancel", "k25"), "Type k25 to cancel: ");
}

TEST(Confirm, CancelWithoutAChangeCostsNoProduction) {
    EXPECT_THAT(cost_of("cancel", "", screen(test::campaign_waiting)), HasSubstr("costs no production"));
}

TEST(Confirm, RestoreOfWhatIsBackOnlyVerifies) {
    EXPECT_THAT(cost_of("restore", "", screen(test::campaign_failed)), HasSubstr("nothing to bring back"));
    EXPECT_THAT(cost_of("restore", "", screen(test::campaign_in_doubt)), HasSubstr("restarts vllm-k25 on gpu07"));
}

TEST(Confirm, AnAnswerToADoubtSaysWhatAWrongOneDoes) {
    EXPECT_THAT(cost_of("resume", "not-done", screen(test::campaign_in_doubt)), HasSubstr("it happens twice"));
    EXPECT_THAT(cost_of("resume", "done", screen(test::campaign_in_doubt)), HasSubstr("is not sent again"));
}

TEST(Confirm, WithoutATerminalOnlyTheWholeNameConfirms) {
    EXPECT_FALSE(without_terminal("cancel", "k25", "k25"));
    const auto bare = without_terminal("cancel", "k25", "");
    ASSERT_TRUE(bare);
    EXPECT_EQ(bare->kind, ErrorKind::usage);
    EXPECT_EQ(bare->next, "campaignctl cancel k25 --yes=k25");
    EXPECT_TRUE(without_terminal("cancel", "k25", "k2"));
    EXPECT_TRUE(without_terminal("cancel", "k25", "K25"));
}

TEST(Confirm, OnlyTheNameItselfIsTypedRight) {
    EXPECT_TRUE(typed_right("k25\n", "k25"));
    EXPECT_FALSE(typed_right("\n", "k25"));
    EXPECT_FALSE(typed_right("y\n", "k25"));
    EXPECT_FALSE(typed_right("k2", "k25"));
    EXPECT_FALSE(typed_right("", ""));
}

}   // namespace
}   // namespace campaign::ctl
