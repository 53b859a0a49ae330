#pragma once
// Text in columns for an 80-column terminal: ASCII, wrapped and never cut. Pure.

#include <boost/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"

namespace campaign::ctl {

struct Style {
    std::size_t width = 80;
    bool colour = false;
};

enum class Tone { plain, fine, runs, you, by_plan, failed };

/// One printable ASCII line: what is not ASCII becomes '?'. Every text that is shown goes through here.
[[nodiscard]] std::string ascii(std::string_view text);

/// In colour where the style has it; the sign and the word carry the meaning.
[[nodiscard]] std::string paint(const Style& style, Tone tone, const std::string& text);

/// Lines of at most `width`, broken at blanks; a word longer than that is broken inside. At least one line.
[[nodiscard]] std::vector<std::string> wrap(std::string_view text, std::size_t width);

[[nodiscard]] std::string pad(std::string text, std::size_t width);

/// Collects the lines of a screen.
class Sheet {
public:
    explicit Sheet(Style style) : style_{style} {}

    void line(const std::string& text);   ///< as it is
    /// `head`, then the text wrapped in the rest of the width; its further lines begin below the text's first column.
    /// `head_width` is what head takes on the screen (it may hold colour).
    void hang(const std::string& head, std::size_t head_width, std::string_view text);
    /// As hang, for items that are never broken, two blanks apart.
    void hang_items(const std::string& head, std::size_t head_width, const std::vector<std::string>& items);
    /// A label in a column of its own: "WAITS FOR   ...".
    void field(std::string_view label, std::string_view text, std::size_t column = 12);
    /// Text, and a command that is never broken: beside the text where both fit, else on a line of its own.
    void with_command(std::size_t indent, std::string_view text, std::string_view command);

    [[nodiscard]] const Style& style() const { return style_; }
    [[nodiscard]] std::string text() const { return text_; }

private:
    Style style_;
    std::string text_;
};

/// "[######......]" of `cells` cells.
[[nodiscard]] std::string bar(double percent, std::size_t cells);

/// Member as time.
[[nodiscard]] std::optional<WallTime> time_at(const boost::json::value& object, std::string_view key);
/// "22:31" on the day of `now`, "30 Nov 22:31" else. UTC.
[[nodiscard]] std::string clock_text(WallTime when, WallTime now);
/// "22:31:07" on the day of `now`.
[[nodiscard]] std::string clock_seconds(WallTime when, WallTime now);
/// "Tue 1 Dec 22:49:31 UTC"
[[nodiscard]] std::string date_text(WallTime when);
/// "12 s", "18 min", "2 h 44 min", "3 days"; nothing below zero.
[[nodiscard]] std::string span_text(double seconds);
/// "68-77 min", "0", "unknown" from [low, high] in seconds or null.
[[nodiscard]] std::string downtime_text(const boost::json::value* range);

}   // namespace campaign::ctl
