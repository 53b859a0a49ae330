#pragma once
// A trace analysis for people.

#include <string>

#include "base/json.hpp"

namespace campaign::agent {

/// From campaign.trace/1: the answer, what is odd, and for each rank where a decode step goes; without decode steps, where
/// the device's busy time goes. 80 columns; only the answer and the notes may be longer.
[[nodiscard]] std::string for_people(const json::object& analysis);

}   // namespace campaign::agent
