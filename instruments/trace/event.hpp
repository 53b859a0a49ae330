#pragma once
// One event of a Kineto trace: the few members that matter, from text of any layout and key order.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace campaign::trace {

/// Values as they stand in the text (strings without their quotes); valid as long as the text.
struct EventFacts {
    std::string_view phase;      ///< "X": a span
    std::string_view category;   ///< "kernel", ...
    std::string name;            ///< escapes resolved
    std::string_view start;      ///< µs
    std::string_view duration;   ///< µs
    std::string_view process;
    std::string_view device;                   ///< args.device
    std::optional<std::int64_t> correlation;   ///< args.correlation
    bool nonfinite = false;                    ///< it held NaN or Infinity, which JSON does not know
    bool control_chars = false;                ///< it held control characters within a string
};

/// Nothing when the text is no object of JSON. NaN, Infinity and control characters in strings are let pass: Kineto writes
/// them. Values nested deeper than args are not looked at.
[[nodiscard]] std::optional<EventFacts> read_event(std::string_view text);

/// Every sequence is well formed UTF-8.
[[nodiscard]] bool valid_utf8(std::string_view text);

}   // namespace campaign::trace
