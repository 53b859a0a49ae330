#pragma once
// Kineto JSON (torch.profiler) to a Recording.

#include "instruments/trace/byte_source.hpp"
#include "instruments/trace/document.hpp"
#include "instruments/trace/recording.hpp"

namespace campaign::trace {

/// Reads to the end whatever is broken on the way: every readable event is kept, what was wrong is in notes and faults.
/// `window`: the bytes read at a time, which changes nothing in the result.
[[nodiscard]] Recording read_kineto(ByteSource& source, std::size_t window = Document::usual_window);

}   // namespace campaign::trace
