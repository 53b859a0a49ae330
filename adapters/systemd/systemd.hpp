#pragma once
// A service that is a systemd unit of a host.

#include <memory>

#include "adapters/host/service.hpp"
#include "adapters/systemd/facts.hpp"

namespace campaign::systemd {

/// Works on units named with their suffix ("vllm-kimi.service"). `kind_of` recognises inference servers by their argv.
///
/// baseline() fails only when the unit cannot be looked at (not_found, unavailable, unreachable); reasons not to restart it
/// in another mode are its `obstacles`, and render() refuses with the first of them.
[[nodiscard]] std::unique_ptr<host::ServiceManager> make_manager(std::shared_ptr<host::Host> host, KindOf kind_of);

/// The unit of a job.
[[nodiscard]] std::string job_unit(const std::string& name);

}   // namespace campaign::systemd
