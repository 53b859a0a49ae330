#include "instruments/agent/load_table.hpp"

#include <array>
#include <cstdio>
#include <optional>
#include <set>

#include "base/text.hpp"

namespace campaign::agent {
namespace {

std::optional<double> number_at(const json::value& object, std::string_view key) {
    const json::value* const found = member(object, key);
    if (found == nullptr || !found->is_number()) return std::nullopt;
    return found->to_number<double>();
}

std::string fixed(std::optional<double> value, int decimals) {
    if (!value) return "-";
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%.*f", decimals, *value);
    return text.data();
}

std::string right(const std::string& text, std::size_t width) {
    return std::string(width - std::min(width, text.size()), ' ') + text;
}

std::string percentile(const json::value& level, std::string_view of, std::string_view which) {
    const json::value* const summary = member(level, of);
    return fixed(summary == nullptr ? std::nullopt : number_at(*summary, which), 1);
}

const json::array& list_at(const json::value& object, std::string_view key) {
    static const json::array none;
    const json::value* const found = member(object, key);
    return found != nullptr && found->is_array() ? found->get_array() : none;
}

std::string row(const json::value& level) {
    std::string text = right(fixed(number_at(level, "concurrency"), 0), 6);
    text += right(fixed(number_at(level, "completed"), 0), 7) + right(fixed(number_at(level, "failed"), 0), 7);
    text += right(fixed(number_at(level, "request_throughput"), 2), 9);
    text += right(fixed(number_at(level, "output_throughput"), 1), 10);
    text += right(percentile(level, "ttft_ms", "p50"), 9) + right(percentile(level, "ttft_ms", "p99"), 9);
    text += right(percentile(level, "tpot_ms", "p50"), 8) + right(percentile(level, "tpot_ms", "p99"), 8);
    return text + "\n";
}

std::string failures(const json::value& level) {
    const json::value* const classes = member(level, "failures");
    const json::value* const samples = member(level, "failure_samples");
    if (classes == nullptr || !classes->is_object()) return {};
    std::string text;
    for (const auto& [name, count] : classes->get_object()) {
        if (!count.is_number() || count.to_number<double>() == 0) continue;
        text += "  failed " + fixed(count.to_number<double>(), 0) + " x " + printable(name, 60);
        if (const auto sample = samples == nullptr ? std::nullopt : string_at(*samples, name); sample && !sample->empty())
            text += ": " + printable(*sample, 300);
        text += "\n";
    }
    return text;
}

}   // namespace

std::string load_table(const json::object& result) {
    const json::value whole(result);
    std::string text = printable(string_at(whole, "model").value_or("?"), 100) + " at " +
                       printable(string_at(whole, "url").value_or("?"), 200) + ", " +
                       printable(string_at(whole, "route").value_or("?"), 20) + ", asked for " +
                       fixed(number_at(whole, "input_tokens"), 0) + " tokens in, " +
                       fixed(number_at(whole, "output_tokens"), 0) + " out\n";
    if (!list_at(whole, "levels").empty()) {
        text += "concur-    requests  requests    output  TTFT ms  TTFT ms TPOT ms TPOT ms\n";
        text += "  rency   good failed       /s  tokens/s      p50      p99     p50     p99\n";
    }
    std::set<std::string> said;
    std::string below;
    for (const json::value& level : list_at(whole, "levels")) {
        text += row(level);
        below += failures(level);
        for (const json::value& note : list_at(level, "notes")) {
            if (!note.is_string()) continue;
            const std::string line = "  concurrency " + fixed(number_at(level, "concurrency"), 0) + ": " +
                                     printable(std::string_view{note.get_string()}, 500) + "\n";
            if (said.insert(line).second) below += line;
        }
    }
    for (const json::value& note : list_at(whole, "notes")) {
        if (note.is_string()) below += "  " + printable(std::string_view{note.get_string()}, 500) + "\n";
    }
    const json::value* const plateau = member(whole, "plateau");
    if (plateau != nullptr && plateau->is_object() && list_at(whole, "levels").size() > 1) {
        const json::value* const reached = member(*plateau, "reached");
        const bool is_reached = reached != nullptr && reached->is_bool() && reached->get_bool();
        text += (is_reached ? "plateau: concurrency " : "highest so far, no plateau shown: concurrency ") +
                fixed(number_at(*plateau, "concurrency"), 0) + ", " + fixed(number_at(*plateau, "output_throughput"), 1) +
                " output tokens/s\n";
    }
    const json::value* const done = member(whole, "complete");
    if (done == nullptr || !done->is_bool() || !done->get_bool()) text += "not complete: only what is shown was measured\n";
    return text + below;
}

std::string progress_line(const json::object& event) {
    const json::value whole(event);
    const std::string kind{string_at(whole, "event").value_or("")};
    const std::string level = "concurrency " + fixed(number_at(whole, "concurrency"), 0);
    if (kind == "progress") {
        const auto of = number_at(whole, "requests");
        return level + ": " + fixed(number_at(whole, "done"), 0) + (of ? " of " + fixed(of, 0) : "") + " requests, " +
               fixed(number_at(whole, "failed"), 0) + " failed, " + fixed(number_at(whole, "elapsed_s"), 0) + " s\n";
    }
    if (kind == "level_end") {
        return level + ": " + fixed(number_at(whole, "completed"), 0) + " completed, " +
               fixed(number_at(whole, "failed"), 0) + " failed, " + fixed(number_at(whole, "output_throughput"), 1) +
               " output tokens/s\n";
    }
    return {};
}

bool any_success(const json::object& result) {
    const json::value whole(result);
    for (const json::value& level : list_at(whole, "levels")) {
        if (number_at(level, "completed").value_or(0) > 0) return true;
    }
    return false;
}

}   // namespace campaign::agent
