#pragma once
// The pure part of plain processes: identities, the override file, log positions.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/host/service.hpp"
#include "adapters/process/process.hpp"

namespace campaign::process {

/// What a host says about one process; pid 0: it does not run.
struct ProcessFacts {
    std::string boot_id;
    int pid = 0;
    std::uint64_t start_ticks = 0;   ///< field 22 of /proc/PID/stat: with boot and pid, the process's identity
    std::string user;
    std::vector<std::string> argv;
    std::map<std::string, std::string> environment_hashes;
    std::uint64_t age_us = 0;   ///< the host's monotonic time at which it started
    bool overridden = false;    ///< an override is installed
};

[[nodiscard]] Result<ProcessFacts> parse_facts(std::string_view output);
[[nodiscard]] host::ServiceState state_of(const ProcessFacts& facts, const std::string& override_path);
[[nodiscard]] std::string identity(const ProcessFacts& facts);

/// The override as a file: comment lines, then one entry a line, "arg WORD" and "env NAME=VALUE", in the order of the final
/// command; '\' and line ends are written as "\\" and "\n". The file holds the whole command, not a difference.
[[nodiscard]] host::Change render_override(const ProcessSpec& spec, const host::Override& change);
struct Start {
    std::vector<std::string> command;
    std::map<std::string, std::string> environment;
};
[[nodiscard]] Result<Start> parse_override(std::string_view content);

/// A place in a log file that rotation and truncation cannot fool: "DEV:INODE:OFFSET:HASH", HASH being the first 16 digits
/// of the SHA-256 of the file's first bytes (at most 64, as many as there were: "HASH/COUNT").
struct LogPosition {
    std::string device;
    std::string inode;
    std::uint64_t offset = 0;
    std::string head_hash;
    std::uint64_t head_bytes = 0;
};
[[nodiscard]] std::string to_text(const LogPosition& position);
[[nodiscard]] std::optional<LogPosition> parse_position(std::string_view text);

}   // namespace campaign::process
