#pragma once
// Where the time of each device went: the "devices" of a file in `campaignctl analyze --json` (docs/agent-files.md).

#include "base/json.hpp"
#include "instruments/trace/categories.hpp"
#include "instruments/trace/recording.hpp"

namespace campaign::trace {

/// One member a device: span, busy, idle, streams, categories with their attributions, overlap of communication, computation
/// and copies, the gaps with their causes, and the kernels that took most. Integers are nanoseconds.
[[nodiscard]] json::object device_views(const Recording& recording, Categories& categories);

}   // namespace campaign::trace
