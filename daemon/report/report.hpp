#pragma once
// The results document: always current, made from the journal and the vault alone.

#include <string>

#include "base/error.hpp"
#include "storage/journal.hpp"
#include "storage/vault.hpp"

namespace campaign::report {

/// Markdown. Every number is copied from an artifact or a step's outcome and has a footnote with its step, command, artifact
/// and SHA-256; what was not measured is said, never shown as zero. Works for a running campaign too.
[[nodiscard]] Result<std::string> markdown(storage::Reader& reader, const storage::Vault& vault, storage::Id campaign);

}   // namespace campaign::report
