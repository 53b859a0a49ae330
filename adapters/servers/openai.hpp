#pragma once
// The part of the HTTP contract that every OpenAI-compatible server shares.

#include "adapters/servers/server.hpp"

namespace campaign::servers::openai {

/// A request to `path` of the server, with its key where there is one.
[[nodiscard]] http::Request request(const Endpoint& at, std::string method, std::string path);

struct ModelList {
    std::vector<std::string> names;
    std::optional<int> max_model_len;   ///< of the first
    std::string owned_by;               ///< of the first: which software answers
};
[[nodiscard]] Result<ModelList> parse_models(const http::Response& response);
Async<Result<ModelList>> models(http::Client& client, const Endpoint& at);

/// What the answer to a request for one token proves.
[[nodiscard]] Token judge_token(const http::Response& response, const std::string& model);
/// One completion of one token, not streamed.
Async<Result<Token>> one_token(http::Client& client, const Endpoint& at, std::string model);

/// GET /health, as far as all servers agree: 200 is ready; a refused or dropped connection is a server that does not listen
/// yet; what 503 means differs, so the caller says.
[[nodiscard]] Result<Health> judge_health(const Result<http::Response>& answer, Health unavailable_means);

}   // namespace campaign::servers::openai
