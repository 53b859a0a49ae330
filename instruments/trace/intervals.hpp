#pragma once
// Time spans that may overlap. Spans without length cover nothing.

#include <cstdint>
#include <vector>

#include "instruments/trace/time_digits.hpp"

namespace campaign::trace {

struct Interval {
    Nanoseconds start = 0;
    Nanoseconds end = 0;
};

/// The time covered by at least one of them.
[[nodiscard]] Nanoseconds union_length(std::vector<Interval> intervals);

/// What they cover, as spans in order that neither overlap nor touch.
[[nodiscard]] std::vector<Interval> merged(std::vector<Interval> intervals);
[[nodiscard]] Nanoseconds length_of(const std::vector<Interval>& merged);
/// Covered by both; each side as merged() gives it.
[[nodiscard]] Nanoseconds overlap(const std::vector<Interval>& a, const std::vector<Interval>& b);

/// A span that belongs to a category, a number from 0 on.
struct Owned {
    Interval time;
    std::uint32_t category = 0;
};

/// Three ways to give covered time to one category each.
struct Attribution {
    double split = 0;            ///< each instant shared evenly by the spans that run: fractions of a nanosecond too
    Nanoseconds exclusive = 0;   ///< instants at which no other category runs
    Nanoseconds first = 0;       ///< in order of start, the longer first: only what is not covered yet
};
/// One for each of `categories`. Over all of them `first` adds up to the covered time exactly, `split` but for a double's
/// rounding.
[[nodiscard]] std::vector<Attribution> attribute(std::vector<Owned> spans, std::size_t categories);

}   // namespace campaign::trace
