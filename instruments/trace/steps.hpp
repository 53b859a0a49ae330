#pragma once
// Which step of the server each piece of device work belongs to.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "instruments/trace/recording.hpp"

namespace campaign::trace {

enum class StepKind : std::uint8_t { decode, prefill, mixed, empty, unknown };

/// Who marked the steps; where several did, the first of these counts.
enum class StepFamily : std::uint8_t { execute_context, sglang, profiler, none };

struct StepName {
    StepFamily family = StepFamily::none;
    StepKind kind = StepKind::unknown;
    bool likely = false;   ///< "execute_new_0_cached_8": a chunk of a prefill would look the same
    std::string phase;     ///< SGLang: its own word where that is none of ours ("draft_extend"), in lower case
    std::optional<std::uint64_t> context;      ///< vLLM: requests in prefill
    std::optional<std::uint64_t> generation;   ///< vLLM: requests in decode
    std::optional<std::uint64_t> batch;        ///< SGLang: bs=
    std::optional<std::uint64_t> number;       ///< torch: of ProfilerStep#

    /// "decode", "prefill", "mixed", "empty", "unknown", or the server's own word.
    [[nodiscard]] std::string phase_text() const;
};

/// "execute_context_0(0)_generation_8(8)" (vLLM), "execute_new_0_cached_8" (its first form), "step[decode bs=8]" (SGLang),
/// "ProfilerStep#3" (torch). Nothing for any other annotation.
[[nodiscard]] std::optional<StepName> step_from_name(std::string_view name);

struct Step {
    std::uint32_t name = 0;
    StepKind kind = StepKind::unknown;
    Nanoseconds start = 0;       ///< of its annotation
    Nanoseconds duration = 0;    ///< of its annotation
    std::uint32_t meaning = 0;   ///< place in Steps::meanings
};

struct Steps {
    static constexpr std::uint32_t none = 0xFFFFFFFF;

    StepFamily family = StepFamily::none;
    std::vector<StepName> meanings;
    std::vector<Step> steps;
    bool on_cpu = false;                   ///< the annotations are those of the process, not of the device
    std::vector<std::uint32_t> of_event;   ///< for each GpuEvent its step, or none
    std::uint64_t by_launch = 0;
    std::uint64_t by_gpu_window = 0;
    std::uint64_t unassigned = 0;
    bool likely = false;
};

/// By the launching call: the step whose annotation, in the launching process, encloses the moment of the launch. The device
/// runs behind, so its own times say little (20 % right under CUDA graphs). Work whose launch is not on record belongs to
/// the annotation on the device that encloses its start: the n-th of a name there is the n-th of that name in the process.
[[nodiscard]] Steps assign_steps(const Recording& recording);

}   // namespace campaign::trace
