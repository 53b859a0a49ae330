#pragma once
// Text for people, and text from strangers made safe to show.

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"

namespace campaign {

/// One line, safe for a terminal, a log and a report: control characters and escape sequences become '?' or vanish, invalid
/// UTF-8 becomes U+FFFD, tabs and line ends become blanks; longer than `limit` bytes is cut with an ellipsis.
[[nodiscard]] std::string printable(std::string_view untrusted, std::size_t limit = 2000);

/// "850 ms", "12 s", "4 min 05 s", "2 h 44 min".
[[nodiscard]] std::string format_span(std::chrono::nanoseconds span);
/// "212 MB", decimal units as disks have them.
[[nodiscard]] std::string format_bytes(std::uint64_t bytes);
/// RFC 3339 in UTC with milliseconds: "2026-12-01T22:31:07.120Z".
[[nodiscard]] std::string format_time(WallTime when);
/// "22:31:07" (UTC).
[[nodiscard]] std::string format_clock(WallTime when);
[[nodiscard]] std::optional<WallTime> parse_time(std::string_view rfc3339);

/// Duration with its unit as plans write it: "250ms", "30s", "36m", "2h", "1h30m", "7d". No unit is no duration.
[[nodiscard]] std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);
/// Size with its unit: "512B", "64KiB", "2GiB", "10MB".
[[nodiscard]] std::optional<std::uint64_t> parse_size(std::string_view text);

/// The candidate nearest to `word` by edit distance with transpositions, if it is near enough to be a slip.
[[nodiscard]] std::optional<std::string> did_you_mean(std::string_view word, std::span<const std::string> candidates);

/// Splits at a character; an empty text has no parts.
[[nodiscard]] std::vector<std::string> split(std::string_view text, char at);
[[nodiscard]] std::string_view trim(std::string_view text);

}   // namespace campaign
