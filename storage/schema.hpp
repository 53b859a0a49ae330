#pragma once
// The journal's tables, by version.

#include <span>

namespace campaign::storage {

inline constexpr int schema_version = 1;
inline constexpr int application_id = 0x63616d70;   ///< "camp"

/// What takes a database from version i to i+1; the first makes an empty file version 1.
[[nodiscard]] std::span<const char* const> migrations();

}   // namespace campaign::storage
