#include "instruments/trace/intervals.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace campaign::trace {
namespace {

struct Edge {
    Nanoseconds at = 0;
    std::uint32_t category = 0;
    bool begins = false;
};

/// An exact sum of time / runners as one number a count of runners: fractions are added up only at the end.
class SharedTime {
public:
    void add(Nanoseconds time, std::uint32_t runners) {
        if (runners >= by_runners_.size()) by_runners_.resize(runners + 1);
        by_runners_[runners] += time;
    }
    [[nodiscard]] double total() const {
        // The fractions over one denominator, as long as that stays small; beyond, long double is near enough.
        std::int64_t common = 1;
        for (std::size_t n = 1; n < by_runners_.size() && common < (std::int64_t{1} << 40U); ++n) {
            if (by_runners_[n] != 0) common = std::lcm(common, static_cast<std::int64_t>(n));
        }
        Nanoseconds whole = 0;
        __int128 parts = 0;
        long double rest = 0;
        for (std::size_t n = 1; n < by_runners_.size(); ++n) {
            const auto runners = static_cast<std::int64_t>(n);
            whole += by_runners_[n] / runners;
            const std::int64_t left = by_runners_[n] % runners;
            if (common % runners == 0) {
                parts += static_cast<__int128>(left) * (common / runners);
            } else {
                rest += static_cast<long double>(left) / static_cast<long double>(runners);
            }
        }
        whole += static_cast<Nanoseconds>(parts / common);
        rest += static_cast<long double>(static_cast<std::int64_t>(parts % common)) / static_cast<long double>(common);
        return static_cast<double>(static_cast<long double>(whole) + rest);
    }

private:
    std::vector<Nanoseconds> by_runners_;
};

void give_first(std::vector<Owned>& spans, std::vector<Attribution>& result) {
    std::stable_sort(spans.begin(), spans.end(), [](const Owned& a, const Owned& b) {
        return a.time.start != b.time.start ? a.time.start < b.time.start : a.time.end > b.time.end;
    });
    bool any = false;
    Nanoseconds covered = 0;
    for (const Owned& span : spans) {
        if (span.time.end <= span.time.start) continue;
        const Nanoseconds from = any ? std::max(span.time.start, covered) : span.time.start;
        if (span.time.end > from) {
            result[span.category].first += span.time.end - from;
            covered = span.time.end;
        }
        any = true;
    }
}

}   // namespace

Nanoseconds union_length(std::vector<Interval> intervals) {
    return length_of(merged(std::move(intervals)));
}

std::vector<Interval> merged(std::vector<Interval> intervals) {
    const auto before = [](const Interval& a, const Interval& b) { return a.start < b.start; };
    if (!std::is_sorted(intervals.begin(), intervals.end(), before)) std::sort(intervals.begin(), intervals.end(), before);
    std::size_t kept = 0;
    for (const Interval& each : intervals) {
        if (each.end <= each.start) continue;
        if (kept > 0 && each.start <= intervals[kept - 1].end) {
            intervals[kept - 1].end = std::max(intervals[kept - 1].end, each.end);
        } else {
            intervals[kept++] = each;
        }
    }
    intervals.resize(kept);
    return intervals;
}

Nanoseconds length_of(const std::vector<Interval>& merged) {
    Nanoseconds total = 0;
    for (const Interval& each : merged) total += each.end - each.start;
    return total;
}

Nanoseconds overlap(const std::vector<Interval>& a, const std::vector<Interval>& b) {
    Nanoseconds total = 0;
    for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
        const Nanoseconds from = std::max(a[i].start, b[j].start);
        const Nanoseconds to = std::min(a[i].end, b[j].end);
        if (to > from) total += to - from;
        a[i].end < b[j].end ? ++i : ++j;
    }
    return total;
}

std::vector<Attribution> attribute(std::vector<Owned> spans, std::size_t categories) {
    std::vector<Edge> edges;
    edges.reserve(2 * spans.size());
    for (const Owned& span : spans) {
        if (span.time.end <= span.time.start) continue;
        edges.push_back({span.time.start, span.category, true});
        edges.push_back({span.time.end, span.category, false});
    }
    // At one moment what ends comes before what begins.
    std::sort(edges.begin(), edges.end(),
              [](const Edge& a, const Edge& b) { return a.at != b.at ? a.at < b.at : a.begins < b.begins; });
    std::vector<Attribution> result(categories);
    std::vector<SharedTime> shared(categories);
    std::vector<std::uint32_t> running(categories);
    std::vector<std::uint32_t> active;   // categories that run
    std::uint32_t runners = 0;
    Nanoseconds last = 0;
    for (const Edge& edge : edges) {
        const Nanoseconds time = edge.at - last;
        if (runners > 0 && time > 0) {
            if (active.size() == 1) {
                result[active.front()].exclusive += time;
                shared[active.front()].add(time, 1);
            } else {
                for (const std::uint32_t category : active) shared[category].add(time * running[category], runners);
            }
        }
        last = edge.at;
        std::uint32_t& count = running[edge.category];
        if (edge.begins) {
            if (count++ == 0) active.push_back(edge.category);
            ++runners;
        } else {
            if (--count == 0) active.erase(std::find(active.begin(), active.end(), edge.category));
            --runners;
        }
    }
    for (std::size_t i = 0; i < categories; ++i) result[i].split = shared[i].total();
    give_first(spans, result);
    return result;
}

}   // namespace campaign::trace
