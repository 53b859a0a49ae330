#pragma once
// The machine we run on, as a host: the same commands and the same frame as over ssh, without ssh.

#include <boost/asio/any_io_executor.hpp>
#include <memory>
#include <string>

#include "adapters/host/host.hpp"
#include "base/random.hpp"

namespace campaign::local {

/// Commands run in process groups of their own, with no descriptor of ours. A command whose deadline passes, or whose waiter
/// is cancelled, is left running and in doubt, exactly as over ssh; only a follower is ended (SIGTERM) when nobody follows
/// it. reach() is direct. `sudo`: commands as root go through `sudo -n` unless we are root.
[[nodiscard]] std::shared_ptr<host::Host> make_local_host(boost::asio::any_io_executor executor, Clock& clock,
                                                          Random& random, std::string name, bool sudo);

}   // namespace campaign::local
