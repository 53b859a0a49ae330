#pragma once
// Markdown from text that strangers wrote.

#include <string>
#include <string_view>
#include <vector>

namespace campaign::report {

/// One line in which nothing is markup any more: control characters gone, and \ ` * _ { } [ ] < > # | & escaped.
[[nodiscard]] std::string escaped(std::string_view untrusted, std::size_t limit = 600);

/// "| a | b |" with cells already escaped.
[[nodiscard]] std::string row(const std::vector<std::string>& cells);
[[nodiscard]] std::string header(const std::vector<std::string>& cells);

/// Fixed digits; "not measured" for nothing.
[[nodiscard]] std::string number(double value, int digits);

}   // namespace campaign::report
