#pragma once
// What a plan would do, rehearsed by the code that would do it: nothing is changed, and offline nothing is even asked.

#include <string>

#include "daemon/engine/world.hpp"

namespace campaign::daemon {

/// The members of campaignctl.explain/1 (docs/api.md). `invalid` with the diagnostics for a refused plan.
Async<Result<boost::json::object>> explain_plan(engine::World& world, std::string plan_text, bool offline);

}   // namespace campaign::daemon
