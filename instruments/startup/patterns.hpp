#pragma once
// What lines of a start-up log mean. Data, apart from the machine that reads them.

#include <span>
#include <string_view>

#include "instruments/startup/startup.hpp"

namespace campaign::startup {

inline constexpr int patterns_version = 1;

/// A line that holds `text` puts the start into `phase`.
struct PhasePattern {
    std::string_view text;
    Phase phase;
};
/// A line that holds `text` says why a start failed. Earlier entries are causes, later ones only say that it failed.
struct FailurePattern {
    std::string_view text;
    std::string_view kind;
    bool root = true;   ///< a cause; false: only its echo
};

[[nodiscard]] std::span<const PhasePattern> phase_patterns();
[[nodiscard]] std::span<const FailurePattern> failure_patterns();

}  // namespace campaign::startup
