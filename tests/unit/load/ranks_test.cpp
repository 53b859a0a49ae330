#include "instruments/load/ranks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace campaign::load {
namespace {

TEST(RankInterval, HasTheRanksOfThePrintedTables) {
    struct Row {
        std::uint64_t n;
        double quantile;
        std::optional<std::uint64_t> low, high;
    };
    const Row rows[] = {
        {5, 0.5, {}, {}},  {6, 0.5, 1, 6},       {10, 0.5, 2, 9},       {100, 0.5, 40, 61}, {1000, 0.5, 469, 532},
        {10, 0.99, 9, {}}, {367, 0.99, 359, {}}, {368, 0.99, 360, 368}, {0, 0.5, {}, {}},
    };
    for (const Row& row : rows) {
        const RankInterval got = rank_interval(row.n, row.quantile);
        EXPECT_EQ(got.low, row.low) << row.n;
        EXPECT_EQ(got.high, row.high) << row.n;
    }
    const RankInterval many = rank_interval(1'000'000, 0.5);   // 1.96 x 500 on each side
    EXPECT_NEAR(static_cast<double>(*many.low), 500'000 - 980, 2);
    EXPECT_NEAR(static_cast<double>(*many.high), 500'001 + 980, 2);
}

TEST(RankInterval, HoldsTheTruthAsOftenAsItSays) {
    std::mt19937_64 random(7);
    std::uniform_real_distribution<double> uniform(0, 1);
    for (const double quantile : {0.5, 0.9, 0.95}) {
        int held = 0;
        constexpr int times = 2000;
        for (int i = 0; i < times; ++i) {
            std::vector<double> sample(200);
            for (double& value : sample) value = uniform(random);
            std::sort(sample.begin(), sample.end());
            const RankInterval ranks = rank_interval(sample.size(), quantile);
            ASSERT_TRUE(ranks.low && ranks.high);
            held += sample[*ranks.low - 1] <= quantile && quantile <= sample[*ranks.high - 1] ? 1 : 0;
        }
        EXPECT_GE(held, times * 94 / 100) << quantile;
        EXPECT_LE(held, times * 99 / 100) << "needlessly wide at " << quantile;
    }
}

TEST(Certifiable, FromTheSampleCountOfLoadGensRuleOn) {
    const std::pair<double, std::uint64_t> least[] = {{0.5, 11}, {0.9, 64}, {0.95, 130}, {0.99, 662}, {0.999, 6636}};
    for (const auto& [quantile, n] : least) {
        EXPECT_FALSE(certifiable(n - 1, quantile)) << quantile;
        EXPECT_TRUE(certifiable(n, quantile)) << quantile;
        EXPECT_TRUE(certifiable(n * 1000, quantile)) << quantile;
    }
    EXPECT_FALSE(certifiable(0, 0.5));
}

}   // namespace
}   // namespace campaign::load
