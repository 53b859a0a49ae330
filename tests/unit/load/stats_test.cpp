#include "instruments/load/stats.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace campaign::load {
namespace {

TEST(Percentile, IsNumpysLinearOne) {
    const std::vector<double> four{1, 2, 3, 4};
    EXPECT_DOUBLE_EQ(*percentile(four, 50), 2.5);
    EXPECT_DOUBLE_EQ(*percentile(four, 90), 3.7);
    EXPECT_DOUBLE_EQ(*percentile(four, 0), 1);
    EXPECT_DOUBLE_EQ(*percentile(four, 100), 4);
    EXPECT_DOUBLE_EQ(*percentile(std::vector<double>{7}, 99), 7);
    EXPECT_FALSE(percentile({}, 50));
}

TEST(Summary, OfNothingIsNothing) {
    EXPECT_FALSE(summarize({}));
}

TEST(Summary, SortsAndUsesThePopulationsDeviation) {
    const auto got = summarize({4, 2, 4, 4, 5, 5, 7, 9});
    ASSERT_TRUE(got);
    EXPECT_EQ(got->n, 8U);
    EXPECT_DOUBLE_EQ(got->mean, 5);
    EXPECT_DOUBLE_EQ(got->sd, 2);
    EXPECT_DOUBLE_EQ(got->min, 2);
    EXPECT_DOUBLE_EQ(got->max, 9);
    EXPECT_DOUBLE_EQ(got->p50, 4.5);
}

TEST(Summary, SaysHowSureItsPercentilesAre) {
    std::vector<double> hundred(100);
    for (std::size_t i = 0; i < hundred.size(); ++i) hundred[i] = static_cast<double>(i + 1);
    const auto got = summarize(hundred);
    EXPECT_EQ(got->sure[0].low, 40);
    EXPECT_EQ(got->sure[0].high, 61);
    EXPECT_TRUE(got->sure[1].certified);
    EXPECT_FALSE(got->sure[3].certified);
    EXPECT_FALSE(got->sure[3].high) << "100 samples have no upper bound for a p99";
}

TEST(Plateau, IsTheLowestLevelThatNoHigherOneBeats) {
    const auto got = find_plateau({{1, 100}, {2, 190}, {4, 300}, {8, 306}, {16, 310}});
    ASSERT_TRUE(got);
    EXPECT_EQ(got->concurrency, 4U);
    EXPECT_TRUE(got->reached);
}

TEST(Plateau, IsNotReachedWhileThroughputGrowsOrOnlyOneLevelIsFlat) {
    EXPECT_FALSE(find_plateau({{1, 100}, {2, 200}, {4, 400}})->reached);
    EXPECT_EQ(find_plateau({{1, 100}, {2, 200}, {4, 400}})->concurrency, 4U);
    EXPECT_FALSE(find_plateau({{1, 100}, {2, 200}, {4, 204}})->reached);
    EXPECT_FALSE(find_plateau({{1, 0}, {2, 0}}));
}

TEST(Plateau, ADipIsNoPlateauWhenALaterLevelGrows) {
    EXPECT_EQ(find_plateau({{8, 500}, {1, 100}, {4, 180}, {2, 200}})->concurrency, 8U);
}

std::vector<std::uint32_t> search(std::uint32_t max, const std::function<double(std::uint32_t)>& throughput) {
    std::vector<LevelPoint> done;
    std::vector<std::uint32_t> out;
    while (const auto next = next_level(done, max)) {
        out.push_back(*next);
        done.push_back({*next, throughput(*next)});
    }
    return out;
}

TEST(AutoLevels, DoubleUntilItPaysLessThanFivePercentTwice) {
    const auto capped = [](std::uint32_t c) { return std::min(100.0 * c, 400.0); };
    EXPECT_EQ(search(256, capped), (std::vector<std::uint32_t>{1, 2, 4, 8, 16}));
}

TEST(AutoLevels, EndWithTheMaximumItself) {
    EXPECT_EQ(search(6, [](std::uint32_t c) { return 100.0 * c; }), (std::vector<std::uint32_t>{1, 2, 4, 6}));
    EXPECT_EQ(search(1, [](std::uint32_t) { return 5.0; }), (std::vector<std::uint32_t>{1}));
}

TEST(AutoLevels, EndWhereNothingSucceeds) {
    EXPECT_EQ(search(256, [](std::uint32_t) { return 0.0; }), (std::vector<std::uint32_t>{1}));
}

}   // namespace
}   // namespace campaign::load
