#pragma once
// What the API can have done: the daemon implements it, the API only calls it.

#include <boost/json.hpp>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/error.hpp"

namespace campaign::api {

/// Everything that is more than reading the journal. Names are whole (the server has resolved prefixes); `who` is the name
/// of the peer's user. Every call is made on the loop's thread; a cancelled connection does not cancel a call that was
/// begun.
class Actions {
public:
    using Answer = Async<Result<boost::json::object>>;

    virtual ~Actions() = default;

    /// {"id": "k25"}. Fails with `invalid` for a refused plan (evidence: the diagnostics) and `conflict` when the same text
    /// is already unfinished. `file` is only a name for diagnostics.
    virtual Answer submit(std::string plan_text, std::string file, std::string who) = 0;
    /// {"text": "approved by ana: ..."}; so do the next three.
    virtual Answer approve(std::string name, std::string decision, std::string candidate, std::string who) = 0;
    virtual Answer cancel(std::string name, std::string who) = 0;
    /// `as`: "done", "not-done", or nothing to look again.
    virtual Answer resume(std::string name, std::optional<std::string> as, std::string who) = 0;
    virtual Answer restore(std::string name, std::string who) = 0;
    /// The members of campaignctl.explain/1. Reads from the hosts unless offline.
    virtual Answer explain(std::string plan_text, bool offline) = 0;
    /// The results document, Markdown.
    virtual Result<std::string> report(std::string name) = 0;
};

}   // namespace campaign::api
