#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <limits>
#include <vector>

namespace campaign {
namespace {

/// Length of the valid UTF-8 sequence at the start of `text`, or 0. Overlong forms, surrogates and C1 controls are not valid
/// here.
std::size_t utf8_length(std::string_view text) {
    const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const auto tail = [&](std::size_t i) { return i < text.size() && (byte(i) & 0xc0) == 0x80; };
    const unsigned char lead = byte(0);
    if (lead < 0x80) return 1;
    if (lead >= 0xc2 && lead <= 0xdf) {
        if (!tail(1) || (lead == 0xc2 && byte(1) < 0xa0)) return 0;
        return 2;
    }
    if (lead >= 0xe0 && lead <= 0xef) {
        if (!tail(1) || !tail(2)) return 0;
        if ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) > 0x9f)) return 0;
        return 3;
    }
    if (lead >= 0xf0 && lead <= 0xf4) {
        if (!tail(1) || !tail(2) || !tail(3)) return 0;
        if ((lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) > 0x8f)) return 0;
        return 4;
    }
    return 0;
}

/// Length of the escape sequence at the start of `text` (which begins with ESC): CSI, OSC and the two-byte forms.
std::size_t escape_length(std::string_view text) {
    if (text.size() < 2) return text.size();
    if (text[1] == '[') {
        std::size_t i = 2;
        while (i < text.size() && (text[i] < '@' || text[i] > '~') && static_cast<unsigned char>(text[i]) >= 0x20) ++i;
        return std::min(i + 1, text.size());
    }
    if (text[1] == ']') {
        for (std::size_t i = 2; i < text.size(); ++i) {
            if (text[i] == '\a') return i + 1;
            if (text[i] == '\x1b') return std::min(i + 2, text.size());
        }
        return text.size();
    }
    return 2;
}

struct Unit {
    std::string_view name;
    std::uint64_t factor;
};

constexpr std::array<Unit, 5> duration_units{{{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}}};
constexpr std::array<Unit, 9> size_units{{{"B", 1},
                                          {"kB", 1000},
                                          {"MB", 1'000'000},
                                          {"GB", 1'000'000'000},
                                          {"TB", 1'000'000'000'000},
                                          {"KiB", 1ULL << 10},
                                          {"MiB", 1ULL << 20},
                                          {"GiB", 1ULL << 30},
                                          {"TiB", 1ULL << 40}}};

/// One "NUMBER UNIT" at the start of `text`, which is advanced past it. A fraction ("1.5h") is allowed.
std::optional<std::uint64_t> take_quantity(std::string_view& text, std::span<const Unit> units) {
    double number = 0;
    const char* const end = text.data() + text.size();
    const auto [after, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
    if (error != std::errc{} || number < 0 || text.front() == '-') return std::nullopt;
    const char* word_end = after;
    while (word_end != end && ((*word_end >= 'a' && *word_end <= 'z') || (*word_end >= 'A' && *word_end <= 'Z'))) ++word_end;
    const std::string_view word{after, static_cast<std::size_t>(word_end - after)};
    for (const Unit& unit : units) {
        if (unit.name != word) continue;
        const double value = number * static_cast<double>(unit.factor);
        if (value > 9e15) return std::nullopt;   // beyond what a double counts exactly
        text.remove_prefix(static_cast<std::size_t>(word_end - text.data()));
        return static_cast<std::uint64_t>(value + 0.5);
    }
    return std::nullopt;
}

}   // namespace

std::string printable(std::string_view untrusted, std::size_t limit) {
    std::string out;
    for (std::size_t i = 0; i < untrusted.size();) {
        if (out.size() >= limit) return out + "...";
        const auto c = static_cast<unsigned char>(untrusted[i]);
        if (c == 0x1b) {
            i += escape_length(untrusted.substr(i));
        } else if (c == '\n' || c == '\t' || c == '\r') {
            out += ' ';
            ++i;
        } else if (c < 0x20 || c == 0x7f) {
            out += '?';
            ++i;
        } else if (const std::size_t length = utf8_length(untrusted.substr(i)); length != 0) {
            out += untrusted.substr(i, length);
            i += length;
        } else {
            out += "\xef\xbf\xbd";
            ++i;
        }
    }
    return out;
}

std::string format_span(std::chrono::nanoseconds span) {
    const double seconds = std::chrono::duration<double>(span).count();
    std::array<char, 48> text{};
    if (seconds < 0.9995) {
        std::snprintf(text.data(), text.size(), "%.0f ms", seconds * 1e3);
    } else if (seconds < 9.95) {
        std::snprintf(text.data(), text.size(), "%.1f s", seconds);
    } else if (seconds < 119.5) {
        std::snprintf(text.data(), text.size(), "%.0f s", seconds);
    } else if (seconds < 3600) {
        const auto whole = static_cast<long long>(seconds + 0.5);
        std::snprintf(text.data(), text.size(), "%lld min %02lld s", whole / 60, whole % 60);
    } else {
        const auto minutes = static_cast<long long>(seconds / 60 + 0.5);
        std::snprintf(text.data(), text.size(), "%lld h %02lld min", minutes / 60, minutes % 60);
    }
    return text.data();
}

std::string format_bytes(std::uint64_t bytes) {
    static constexpr std::array<const char*, 5> names{"B", "kB", "MB", "GB", "TB"};
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    while (value >= 999.5 && unit + 1 < names.size()) {
        value /= 1000;
        ++unit;
    }
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), unit == 0 || value >= 99.5 ? "%.0f %s" : "%.1f %s", value, names[unit]);
    return text.data();
}

