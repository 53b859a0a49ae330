#pragma once
// Which request is meant: the table of docs/api.md. Pure.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace campaign::api {

enum class Route {
    version,
    status,
    submit,
    campaign,
    decision,
    approve,
    cancel,
    resume,
    restore,
    events,
    all_events,
    artifacts,
    artifact,
    report,
    explain
};

struct Target {
    Route route = Route::version;
    std::string name;     ///< the campaign's name, or an artifact's SHA-256
    std::string detail;   ///< a decision's label
    std::int64_t after = 0;
    bool follow = false;
};

/// `not_found` for an unknown path, `usage` for a known path with another method (next: the right one) or a bad query.
[[nodiscard]] Result<Target> route(std::string_view method, std::string_view target);

/// %XX decoded; nothing where the text is malformed or holds a NUL.
[[nodiscard]] Result<std::string> percent_decode(std::string_view text);

}   // namespace campaign::api
