#include "daemon/engine/window.hpp"

#include <cstdio>

#include "base/text.hpp"

namespace campaign::engine {

using namespace std::chrono_literals;

std::optional<Window> parse_window(std::string_view text) {
    const std::string copy{trim(text)};
    unsigned begin_hour = 0;
    unsigned begin_minute = 0;
    unsigned end_hour = 0;
    unsigned end_minute = 0;
    int used = 0;
    if (std::sscanf(copy.c_str(), "%2u:%2u-%2u:%2u%n", &begin_hour, &begin_minute, &end_hour, &end_minute, &used) != 4)
        return std::nullopt;
    if (begin_hour > 23 || begin_minute > 59 || end_hour > 24 || end_minute > 59) return std::nullopt;
    Window window;
    window.begin = std::chrono::minutes{begin_hour * 60 + begin_minute};
    window.end = std::chrono::minutes{end_hour * 60 + end_minute};
    const std::string_view zone = trim(std::string_view{copy}.substr(static_cast<std::size_t>(used)));
    if (!zone.empty()) window.zone = std::string{zone};
    for (const char c : window.zone) {
        const bool fine = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '/' ||
                          c == '_' || c == '-' || c == '+';
        if (!fine) return std::nullopt;
    }
    if (window.zone.find("..") != std::string::npos || window.zone.front() == '/') return std::nullopt;
    return window;
}

std::optional<std::chrono::seconds> until_open(const Window& window, std::chrono::seconds now, std::chrono::seconds needed) {
    constexpr std::chrono::seconds day = 24h;
    const std::chrono::seconds begin = window.begin;
    std::chrono::seconds length = window.end - window.begin;
    if (length <= 0s) length += day;
    if (needed > length) return std::nullopt;
    std::chrono::seconds since_open = now - begin;
    if (since_open < 0s) since_open += day;
    if (since_open + needed <= length) return 0s;
    return day - since_open;
}

}   // namespace campaign::engine
