#pragma once
// What the API shows, made from the journal alone. docs/api.md names the schemas; within /1 members are only added.

#include <boost/json.hpp>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "daemon/api/digest.hpp"
#include "storage/journal.hpp"

namespace campaign::api {

struct About {
    std::string version;   ///< of campaignd
    WallTime now;
};

/// The campaign of that name, or of the only name that begins so; not_found else, with a suggestion.
[[nodiscard]] Result<storage::CampaignRow> find_campaign(storage::Reader& reader, std::string_view name);

/// Every unfinished campaign and the newest finished ones (20).
[[nodiscard]] Result<boost::json::object> status_view(storage::Reader& reader, const Digest& digest, const About& about);
/// Steps: the newest 200, with `steps_total`.
[[nodiscard]] Result<boost::json::object> campaign_view(storage::Reader& reader, const Digest& digest,
                                                        const storage::CampaignRow& row, const About& about);
[[nodiscard]] Result<boost::json::object> decision_view(storage::Reader& reader, const storage::CampaignRow& row,
                                                        std::string_view label);
[[nodiscard]] Result<boost::json::object> artifacts_view(storage::Reader& reader, const storage::CampaignRow& row);
/// One line of the event stream; `campaign` is the campaign's name.
[[nodiscard]] boost::json::object event_view(const storage::EventRow& row, std::string_view campaign);
/// {"schema": "campaignctl.error/1", "error": {...}}
[[nodiscard]] boost::json::object error_view(const Error& error);

/// done, failed and cancelled.
[[nodiscard]] bool is_over(std::string_view state);

}   // namespace campaign::api
