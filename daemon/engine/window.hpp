#pragma once
// When restarts are allowed: "22:00-06:00 Europe/Zurich". Pure: it is told the time of day there.

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace campaign::engine {

struct Window {
    std::chrono::minutes begin{0};   ///< after midnight
    std::chrono::minutes end{0};     ///< before or at `begin`: on the next day
    std::string zone = "UTC";        ///< name as in the time zone database
};

[[nodiscard]] std::optional<Window> parse_window(std::string_view text);

/// How long to wait, at this time of day, until the window is open and stays open for `needed`; zero: now.
/// nullopt: the window is never long enough.
[[nodiscard]] std::optional<std::chrono::seconds> until_open(const Window& window, std::chrono::seconds time_of_day,
                                                             std::chrono::seconds needed);

}   // namespace campaign::engine
