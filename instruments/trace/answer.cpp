#include "instruments/trace/answer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>

namespace campaign::trace {
namespace {

std::string digits(double value, int decimals) {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
    return text.data();
}

std::string percent(double share) {
    return digits(100 * share, 1) + " %";
}

struct Total {
    double time = 0;
    double count = 0;
};

std::pair<std::string_view, Total> largest(const std::map<std::string_view, Total>& totals) {
    return *std::max_element(totals.begin(), totals.end(),
                             [](const auto& a, const auto& b) { return a.second.time < b.second.time; });
}

std::string no_work(const Held& held) {
    std::string why = "no kernel was recorded";
    if (held.graph_launches > 0) why += " though " + std::to_string(held.graph_launches) + " CUDA graphs were launched";
    return why +
           ": capture again while requests are running, with the CUDA activity switched on and no other profiler "
           "holding the device";
}

std::string no_decode(const std::vector<RankSummary>& ranks, const Held& held) {
    if (!held.annotated || !held.marks_kinds)
        return std::string{"nothing in the trace marks decode steps"} +
               (held.annotated ? " (ProfilerStep does not say what a step did)" : "") +
               ": capture again with a server that names its steps (vLLM: execute_context_…, SGLang: step[…]); the shares "
               "of "
               "busy time below hold for everything that was recorded";
    std::uint64_t other = 0;
    for (const RankSummary& each : ranks) other += each.device.prefill_steps + each.device.mixed_steps;
    return "no pure decode step was recorded, " + std::to_string(other) +
           " with prefill: begin the capture when all requests are already generating, or record more steps";
}

/// Of all busy time, where steps are not known.
Answer by_busy_time(const std::vector<RankSummary>& ranks) {
    std::map<std::string_view, Total> totals;
    double busy = 0;
    for (const RankSummary& each : ranks) {
        busy += static_cast<double>(each.device.busy);
        for (const Share& category : each.device.categories) {
            totals[category.name].time += static_cast<double>(category.covered);
            totals[category.name].count += static_cast<double>(category.count);
        }
    }
    Answer result;
    const auto [name, total] = largest(totals);
    if (name == "cuda_graph") {
        result.cannot_answer =
            "whole CUDA graphs were recorded, not the kernels within: capture again with nsys --cuda-graph-trace=node";
        return result;
    }
    if (busy <= 0) {
        result.cannot_answer = "all recorded work took no time at all: the times in this trace are broken, capture again";
        return result;
    }
    result.answer = std::string{plain_name(name)} + ": " + format_short(total.time) + " of " + format_short(busy) +
                    " of busy time over " + digits(total.count, 0) + " operations (" + percent(total.time / busy) + ")";
    result.notes.emplace_back(
        "steps were not separated: the shares are of all device work that was recorded, prefill and decode");
    return result;
}

void note_skew(const std::vector<RankSummary>& ranks, std::string_view category, std::vector<std::string>& notes) {
    double least = -1;
    double most = 0;
    std::int64_t fastest = 0;
    for (const RankSummary& each : ranks) {
        if (!each.rank || each.device.decode_steps == 0) continue;
        for (const Share& share : each.device.categories) {
            if (share.name != category) continue;
            const double a_step = static_cast<double>(share.in_decode) / static_cast<double>(each.device.decode_steps);
            if (least < 0 || a_step < least) {
                least = a_step;
                fastest = *each.rank;
            }
            most = std::max(most, a_step);
        }
    }
    if (least < 0 || most < 1.1 * least) return;
    notes.push_back("rank " + std::to_string(fastest) + " spends least in " + std::string{plain_name(category)} + " (" +
                    format_short(least) + " a decode step, others up to " + format_short(most) +
                    "): the difference is waiting for the slowest rank, not transfer");
}

}   // namespace

std::string format_short(double nanoseconds) {
    constexpr std::array<std::pair<double, const char*>, 4> units{{{1e9, " s"}, {1e6, " ms"}, {1e3, " µs"}, {1, " ns"}}};
    for (const auto& [size, unit] : units) {
        const double value = nanoseconds / size;
        if (value < 0.9995 && size > 1) continue;
        return digits(value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0) + unit;
    }
    return "0 ns";
}

Answer answer(const std::vector<RankSummary>& ranks, const Held& held) {
    Answer result;
    if (ranks.empty()) {
        result.cannot_answer = no_work(held);
        return result;
    }
    std::map<std::string_view, Total> totals;
    double steps = 0;
    double duration = 0;
    double busy = 0;
    for (const RankSummary& each : ranks) {
        const DeviceSummary& device = each.device;
        steps += static_cast<double>(device.decode_steps);
        busy += static_cast<double>(device.decode_busy);
        duration += static_cast<double>(
            std::accumulate(device.decode_durations.begin(), device.decode_durations.end(), Nanoseconds{0}));
        for (const Share& category : device.categories) {
            totals[category.name].time += static_cast<double>(category.in_decode);
            totals[category.name].count += static_cast<double>(category.decode_count);
        }
    }
    if (steps <= 0 || duration <= 0) {
        if (held.nsys && !held.marks_kinds) return by_busy_time(ranks);
        result.cannot_answer = no_decode(ranks, held);
        return result;
    }
    const auto [name, total] = largest(totals);
    if (name == "cuda_graph") return by_busy_time(ranks);
    result.answer = std::string{plain_name(name)} + ": " + format_short(total.time / steps) + " of " +
                    format_short(duration / steps) + " a decode step over " + digits(std::round(total.count / steps), 0) +
                    " operations (" + percent(total.time / duration) + ")";
    if (busy < 0.9 * duration)
        result.notes.push_back("the device idles in " + percent(1 - busy / duration) +
                               " of a decode step: most likely the host launches work more slowly than the device does it");
    if (is_communication(name)) note_skew(ranks, name, result.notes);
    return result;
}

}   // namespace campaign::trace
