#pragma once
// Exit codes by cause: what a script may rely on.

#include <boost/json.hpp>
#include <optional>
#include <string>

#include "base/error.hpp"

namespace campaign::ctl {

enum class Exit {
    as_asked = 0,
    bug = 1,
    usage = 2,
    failed = 3,   ///< the campaign failed, production is verified
    person_needed = 4,
    cancelled = 5,      ///< production is verified
    not_as_found = 6,   ///< production is not as it was found; goes before 3 to 5
    timed_out = 7,
    not_found = 8,
    refused = 9,   ///< a role or a policy says no
    no_daemon = 10,
    plan_refused = 11,
    detached = 130
};

[[nodiscard]] constexpr int code(Exit exit) {
    return static_cast<int>(exit);
}

/// The code for an error of a request; a plan that is `invalid` is plan_refused when `about_plan`.
[[nodiscard]] Exit exit_of(const Error& error, bool about_plan = false);

/// True when each service of a campaignctl.campaign/1 (or one entry of a status) is as it was found, or was never touched.
[[nodiscard]] bool production_as_found(const boost::json::value& campaign);

/// The code that says how a campaign stands: of its end when it is over, as_asked while it runs.
[[nodiscard]] Exit exit_of_campaign(const boost::json::value& campaign);

enum class WaitFor { done, restored, decision };

/// Whether `wait` is over, given a campaignctl.campaign/1, and with what code. Any end of the campaign ends it, and so does
/// a campaign that only a person can move on.
[[nodiscard]] std::optional<Exit> wait_over(const boost::json::value& campaign, WaitFor what);

}   // namespace campaign::ctl
