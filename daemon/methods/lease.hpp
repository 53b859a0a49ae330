#pragma once
// The host's lease on a service's unit: one campaign at a time, across daemons. (Within one daemon the supervisor queues.)

#include <optional>
#include <string>

#include "adapters/host/lease.hpp"
#include "daemon/methods/service_step.hpp"

namespace campaign::methods {

/// Taken before the first look that restore relies on: what another campaign has changed is no baseline. Its undo
/// ("host-lease") gives it back. While another campaign has it this one is queued and says for whom; `conflict` with the
/// holder's name after a day. Where the host does not let us write one, the campaign goes on and may only look and measure.
Async<Result<void>> take_lease(Campaign& campaign, std::string service);

/// Before a change: the lease is on the host and ours. `conflict` names who has it, `refused` why there is none.
Async<Result<void>> confirm_lease(Campaign& campaign, std::string service, std::string purpose);

/// Gives back what this campaign holds; only behind a verified restore. What somebody broke and another took stays theirs.
Async<Result<void>> release_leases(Campaign& campaign);

/// Who holds it now, for `plan explain`; nothing when it is free.
Async<Result<std::optional<host::Lease>>> see_lease(Campaign& campaign, std::string service);

inline constexpr const char* lease_undo = "host-lease";

}   // namespace campaign::methods
