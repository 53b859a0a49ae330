#pragma once
// Opening the journal's file: who may, in which state, by which version.

#include <optional>
#include <span>
#include <string_view>

#include "base/fd.hpp"
#include "storage/schema.hpp"
#include "storage/sqlite.hpp"

namespace campaign::storage {

struct Opened {
    Fd lock;   ///< held as long as the database is open for writing
    Database database;
};

/// For the one writer: locked, on a local disk, ours, migrated by `steps` (the i-th leads from version i to i+1), WAL,
/// synchronous=FULL, each pragma read back.
[[nodiscard]] Result<Opened> open_for_writing(const std::filesystem::path& file,
                                              std::span<const char* const> steps = migrations());
[[nodiscard]] Result<Database> open_for_reading(const std::filesystem::path& file);

/// The name of a network file system by the number that statfs(2) gives, nothing for a local one.
[[nodiscard]] std::optional<std::string_view> network_file_system(unsigned long magic);

}   // namespace campaign::storage
