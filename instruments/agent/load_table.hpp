#pragma once
// A load run for people.

#include <string>

#include "base/json.hpp"

namespace campaign::agent {

/// From campaign.load/1: a row for each level, the plateau, what failed and what to know about the figures. 80 columns;
/// notes may be longer.
[[nodiscard]] std::string load_table(const json::object& result);
/// One line of the run's progress; "" where the event has nothing for people.
[[nodiscard]] std::string progress_line(const json::object& event);
/// Whether any request succeeded: a run of failures alone has no figures.
[[nodiscard]] bool any_success(const json::object& result);

}   // namespace campaign::agent
