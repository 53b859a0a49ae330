#pragma once
// One file as `campaignctl analyze --json` shows it: a public contract, docs/agent-files.md. Integers are nanoseconds.

#include "base/json.hpp"
#include "instruments/trace/recording.hpp"
#include "instruments/trace/steps.hpp"
#include "instruments/trace/taxonomy.hpp"

namespace campaign::trace {

/// Everything that the file itself says; nothing is compared with other files.
[[nodiscard]] json::object file_view(const Recording& recording, const Steps& steps, const Taxonomy& taxonomy);

}   // namespace campaign::trace
