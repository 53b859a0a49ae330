#include "instruments/trace/intervals.hpp"

#include <algorithm>

namespace campaign::trace {

Nanoseconds union_length(std::vector<Interval> intervals) {
    std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) { return a.start < b.start; });
    Nanoseconds covered = 0;
    bool any = false;
    Nanoseconds until = 0;
    for (const Interval& each : intervals) {
        const Nanoseconds from = any ? std::max(each.start, until) : each.start;
        if (each.end > from) covered += each.end - from;
        until = any ? std::max(until, each.end) : each.end;
        any = true;
    }
    return covered;
}

}   // namespace campaign::trace
