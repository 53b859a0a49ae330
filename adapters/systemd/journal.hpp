#pragma once
// Lines of `journalctl -o json`.

#include <optional>
#include <string_view>

#include "adapters/host/service.hpp"

namespace campaign::systemd {

/// One entry. MESSAGE is a string, an array of bytes when it is no text, or null when it is too large; a line without a
/// cursor is none (nullopt).
[[nodiscard]] std::optional<host::LogLine> parse_journal_line(std::string_view line);

}   // namespace campaign::systemd
