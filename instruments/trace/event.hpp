#pragma once
// One event of a Kineto trace: the few members that matter, from text of any layout and key order.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "instruments/trace/json_scan.hpp"
#include "instruments/trace/time_digits.hpp"

namespace campaign::trace {

/// Members as they stand in the text; of a repeated one the last. Valid as long as the text.
struct EventFacts {
    Token phase;      ///< "X": a span
    Token category;   ///< "kernel", ...
    Token name;
    Token start;      ///< µs
    Token duration;   ///< µs
    Token process;
    Token thread;
    Token device;        ///< args.device
    Token stream;        ///< args.stream
    Token correlation;   ///< args.correlation
};

/// The event at the scan's place, to its closing brace. Not `ok`: the facts mean nothing.
[[nodiscard]] Scan read_event(JsonScan& scan, EventFacts& facts);

/// A time as a trace may write it: an integer, a decimal, or either in quotes. Nothing for everything else, and for what
/// does not fit.
[[nodiscard]] std::optional<Nanoseconds> time_of(const Token& token);

/// A scalar as a label, as Python's str() has it: `absent` and null are "None", true is "True", numbers are their text.
[[nodiscard]] std::string label(const Token& token);

/// Equal for two scalars that are the same value: 7 and "7" are not. Empty for absent and null.
[[nodiscard]] std::string identity(const Token& token);

/// The value where it is an integer of 64 bits.
[[nodiscard]] std::optional<std::int64_t> integer(const Token& token);

}   // namespace campaign::trace
