#pragma once
// A server that runs as a plain process, started by a command of the plan: the same interface as a systemd unit.
//
// Files in state_dir, on the host: NAME.pid ("BOOT PID STARTTIME", written by the starter), NAME.override (the change, one
// entry per line, see parse_override), NAME.start (the words of the last start).
// The process leads a session and process group of its own; only that group is ever signalled.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "adapters/host/service.hpp"

namespace campaign::process {

struct ProcessSpec {
    std::string name;                   ///< [A-Za-z0-9._-]; names the files in state_dir
    std::vector<std::string> command;   ///< the program first, found in PATH or absolute
    std::map<std::string, std::string> environment;
    std::string directory;   ///< working directory; empty: /
    std::string log;         ///< file that its output is appended to
    std::string state_dir;
    Millis stop_timeout{std::chrono::seconds{60}};   ///< between TERM and KILL
};

/// Serves the services in `specs` by their name. An unknown name is an error of kind not_found.
[[nodiscard]] std::unique_ptr<host::ServiceManager> make_manager(std::shared_ptr<host::Host> host, Clock& clock,
                                                                 std::map<std::string, ProcessSpec> specs);

}   // namespace campaign::process
