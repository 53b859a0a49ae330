#pragma once
// Choosing a method for a question: every candidate with what speaks for and against it. Pure.

#include <boost/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "daemon/engine/pacing.hpp"
#include "plans/plan.hpp"

namespace campaign::engine {

/// How the server must run for a method.
enum class Mode { production, profiler, nsys };
[[nodiscard]] std::string_view to_string(Mode mode);

enum class Can { yes, no, unknown };

/// One method of a ladder, with what is known about it on this host.
struct Candidate {
    plans::MethodKind method = plans::MethodKind::macro;
    Mode mode = Mode::production;
    Can can = Can::unknown;    ///< could it work (after its restart, if it needs one)
    std::string evidence;      ///< "argv s07, routes s08"
    std::string reason;        ///< why not, when `no`: the root cause
    std::string shows;         ///< "kernels by name and category, per step"
    std::string cannot_show;   ///< what the answer will lack
};

enum class Verdict { chosen, impossible, forbidden, deferred, not_needed };
[[nodiscard]] std::string_view to_string(Verdict verdict);

struct Judged {
    Candidate candidate;
    Verdict verdict = Verdict::not_needed;
    std::string why;
    std::optional<Seconds> down_low;   ///< of both restarts together; absent: unknown
    std::optional<Seconds> down_high;
};

struct Decision {
    std::string question;
    std::string policy;               ///< in words
    std::vector<Judged> candidates;   ///< in the ladder's order
    std::optional<plans::MethodKind> chosen;
    Mode mode = Mode::production;              ///< of the chosen one
    std::string cannot_show;                   ///< of the chosen one
    std::vector<plans::MethodKind> deferred;   ///< deeper ones that an approval would allow
};

struct DecideInput {
    std::string question;
    std::vector<Candidate> ladder;   ///< best fidelity first
    plans::Policy policy;
    LoadEstimate load;                      ///< of one model load here
    std::optional<Seconds> operator_load;   ///< the plan's own estimate
    Seconds downtime_spent{0};
    std::optional<plans::MethodKind> approved;
};

/// The best candidate that can work and that policy allows now. Candidates that only an approval stands against are
/// deferred.
[[nodiscard]] Decision decide(const DecideInput& input);

[[nodiscard]] boost::json::array candidates_json(const Decision& decision);
/// "no downtime is allowed", "a restart needs your approval, at most 90 min down in all".
[[nodiscard]] std::string policy_in_words(const plans::Policy& policy);

}   // namespace campaign::engine
