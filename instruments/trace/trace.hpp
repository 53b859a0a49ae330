#pragma once
// Trace files in, answers out: what campaign-agent's commands check and analyze do.

#include <filesystem>
#include <span>

#include "base/json.hpp"
#include "instruments/trace/recording.hpp"

namespace campaign::trace {

/// Kineto JSON, plain or gzip, or an nsys SQLite export; which one is seen from the content. Fails only where the file
/// cannot be opened: a broken file gives what is readable of it, with its notes and faults.
[[nodiscard]] Result<Recording> read_trace(const std::filesystem::path& file);

/// {"file", "complete", "why", "kernels", "bytes", "notes"}. `why` is empty for a complete file.
[[nodiscard]] json::object check(const std::filesystem::path& file);

/// campaign.trace/1 over the files of one capture, one rank each. Files that cannot be read are in it with complete false.
[[nodiscard]] json::object analyze(std::span<const std::filesystem::path> files);

struct Analysis {
    json::object brief;   ///< campaign.trace/1
    json::object full;    ///< campaign.analysis/1: every file by itself (file_view.hpp), and the ranks compared
};
/// Both, from one reading of the files.
[[nodiscard]] Analysis analyze_in_full(std::span<const std::filesystem::path> files);

}   // namespace campaign::trace
