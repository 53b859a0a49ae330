#pragma once
// Hosts over ssh: libssh on the one loop, one connection a host, never a blocking call.

#include <boost/asio/any_io_executor.hpp>
#include <memory>
#include <optional>
#include <string>

#include "adapters/host/host.hpp"
#include "base/random.hpp"

namespace campaign::ssh {

/// Which host, in the words of the ssh configuration. What is not set here comes from `ssh -G ALIAS`, asked once at first
/// use.
struct SshTarget {
    std::string name;    ///< for texts: its name in the plan
    std::string alias;   ///< of the ssh configuration, or an address
    std::optional<std::string> user;
    std::optional<std::string> key_file;      ///< the only key that is tried
    std::optional<std::string> jump;          ///< as ProxyJump: [user@]host[:port][,...]
    std::optional<std::string> known_hosts;   ///< the only file that is believed
    std::optional<std::string> config_file;   ///< instead of the user's own and the system's
    std::optional<int> port;
    bool sudo = false;   ///< commands as root go through `sudo -n`
};

/// Connects at the first use, and again at the next use after the link went (with back-off and jitter after failures).
/// Errors beside those of host::Host: identity (host key unknown, changed or revoked), refused (no key was accepted), usage
/// and unavailable (an ssh configuration that asks for what we do not support). Destroy it on its own loop.
[[nodiscard]] std::shared_ptr<host::Host> make_ssh_host(boost::asio::any_io_executor executor, Clock& clock, Random& random,
                                                        SshTarget target);

}   // namespace campaign::ssh
