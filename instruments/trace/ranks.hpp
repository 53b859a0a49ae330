#pragma once
// The ranks of one capture side by side, without trusting their clocks.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "instruments/trace/recording.hpp"
#include "instruments/trace/taxonomy.hpp"

namespace campaign::trace {

/// What one rank brings: the durations of its collectives, each category in the order they ran.
struct RankCollectives {
    std::map<std::string, std::vector<Nanoseconds>, std::less<>> durations;
    Nanoseconds busy = 0;            ///< union over all its devices
    Nanoseconds span = 0;            ///< first start to last end
    Nanoseconds communication = 0;   ///< sum
};
[[nodiscard]] RankCollectives collectives_of(const Recording& recording, const Taxonomy& taxonomy);

/// The n-th collective of a category is the same one on every rank, and ends on all of them together: the rank that took
/// least came last, and what others took longer was waiting for it. Categories whose counts differ are named "unmatched",
/// and compared as far as the shortest goes. (reference: trace definitions in docs/trace-analysis.md)
[[nodiscard]] json::object compare_ranks(const std::map<std::int64_t, RankCollectives>& ranks);

}   // namespace campaign::trace
