#pragma once
// Kineto's microseconds as exact integer nanoseconds.

#include <cstdint>
#include <optional>
#include <string_view>

namespace campaign::trace {

using Nanoseconds = std::int64_t;

/// "1712195495505582.988" (µs, with or without decimals or exponent) to nanoseconds; digits beyond are dropped. A double
/// would be wrong by a quarter of a microsecond there. Nothing for what is no finite number or does not fit.
[[nodiscard]] std::optional<Nanoseconds> nanoseconds_from_microseconds(std::string_view digits);

}   // namespace campaign::trace
