#pragma once
// What lines of a start-up log mean. Data, apart from the machine that reads them.

#include <span>
#include <string_view>

#include "instruments/startup/startup.hpp"

namespace campaign::startup {

inline constexpr int patterns_version = 3;

/// A line that holds `text` puts the start into `phase`, and shows whose log this is. `server` is empty where several
/// servers write the line (uvicorn's own); `whole`: the text must be the whole message, for others quote it.
struct PhasePattern {
    std::string_view text;
    Phase phase;
    std::string_view server = "vllm";
    bool whole = false;
};
/// A cause says why, an echo only that it failed, a symptom what was seen first of it. A heavier one replaces a lighter one;
/// of equal ones the first stands.
enum class Weight { symptom, echo, cause };
struct FailurePattern {
    std::string_view text;
    std::string_view kind;
    Weight weight = Weight::cause;
    Phase reached = Phase::none;   ///< a start that fails so has come at least this far
};

/// What a person should know of though the start goes on. `profiling`: only where the profiler is on.
struct WarningPattern {
    std::string_view text;
    std::string_view name;
    bool profiling = false;
    bool degrades = false;   ///< the server comes up, but with less than it was told to
};

[[nodiscard]] std::span<const PhasePattern> phase_patterns();
[[nodiscard]] std::span<const FailurePattern> failure_patterns();
[[nodiscard]] std::span<const WarningPattern> warning_patterns();
/// How a message begins that says: told to stop, or gone in order.
[[nodiscard]] std::span<const std::string_view> stop_patterns();
/// Texts that show that the routes of the profiler are there.
[[nodiscard]] std::span<const std::string_view> armed_patterns();

}   // namespace campaign::startup
