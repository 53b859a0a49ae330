#include "instruments/trace/file_view.hpp"

#include <algorithm>
#include <map>

#include "base/text.hpp"
#include "instruments/trace/device_view.hpp"
#include "instruments/trace/intervals.hpp"
#include "instruments/trace/summary.hpp"
#include "instruments/trace/utf8.hpp"

namespace campaign::trace {
namespace {

constexpr std::size_t most_steps = 200'000;

json::value header_value(const Recording& recording, std::string_view name) {
    const auto found = recording.header.find(name);
    if (found == recording.header.end()) return nullptr;
    const Result<json::value> parsed = parse_json(found->second, name);
    return parsed ? *parsed : json::value(nullptr);
}

/// Any scalar: a trace may say "rank": "0", and then it says so.
json::value distributed(const Recording& recording, std::string_view name) {
    const json::value info = header_value(recording, "distributedInfo");
    const json::value* const found = member(info, name);
    return found == nullptr ? json::value(nullptr) : *found;
}

struct StepWork {
    std::vector<Interval> spans;
    Nanoseconds sum = 0;
    Nanoseconds communication = 0;
};

std::vector<StepWork> work_of_steps(const Recording& recording, const Steps& steps, Categories& categories) {
    std::vector<StepWork> work(steps.steps.size());
    for (std::size_t i = 0; i < recording.gpu.size(); ++i) {
        if (steps.of_event[i] == Steps::none) continue;
        const GpuEvent& event = recording.gpu[i];
        StepWork& step = work[steps.of_event[i]];
        step.spans.push_back({event.start, event.end});
        step.sum += event.duration();
        if (is_communication(categories.of(event))) step.communication += event.duration();
    }
    return work;
}

struct PhaseTally {
    std::vector<Nanoseconds> walls;
    Nanoseconds busy = 0, communication = 0, sum = 0;
};

void steps_into(json::object& out, const Recording& recording, const Steps& steps, Categories& categories) {
    out["step_assignment"] = json::object{
        {"by_launch", steps.by_launch}, {"by_gpu_window", steps.by_gpu_window}, {"unassigned", steps.unassigned}};
    std::vector<StepWork> work = work_of_steps(recording, steps, categories);
    std::map<std::string, PhaseTally> phases;
    json::array list;
    for (std::size_t i = 0; i < steps.steps.size(); ++i) {
        const Step& step = steps.steps[i];
        const StepName& name = steps.meanings[step.meaning];
        StepWork& own = work[i];
        json::object one{{"name", as_valid_utf8(recording.names.text(step.name))}, {"phase", name.phase_text()}};
        if (name.context) one["context"] = *name.context;
        if (name.generation) one["generation"] = *name.generation;
        if (name.batch) one["bs"] = *name.batch;

        one["cpu_dur_ns"] = steps.on_cpu ? json::value(step.duration) : json::value(nullptr);
        one["n"] = own.spans.size();
        PhaseTally& phase = phases[name.phase_text()];
        if (!own.spans.empty()) {
            Nanoseconds first = own.spans.front().start;
            Nanoseconds last = own.spans.front().end;
            for (const Interval& span : own.spans) {
                first = std::min(first, span.start);
                last = std::max(last, span.end);
            }
            const Nanoseconds busy = union_length(std::move(own.spans));
            one["wall_ns"] = last - first;
            one["busy_ns"] = busy;
            one["sum_ns"] = own.sum;
            one["comm_sum_ns"] = own.communication;
            phase.walls.push_back(last - first);
            phase.busy += busy;
            phase.sum += own.sum;
            phase.communication += own.communication;
        }
        if (list.size() < most_steps) list.emplace_back(std::move(one));
    }
    out["steps"] = std::move(list);
    json::object summary;
    for (auto& [name, phase] : phases) {
        std::sort(phase.walls.begin(), phase.walls.end());
        const auto percentile = [&](unsigned q) {
            return phase.walls.empty() ? json::value(nullptr) : json::value(nearest_rank(phase.walls, q));
        };
        const bool none = phase.walls.empty();
        summary[name] = json::object{{"n", phase.walls.size()},
                                     {"wall_min_ns", none ? json::value(nullptr) : json::value(phase.walls.front())},
                                     {"wall_p50_ns", percentile(50)},
                                     {"wall_p99_ns", percentile(99)},
                                     {"wall_max_ns", none ? json::value(nullptr) : json::value(phase.walls.back())},
                                     {"busy_ns", phase.busy},
                                     {"comm_sum_ns", phase.communication},
                                     {"sum_ns", phase.sum}};
    }
    out["step_summary"] = std::move(summary);
}

json::object correlation(const Recording& recording) {
    std::unordered_map<std::int64_t, std::uint64_t> of_launch;
    std::uint64_t without = 0, most = 0, under_graphs = 0, graphs = 0;
    for (const GpuEvent& event : recording.gpu) {
        most = std::max(most, ++of_launch[event.launch]);
        const auto launch = recording.launches.find(event.launch);
        if (launch == recording.launches.end())
            ++without;
        else if (launch->second.graph)
            ++under_graphs;
    }
    for (const auto& [key, launch] : recording.launches) graphs += launch.graph ? 1 : 0;
    return {{"without_launch", without},
            {"max_events_per_launch", most},
            {"graph_launches", graphs},
            {"events_under_graph_launch", under_graphs}};
}

json::value family_text(StepFamily family) {
    switch (family) {
        case StepFamily::execute_context: return "execute_context";
        case StepFamily::sglang: return "sglang";
        case StepFamily::profiler: return "profiler";
        case StepFamily::none: break;
    }
    return nullptr;
}

}   // namespace

json::object file_view(const Recording& recording, const Steps& steps, const Taxonomy& taxonomy) {
    json::object out{{"format", recording.format}};
    if (recording.format == "kineto") out["raw_bytes"] = recording.bytes;
    if (recording.format == "kineto" && recording.is_object) {
        out["rank"] = distributed(recording, "rank");
        out["world_size"] = distributed(recording, "world_size");
        out["n_trace_events"] = recording.events;
        for (const char* const name : {"baseTimeNanoseconds", "displayTimeUnit", "schemaVersion"})
            out[name] = header_value(recording, name);
    }
    json::array notes;
    for (const std::string& note : recording.notes) notes.emplace_back(printable(note, 500));
    out["notes"] = std::move(notes);
    out["taxonomy_version"] = taxonomy_version;
    std::uint64_t copies = 0, sets = 0, empty = 0;
    for (const GpuEvent& event : recording.gpu) {
        copies += event.kind == Kind::memcpy ? 1 : 0;
        sets += event.kind == Kind::memset ? 1 : 0;
        empty += event.start == event.end ? 1 : 0;
    }
    out["events"] = json::object{{"kernel", recording.gpu.size() - copies - sets},
                                 {"memcpy", copies},
                                 {"memset", sets},
                                 {"negative_dur", recording.negative},
                                 {"zero_dur", empty - recording.negative}};
    if (recording.gpu.empty()) {
        out["empty"] = true;
        return out;
    }
    Categories categories{recording, taxonomy};
    out["devices"] = device_views(recording, categories);
    out["step_family"] = family_text(steps.family);
    out["steps"] = json::array{};
    if (steps.family != StepFamily::none) steps_into(out, recording, steps, categories);
    out["correlation"] = correlation(recording);
    return out;
}

}   // namespace campaign::trace
