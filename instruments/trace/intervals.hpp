#pragma once
// Time spans that may overlap.

#include <vector>

#include "instruments/trace/time_digits.hpp"

namespace campaign::trace {

struct Interval {
    Nanoseconds start = 0;
    Nanoseconds end = 0;
};

/// The time covered by at least one of them.
[[nodiscard]] Nanoseconds union_length(std::vector<Interval> intervals);

}   // namespace campaign::trace
