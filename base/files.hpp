#pragma once
// Whole files, within bounds.

#include <cstddef>
#include <filesystem>
#include <string>

#include "base/error.hpp"

namespace campaign {

/// The content of a file of at most `limit` bytes; a longer one is an error (invalid), an absent one not_found.
[[nodiscard]] Result<std::string> read_text(const std::filesystem::path& file, std::size_t limit);

}   // namespace campaign
