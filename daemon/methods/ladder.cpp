// What each method shows and costs, and whether it can work on this service.

#include "daemon/methods/method.hpp"

namespace campaign::methods {
namespace {

using engine::Can;
using engine::Candidate;
using engine::Mode;

Candidate macro_candidate(const plans::Phase& phase) {
    Candidate macro;
    macro.method = plans::MethodKind::macro;
    macro.can = Can::yes;
    macro.evidence = "the server answers requests";
    macro.shows = "TTFT, TPOT, ITL and throughput as a client sees them";
    if (phase.measure == plans::Measure::decode_step)
        macro.cannot_show = "kernel names, time per category, gaps, communication, single decode steps";
    return macro;
}

Candidate torch_candidate(const ServiceFacts& facts) {
    Candidate torch;
    torch.method = plans::MethodKind::torch_profile;
    torch.shows = "kernels by name and category for each decode step and rank";
    torch.cannot_show = "hardware counters; the host side is left out to keep the steps undisturbed";
    torch.evidence = facts.profiler_evidence;
    if (facts.profiler == servers::Ability::yes) {
        torch.mode = Mode::production;   // the routes are there already: no restart
        torch.can = Can::yes;
    } else {
        torch.mode = Mode::profiler;
        torch.can = facts.server_kind == "vllm" ? Can::yes : Can::no;
        torch.reason = facts.server_kind == "vllm" ? facts.profiler_cause
                                                   : "no way is known to profile a server of kind " + facts.server_kind;
        if (!facts.profiler_cause.empty()) torch.evidence += (torch.evidence.empty() ? "" : "; ") + facts.profiler_cause;
    }
    return torch;
}

Candidate nsys_candidate(const ServiceFacts& facts) {
    Candidate nsys;
    nsys.method = plans::MethodKind::nsys;
    nsys.mode = Mode::nsys;
    nsys.shows = "kernels by name with CUDA-graph nodes, from outside the server";
    nsys.cannot_show = "operator names, shapes";
    if (!facts.looked) {
        nsys.can = Can::unknown;
        nsys.evidence = "not asked: offline";
    } else if (!facts.nsys) {
        nsys.can = Can::no;
        nsys.reason = "there is no nsys on the host";
        nsys.evidence = "command -v nsys found nothing";
    } else {
        nsys.can = facts.server_kind == "vllm" ? Can::yes : Can::unknown;
        nsys.evidence = *facts.nsys;
    }
    return nsys;
}

}   // namespace

std::vector<engine::Candidate> candidates(const plans::Phase& phase, const ServiceFacts& facts) {
    std::vector<Candidate> ladder;
    for (const plans::MethodKind method : phase.methods) {
        switch (method) {
            case plans::MethodKind::macro: ladder.push_back(macro_candidate(phase)); break;
            case plans::MethodKind::torch_profile: ladder.push_back(torch_candidate(facts)); break;
            case plans::MethodKind::nsys: ladder.push_back(nsys_candidate(facts)); break;
        }
    }
    return ladder;
}

}   // namespace campaign::methods
