#pragma once
// Result files that are there whole or not at all.

#include <filesystem>
#include <string_view>

#include "base/error.hpp"

namespace campaign::agent {

/// A temporary file beside the target, fsync, rename, fsync of the folder: after a crash the target is old or new, never
/// half.
[[nodiscard]] Result<void> write_whole(const std::filesystem::path& target, std::string_view content);

}   // namespace campaign::agent
