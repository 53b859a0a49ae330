#pragma once
// Artifacts by content: vault/ab/abcdef... (SHA-256), written tmp + fsync + rename, read back before they count.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace campaign::storage {

struct Stored {
    std::string sha256;
    std::uint64_t size = 0;
};

class Vault {
public:
    /// Makes the folder (0750) where needed; removes leftovers of writes that never ended.
    [[nodiscard]] static Result<Vault> open(const std::filesystem::path& root);

    /// Stores bytes. The same bytes twice are one file.
    [[nodiscard]] Result<Stored> put(std::string_view bytes) const;
    /// Takes a file in (moved when on the same file system, else copied). Hashed by reading it back; `expected` if not empty
    /// must match. When it fails the file lies where it lay.
    [[nodiscard]] Result<Stored> take(const std::filesystem::path& file, std::string_view expected) const;
    /// Where an artifact lies; not_found when it does not.
    [[nodiscard]] Result<std::filesystem::path> find(std::string_view sha256) const;
    /// Reads it again and compares.
    [[nodiscard]] Result<void> verify(std::string_view sha256) const;
    /// The folder of that name, on the vault's file system, for files on their way in: the same at the next call, so that a
    /// transfer that was cut goes on.
    [[nodiscard]] Result<std::filesystem::path> incoming(std::string_view name) const;

    /// A file name made safe to show and to write: no separators, no leading dot, no control characters, at most 200 bytes.
    [[nodiscard]] static std::string safe_name(std::string_view untrusted);

private:
    explicit Vault(std::filesystem::path root) : root_{std::move(root)} {}
    [[nodiscard]] Result<Stored> settle(const std::filesystem::path& temporary, std::string_view expected,
                                        const std::filesystem::path& name) const;
    std::filesystem::path root_;
};

}   // namespace campaign::storage
