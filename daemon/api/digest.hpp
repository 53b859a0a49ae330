#pragma once
// The newest event of each subject, kept by reading the journal forward once.

#include <boost/json.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "storage/journal.hpp"

namespace campaign::api {

/// An event with its data parsed and its strings made printable.
struct Seen {
    storage::Id seq = 0;
    storage::Id campaign = 0;
    storage::Micros at = 0;
    boost::json::object data;
};

/// What is remembered of one campaign. Its size follows the number of services, phases and open needs, not of events.
struct CampaignDigest {
    std::map<std::string, Seen> production;   ///< by service
    std::map<std::string, Seen> phases;       ///< by phase name
    std::map<std::string, Seen> needs;        ///< open ones, by subject
    std::optional<Seen> wait;                 ///< the newest, over or not
    std::optional<Seen> level;                ///< the newest
    std::optional<Seen> step;                 ///< the newest
    std::optional<Seen> note;                 ///< the newest
    /// When production's state last changed, by service: later events may only renew the detail.
    std::map<std::string, storage::Micros> production_since;
};

/// A fold over the events: nothing that the journal could not tell again. Each event is read once in the daemon's life, so a
/// status costs the events since the last one.
class Digest {
public:
    /// Reads what is new.
    [[nodiscard]] Result<void> advance(storage::Reader& reader);
    [[nodiscard]] const CampaignDigest& of(storage::Id campaign) const;
    [[nodiscard]] storage::Id position() const { return position_; }

private:
    void take(const storage::EventRow& row);

    std::map<storage::Id, CampaignDigest> campaigns_;
    storage::Id position_ = 0;
};

/// The same value with every string (keys too) made printable.
[[nodiscard]] boost::json::value made_printable(const boost::json::value& value);
/// Text of a JSON column; null when it is empty or damaged.
[[nodiscard]] boost::json::value column(const std::string& text);

}   // namespace campaign::api
