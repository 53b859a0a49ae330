#pragma once
// Summaries as members of campaign.trace/1 (docs/agent-files.md).

#include <optional>

#include "base/json.hpp"
#include "instruments/trace/answer.hpp"

namespace campaign::trace {

inline constexpr std::size_t top_kernels = 20;
inline constexpr std::size_t longest_kernel_name = 500;

/// One entry of "ranks". Categories: sum_us adds durations, union_us counts what ran side by side once; per_step_us is the
/// union within decode steps by their number, share the union by the device's busy time. Kernels: sums throughout.
[[nodiscard]] json::object to_json(const RankSummary& summary);

/// "rank3", "-TP-3-", "worker3" in a file's name.
[[nodiscard]] std::optional<std::int64_t> rank_from_name(std::string_view file_name);

/// What is odd about the set of ranks: missing ones of `world_size`, the same one twice.
[[nodiscard]] std::vector<std::string> rank_notes(const std::vector<std::optional<std::int64_t>>& ranks,
                                                  std::optional<std::int64_t> world_size);

}   // namespace campaign::trace
