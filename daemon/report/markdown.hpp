#pragma once
// Markdown from text that strangers wrote.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace campaign::report {

/// One line in which nothing is markup any more: control characters gone; < > & as entities; a backslash before each of
/// \ ` * _ { } [ ] # | ~ $.
[[nodiscard]] std::string escaped(std::string_view untrusted, std::size_t limit = 600);
/// A code span of our own words and paths, in which a backslash would be shown: back quotes and pipes become '.
[[nodiscard]] std::string code(std::string_view text, std::size_t limit = 200);

/// "| a | b |" with cells already escaped; an empty one is "-".
[[nodiscard]] std::string row(const std::vector<std::string>& cells);
[[nodiscard]] std::string header(const std::vector<std::string>& cells);

/// Fixed digits; "not measured" for nothing, never 0.
[[nodiscard]] std::string number(std::optional<double> value, int digits);

}   // namespace campaign::report
