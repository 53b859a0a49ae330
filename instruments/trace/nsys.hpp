#pragma once
// A SQLite export of Nsight Systems to a Recording.

#include <filesystem>

#include "base/error.hpp"
#include "instruments/trace/recording.hpp"

namespace campaign::trace {

/// Begins with SQLite's magic.
[[nodiscard]] bool is_sqlite(const std::filesystem::path& file);

/// Reads the tables of device work, API calls and NVTX ranges, and of the texts only those that these name: an export also
/// holds the whole environment of the process, secrets and all, and none of that is ever read.
[[nodiscard]] Result<Recording> read_nsys(const std::filesystem::path& file);

}   // namespace campaign::trace
