#pragma once
// Where a decode step goes, in one sentence; or why that cannot be said and how to capture again.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "instruments/trace/summary.hpp"

namespace campaign::trace {

struct RankSummary {
    std::optional<std::int64_t> rank;
    DeviceSummary device;
};

/// What the files held beside device work.
struct Held {
    bool nsys = false;
    bool annotated = false;     ///< some annotation marks steps
    bool marks_kinds = false;   ///< and says prefill or decode
    std::uint64_t graph_launches = 0;
};

struct Answer {
    std::optional<std::string> answer;
    std::optional<std::string> cannot_answer;
    std::vector<std::string> notes;
};

/// The category that covers most of the decode steps' time, as a mean over all steps of all ranks.
[[nodiscard]] Answer answer(const std::vector<RankSummary>& ranks, const Held& held);

/// "6.81 ms", "412 µs": three digits that count.
[[nodiscard]] std::string format_short(double nanoseconds);

}   // namespace campaign::trace
