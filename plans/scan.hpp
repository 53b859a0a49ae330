#pragma once
// A first, strict look at the text of a plan. yaml-cpp accepts texts that lose half of what was meant (an unclosed quote
// swallows the rest of the file) and reports others far from their cause; this pass finds those and says where they began.

#include <string>
#include <string_view>

#include "plans/parse.hpp"

namespace campaign::plans {

inline constexpr std::size_t largest_plan = std::size_t{1024} * 1024;   ///< bytes
inline constexpr std::size_t longest_line = 8192;                       ///< bytes
inline constexpr std::size_t deepest_plan = 16;                         ///< levels of nesting

struct Scan {
    Diagnostics found;
    /// The text with each unclosed quote closed at the end of its line, so that the rest can be checked too.
    std::string mended;
    bool readable = true;   ///< worth giving to a YAML parser
    bool clean = true;      ///< what a YAML parser cannot read is not explained by `found`
};

[[nodiscard]] Scan scan(std::string_view yaml);

/// Column as an editor counts: characters before byte `byte` of the line, and one.
[[nodiscard]] int column_at(std::string_view line, std::size_t byte);
/// Characters in a text.
[[nodiscard]] int characters(std::string_view text);
/// The lines of a text, without their ends.
[[nodiscard]] std::vector<std::string_view> lines_of(std::string_view text);
/// Bytes of the UTF-8 character that `text` begins with; 0 if it begins with none (overlong forms and surrogates are none).
[[nodiscard]] std::size_t utf8_size(std::string_view text);
/// Index after the closing quote of the quoted text that begins at `begin`; npos if its line does not close it.
[[nodiscard]] std::size_t quote_end(std::string_view line, std::size_t begin);

}   // namespace campaign::plans
