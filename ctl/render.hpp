#pragma once
// The screens: JSON of the API to text. Pure; every text of a host is made printable ASCII, wrapped and never cut.

#include <boost/json.hpp>
#include <string>

#include "base/error.hpp"
#include "ctl/layout.hpp"

namespace campaign::ctl {

[[nodiscard]] std::string render_status(const boost::json::value& status, const Style& style);
[[nodiscard]] std::string render_campaign(const boost::json::value& campaign, const Style& style);
/// `now` and the campaign's name come with the decision's own members.
[[nodiscard]] std::string render_decision(const boost::json::value& decision, const Style& style);
[[nodiscard]] std::string render_artifacts(const boost::json::value& artifacts, const Style& style);
/// With `all_commands` every command and drop-in follows the table.
[[nodiscard]] std::string render_explain(const boost::json::value& explained, const Style& style, bool all_commands);
/// One line, without its end; "" for an event that says nothing to people.
[[nodiscard]] std::string render_event(const boost::json::value& event, const Style& style);
/// "error: what: why", then seen and next.
[[nodiscard]] std::string render_error(const Error& error, const Style& style);
/// The lines that `watch` redraws below the events: where the campaign stands and what it waits for.
[[nodiscard]] std::string render_live(const boost::json::value& campaign, const Style& style);

// Shared by the screens.

struct Standing {
    char sign;
    std::string word;
    Tone tone;
};
/// Of a campaign (state, production).
[[nodiscard]] Standing standing_of(const boost::json::value& campaign);
/// Of one production entry.
[[nodiscard]] Standing production_standing(const boost::json::value& production, bool campaign_over);
/// "3/3 deep"
[[nodiscard]] std::string phase_text(const boost::json::value& campaign);
/// "vllm-k25" of "vllm-k25.service"
[[nodiscard]] std::string unit_text(const boost::json::value& production);
/// "model loading 61 %, ready about 23:03" in one line; "" without a wait.
[[nodiscard]] std::string wait_text(const boost::json::value& campaign, WallTime now);

}   // namespace campaign::ctl
