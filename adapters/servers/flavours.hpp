#pragma once
// The servers that exist, for make_server.

#include "adapters/servers/server.hpp"

namespace campaign::servers {

[[nodiscard]] std::unique_ptr<Server> make_vllm(http::Client& client);
[[nodiscard]] std::unique_ptr<Server> make_generic(http::Client& client);

}   // namespace campaign::servers
