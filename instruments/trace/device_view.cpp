#include "instruments/trace/device_view.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "instruments/trace/intervals.hpp"
#include "instruments/trace/summary.hpp"
#include "instruments/trace/utf8.hpp"

namespace campaign::trace {
namespace {

constexpr std::size_t top_kernels_shown = 20;

struct Work {
    const GpuEvent* event = nullptr;
    std::string_view category;
};

struct CategorySum {
    std::uint32_t number = 0;
    std::uint64_t count = 0;
    Nanoseconds sum = 0;
    std::vector<Interval> spans;
};

Interval time_of(const Work& work) {
    return {work.event->start, work.event->end};
}

double rounded(double value, double digits) {
    return std::nearbyint(value * digits) / digits;
}
double share(double part, Nanoseconds whole) {
    return whole == 0 ? 0 : rounded(part / static_cast<double>(whole), 1e6);
}
double share(Nanoseconds part, Nanoseconds whole) {
    return share(static_cast<double>(part), whole);
}

json::object streams(const std::vector<Work>& all, const Names& names) {
    struct Stream {
        std::vector<Interval> spans;
        Nanoseconds sum = 0;
    };
    std::map<std::string_view, Stream> found;
    for (const Work& work : all) {
        Stream& stream = found[names.text(work.event->stream)];
        stream.spans.push_back(time_of(work));
        stream.sum += work.event->duration();
    }
    json::object out;
    for (auto& [name, stream] : found) {
        const std::size_t count = stream.spans.size();
        out[as_valid_utf8(name)] =
            json::object{{"n", count}, {"sum_ns", stream.sum}, {"busy_ns", union_length(std::move(stream.spans))}};
    }
    return out;
}

using Sums = std::map<std::string_view, CategorySum>;

Sums sums_of(const std::vector<Work>& all) {
    Sums sums;
    for (const Work& work : all) {
        const auto number = static_cast<std::uint32_t>(sums.size());
        const auto [at, fresh] = sums.try_emplace(work.category);
        if (fresh) at->second.number = number;
        ++at->second.count;
        at->second.sum += work.event->duration();
        at->second.spans.push_back(time_of(work));
    }
    return sums;
}

json::object categories_of(const std::vector<Work>& all, const Sums& sums, Nanoseconds busy, Nanoseconds total) {
    std::vector<Owned> owned;
    owned.reserve(all.size());
    for (const Work& work : all) owned.push_back({time_of(work), sums.at(work.category).number});
    const std::vector<Attribution> given = attribute(std::move(owned), sums.size());
    json::object out;
    for (const auto& [name, sum] : sums) {
        const Attribution& own = given[sum.number];
        out[name] = json::object{{"n", sum.count},
                                 {"sum_ns", sum.sum},
                                 {"union_ns", union_length(sum.spans)},
                                 {"split_ns", static_cast<Nanoseconds>(std::nearbyint(own.split))},
                                 {"exclusive_ns", own.exclusive},
                                 {"first_ns", own.first},
                                 {"share_of_sum", share(sum.sum, total)},
                                 {"share_of_busy_split", share(own.split, busy)}};
    }
    return out;
}

json::object overlaps(const Sums& sums) {
    std::vector<Interval> communication, memory, computation;
    for (const auto& [name, sum] : sums) {
        std::vector<Interval>& into = is_communication(name)                 ? communication
                                      : name == "memcpy" || name == "memset" ? memory
                                                                             : computation;
        into.insert(into.end(), sum.spans.begin(), sum.spans.end());
    }
    communication = merged(std::move(communication));
    memory = merged(std::move(memory));
    computation = merged(std::move(computation));
    const Nanoseconds total = length_of(communication);
    const Nanoseconds hidden = overlap(communication, computation);
    json::object out{{"comm_union_ns", total},
                     {"comp_union_ns", length_of(computation)},
                     {"mem_union_ns", length_of(memory)},
                     {"comm_comp_ns", hidden},
                     {"comm_mem_ns", overlap(communication, memory)},
                     {"comp_mem_ns", overlap(computation, memory)},
                     {"comm_hidden_pct", nullptr},
                     {"comm_exposed_ns", total - hidden}};
    if (total > 0) out["comm_hidden_pct"] = rounded(100.0 * static_cast<double>(hidden) / static_cast<double>(total), 1e4);
    return out;
}

/// Idle spans between what is covered. Their cause: was the work that ends one launched only after the gap had begun?
json::object gaps_of(std::vector<Work>& all, const std::vector<Interval>& covered, const Recording& recording) {
    constexpr std::array<Nanoseconds, 7> edges{1000, 2000, 5000, 10000, 50000, 100000, 1000000};
    struct Tally {
        std::uint64_t count = 0;
        Nanoseconds time = 0;
        void add(Nanoseconds gap) {
            ++count;
            time += gap;
        }
    };
    std::array<Tally, edges.size() + 1> histogram;
    Tally late, queued, unknown;
    std::vector<Nanoseconds> gaps;
    // Of what starts together the longest counts, and of equals the first on record.
    std::stable_sort(all.begin(), all.end(), [](const Work& a, const Work& b) {
        return a.event->start != b.event->start ? a.event->start < b.event->start : a.event->end > b.event->end;
    });
    for (std::size_t i = 1, at = 0; i < covered.size(); ++i) {
        const Nanoseconds begins = covered[i - 1].end;
        const Nanoseconds gap = covered[i].start - begins;
        gaps.push_back(gap);
        while (all[at].event->start < covered[i].start) ++at;
        const auto launch = recording.launches.find(all[at].event->launch);
        Tally& cause = launch == recording.launches.end() ? unknown : launch->second.at > begins ? late : queued;
        cause.add(gap);
        const auto edge = std::upper_bound(edges.begin(), edges.end(), gap);
        histogram[static_cast<std::size_t>(edge - edges.begin())].add(gap);
    }
    std::sort(gaps.begin(), gaps.end());
    json::array counts, times;
    for (const Tally& each : histogram) {
        counts.emplace_back(each.count);
        times.emplace_back(each.time);
    }
    const auto cause = [](const Tally& tally) { return json::object{{"n", tally.count}, {"ns", tally.time}}; };
    const auto percentile = [&gaps](unsigned q) {
        return gaps.empty() ? json::value(nullptr) : json::value(nearest_rank(gaps, q));
    };
    Nanoseconds total = 0;
    for (const Nanoseconds gap : gaps) total += gap;
    return {{"n", gaps.size()},
            {"total_ns", total},
            {"max_ns", gaps.empty() ? 0 : gaps.back()},
            {"p50_ns", percentile(50)},
            {"p99_ns", percentile(99)},
            {"edges_ns", json::array(edges.begin(), edges.end())},
            {"hist_n", std::move(counts)},
            {"hist_ns", std::move(times)},
            {"cause", json::object{{"launch_late", cause(late)}, {"queued", cause(queued)}, {"no_launch", cause(unknown)}}}};
}

void kernels_of(const std::vector<Work>& all, const Recording& recording, Nanoseconds total, json::object& out) {
    struct Kernel {
        std::string_view name, category;
        std::vector<Nanoseconds> times;
        Nanoseconds sum = 0;
    };
    std::map<std::uint32_t, Kernel> found;
    for (const Work& work : all) {
        if (work.event->kind != Kind::kernel) continue;
        Kernel& kernel = found[work.event->name];
        kernel.name = recording.names.text(work.event->name);
        kernel.category = work.category;
        kernel.times.push_back(work.event->duration());
        kernel.sum += work.event->duration();
    }
    std::vector<Kernel*> order;
    for (auto& [name, kernel] : found) order.push_back(&kernel);
    const auto larger = [](const Kernel* a, const Kernel* b) {
        return a->sum != b->sum ? a->sum > b->sum : a->name < b->name;
    };
    const std::size_t shown = std::min(order.size(), top_kernels_shown);
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(shown), order.end(), larger);
    json::array top;
    for (std::size_t i = 0; i < shown; ++i) {
        Kernel& kernel = *order[i];
        std::sort(kernel.times.begin(), kernel.times.end());
        top.emplace_back(json::object{{"name", as_valid_utf8(kernel.name)},
                                      {"category", kernel.category},
                                      {"n", kernel.times.size()},
                                      {"sum_ns", kernel.sum},
                                      {"min_ns", kernel.times.front()},
                                      {"max_ns", kernel.times.back()},
                                      {"p50_ns", nearest_rank(kernel.times, 50)},
                                      {"share_of_sum", share(kernel.sum, total == 0 ? 1 : total)}});
    }
    out["n_kernel_names"] = found.size();
    out["top_kernels"] = std::move(top);
}

json::object view(std::vector<Work>& all, const Recording& recording) {
    Nanoseconds first = all.front().event->start;
    Nanoseconds last = all.front().event->end;
    Nanoseconds total = 0;
    std::vector<Interval> spans;
    spans.reserve(all.size());
    for (const Work& work : all) {
        first = std::min(first, work.event->start);
        last = std::max(last, work.event->end);
        total += work.event->duration();
        spans.push_back(time_of(work));
    }
    const std::vector<Interval> covered = merged(std::move(spans));
    const Nanoseconds busy = length_of(covered);
    const Sums sums = sums_of(all);
    json::object out{{"span_ns", last - first}, {"busy_ns", busy}, {"idle_ns", last - first - busy}, {"sum_ns", total}};
    out["streams"] = streams(all, recording.names);
    out["categories"] = categories_of(all, sums, busy, total);
    out["overlap"] = overlaps(sums);
    kernels_of(all, recording, total, out);
    out["gaps"] = gaps_of(all, covered, recording);
    return out;
}

}   // namespace

json::object device_views(const Recording& recording, Categories& categories) {
    std::map<std::string_view, std::vector<Work>> devices;
    std::map<std::uint32_t, std::vector<Work>*> by_name;
    for (const GpuEvent& event : recording.gpu) {
        std::vector<Work>*& device = by_name[event.device];
        if (device == nullptr) device = &devices[recording.names.text(event.device)];
        device->push_back({&event, categories.of(event)});
    }
    json::object out;
    for (auto& [name, all] : devices) out[as_valid_utf8(name)] = view(all, recording);
    return out;
}

}   // namespace campaign::trace
