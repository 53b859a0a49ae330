#include "instruments/agent/analysis_table.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>

#include "base/text.hpp"

namespace campaign::agent {
namespace {

constexpr std::size_t name_width = 44;
constexpr std::size_t most_rows = 12;

std::optional<double> number_at(const json::value& object, std::string_view key) {
    const json::value* const found = member(object, key);
    if (found == nullptr || !found->is_number()) return std::nullopt;
    return found->to_number<double>();
}

std::string text_at(const json::value& object, std::string_view key) {
    return printable(string_at(object, key).value_or(""), 4000);
}

std::string fixed(double value, int decimals) {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
    return text.data();
}

std::string right(const std::string& text, std::size_t width) {
    return std::string(width - std::min(width, text.size()), ' ') + text;
}

/// Cut in the middle: kernels of one family differ at both ends.
std::string left(std::string text) {
    if (text.size() > name_width) {
        constexpr std::size_t tail = 12;
        // Never within a character of several bytes.
        const auto inside = [&text](std::size_t at) { return (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U; };
        std::size_t head = name_width - tail - 3;
        while (head > 0 && inside(head)) --head;
        std::size_t rest = text.size() - tail;
        while (rest < text.size() && inside(rest)) ++rest;
        text = text.substr(0, head) + "..." + text.substr(rest);
    }
    return text + std::string(name_width - std::min(name_width, text.size()), ' ');
}

std::string row(const std::string& name, const std::string& time, const std::string& count, const std::string& share) {
    return "  " + left(name) + right(time, 12) + right(count, 10) + right(share, 9) + "\n";
}

/// Of the categories or kernels of one rank, by decode step where there are steps, else over all that was recorded.
std::string table(const std::string& title, const json::value& rank, std::string_view key, bool per_step) {
    const json::value* const list = member(rank, key);
    if (list == nullptr || !list->is_array() || list->as_array().empty()) return {};
    const double whole = number_at(rank, per_step ? "decode_busy_us" : "busy_us").value_or(0);
    const char* const time_key = per_step ? "per_step_us" : key == "categories" ? "union_us" : "sum_us";
    const char* const count_key = per_step ? "count_per_step" : "count";
    std::vector<const json::value*> rows;
    for (const json::value& each : list->as_array())
        if (number_at(each, time_key).value_or(0) > 0) rows.push_back(&each);
    std::stable_sort(rows.begin(), rows.end(), [time_key](const json::value* a, const json::value* b) {
        return number_at(*a, time_key).value_or(0) > number_at(*b, time_key).value_or(0);
    });
    std::string text = row(title, per_step ? "us a step" : "us", per_step ? "n a step" : "n", "of busy");
    for (std::size_t i = 0; i < std::min(rows.size(), most_rows); ++i) {
        const double time = number_at(*rows[i], time_key).value_or(0);
        text += row(text_at(*rows[i], "name"), fixed(time, 1),
                    fixed(number_at(*rows[i], count_key).value_or(0), per_step ? 1 : 0),
                    whole > 0 ? fixed(100 * time / whole, 1) + " %" : "-");
    }
    if (rows.size() > most_rows) text += "  and " + std::to_string(rows.size() - most_rows) + " more: --json\n";
    return text;
}

std::string rank_text(const json::value& rank) {
    const auto number = int_at(rank, "rank");
    const json::value* const device = member(rank, "device");
    const json::value* const steps = member(rank, "steps");
    const json::value* const took = member(rank, "decode_step_us");
    const std::int64_t decode = steps == nullptr ? 0 : int_at(*steps, "decode").value_or(0);
    std::string text = "\n" + (number ? "rank " + std::to_string(*number) : std::string{"rank unknown"});
    if (device != nullptr) text += ", device " + (device->is_string() ? text_at(rank, "device") : json::serialize(*device));
    text += ": " + std::to_string(int_at(rank, "kernels").value_or(0)) + " kernels, busy " +
            fixed(number_at(rank, "busy_us").value_or(0) / 1000, 2) + " of " +
            fixed(number_at(rank, "span_us").value_or(0) / 1000, 2) + " ms\n";
    if (steps != nullptr)
        text += "  steps: " + std::to_string(decode) + " decode, " + std::to_string(int_at(*steps, "prefill").value_or(0)) +
                " prefill, " + std::to_string(int_at(*steps, "mixed").value_or(0)) + " mixed";
    if (took != nullptr && took->is_object())
        text += "; a decode step takes " + fixed(number_at(*took, "p50").value_or(0), 1) + " us (p90 " +
                fixed(number_at(*took, "p90").value_or(0), 1) + ")";
    text += "\n";
    text += table("category", rank, "categories", decode > 0);
    text += table("kernel", rank, "top_kernels", decode > 0);
    return text;
}

}   // namespace

std::string for_people(const json::object& analysis) {
    const json::value whole(analysis);
    const std::string answer = text_at(whole, "answer");
    std::string text = (answer.empty() ? "no answer: " + text_at(whole, "cannot_answer") : answer) + "\n";
    const auto list = [&whole](std::string_view key) {
        const json::value* const found = member(whole, key);
        return found != nullptr && found->is_array() ? found->as_array() : json::array{};
    };
    for (const json::value& note : list("notes"))
        if (note.is_string()) text += "  note    " + printable(std::string_view{note.as_string()}, 1000) + "\n";
    for (const json::value& file : list("files")) {
        const json::value* const notes = member(file, "notes");
        std::string said;
        if (notes != nullptr && notes->is_array())
            for (const json::value& note : notes->as_array())
                if (note.is_string()) said += (said.empty() ? "" : "; ") + std::string{note.as_string()};
        if (bool_at(file, "complete").value_or(false) && said.empty()) continue;
        text += std::string{bool_at(file, "complete").value_or(false) ? "  file    " : "  broken  "} +
                text_at(file, "name") + ": " + printable(said, 2000) + "\n";
    }
    for (const json::value& rank : list("ranks")) text += rank_text(rank);
    return text;
}

}   // namespace campaign::agent
