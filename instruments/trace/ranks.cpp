#include "instruments/trace/ranks.hpp"

#include <algorithm>
#include <set>

#include "instruments/trace/categories.hpp"
#include "instruments/trace/intervals.hpp"

namespace campaign::trace {
namespace {

constexpr std::size_t most_listed = 100'000;

const std::vector<Nanoseconds>& of_category(const RankCollectives& rank, std::string_view category) {
    static const std::vector<Nanoseconds> none;
    const auto found = rank.durations.find(category);
    return found == rank.durations.end() ? none : found->second;
}

}   // namespace

RankCollectives collectives_of(const Recording& recording, const Taxonomy& taxonomy) {
    RankCollectives result;
    if (recording.gpu.empty()) return result;
    Categories categories{recording, taxonomy};
    std::vector<const GpuEvent*> found;
    std::vector<Interval> spans;
    spans.reserve(recording.gpu.size());
    Nanoseconds first = recording.gpu.front().start;
    Nanoseconds last = recording.gpu.front().end;
    for (const GpuEvent& event : recording.gpu) {
        spans.push_back({event.start, event.end});
        first = std::min(first, event.start);
        last = std::max(last, event.end);
        if (event.kind == Kind::kernel && is_communication(categories.of(event))) found.push_back(&event);
    }
    std::stable_sort(found.begin(), found.end(), [](const GpuEvent* a, const GpuEvent* b) {
        return a->start != b->start ? a->start < b->start : a->end < b->end;
    });
    for (const GpuEvent* event : found) {
        result.durations[std::string{categories.of(*event)}].push_back(event->duration());
        result.communication += event->duration();
    }
    result.busy = union_length(std::move(spans));
    result.span = last - first;
    return result;
}

json::object compare_ranks(const std::map<std::int64_t, RankCollectives>& ranks) {
    struct Tally {
        Nanoseconds wait = 0;
        std::uint64_t last = 0;
    };
    std::map<std::int64_t, Tally> tallies;
    std::set<std::string, std::less<>> names;
    json::array numbers;
    for (const auto& [rank, own] : ranks) {
        numbers.emplace_back(rank);
        for (const auto& [name, list] : own.durations) names.insert(name);
    }
    json::array collectives, unmatched;
    for (const std::string& name : names) {
        std::size_t least = SIZE_MAX;
        std::size_t most = 0;
        json::object counts;
        for (const auto& [rank, own] : ranks) {
            const std::size_t count = of_category(own, name).size();
            least = std::min(least, count);
            most = std::max(most, count);
            counts[std::to_string(rank)] = count;
        }
        if (least != most) unmatched.emplace_back(json::object{{"category", name}, {"counts", std::move(counts)}});
        for (std::size_t i = 0; i < least; ++i) {
            Nanoseconds shortest = INT64_MAX;
            Nanoseconds longest = 0;
            std::int64_t arrived_last = 0;
            for (const auto& [rank, own] : ranks) {
                const Nanoseconds took = of_category(own, name)[i];
                if (took < shortest) arrived_last = rank;
                shortest = std::min(shortest, took);
                longest = std::max(longest, took);
            }
            ++tallies[arrived_last].last;
            for (const auto& [rank, own] : ranks) tallies[rank].wait += of_category(own, name)[i] - shortest;
            if (collectives.size() >= most_listed) continue;
            collectives.emplace_back(json::object{{"category", name},
                                                  {"i", i},
                                                  {"min_ns", shortest},
                                                  {"max_ns", longest},
                                                  {"last_arriver", arrived_last},
                                                  {"skew_ns", longest - shortest}});
        }
    }
    json::object per_rank;
    for (const auto& [rank, own] : ranks) {
        per_rank[std::to_string(rank)] = json::object{{"span_ns", own.span},
                                                      {"busy_ns", own.busy},
                                                      {"comm_sum_ns", own.communication},
                                                      {"wait_ns", tallies[rank].wait},
                                                      {"times_last", tallies[rank].last}};
    }
    json::object out{
        {"ranks", std::move(numbers)}, {"collectives", std::move(collectives)}, {"per_rank", std::move(per_rank)}};
    if (!unmatched.empty()) out["unmatched"] = std::move(unmatched);
    return out;
}

}   // namespace campaign::trace
