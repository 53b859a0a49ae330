#pragma once
// Numbers over many requests.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace campaign::load {

/// The q-th percentile (0 to 100) of an ascending list by linear interpolation between closest ranks: numpy's default.
/// Nothing for an empty list.
[[nodiscard]] std::optional<double> percentile(std::span<const double> ascending, double q);

struct Summary {
    std::uint64_t n = 0;
    double mean = 0;
    double sd = 0;   ///< population standard deviation, as vLLM and numpy give it
    double min = 0, p50 = 0, p90 = 0, p95 = 0, p99 = 0, max = 0;
    /// How sure p50, p90, p95 and p99 are, in this order (ranks.hpp).
    struct Sureness {
        std::optional<double> low, high;   ///< ends of the 95 % interval
        bool certified = false;
    };
    std::array<Sureness, 4> sure{};
};

/// Nothing when nothing was measured: a zero would be an invention.
[[nodiscard]] std::optional<Summary> summarize(std::vector<double> values);

/// One measured level, as the search for the plateau sees it.
struct LevelPoint {
    std::uint32_t concurrency = 0;
    double output_throughput = 0;   ///< tokens/s; 0: nothing succeeded
};

struct Plateau {
    std::uint32_t concurrency = 0;
    double output_throughput = 0;
    bool reached = false;   ///< at least two higher levels brought less than 5 % more
};

inline constexpr double plateau_growth = 1.05;

/// The lowest concurrency that no higher level beats by 5 % or more. Nothing when no level has a throughput.
[[nodiscard]] std::optional<Plateau> find_plateau(std::vector<LevelPoint> levels);

/// The level after those in `done` (in order): doubling, `max` last; nothing when it is enough: twice running less than 5 %
/// growth, or `max` was run.
[[nodiscard]] std::optional<std::uint32_t> next_level(std::span<const LevelPoint> done, std::uint32_t max);

}   // namespace campaign::load
