#pragma once
// Where a server's command line stands in its unit, and what a drop-in must say so that it starts with a profiler. Pure.

#include <string>

#include "adapters/systemd/facts.hpp"
#include "base/json.hpp"

namespace campaign::adapt {

/// What is wanted of the server.
struct Ask {
    std::string want = "torch";     ///< torch, or nsys
    std::string server_version;     ///< from /version or the log; "" when not known
    std::string profiler_dir;       ///< the plan's; "" for the usual place
    std::string extra_args_env;     ///< the plan's: a variable whose words the unit's script adds to the command
    std::string extra_args_value;   ///< its present value
    double delay_s = 0;             ///< nsys: after the start
    double duration_s = 0;          ///< nsys
};

/// The answer, in the fields of campaign.adapt/1: server, how, server_pid, server_argv, adapt {kind: drop-in | env | none |
/// refuse, path, content, code, reason, plan_key}, effective_argv_after, effective_env_after, profiler_dir, ranks_hint,
/// cautions. A refusal is an answer too.
[[nodiscard]] json::object adapt(const std::string& unit, const systemd::UnitFacts& facts, const Ask& ask);

}   // namespace campaign::adapt
