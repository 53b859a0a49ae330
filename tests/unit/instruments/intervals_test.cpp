// The ways to give covered time away, against a count of single nanoseconds.

#include "instruments/trace/intervals.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>

namespace campaign::trace {
namespace {

constexpr std::size_t categories = 3;
constexpr Nanoseconds width = 60;

std::vector<Owned> random_spans(std::mt19937& random) {
    std::vector<Owned> spans;
    const auto below = [&random](int n) { return static_cast<Nanoseconds>(random() % static_cast<unsigned>(n)); };
    for (Nanoseconds count = below(12); count > 0; --count) {
        const Nanoseconds start = below(40);
        spans.push_back({{start, start + below(4) * below(6)}, static_cast<std::uint32_t>(below(3))});
    }
    return spans;
}

TEST(Intervals, AgreeWithACountOfSingleNanoseconds) {
    std::mt19937 random{20261206};
    for (int round = 0; round < 2000; ++round) {
        const std::vector<Owned> spans = random_spans(random);
        std::array<double, categories> split{};
        std::array<Nanoseconds, categories> exclusive{}, covered{};
        Nanoseconds busy = 0;
        for (Nanoseconds t = 0; t < width; ++t) {
            std::array<int, categories> running{};
            int all = 0;
            for (const Owned& span : spans) {
                if (span.time.start > t || span.time.end <= t) continue;
                ++running[span.category];
                ++all;
            }
            busy += all > 0 ? 1 : 0;
            for (std::size_t i = 0; i < categories; ++i) {
                if (running[i] == 0) continue;
                ++covered[i];
                split[i] += static_cast<double>(running[i]) / all;
                if (running[i] == all) ++exclusive[i];
            }
        }
        const std::vector<Attribution> got = attribute(spans, categories);
        Nanoseconds first = 0;
        double shared = 0;
        std::vector<Interval> everything;
        for (std::size_t i = 0; i < categories; ++i) {
            std::vector<Interval> own;
            Nanoseconds sum = 0;
            for (const Owned& span : spans) {
                if (span.category != i) continue;
                own.push_back(span.time);
                everything.push_back(span.time);
                sum += span.time.end - span.time.start;
            }
            EXPECT_NEAR(got[i].split, split[i], 1e-9) << round;
            EXPECT_EQ(got[i].exclusive, exclusive[i]) << round;
            EXPECT_EQ(union_length(own), covered[i]) << round;
            EXPECT_LE(got[i].exclusive, covered[i]);
            EXPECT_LE(covered[i], sum);
            EXPECT_LE(got[i].first, covered[i]);
            first += got[i].first;
            shared += got[i].split;
        }
        EXPECT_EQ(union_length(everything), busy) << round;
        EXPECT_EQ(first, busy) << round;
        EXPECT_NEAR(shared, static_cast<double>(busy), 1e-9) << round;
    }
}

TEST(Intervals, OverlapIsWhatBothCover) {
    std::mt19937 random{7};
    for (int round = 0; round < 500; ++round) {
        std::vector<Interval> a, b;
        for (const Owned& span : random_spans(random)) a.push_back(span.time);
        for (const Owned& span : random_spans(random)) b.push_back(span.time);
        const auto covers = [](const std::vector<Interval>& list, Nanoseconds t) {
            return std::any_of(list.begin(), list.end(), [t](const Interval& i) { return i.start <= t && t < i.end; });
        };
        Nanoseconds both = 0;
        for (Nanoseconds t = 0; t < width; ++t) both += covers(a, t) && covers(b, t) ? 1 : 0;
        EXPECT_EQ(overlap(merged(a), merged(b)), both) << round;
        EXPECT_EQ(overlap(merged(b), merged(a)), both) << round;
    }
}

TEST(Intervals, AFractionOfANanosecondIsNotLost) {
    const std::vector<Attribution> got = attribute({{{0, 1}, 0}, {{0, 1}, 1}, {{0, 1}, 2}}, 3);
    EXPECT_DOUBLE_EQ(got[0].split, 1.0 / 3);
    EXPECT_EQ(got[0].first, 1);
    EXPECT_EQ(got[1].first, 0);
    EXPECT_EQ(got[2].exclusive, 0);
}

/// docs/trace-analysis.md, in microseconds there.
TEST(Attribution, TheExampleOfTheDocumentation) {
    constexpr std::uint32_t gemm = 0, all_reduce = 1, norm = 2;
    const std::vector<Owned> work{{{0, 10}, gemm}, {{14, 20}, gemm}, {{6, 16}, all_reduce}, {{24, 26}, norm}};
    const std::vector<Attribution> given = attribute(work, 3);
    EXPECT_EQ(given[gemm].exclusive, 10);
    EXPECT_EQ(given[all_reduce].exclusive, 4);
    EXPECT_EQ(given[norm].exclusive, 2);
    EXPECT_DOUBLE_EQ(given[gemm].split, 13);
    EXPECT_DOUBLE_EQ(given[all_reduce].split, 7);
    EXPECT_DOUBLE_EQ(given[norm].split, 2);
    EXPECT_EQ(given[gemm].first, 14);
    EXPECT_EQ(given[all_reduce].first, 6);
    EXPECT_EQ(given[norm].first, 2);
    EXPECT_EQ(union_length({{0, 10}, {14, 20}, {6, 16}, {24, 26}}), 22);
    EXPECT_EQ(overlap(merged({{6, 16}}), merged({{0, 10}, {14, 20}, {24, 26}})), 6);
}

}   // namespace
}   // namespace campaign::trace
