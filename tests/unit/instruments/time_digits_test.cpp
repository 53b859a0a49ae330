#include "instruments/trace/time_digits.hpp"

#include <gtest/gtest.h>

namespace campaign::trace {
namespace {

TEST(TimeDigits, KeepsTheNanosecondsThatADoubleWouldLose) {
    EXPECT_EQ(nanoseconds_from_microseconds("1712195495505582.988"), 1712195495505582988);
}

TEST(TimeDigits, ReadsEveryFormThatWritersUse) {
    EXPECT_EQ(nanoseconds_from_microseconds("17"), 17000);
    EXPECT_EQ(nanoseconds_from_microseconds("2.08"), 2080);
    EXPECT_EQ(nanoseconds_from_microseconds("0.0004"), 0);
    EXPECT_EQ(nanoseconds_from_microseconds("1.5e3"), 1500000);
    EXPECT_EQ(nanoseconds_from_microseconds("25E-1"), 2500);
    EXPECT_EQ(nanoseconds_from_microseconds("-3.5"), -3500);
}

TEST(TimeDigits, TakesNothingForWhatIsNoTime) {
    for (const char* const text : {"", "-", ".", "NaN", "Infinity", "true", "1.2.3", "7,75", "1e99", "99999999999999999999"})
        EXPECT_EQ(nanoseconds_from_microseconds(text), std::nullopt) << text;
}

}   // namespace
}   // namespace campaign::trace
