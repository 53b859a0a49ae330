#pragma once
// The methods: ways to answer a phase's question, one file each.

#include <string>
#include <vector>

#include "daemon/engine/policy.hpp"
#include "daemon/methods/preflight.hpp"
#include "daemon/methods/session.hpp"

namespace campaign::methods {

/// What a phase found, for status and report. Numbers stand in artifacts; here is what leads to them.
struct PhaseResult {
    json::object summary;
    std::string text;   ///< one line: "plateau 1536 tok/s at concurrency 128"
};

/// When a method changes so that its steps differ, its number rises: an open phase then begins anew.
inline constexpr int method_version = 1;

/// Each method of a phase's ladder as a candidate: what it shows, what it cannot, whether it can work here and why not.
[[nodiscard]] std::vector<engine::Candidate> candidates(const plans::Phase& phase, const ServiceFacts& facts);

/// Throughput and latency over concurrency, by load from the target host.
Async<Result<PhaseResult>> macro_sweep(Campaign& campaign, const plans::Phase& phase, const ServiceFacts& facts);
/// A few requests: is the server warm, do reasoning tokens count? Its numbers are preliminary.
Async<Result<PhaseResult>> warm_up(Campaign& campaign, const plans::Phase& phase, const ServiceFacts& facts);
/// start_profile, load, stop_profile, traces of all ranks fetched, checked and analysed.
Async<Result<PhaseResult>> torch_profile(Campaign& campaign, const plans::Phase& phase, const ServiceFacts& facts,
                                         const Session& session);
/// nsys start, load, nsys stop, export, analysis on the host.
Async<Result<PhaseResult>> nsys_capture(Campaign& campaign, const plans::Phase& phase, const ServiceFacts& facts,
                                        const Session& session);

}   // namespace campaign::methods
