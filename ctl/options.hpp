#pragma once
// What was typed, as a value.

#include <cstdio>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ctl/exit_code.hpp"

namespace campaign::ctl {

struct Options {
    std::string verb;     ///< "plan check" for the verbs of `plan`
    std::string socket;   ///< "" unless given
    bool json = false;
    std::string colour = "auto";   ///< auto, always, never
    std::string campaign;          ///< name or unique prefix; "" for all
    std::string file;              ///< a plan's path, or an explain code
    std::string decision;
    std::string candidate;
    std::string as;    ///< done, not-done or ""
    std::string yes;   ///< the name that confirms without a terminal
    std::string wait_for = "done";
    std::string timeout;   ///< with its unit; "" for none
    bool follow = false;
    bool offline = false;
    bool commands = false;           ///< plan explain: every command and drop-in
    std::string action;              ///< artifacts: "" or "get"
    std::string what;                ///< artifacts get: SHA-256, its beginning, or a name
    std::string output;              ///< -o
    bool man = false;                ///< help: the man page
    std::vector<std::string> rest;   ///< load, analyze, startup, check: everything after the verb
};

/// What to do instead of running a verb: print and leave.
struct Leave {
    Exit exit = Exit::usage;
    std::string out;   ///< for stdout: help, version
    std::string err;   ///< for stderr: what was wrong, and what may have been meant. It is never run.
};

/// `width`: of the terminal that help is shown on.
[[nodiscard]] std::variant<Options, Leave> parse_options(const std::vector<std::string>& arguments, std::size_t width = 80);

/// Every first word.
[[nodiscard]] std::vector<std::string> verbs();

}   // namespace campaign::ctl
