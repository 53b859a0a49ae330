#pragma once
// Where the server is: resolved once, before anything is measured. And the client's own limits and secrets.

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "instruments/load/spec.hpp"

namespace campaign::load {

using Endpoint = boost::asio::generic::stream_protocol::endpoint;

[[nodiscard]] Result<std::vector<Endpoint>> resolve(boost::asio::io_context& io, const Spec& spec);

/// Raises the soft limit of open files to the hard one. Returns what is allowed then.
std::uint64_t raise_file_limit();

/// The key in the file, or an empty text when none is asked for. Errors never hold the file's content.
[[nodiscard]] Result<std::string> read_api_key(const Spec& spec);

}   // namespace campaign::load
