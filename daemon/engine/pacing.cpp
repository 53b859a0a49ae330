#include "daemon/engine/pacing.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace campaign::engine {

ProbeSchedule::ProbeSchedule(std::span<const PastLoad> history, ProbeLimits limits)
    : limits_{limits}, earliest_{Seconds::max()}, latest_{Seconds::zero()} {
    for (const PastLoad& load : history) {
        if (load.finished) earliest_ = std::min(earliest_, load.took);
        latest_ = std::max(latest_, load.took);
    }
    if (earliest_ > latest_) earliest_ = Seconds::zero();   // nothing finished yet: it may be ready at any time
}

Seconds ProbeSchedule::next_after(Seconds elapsed) const {
    const bool early = elapsed + limits_.sparse < earliest_;
    if (early) return elapsed + limits_.sparse;
    if (elapsed < earliest_) return earliest_;   // the first moment at which "ready" was ever seen
    if (elapsed < latest_) return elapsed + limits_.tight;
    const Seconds overdue = elapsed - latest_;
    return elapsed + std::clamp(overdue, limits_.tight, limits_.widest);
}

LoadEstimate estimate(std::span<const PastLoad> history) {
    std::vector<double> took;
    for (const PastLoad& load : history) {
        if (load.finished) took.push_back(load.took.count());
    }
    if (took.empty()) return {};
    std::sort(took.begin(), took.end());
    const auto rank = [&took](double share) {   // nearest rank: never a load that did not happen
        const auto position = static_cast<std::size_t>(std::ceil(share * static_cast<double>(took.size())));
        return Seconds{took[std::max<std::size_t>(position, 1) - 1]};
    };
    return {rank(0.5), rank(0.9), static_cast<int>(took.size())};
}

}   // namespace campaign::engine
