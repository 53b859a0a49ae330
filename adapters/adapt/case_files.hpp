#pragma once
// What was seen of a unit, as files in a folder: gathered on a host by hand, or a test case.

#include <filesystem>

#include "adapters/adapt/adapt.hpp"

namespace campaign::adapt {

struct Case {
    std::string unit;
    systemd::UnitFacts facts;
    Ask ask;
};

/// Reads show.txt (systemctl show UNIT), bus.json (the Exec*Ex properties by busctl --json=short), proc.json (the processes
/// of the unit's cgroup: pid, ppid, argv, env) and ask.json. Each at most 16 MiB. Errors: io, invalid, with the file's name.
[[nodiscard]] Result<Case> read_case(const std::filesystem::path& folder);

}   // namespace campaign::adapt
