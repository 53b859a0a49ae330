#pragma once
// Kineto JSON (torch.profiler) to a Recording.

#include "instruments/trace/byte_source.hpp"
#include "instruments/trace/recording.hpp"

namespace campaign::trace {

/// Reads to the end whatever is broken on the way: every readable event is kept, what was wrong is in notes and faults.
[[nodiscard]] Recording read_kineto(ByteSource& source);

}   // namespace campaign::trace
