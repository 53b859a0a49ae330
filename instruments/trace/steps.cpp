#include "instruments/trace/steps.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <map>
#include <string>

namespace campaign::trace {
namespace {

bool take(std::string_view& text, std::string_view prefix) {
    if (!text.starts_with(prefix)) return false;
    text.remove_prefix(prefix.size());
    return true;
}

std::optional<std::uint64_t> take_number(std::string_view& text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{}) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return value;
}

StepKind kind_of(std::uint64_t prefilling, std::uint64_t generating) {
    if (prefilling > 0) return generating > 0 ? StepKind::mixed : StepKind::prefill;
    return generating > 0 ? StepKind::decode : StepKind::empty;
}

/// What follows "execute_": [tokens_]context_N(..)_generation_M(..), or new_N_cached_M.
std::optional<StepName> vllm_step(std::string_view rest) {
    if (std::string_view old = rest; take(old, "new_")) {
        const auto fresh = take_number(old);
        if (!fresh || !take(old, "_cached_")) return std::nullopt;
        const auto cached = take_number(old);
        if (!cached || !old.empty()) return std::nullopt;
        StepName step{StepFamily::execute_context, kind_of(*fresh, *cached), *fresh == 0, {}, fresh, cached, {}, {}};
        return step;
    }
    if (take_number(rest) && !take(rest, "_")) return std::nullopt;
    if (!take(rest, "context_")) return std::nullopt;
    const auto context = take_number(rest);
    const std::size_t close = rest.rfind(")_generation_");
    if (!context || !rest.starts_with('(') || close == std::string_view::npos || !rest.ends_with(')')) return std::nullopt;
    rest.remove_prefix(close);
    take(rest, ")_generation_");
    const auto generation = take_number(rest);
    if (!generation || !rest.starts_with('(')) return std::nullopt;
    return StepName{StepFamily::execute_context, kind_of(*context, *generation), false, {}, context, generation, {}, {}};
}

std::optional<StepName> sglang_step(std::string_view rest) {
    std::string word;
    for (const char c : rest) {
        if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') break;
        word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    if (word.empty()) return std::nullopt;
    StepName step;
    step.family = StepFamily::sglang;
    step.batch = 0;
    if (std::string_view after = rest.substr(word.size()); take(after, " bs=")) step.batch = take_number(after).value_or(0);
    if (word == "decode" || word == "target_verify") step.kind = StepKind::decode;
    if (word == "prefill" || word == "extend") step.kind = StepKind::prefill;
    if (word == "mixed") step.kind = StepKind::mixed;
    if (word == "idle") step.kind = StepKind::empty;
    if (step.kind == StepKind::unknown || step.kind == StepKind::empty) step.phase = word;
    return step;
}

/// The annotations of one process or device in order, to be asked by time.
struct Windows {
    std::vector<std::uint32_t> order;   // places in a list of annotations sorted by start

    [[nodiscard]] std::optional<std::uint32_t> at(Nanoseconds time, const std::vector<Annotation>& list) const {
        const auto after = std::upper_bound(order.begin(), order.end(), time,
                                            [&list](Nanoseconds t, std::uint32_t i) { return t < list[i].start; });
        if (after == order.begin()) return std::nullopt;
        const std::uint32_t found = *std::prev(after);
        return time < list[found].end ? std::optional{found} : std::nullopt;
    }
};

using ByOwner = std::map<std::uint32_t, Windows>;

ByOwner by_owner(const std::vector<Annotation>& list) {
    ByOwner owners;
    for (std::uint32_t i = 0; i < list.size(); ++i) owners[list[i].process].order.push_back(i);
    return owners;
}

std::vector<std::uint32_t> steps_of_gpu_windows(const std::vector<Annotation>& cpu, const std::vector<Annotation>& gpu) {
    std::vector<std::uint32_t> steps(gpu.size(), Steps::none);
    std::map<std::uint32_t, std::vector<std::uint32_t>> named;
    for (std::uint32_t i = 0; i < cpu.size(); ++i) named[cpu[i].name].push_back(i);
    std::map<std::uint32_t, std::size_t> seen;
    for (std::size_t i = 0; i < gpu.size(); ++i) {
        const auto same = named.find(gpu[i].name);
        const std::size_t n = seen[gpu[i].name]++;
        if (cpu.empty()) {
            steps[i] = static_cast<std::uint32_t>(i);
        } else if (same != named.end() && n < same->second.size()) {
            steps[i] = same->second[n];
        }
    }
    return steps;
}

}   // namespace

std::optional<StepName> step_from_name(std::string_view name) {
    if (take(name, "execute_")) return vllm_step(name);
    if (take(name, "step[")) return sglang_step(name);
    if (!take(name, "ProfilerStep#")) return std::nullopt;
    const auto number = take_number(name);
    if (!number) return std::nullopt;
    StepName step;
    step.family = StepFamily::profiler;
    step.number = number;
    return step;
}

std::string StepName::phase_text() const {
    if (!phase.empty()) return phase;
    switch (kind) {
        case StepKind::decode: return "decode";
        case StepKind::prefill: return "prefill";
        case StepKind::mixed: return "mixed";
        case StepKind::empty: return "empty";
        case StepKind::unknown: break;
    }
    return "unknown";
}

Steps assign_steps(const Recording& recording) {
    Steps result;
    std::map<std::uint32_t, StepName> meaning;
    for (const Annotation& each : recording.annotations) {
        if (meaning.contains(each.name)) continue;
        const std::optional<StepName> step = step_from_name(recording.names.text(each.name));
        if (!step) continue;
        meaning.emplace(each.name, *step);
        result.family = std::min(result.family, step->family);
    }
    result.of_event.assign(recording.gpu.size(), Steps::none);
    result.unassigned = recording.gpu.size();
    if (result.family == StepFamily::none) return result;

    std::vector<Annotation> cpu;
    std::vector<Annotation> gpu;
    for (const Annotation& each : recording.annotations) {
        const auto known = meaning.find(each.name);
        if (known == meaning.end() || known->second.family != result.family) continue;
        (each.on_gpu ? gpu : cpu).push_back(each);
    }
    const auto by_start = [](const Annotation& a, const Annotation& b) { return a.start < b.start; };
    std::stable_sort(cpu.begin(), cpu.end(), by_start);
    std::stable_sort(gpu.begin(), gpu.end(), by_start);
    result.on_cpu = !cpu.empty();
    std::map<std::uint32_t, std::uint32_t> place;   // of a name's meaning
    for (const Annotation& each : cpu.empty() ? gpu : cpu) {
        const StepName& step = meaning.at(each.name);
        const auto [at, fresh] = place.emplace(each.name, static_cast<std::uint32_t>(result.meanings.size()));
        if (fresh) result.meanings.push_back(step);
        result.steps.push_back(Step{each.name, step.kind, each.start, each.end - each.start, at->second});
        result.likely = result.likely || (step.likely && step.kind == StepKind::decode);
    }

    const ByOwner processes = by_owner(cpu);
    const ByOwner devices = by_owner(gpu);
    const std::vector<std::uint32_t> step_of_gpu = steps_of_gpu_windows(cpu, gpu);
    for (std::size_t i = 0; i < recording.gpu.size(); ++i) {
        const GpuEvent& event = recording.gpu[i];
        if (const auto launch = recording.launches.find(event.launch); launch != recording.launches.end()) {
            auto owner = processes.find(launch->second.process);
            // In a container the tracer's pid of a process may differ from its own: one annotated process is the one.
            if (owner == processes.end() && processes.size() == 1) owner = processes.begin();
            if (owner != processes.end()) {
                if (const auto found = owner->second.at(launch->second.at, cpu)) {
                    result.of_event[i] = *found;
                    ++result.by_launch;
                    --result.unassigned;
                    continue;
                }
            }
        }
        const auto device = devices.find(event.device);
        if (device == devices.end()) continue;
        const auto found = device->second.at(event.start, gpu);
        if (!found || step_of_gpu[*found] == Steps::none) continue;
        result.of_event[i] = step_of_gpu[*found];
        ++result.by_gpu_window;
        --result.unassigned;
    }
    return result;
}

}   // namespace campaign::trace
