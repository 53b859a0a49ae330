#pragma once
// A recording added up: per device, per category, per kernel, and per decode step.

#include <cstdint>
#include <string>
#include <vector>

#include "instruments/trace/recording.hpp"
#include "instruments/trace/steps.hpp"
#include "instruments/trace/taxonomy.hpp"

namespace campaign::trace {

/// Of a category or of one kernel. `covered` is a union: what ran side by side on two streams counts once.
struct Share {
    std::string name;
    std::string category;
    Nanoseconds sum = 0;
    Nanoseconds covered = 0;
    std::uint64_t count = 0;
    Nanoseconds in_decode = 0;        ///< within decode steps: covered time of a category, sum of a kernel
    std::uint64_t decode_count = 0;   ///< operations within decode steps
};

struct DeviceSummary {
    std::string device;
    Nanoseconds span = 0;   ///< first start to last end
    Nanoseconds busy = 0;   ///< some work runs: union over all streams
    std::uint64_t kernels = 0;
    std::uint64_t decode_steps = 0;
    std::uint64_t prefill_steps = 0;
    std::uint64_t mixed_steps = 0;
    std::vector<Nanoseconds> decode_durations;   ///< first start to last end on this device, ascending
    Nanoseconds decode_busy = 0;                 ///< union within all decode steps
    std::vector<Share> categories;               ///< largest covered time first
    std::vector<Share> kernels_by_time;          ///< largest sum first; all of them
};

/// Devices in order of their names. The recording's events are looked at, not changed.
[[nodiscard]] std::vector<DeviceSummary> summarize(const Recording& recording, const Steps& steps, const Taxonomy& taxonomy);

/// Nearest rank, of an ascending list that is not empty; q in percent.
[[nodiscard]] Nanoseconds nearest_rank(const std::vector<Nanoseconds>& ascending, unsigned q);

}   // namespace campaign::trace
