#pragma once
// What the file commands of a host say, as error values.

#include <optional>
#include <string>

#include "adapters/host/host.hpp"

namespace campaign::host {

/// usage unless the path is absolute and holds no NUL.
[[nodiscard]] std::optional<Error> bad_path(const std::string& path);

/// The error of a file script that ended with a status: disk_full, refused, not_found or io, by the words of the C locale.
[[nodiscard]] Error file_error(const std::string& host, const std::string& doing, const Finished& finished);

}   // namespace campaign::host
