#include "ctl/layout.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "base/json.hpp"
#include "base/text.hpp"

namespace campaign::ctl {

std::string ascii(std::string_view text) {
    std::string out;
    for (const char c : printable(text, 100'000)) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x80) {
            out += c;
        } else if (byte >= 0xc0) {   // the lead of a sequence; its tail is dropped
            out += '?';
        }
    }
    return out;
}

std::string paint(const Style& style, Tone tone, const std::string& text) {
    if (!style.colour || tone == Tone::plain || text.empty()) return text;
    const char* code = "0";
    switch (tone) {
        case Tone::plain: break;
        case Tone::fine: code = "32"; break;
        case Tone::runs: code = "36"; break;
        case Tone::you: code = "1;33"; break;
        case Tone::by_plan: code = "35"; break;
        case Tone::failed: code = "1;31"; break;
    }
    return "\x1b[" + std::string{code} + "m" + text + "\x1b[0m";
}

std::vector<std::string> wrap(std::string_view text, std::size_t width) {
    width = std::max<std::size_t>(width, 8);
    std::vector<std::string> lines;
    std::string line;
    const std::string clean = ascii(text);
    std::string_view rest = trim(clean);
    while (!rest.empty()) {
        const std::size_t end = std::min(rest.find(' '), rest.size());
        std::string_view word = rest.substr(0, end);
        std::size_t blanks = 0;
        while (end + blanks < rest.size() && rest[end + blanks] == ' ') ++blanks;
        if (!line.empty() && line.size() + word.size() > width) {
            line.erase(line.find_last_not_of(' ') + 1);
            lines.push_back(std::move(line));
            line.clear();
        }
        while (word.size() > width) {
            lines.emplace_back(word.substr(0, width));
            word.remove_prefix(width);
        }
        line += word;
        line.append(std::min<std::size_t>(blanks, 3), ' ');
        rest.remove_prefix(end + blanks);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    if (!line.empty() || lines.empty()) lines.push_back(std::move(line));
    return lines;
}

std::string pad(std::string text, std::size_t width) {
    if (text.size() < width) text.append(width - text.size(), ' ');
    return text;
}

void Sheet::line(const std::string& text) {
    const std::size_t end = text.find_last_not_of(' ');
    text_ += text.substr(0, end == std::string::npos ? 0 : end + 1);
    text_ += '\n';
}

void Sheet::hang(const std::string& head, std::size_t head_width, std::string_view text) {
    const std::size_t room = style_.width > head_width + 20 ? style_.width - head_width : 20;
    bool first = true;
    for (const std::string& part : wrap(text, room)) {
        line(first ? head + part : std::string(head_width, ' ') + part);
        first = false;
    }
}

void Sheet::hang_items(const std::string& head, std::size_t head_width, const std::vector<std::string>& items) {
    std::string current;
    std::string front = head;
    for (const std::string& item : items) {
        if (!current.empty() && head_width + current.size() + 2 + item.size() > style_.width) {
            line(front + current);
            front = std::string(head_width, ' ');
            current.clear();
        }
        current += (current.empty() ? "" : "  ") + item;
    }
    if (!current.empty()) line(front + current);
}

void Sheet::field(std::string_view label, std::string_view text, std::size_t column) {
    hang(pad(std::string{label}, column), column, text);
}

void Sheet::with_command(std::size_t indent, std::string_view text, std::string_view command) {
    const std::string said = ascii(text);
    const std::string typed = ascii(command);
    if (typed.empty()) {
        hang(std::string(indent, ' '), indent, said);
    } else if (indent + said.size() + 5 + typed.size() <= style_.width) {
        line(std::string(indent, ' ') + said + "     " + typed);
    } else {
        hang(std::string(indent, ' '), indent, said);
        line(std::string(indent + 2, ' ') + typed);
    }
}

std::string bar(double percent, std::size_t cells) {
    const double share = std::clamp(percent, 0.0, 100.0) / 100;
    const auto full = static_cast<std::size_t>(share * static_cast<double>(cells) + 0.5);
    return "[" + std::string(full, '#') + std::string(cells - full, '.') + "]";
}

std::optional<WallTime> time_at(const json::value& object, std::string_view key) {
    const auto text = string_at(object, key);
    return text ? parse_time(*text) : std::nullopt;
}

namespace {

constexpr std::array<const char*, 12> months{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                             "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
constexpr std::array<const char*, 7> weekdays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};

std::string day_text(WallTime when) {
    const std::chrono::year_month_day date{std::chrono::floor<std::chrono::days>(when)};
    return std::to_string(static_cast<unsigned>(date.day())) + " " + months[static_cast<unsigned>(date.month()) - 1];
}

bool same_day(WallTime a, WallTime b) {
    return std::chrono::floor<std::chrono::days>(a) == std::chrono::floor<std::chrono::days>(b);
}

}   // namespace

std::string clock_seconds(WallTime when, WallTime now) {
    return (same_day(when, now) ? "" : day_text(when) + " ") + format_clock(when);
}

std::string clock_text(WallTime when, WallTime now) {
    std::string text = clock_seconds(when, now);
    text.erase(text.size() - 3);
    return text;
}

std::string date_text(WallTime when) {
    const std::chrono::weekday day{std::chrono::floor<std::chrono::days>(when)};
    return std::string{weekdays[day.c_encoding()]} + " " + day_text(when) + " " + format_clock(when) + " UTC";
}

std::string span_text(double seconds) {
    const long long whole = std::llround(std::max(0.0, seconds));
    if (whole < 120) return std::to_string(whole) + " s";
    const long long minutes = (whole + 30) / 60;
    if (minutes < 60) return std::to_string(minutes) + " min";
    if (minutes < 48LL * 60) {
        std::array<char, 40> text{};
        std::snprintf(text.data(), text.size(), "%lld h %02lld min", minutes / 60, minutes % 60);
        return text.data();
    }
    return std::to_string(minutes / 60 / 24) + " days";
}

std::string downtime_text(const json::value* range) {
    if (range == nullptr || !range->is_array() || range->get_array().size() != 2) return "unknown";
    const auto& pair = range->get_array();
    if (!pair[0].is_number() || !pair[1].is_number()) return "unknown";
    const double low = pair[0].to_number<double>();
    const double high = pair[1].to_number<double>();
    if (high <= 0) return "0";
    if (high < 120) {
        const std::string from = std::to_string(std::llround(low));
        const std::string to = std::to_string(std::llround(high));
        return (from == to ? to : from + "-" + to) + " s";
    }
    const std::string from = std::to_string(std::llround(low / 60));
    const std::string to = std::to_string(std::llround(high / 60));
    return (from == to ? to : from + "-" + to) + " min";
}

}   // namespace campaign::ctl
