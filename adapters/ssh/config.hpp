#pragma once
// What the ssh configuration says about a host, as `ssh -G` prints it: a host's own parser, so that aliases mean here what
// they mean in a terminal.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/ssh/ssh.hpp"

namespace campaign::ssh {

struct HostConfig {
    std::string hostname;
    int port = 22;
    std::string user;
    std::vector<std::string> identity_files;   ///< ~ and tokens expanded; they need not exist
    std::vector<std::string> known_hosts;      ///< the user's files first, then the system's
    std::string host_key_name;                 ///< HostKeyAlias; empty: the host name (with a port that is not 22)
    std::optional<std::string> agent;          ///< socket of the agent; absent: none is asked
    bool identities_only = false;
    std::vector<std::string> jumps;   ///< each as [user@]host[:port], nearest first
    int connect_timeout_s = 10;
    int family = 0;   ///< 0 any, 4, 6
};

/// The environment that tokens and defaults come from.
struct ConfigEnvironment {
    std::string home;
    std::string agent;   ///< SSH_AUTH_SOCK
};

/// argv of the question: ssh -G [-F FILE] [-l USER] [-p PORT] [-J JUMP] -- ALIAS. usage where a word would be an option.
[[nodiscard]] Result<std::vector<std::string>> config_question(const SshTarget& target);

/// Reads the answer. Refuses with usage or unavailable, and says which line, what we cannot honour: a proxy command,
/// certificate files, PKCS#11 and security-key providers.
[[nodiscard]] Result<HostConfig> parse_config(std::string_view text, const SshTarget& target,
                                              const ConfigEnvironment& environment);

/// One jump, as ProxyJump writes it, as a target of its own.
[[nodiscard]] Result<SshTarget> jump_target(const SshTarget& for_host, const std::string& jump);

}   // namespace campaign::ssh
