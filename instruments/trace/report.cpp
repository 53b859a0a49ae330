#include "instruments/trace/report.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <map>
#include <numeric>

#include "base/text.hpp"

namespace campaign::trace {
namespace {

double us(Nanoseconds time) {
    return static_cast<double>(time) / 1000.0;
}

/// Nothing was measured: null, never 0.
json::value per_step(double amount, std::uint64_t steps) {
    if (steps == 0) return nullptr;
    return amount / static_cast<double>(steps);
}

double share_of(Nanoseconds part, Nanoseconds whole) {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

json::object share_json(const Share& share, const DeviceSummary& device, bool kernel) {
    json::object object;
    object["name"] = printable(share.name, longest_kernel_name);
    if (kernel) object["category"] = share.category;
    object["sum_us"] = us(share.sum);
    if (!kernel) object["union_us"] = us(share.covered);
    object["per_step_us"] = per_step(us(share.in_decode), device.decode_steps);
    object["count"] = share.count;
    object["count_per_step"] = per_step(static_cast<double>(share.decode_count), device.decode_steps);
    object["share"] = share_of(share.covered, device.busy);
    return object;
}

json::value device_json(const std::string& device) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(device.data(), device.data() + device.size(), number);
    if (error == std::errc{} && end == device.data() + device.size()) return number;
    return json::value(printable(device, 100));
}

json::value durations_json(const std::vector<Nanoseconds>& ascending) {
    if (ascending.empty()) return nullptr;
    json::object object;
    object["n"] = ascending.size();
    object["p50"] = us(nearest_rank(ascending, 50));
    object["p90"] = us(nearest_rank(ascending, 90));
    object["mean"] =
        us(std::accumulate(ascending.begin(), ascending.end(), Nanoseconds{0})) / static_cast<double>(ascending.size());
    object["min"] = us(ascending.front());
    object["max"] = us(ascending.back());
    return object;
}

}   // namespace

json::object to_json(const RankSummary& summary) {
    const DeviceSummary& device = summary.device;
    json::object object;
    object["rank"] = summary.rank ? json::value(*summary.rank) : json::value(nullptr);
    object["device"] = device_json(device.device);
    object["span_us"] = us(device.span);
    object["busy_us"] = us(device.busy);
    object["kernels"] = device.kernels;
    json::object steps;
    steps["decode"] = device.decode_steps;
    steps["prefill"] = device.prefill_steps;
    steps["mixed"] = device.mixed_steps;
    object["steps"] = std::move(steps);
    object["decode_step_us"] = durations_json(device.decode_durations);
    object["decode_busy_us"] = per_step(us(device.decode_busy), device.decode_steps);
    json::array categories;
    for (const Share& share : device.categories) categories.emplace_back(share_json(share, device, false));
    object["categories"] = std::move(categories);
    json::array kernels;
    for (std::size_t i = 0; i < std::min(top_kernels, device.kernels_by_time.size()); ++i)
        kernels.emplace_back(share_json(device.kernels_by_time[i], device, true));
    object["top_kernels"] = std::move(kernels);
    object["kernel_names"] = device.kernels_by_time.size();
    return object;
}

std::optional<std::int64_t> rank_from_name(std::string_view file_name) {
    std::string lower;
    for (const char c : file_name) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    for (const std::string_view word : {"rank", "-tp", "worker"}) {
        for (std::size_t at = lower.find(word); at != std::string::npos; at = lower.find(word, at + 1)) {
            std::size_t digit = at + word.size();
            if (digit < lower.size() && (lower[digit] == '-' || lower[digit] == '_')) ++digit;
            std::int64_t rank = 0;
            const auto [end, error] = std::from_chars(lower.data() + digit, lower.data() + lower.size(), rank);
            if (error == std::errc{} && rank >= 0 && rank < 1'000'000) return rank;
        }
    }
    return std::nullopt;
}

std::vector<std::string> rank_notes(const std::vector<std::optional<std::int64_t>>& ranks,
                                    std::optional<std::int64_t> world_size) {
    std::vector<std::string> notes;
    std::map<std::int64_t, int> seen;
    for (const std::optional<std::int64_t>& rank : ranks)
        if (rank) ++seen[*rank];
    for (const auto& [rank, times] : seen)
        if (times > 1)
            notes.push_back("rank " + std::to_string(rank) + " is in " + std::to_string(times) +
                            " files: they may be of different captures");
    constexpr std::int64_t largest_world = 65536;
    if (!world_size || *world_size < 2 || *world_size > largest_world || seen.empty()) return notes;
    std::string missing;
    std::int64_t count = 0;
    for (std::int64_t rank = 0; rank < *world_size; ++rank) {
        if (seen.contains(rank)) continue;
        if (++count <= 8) missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
    }
    if (count > 8) missing += ", ...";
    if (count > 0)
        notes.push_back(std::to_string(count) + " of " + std::to_string(*world_size) + " ranks are missing: " + missing);
    return notes;
}

}   // namespace campaign::trace
