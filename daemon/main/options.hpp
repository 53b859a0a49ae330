#pragma once
// What campaignd is told on its command line.

#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "base/error.hpp"

namespace campaign::daemon {

struct Options {
    enum class Do { serve, explain, version, help };
    Do what = Do::serve;
    std::filesystem::path state_dir = "/var/lib/campaignd";
    std::filesystem::path socket = "/run/campaignd/api.sock";
    std::optional<std::filesystem::path> agent;        ///< default: beside campaignd, else ../libexec/campaignd
    std::optional<std::filesystem::path> ssh_config;   ///< default: the user's own and the system's
    std::string log_level = "info";
    std::filesystem::path plan;   ///< of explain
    bool offline = false;
};

/// `usage` with what is wrong and the nearest flag.
[[nodiscard]] Result<Options> parse_options(std::span<const std::string> arguments);
[[nodiscard]] std::string help_text();

}   // namespace campaign::daemon
