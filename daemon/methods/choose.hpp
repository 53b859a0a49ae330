#pragma once
// Decisions and the words of people, as steps: what was decided, by which facts, and who allowed it is on record.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/engine/policy.hpp"
#include "daemon/methods/method.hpp"

namespace campaign::methods {

struct Choice {
    std::string label;   ///< "D2"
    std::optional<plans::MethodKind> chosen;
    engine::Mode mode = engine::Mode::production;
    std::vector<plans::MethodKind> deferred;   ///< an approval would allow these
    std::string cannot_show;
    std::string why_not_deeper;         ///< one line: why the best of the ladder was not taken
    std::optional<Seconds> down_high;   ///< of the chosen one
};

/// Chooses and records. `blocked`: methods that were tried and failed, with why. `approved`: what a person allowed.
Async<Result<Choice>> choose(Campaign& campaign, const plans::Phase& phase, const ServiceFacts& facts,
                             const std::map<plans::MethodKind, std::string>& blocked,
                             std::optional<plans::MethodKind> approved, int attempt);

/// Waits for a person's word on a decision. The approved method, or nothing when the time for it ran out.
Async<Result<std::optional<plans::MethodKind>>> await_approval(Campaign& campaign, const plans::Phase& phase,
                                                               const Choice& choice);

/// Waits until policy.window is open for long enough. Returns at once when the policy has no window.
Async<Result<void>> await_window(Campaign& campaign, const std::string& service, Seconds needed);

/// What the history of this host says of one load of the service.
[[nodiscard]] engine::LoadEstimate load_estimate(Campaign& campaign, const std::string& service);
[[nodiscard]] std::optional<plans::MethodKind> method_from(std::string_view word);

}   // namespace campaign::methods
