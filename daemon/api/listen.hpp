#pragma once
// The listening Unix socket, and who is at its other end.

#include <filesystem>
#include <string>

#include "base/error.hpp"
#include "base/fd.hpp"

namespace campaign::api {

/// Binds and listens, see Server::open. Never open to more users than `mode` says, not even for a moment.
[[nodiscard]] Result<Fd> listen_unix(const std::filesystem::path& path, unsigned mode);

/// Name of the user at the other end ("uid 1000" when it has none).
[[nodiscard]] Result<std::string> peer_name(int connection);

}   // namespace campaign::api
