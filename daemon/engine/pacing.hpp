#pragma once
// When to look at a server that is loading its model.

#include <chrono>
#include <span>

#include "base/clock.hpp"

namespace campaign::engine {

/// How long earlier loads of this model took on this host. A load that was given up counts with the time it had survived.
struct PastLoad {
    Seconds took;
    bool finished;
};

struct ProbeLimits {
    Seconds tight{5};      ///< between probes where the finish is likely
    Seconds sparse{120};   ///< between probes where it is not
    Seconds widest{600};   ///< never further apart than this
};

/// Chooses probe times for one load. Pure: it is told the time and never waits.
///
/// Before the earliest finish on record a probe can only say "not yet", so there are few. Around the usual finish they come
/// every `tight`; past the latest one they spread out again, since something is likely wrong and the log will say so first.
class ProbeSchedule {
public:
    explicit ProbeSchedule(std::span<const PastLoad> history, ProbeLimits limits = {});

    /// Time from the load's start to the next probe, after one made at `elapsed` found it still loading.
    [[nodiscard]] Seconds next_after(Seconds elapsed) const;

private:
    ProbeLimits limits_;
    Seconds earliest_;   // no finished load was faster
    Seconds latest_;     // none was slower
};

/// What history says of the next load.
struct LoadEstimate {
    Seconds p50{0};
    Seconds p90{0};
    int loads = 0;   ///< finished ones; 0: nothing is known
};
[[nodiscard]] LoadEstimate estimate(std::span<const PastLoad> history);

}   // namespace campaign::engine
