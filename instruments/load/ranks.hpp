#pragma once
// How sure a percentile is, from the number of samples alone: order statistics, no assumption about the distribution's
// shape. Samples are taken to be independent; docs/load-results.md says where they are not.

#include <cstdint>
#include <optional>

namespace campaign::load {

/// 1-based ranks of the two ordered samples that hold the true quantile between them with at least the wanted confidence.
/// An end is missing where so few samples cannot bound it.
struct RankInterval {
    std::optional<std::uint64_t> low;
    std::optional<std::uint64_t> high;
};

inline constexpr double interval_confidence = 0.95;    ///< two-sided
inline constexpr double certified_confidence = 0.99;   ///< one-sided, upwards

/// `quantile` between 0 and 1, both excluded.
[[nodiscard]] RankInterval rank_interval(std::uint64_t n, double quantile, double confidence = interval_confidence);

/// Whether n samples suffice to give an upper bound of the quantile, at 99 %, that is not the largest sample itself: the
/// rule of MLPerf's LoadGen. Fewer than p50 11, p90 64, p95 130, p99 662, p99.9 6636 do not.
[[nodiscard]] bool certifiable(std::uint64_t n, double quantile);

}   // namespace campaign::load
