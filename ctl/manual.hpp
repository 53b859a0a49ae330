#pragma once
// Help and man page, from the table of commands. Pure.

#include <string>
#include <string_view>

#include "ctl/commands.hpp"

namespace campaign::ctl {

/// All commands by group, and the exit codes.
[[nodiscard]] std::string help_text(std::size_t width);
/// One command: usage, arguments, examples.
[[nodiscard]] std::string help_text(const Command& command, std::size_t width);
/// The parts of a first word that is no command by itself, as plan.
[[nodiscard]] std::string help_of_parts(std::string_view word, std::size_t width);
/// "campaignctl wait [--for WHAT] [--timeout SPAN] NAME"
[[nodiscard]] std::string usage_line(const Command& command);
/// campaignctl(1) in man(7) macros. `date`: of the release, as 2026-12-06.
[[nodiscard]] std::string man_page(std::string_view version, std::string_view date);

}   // namespace campaign::ctl
