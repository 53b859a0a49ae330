#include "ctl/exit_code.hpp"

#include "base/json.hpp"

namespace campaign::ctl {

Exit exit_of(const Error& error, bool about_plan) {
    switch (error.kind) {
        case ErrorKind::usage:
        case ErrorKind::conflict: return Exit::usage;
        case ErrorKind::invalid: return about_plan ? Exit::plan_refused : Exit::usage;
        case ErrorKind::not_found: return Exit::not_found;
        case ErrorKind::refused: return Exit::refused;
        case ErrorKind::unreachable: return Exit::no_daemon;
        case ErrorKind::timed_out: return Exit::timed_out;
        case ErrorKind::cancelled: return Exit::detached;
        case ErrorKind::in_doubt: return Exit::person_needed;
        default: return Exit::bug;
    }
}

bool production_as_found(const json::value& campaign) {
    const json::value* production = member(campaign, "production");
    if (production == nullptr || !production->is_array()) return true;
    for (const json::value& service : production->get_array()) {
        const std::string state = string_at(service, "state").value_or("unknown");
        if (state != "as_found" && state != "verified") return false;
    }
    return true;
}

Exit exit_of_campaign(const json::value& campaign) {
    const std::string state = string_at(campaign, "state").value_or("");
    const bool over = state == "done" || state == "failed" || state == "cancelled";
    const json::value* needs = member(campaign, "needs");
    const bool asked = needs != nullptr &&
                       (needs->is_array() ? !needs->get_array().empty() : needs->is_number() && needs->to_number<int>() > 0);
    const bool stuck = state == "in_doubt" || state == "waiting" || (state == "restoring" && asked);
    if ((over || stuck) && !production_as_found(campaign)) return Exit::not_as_found;
    if (stuck) return Exit::person_needed;
    if (state == "failed") return Exit::failed;
    if (state == "cancelled") return Exit::cancelled;
    return Exit::as_asked;
}

std::optional<Exit> wait_over(const json::value& campaign, WaitFor what) {
    const std::string state = string_at(campaign, "state").value_or("");
    const bool over = state == "done" || state == "failed" || state == "cancelled";
    const Exit end = exit_of_campaign(campaign);
    const json::value* needs = member(campaign, "needs");
    const bool asked = needs != nullptr && needs->is_array() && !needs->get_array().empty();
    if (what == WaitFor::decision && asked) return Exit::as_asked;
    if (what == WaitFor::restored && over) return production_as_found(campaign) ? Exit::as_asked : Exit::not_as_found;
    if (over || end != Exit::as_asked) return end;
    return std::nullopt;
}

}   // namespace campaign::ctl