std::string format_time(WallTime when) {
    const auto day = std::chrono::floor<std::chrono::days>(when);
    const std::chrono::year_month_day date{day};
    const std::chrono::hh_mm_ss time{std::chrono::floor<std::chrono::milliseconds>(when - day)};
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ", static_cast<int>(date.year()),
                  static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                  static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
                  static_cast<int>(time.seconds().count()), static_cast<int>(time.subseconds().count()));
    return text.data();
}

std::string format_clock(WallTime when) {
    return format_time(when).substr(11, 8);
}

std::optional<WallTime> parse_time(std::string_view text) {
    int year = 0;
    unsigned month = 0;
    unsigned day = 0;
    unsigned hour = 0;
    unsigned minute = 0;
    double second = 0;
    char zone = 0;
    const std::string copy{text};
    if (std::sscanf(copy.c_str(), "%4d-%2u-%2uT%2u:%2u:%lf%c", &year, &month, &day, &hour, &minute, &second, &zone) != 7)
        return std::nullopt;
    const std::chrono::year_month_day date{std::chrono::year{year}, std::chrono::month{month}, std::chrono::day{day}};
    if (!date.ok() || hour > 23 || minute > 59 || second < 0 || second >= 61 || zone != 'Z') return std::nullopt;
    return std::chrono::sys_days{date} + std::chrono::hours{hour} + std::chrono::minutes{minute} +
           std::chrono::microseconds{static_cast<long long>(second * 1e6 + 0.5)};
}

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
    if (text.empty()) return std::nullopt;
    std::uint64_t total = 0;
    while (!text.empty()) {
        const auto part = take_quantity(text, duration_units);
        if (!part) return std::nullopt;
        total += *part;
    }
    return std::chrono::milliseconds{static_cast<std::chrono::milliseconds::rep>(total)};
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
    if (text.empty()) return std::nullopt;
    const auto size = take_quantity(text, size_units);
    return text.empty() ? size : std::nullopt;
}

std::optional<std::string> did_you_mean(std::string_view word, std::span<const std::string> candidates) {
    const auto distance = [](std::string_view a, std::string_view b) {
        std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
        for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
        for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
        for (std::size_t i = 1; i <= a.size(); ++i) {
            for (std::size_t j = 1; j <= b.size(); ++j) {
                const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
                d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + change});
                if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                    d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
            }
        }
        return d[a.size()][b.size()];
    };
    if (word.empty() || word.size() > 200) return std::nullopt;   // the table is quadratic, and such a word is no slip
    std::optional<std::string> best;
    std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
    for (const std::string& candidate : candidates) {
        if (candidate.size() > 200) continue;
        const std::size_t far = distance(word, candidate);
        if (far < least) {
            least = far;
            best = candidate;
        }
    }
    return best;
}

std::vector<std::string> split(std::string_view text, char at) {
    std::vector<std::string> parts;
    if (text.empty()) return parts;
    for (std::size_t begin = 0;;) {
        const std::size_t end = text.find(at, begin);
        parts.emplace_back(text.substr(begin, end - begin));
        if (end == std::string_view::npos) return parts;
        begin = end + 1;
    }
}

std::string_view trim(std::string_view text) {
    static constexpr std::string_view blank = " \t\r\n\f\v";
    const std::size_t first = text.find_first_not_of(blank);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

}   // namespace campaign
