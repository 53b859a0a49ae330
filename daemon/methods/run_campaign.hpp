#pragma once
// A campaign from preflight to production verified.

#include "daemon/engine/scope.hpp"

namespace campaign::methods {

/// Phases in the plan's order in production mode; then, mode by mode, the deeper methods that policy or a person allows, all
/// phases of a mode in one session; production restored after each session. Throws operation_aborted when cancelled.
Async<Result<void>> run_phases(engine::Campaign& campaign);

/// Whatever ended the phases: all undos, then every service that preflight saw is verified.
Async<Result<void>> put_back(engine::Campaign& campaign);

/// Records a campaign's state and its event.
Async<void> set_state(engine::Campaign& campaign, std::string state, std::string detail, const Error* error);

}   // namespace campaign::methods
