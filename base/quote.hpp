#pragma once
// The one place where words become a shell string. Everything else passes argv.

#include <span>
#include <string>
#include <string_view>

namespace campaign {

/// One word for POSIX sh, whatever bytes it holds (NUL excepted: it is refused by returning an empty quoted word).
/// Plain words (letters, digits, and @%+=:,./-_) stay as they are, so that a shown command reads well.
[[nodiscard]] std::string shell_quote(std::string_view word);

/// The words joined by blanks, each quoted.
[[nodiscard]] std::string shell_command(std::span<const std::string> argv);

}   // namespace campaign
