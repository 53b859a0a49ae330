#include "instruments/trace/summary.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "instruments/trace/categories.hpp"
#include "instruments/trace/intervals.hpp"

namespace campaign::trace {
namespace {

struct Piece {
    std::uint32_t step = Steps::none;
    Interval time;
};

/// Covered time within each step, added up: work of one step does not hide behind that of another.
Nanoseconds covered_per_step(std::vector<Piece>& pieces) {
    std::stable_sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.step < b.step; });
    Nanoseconds total = 0;
    std::vector<Interval> group;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        group.push_back(pieces[i].time);
        if (i + 1 < pieces.size() && pieces[i + 1].step == pieces[i].step) continue;
        total += union_length(std::exchange(group, {}));
    }
    return total;
}

struct CategoryTally {
    Share share;
    std::vector<Interval> all;
    std::vector<Piece> decode;
};

struct DeviceTally {
    std::vector<Interval> all;
    std::vector<Piece> decode;
    std::map<std::string_view, CategoryTally> categories;
    std::map<std::uint32_t, Share> kernels;
    std::map<std::uint32_t, Interval> step_spans;
    std::uint64_t kernel_count = 0;

    void add(const GpuEvent& event, std::string_view category, std::uint32_t step, bool decoding) {
        const Interval time{event.start, event.end};
        all.push_back(time);
        CategoryTally& tally = categories[category];
        tally.all.push_back(time);
        tally.share.sum += event.duration();
        ++tally.share.count;
        if (decoding) {
            decode.push_back(Piece{step, time});
            tally.decode.push_back(Piece{step, time});
            ++tally.share.decode_count;
        }
        if (step != Steps::none) {
            const auto [span, fresh] = step_spans.emplace(step, time);
            if (!fresh) span->second = {std::min(span->second.start, time.start), std::max(span->second.end, time.end)};
        }
        if (event.kind != Kind::kernel) return;
        ++kernel_count;
        Share& kernel = kernels[event.name];
        if (kernel.count == 0) kernel.category = category;
        kernel.sum += event.duration();
        ++kernel.count;
        if (!decoding) return;
        kernel.in_decode += event.duration();
        ++kernel.decode_count;
    }
};

DeviceSummary finish(std::string device, DeviceTally& tally, const Recording& recording, const Steps& steps) {
    DeviceSummary summary;
    summary.device = std::move(device);
    summary.kernels = tally.kernel_count;
    Nanoseconds first = tally.all.front().start;
    Nanoseconds last = tally.all.front().end;
    for (const Interval& each : tally.all) {
        first = std::min(first, each.start);
        last = std::max(last, each.end);
    }
    summary.span = last - first;
    summary.busy = union_length(std::move(tally.all));
    summary.decode_busy = covered_per_step(tally.decode);
    for (const auto& [step, span] : tally.step_spans) {
        switch (steps.steps[step].kind) {
            case StepKind::decode:
                ++summary.decode_steps;
                summary.decode_durations.push_back(span.end - span.start);
                break;
            case StepKind::prefill: ++summary.prefill_steps; break;
            case StepKind::mixed: ++summary.mixed_steps; break;
            case StepKind::empty:
            case StepKind::unknown: break;
        }
    }
    std::sort(summary.decode_durations.begin(), summary.decode_durations.end());
    for (auto& [name, category] : tally.categories) {
        category.share.name = name;
        category.share.category = name;
        category.share.covered = union_length(std::move(category.all));
        category.share.in_decode = covered_per_step(category.decode);
        summary.categories.push_back(std::move(category.share));
    }
    for (auto& [name, kernel] : tally.kernels) {
        kernel.name = recording.names.text(name);
        kernel.covered = kernel.sum;
        summary.kernels_by_time.push_back(std::move(kernel));
    }
    const auto larger = [](Nanoseconds Share::*by) {
        return [by](const Share& a, const Share& b) { return a.*by != b.*by ? a.*by > b.*by : a.name < b.name; };
    };
    std::sort(summary.categories.begin(), summary.categories.end(), larger(&Share::covered));
    std::sort(summary.kernels_by_time.begin(), summary.kernels_by_time.end(), larger(&Share::sum));
    return summary;
}

}   // namespace

std::vector<DeviceSummary> summarize(const Recording& recording, const Steps& steps, const Taxonomy& taxonomy) {
    Categories categories{recording, taxonomy};
    std::map<std::string, DeviceTally> devices;
    std::map<std::uint32_t, DeviceTally*> by_id;
    for (std::size_t i = 0; i < recording.gpu.size(); ++i) {
        const GpuEvent& event = recording.gpu[i];
        DeviceTally*& tally = by_id[event.device];
        if (tally == nullptr) tally = &devices[recording.names.text(event.device)];
        const std::uint32_t step = steps.of_event[i];
        const bool decoding = step != Steps::none && steps.steps[step].kind == StepKind::decode;
        tally->add(event, categories.of(event), step, decoding);
    }
    std::vector<DeviceSummary> result;
    for (auto& [device, tally] : devices) result.push_back(finish(device, tally, recording, steps));
    return result;
}

Nanoseconds nearest_rank(const std::vector<Nanoseconds>& ascending, unsigned q) {
    const std::size_t rank = (ascending.size() * q + 99) / 100;
    return ascending[std::min(ascending.size() - 1, rank == 0 ? 0 : rank - 1)];
}

}   // namespace campaign::trace
