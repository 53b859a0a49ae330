#pragma once
// What one look at a host said about a unit, and what it means. Pure: text in, values out.

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/host/service.hpp"
#include "adapters/systemd/unit_text.hpp"

namespace campaign::systemd {

/// "vllm", "sglang", ... for a command line that starts an inference server, "" for any other.
using KindOf = std::function<std::string(const std::vector<std::string>& argv)>;

struct ProcessFact {
    int pid = 0;
    int parent = 0;
    double started = 0;   ///< Unix seconds by the host's clock, to about one second
    std::vector<std::string> argv;
    bool environment_read = false;
    std::map<std::string, std::string> environment_hashes;   ///< NAME -> SHA-256 of the value, computed on the host
};

struct UnitFacts {
    std::string boot_id;
    Properties properties;                    ///< of systemctl show
    std::vector<ExecCommand> start;           ///< ExecStartEx
    std::vector<ProcessFact> processes;       ///< of the unit's cgroup, and of its container
    std::map<std::string, double> modified;   ///< Unix seconds of the files that the unit reads
};

/// The output of the look script: the boot id, then `systemctl show`.
[[nodiscard]] Result<host::ServiceState> parse_look(std::string_view output);
/// The output of the baseline script.
[[nodiscard]] Result<UnitFacts> parse_facts(std::string_view output);

[[nodiscard]] host::ServiceState state_of(const std::string& boot_id, const Properties& properties);

/// Finds the server among the unit's processes and collects every obstacle to a restart in another mode.
[[nodiscard]] host::Baseline judge(const std::string& unit, const UnitFacts& facts, const KindOf& kind_of);

/// Our drop-in's file name: sorts behind every drop-in there is, since systemd orders all folders' files by name.
/// "" when no such name can be made.
[[nodiscard]] std::string drop_in_name(const std::vector<std::string>& drop_ins);
/// Is this path one of our drop-ins?
[[nodiscard]] bool is_ours(std::string_view path);

/// The drop-in for a change, or why there can be none.
[[nodiscard]] Result<host::Change> render_drop_in(const std::string& unit, const host::Baseline& baseline,
                                                  const host::Override& change, const KindOf& kind_of);

}   // namespace campaign::systemd
