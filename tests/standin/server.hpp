#pragma once
// vLLM's HTTP contract: control plane, streaming completions, gated profiler routes, uvicorn's access log.

#include <boost/json.hpp>

#include "tests/standin/engine.hpp"
#include "tests/standin/log.hpp"
#include "tests/standin/profile.hpp"
#include "tests/standin/truth.hpp"

namespace standin {

/// What a request for tokens asks for, or why it is refused.
struct TokenRequest {
    bool chat = false;
    bool stream = false;
    bool include_usage = false;
    bool continuous_usage = false;
    std::string model;
    int prompt_tokens = 0;
    int tokens = 0;              ///< how many will be generated
    bool ended_itself = false;   ///< finish_reason stop, not length
    int reasoning = 0;           ///< of the tokens, the first so many

    int error_status = 0;   ///< 0: fine
    std::string error;
};
[[nodiscard]] TokenRequest read_token_request(std::string_view body, std::string_view content_type, bool chat,
                                              const Options& options);

/// The text of the n-th generated token.
[[nodiscard]] std::string token_text(int n);

class Server {
public:
    Server(asio::io_context& io, const Options& options, const Log& log, const Truth& truth);
    /// Accepts for ever.
    Async<void> serve(tcp::acceptor& acceptor);
    /// The engine and its statistics line.
    void start_engine();
    [[nodiscard]] boost::json::object served() const;

private:
    using Request = http::request<http::string_body>;
    using Response = http::response<http::string_body>;
    struct Session;

    Async<void> session(tcp::socket socket);
    Async<bool> answer(Session& session, Request& request);
    Async<bool> send(Session& session, const Request& request, http::status status, std::string type, std::string body,
                     std::string allow = {});
    Async<bool> tokens(Session& session, const Request& request, bool chat);
    Async<bool> whole(Session& session, const Request& request, const TokenRequest& wanted, std::string id, int fault);
    Async<bool> streamed(Session& session, const Request& request, const TokenRequest& wanted, std::string id, int fault);
    Async<bool> profile(Session& session, const Request& request, bool start, std::string query);
    void access(const Session& session, const Request& request, unsigned status) const;
    [[nodiscard]] std::string metrics() const;
    [[nodiscard]] std::string openapi() const;
    [[nodiscard]] std::string models() const;
    Async<void> statistics();

    asio::io_context& io_;
    const Options& options_;
    const Log& log_;
    const Truth& truth_;
    Engine engine_;
    Profile profile_;
    long long asked_ = 0;
    long long completed_ = 0;
    long long failed_ = 0;
    std::int64_t created_;
};

}   // namespace standin
