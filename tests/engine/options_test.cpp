#include "daemon/main/options.hpp"

#include <gtest/gtest.h>

#include <vector>

using campaign::daemon::Options;
using campaign::daemon::parse_options;

TEST(Options, SuggestTheNearestFlag) {
    const std::vector<std::string> arguments{"--state-dri", "/x"};
    const auto options = parse_options(arguments);
    ASSERT_FALSE(options);
    EXPECT_EQ(options.error().what, "unknown option --state-dri");
    EXPECT_EQ(options.error().next, "did you mean --state-dir?");
}

TEST(Options, TakeValuesInBothForms) {
    const std::vector<std::string> arguments{"--state-dir=/x", "--socket", "/y", "explain", "--offline", "plan.yaml"};
    const auto options = parse_options(arguments);
    ASSERT_TRUE(options);
    EXPECT_EQ(options->state_dir, "/x");
    EXPECT_EQ(options->socket, "/y");
    EXPECT_EQ(options->what, Options::Do::explain);
    EXPECT_TRUE(options->offline);
}

TEST(Options, AFlagWithoutItsValueIsAnError) {
    const std::vector<std::string> arguments{"--socket"};
    const auto options = parse_options(arguments);
    ASSERT_FALSE(options);
    EXPECT_EQ(options.error().what, "--socket needs a value");
}
