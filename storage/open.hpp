#pragma once
// Opening the journal's file: who may, in which state, by which version.

#include "base/fd.hpp"
#include "storage/sqlite.hpp"

namespace campaign::storage {

struct Opened {
    Fd lock;   ///< held as long as the database is open for writing
    Database database;
};

/// For the one writer: locked, on a local disk, migrated, WAL, synchronous=FULL, each read back.
[[nodiscard]] Result<Opened> open_for_writing(const std::filesystem::path& file);
[[nodiscard]] Result<Database> open_for_reading(const std::filesystem::path& file);

}   // namespace campaign::storage
