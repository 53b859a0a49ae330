#pragma once
// Bringing production back, and proving it.

#include <optional>
#include <string>

#include "daemon/methods/preflight.hpp"
#include "daemon/methods/service_step.hpp"

namespace campaign::methods {

/// The undo of an override: host, unit, file, hash and the baseline to verify against.
[[nodiscard]] engine::Undo service_as_found(const Campaign& campaign, const std::string& service, const ServiceFacts& facts,
                                            const host::Change& change);

/// Records what production is now (docs/journal-events.md, kind `production`).
Async<void> production(Campaign& campaign, std::string service, std::string state, std::string detail);

/// Carries out one undo: our file removed by path and hash, the service restarted if its process is not the baseline's, the
/// load waited out, everything verified. Safe to call again after any crash. Fails only with what a person must see.
Async<Result<void>> carry_out(Campaign& campaign, const storage::UndoRow& undo, int round);

/// Nothing was changed, or it was taken back: proves that the service runs as it was found.
Async<Result<void>> verify_as_found(Campaign& campaign, const ServiceFacts& facts);

/// All pending undos in reverse, then `verified` on record. Retries with growing pauses within plan.restore.time_limit.
Async<Result<void>> restore_all(Campaign& campaign);

}   // namespace campaign::methods
