#include "daemon/engine/window.hpp"

#include <gtest/gtest.h>

using namespace campaign::engine;
using namespace std::chrono_literals;

TEST(ParseWindow, ReadsNightsAndZones) {
    const auto window = parse_window("22:00-06:00 Europe/Zurich");
    ASSERT_TRUE(window);
    EXPECT_EQ(window->begin, 22h);
    EXPECT_EQ(window->end, 6h);
    EXPECT_EQ(window->zone, "Europe/Zurich");
    EXPECT_EQ(parse_window("01:30-02:00")->zone, "UTC");
}

TEST(ParseWindow, RefusesWhatIsNoWindow) {
    for (const char* text : {"", "22-6", "25:00-06:00", "22:61-06:00", "22:00-06:00 ../etc/passwd",
                             "22:00-06:00 Europe/Zurich; rm", "22:00-06:00 /etc"}) {
        EXPECT_FALSE(parse_window(text)) << text;
    }
}

TEST(UntilOpen, IsNowWhenThereIsTimeEnough) {
    const Window night{22h, 6h, "UTC"};
    EXPECT_EQ(until_open(night, 23h, 2h), 0s);
    EXPECT_EQ(until_open(night, 3h, 3h), 0s);
}

TEST(UntilOpen, WaitsForTheNextOpening) {
    const Window night{22h, 6h, "UTC"};
    EXPECT_EQ(until_open(night, 12h, 2h), 10h);
    EXPECT_EQ(until_open(night, 5h, 2h), 17h);   // open, but not for long enough
}

TEST(UntilOpen, NeverWhenTheWindowIsTooShort) {
    EXPECT_EQ(until_open(Window{1h, 2h, "UTC"}, 1h, 2h), std::nullopt);
}

TEST(UntilOpen, EqualEndsMeanTheWholeDay) {
    EXPECT_EQ(until_open(Window{0h, 0h, "UTC"}, 12h, 12h), 0s);
}
