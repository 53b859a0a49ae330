#include "tests/standin/server.hpp"

#include <cstdio>
#include <ctime>

namespace standin {
namespace {

namespace json = boost::json;
constexpr const char* json_type = "application/json";

std::string error_body(std::string_view message, std::string_view type, int code) {
    return json::serialize(
        json::object{{"error", json::object{{"message", message}, {"type", type}, {"param", nullptr}, {"code", code}}}});
}

json::object usage(const TokenRequest& wanted, int produced) {
    json::object counts{{"prompt_tokens", wanted.prompt_tokens},
                        {"total_tokens", wanted.prompt_tokens + produced},
                        {"completion_tokens", produced}};
    if (wanted.reasoning > 0)
        counts["completion_tokens_details"] = json::object{{"reasoning_tokens", std::min(produced, wanted.reasoning)}};
    return counts;
}

std::string http_date() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    gmtime_r(&now, &parts);
    char text[40];
    std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts);
    return text;
}

const char* finish_reason(const TokenRequest& wanted) {
    return wanted.ended_itself ? "stop" : "length";
}

json::object frame(const TokenRequest& wanted, const std::string& id, std::int64_t created) {
    return {{"id", id},
            {"object", wanted.chat ? "chat.completion.chunk" : "text_completion"},
            {"created", created},
            {"model", wanted.model}};
}

json::object token_choice(const TokenRequest& wanted, int n) {
    json::object choice{{"index", 0}};
    if (wanted.chat)
        choice["delta"] = json::object{{n <= wanted.reasoning ? "reasoning" : "content", token_text(n)}};
    else
        choice["text"] = token_text(n);
    choice["logprobs"] = nullptr;
    choice["finish_reason"] = nullptr;
    if (n == wanted.tokens) {
        choice["finish_reason"] = finish_reason(wanted);
        choice["stop_reason"] = nullptr;
    }
    return choice;
}

std::string event(const json::object& content) {
    return "data: " + json::serialize(content) + "\n\n";
}

}   // namespace

struct Server::Session {
    beast::tcp_stream stream;
    beast::flat_buffer buffer;
    std::string peer;
};

Server::Server(asio::io_context& io, const Options& options, const Log& log, const Truth& truth)
    : io_{io},
      options_{options},
      log_{log},
      truth_{truth},
      engine_{io, options},
      profile_{io, options, log, truth, engine_},
      created_{realtime_us() / 1000000} {
    engine_.on_step = [this](const Step& step) { profile_.step(step); };
}

void Server::start_engine() {
    asio::co_spawn(io_, engine_.run(), asio::detached);
    asio::co_spawn(io_, statistics(), asio::detached);
}

json::object Server::served() const {
    return {{"asked", asked_},
            {"completed", completed_},
            {"failed", failed_},
            {"generated_tokens", engine_.totals().generated_tokens},
            {"steps", engine_.totals().steps}};
}

Async<void> Server::serve(tcp::acceptor& acceptor) {
    for (;;) {
        error_code failed;
        tcp::socket socket = co_await acceptor.async_accept(asio::redirect_error(asio::use_awaitable, failed));
        if (failed == asio::error::operation_aborted) co_return;
        if (failed) continue;
        asio::co_spawn(io_, session(std::move(socket)), asio::detached);
    }
}

Async<void> Server::session(tcp::socket socket) {
    error_code failed;
    Session own{beast::tcp_stream{std::move(socket)}, {}, {}};
    const auto peer = own.stream.socket().remote_endpoint(failed);
    if (!failed) own.peer = peer.address().to_string() + ":" + std::to_string(peer.port());
    own.stream.socket().set_option(tcp::no_delay{true}, failed);
    for (;;) {
        http::request_parser<http::string_body> parser;
        parser.body_limit(std::uint64_t{32} << 20);
        own.stream.expires_after(std::chrono::seconds{5});   // uvicorn's keep-alive
        co_await http::async_read(own.stream, own.buffer, parser, asio::redirect_error(asio::use_awaitable, failed));
        if (failed) break;
        own.stream.expires_never();
        auto request = parser.release();
        const bool again = co_await answer(own, request);
        if (!again) break;
    }
    own.stream.socket().shutdown(tcp::socket::shutdown_send, failed);
}

void Server::access(const Session& session, const Request& request, unsigned status) const {
    if (!options_.access_log) return;
    log_.uvicorn(session.peer + " - \"" + std::string{request.method_string()} + " " + std::string{request.target()} +
                 " HTTP/1." + std::to_string(request.version() % 10) + "\" " + std::to_string(status) + " " +
                 std::string{http::obsolete_reason(static_cast<http::status>(status))});
}

Async<bool> Server::send(Session& session, const Request& request, http::status status, std::string type, std::string body,
                         std::string allow) {
    Response response{status, request.version()};
    response.set(http::field::date, http_date());
    response.set(http::field::server, "uvicorn");
    if (!allow.empty()) response.set(http::field::allow, allow);
    if (!type.empty()) response.set(http::field::content_type, type);
    response.keep_alive(request.keep_alive());
    response.body() = std::move(body);
    response.prepare_payload();
    access(session, request, response.result_int());
    error_code failed;
    co_await http::async_write(session.stream, response, asio::redirect_error(asio::use_awaitable, failed));
    co_return !failed && request.keep_alive();
}

Async<bool> Server::answer(Session& session, Request& request) {
    const std::string target{request.target()};
    const auto question = target.find('?');
    const std::string path = target.substr(0, question);
    const std::string query = question == std::string::npos ? "" : target.substr(question + 1);
    const bool get = request.method() == http::verb::get;
    const bool post = request.method() == http::verb::post;
    const bool profiler = !options_.profiler.profiler.empty();

    struct Route {
        const char* path;
        const char* allow;
        bool there;
    };
    const Route routes[] = {{"/health", "GET", true},
                            {"/ping", "GET, POST", true},
                            {"/version", "GET", true},
                            {"/v1/models", "GET", true},
                            {"/load", "GET", true},
                            {"/metrics", "GET", true},
                            {"/openapi.json", "GET, HEAD", options_.docs},
                            {"/docs", "GET, HEAD", options_.docs},
                            {"/v1/completions", "POST", true},
                            {"/v1/chat/completions", "POST", true},
                            {"/start_profile", "POST", profiler},
                            {"/stop_profile", "POST", profiler}};
    const Route* found = nullptr;
    for (const auto& route : routes)
        if (route.there && path == route.path) found = &route;
    std::string body;
    std::string type = json_type;
    std::string allow;
    if (found == nullptr) {
        body = R"({"detail":"Not Found"})";
        co_return co_await send(session, request, http::status::not_found, type, body);
    }
    if (std::string{found->allow}.find(get ? "GET" : post ? "POST" : "HEAD") == std::string::npos || (!get && !post)) {
        body = R"({"detail":"Method Not Allowed"})";
        allow = found->allow;
        co_return co_await send(session, request, http::status::method_not_allowed, type, body, allow);
    }
    if (!options_.api_key.empty() && path.starts_with("/v1") &&
        request[http::field::authorization] != "Bearer " + options_.api_key) {
        body = R"({"error":"Unauthorized"})";
        co_return co_await send(session, request, http::status::unauthorized, type, body);
    }
    if (path == "/v1/completions") co_return co_await tokens(session, request, false);
    if (path == "/v1/chat/completions") co_return co_await tokens(session, request, true);
    if (path == "/start_profile") co_return co_await profile(session, request, true, query);
    if (path == "/stop_profile") co_return co_await profile(session, request, false, query);
    if (path == "/health" || path == "/ping")
        type.clear();
    else if (path == "/version")
        body = json::serialize(json::object{{"version", options_.version}});
    else if (path == "/v1/models")
        body = models();
    else if (path == "/load")
        body = R"({"server_load":0})";
    else if (path == "/metrics")
        body = metrics(), type = "text/plain; version=1.0.0; charset=utf-8";
    else if (path == "/openapi.json")
        body = openapi();
    else
        body = "<!DOCTYPE html><title>vLLM</title>", type = "text/html; charset=utf-8";
    co_return co_await send(session, request, http::status::ok, type, body);
}

Async<bool> Server::profile(Session& session, const Request& request, bool start, std::string query) {
    const char* name = start ? "start_profile" : "stop_profile";
    truth_.tell(name, {{"phase", "received"}, {"query", query}, {"active", profile_.active()}});
    std::string body;
    std::string type;
    if (start && options_.faults.start == "error") {
        log_.engine("ERROR", "core.py:1034",
                    "Invocation of profile method failed\nTraceback (most recent call last):\nRuntimeError: profiler");
        truth_.tell(name, {{"phase", "failed"}, {"query", query}});
        body = "Internal Server Error";
        type = "text/plain; charset=utf-8";
        co_return co_await send(session, request, http::status::internal_server_error, type, body);
    }
    log_.api("INFO", "api_router.py:24", start ? "Starting profiler..." : "Stopping profiler...");
    if (start)
        profile_.start();
    else
        co_await profile_.stop();
    log_.api("INFO", "api_router.py:26", start ? "Profiler started." : "Profiler stopped.");
    json::object done = profile_.summary();
    done["phase"] = "done";
    done["query"] = query;
    truth_.tell(name, std::move(done));
    co_return co_await send(session, request, http::status::ok, type, body);
}

Async<bool> Server::tokens(Session& session, const Request& request, bool chat) {
    const std::string content_type{request[http::field::content_type]};
    const TokenRequest wanted = read_token_request(request.body(), content_type, chat, options_);
    if (wanted.error_status != 0) {
        const std::string type = json_type;
        std::string body =
            error_body(wanted.error, wanted.error_status == 404 ? "NotFoundError" : "BadRequestError", wanted.error_status);
        co_return co_await send(session, request, static_cast<http::status>(wanted.error_status), type, body);
    }
    ++asked_;
    const int fault = options_.faults.fail_every > 0 && asked_ % options_.faults.fail_every == 0 ? 1 : 0;
    std::string id = (chat ? "chatcmpl-" : "cmpl-") + std::to_string(created_) + "-" + std::to_string(asked_);
    if (options_.faults.hang_completions) {
        ++failed_;
        asio::steady_timer never{io_, asio::steady_timer::time_point::max()};
        co_await never.async_wait(asio::use_awaitable);
    }
    bool again = false;
    if (fault != 0 && options_.faults.fail_with == "500") {
        const std::string type = json_type;
        std::string body = error_body("EngineCore encountered an issue. See stack trace (above) for the root cause.",
                                      "InternalServerError", 500);
        again = co_await send(session, request, http::status::internal_server_error, type, body);
        ++failed_;
        truth_.tell("request", {{"id", id}, {"ok", false}, {"why", "500"}});
        co_return again;
    }
    if (wanted.stream) co_return co_await streamed(session, request, wanted, id, fault);
    co_return co_await whole(session, request, wanted, id, fault);
}

Async<bool> Server::whole(Session& session, const Request& request, const TokenRequest& wanted, std::string id, int fault) {
    auto sequence = engine_.submit(wanted.prompt_tokens, wanted.tokens);
    error_code ignored;
    while (!sequence->finished() && !(fault != 0 && sequence->produced * 2 >= wanted.tokens))
        co_await sequence->changed.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    if (fault != 0) {
        sequence->aborted = true;
        ++failed_;
        truth_.tell("request", {{"id", id}, {"ok", false}, {"why", "reset"}});
        session.stream.socket().set_option(asio::socket_base::linger{true, 0}, ignored);
        session.stream.close();
        co_return false;
    }
    std::string reasoning;
    std::string text;
    for (int n = 1; n <= wanted.tokens; ++n) (n <= wanted.reasoning ? reasoning : text) += token_text(n);
    json::object choice{
        {"index", 0}, {"logprobs", nullptr}, {"finish_reason", finish_reason(wanted)}, {"stop_reason", nullptr}};
    if (wanted.chat) {
        json::object message{{"role", "assistant"}, {"content", text}};
        if (wanted.reasoning > 0) message["reasoning"] = reasoning;
        choice["message"] = std::move(message);
    } else {
        choice["text"] = text;
    }
    json::array choices;
    choices.push_back(std::move(choice));
    json::object body{{"id", id},
                      {"object", wanted.chat ? "chat.completion" : "text_completion"},
                      {"created", realtime_us() / 1000000},
                      {"model", wanted.model},
                      {"choices", std::move(choices)},
                      {"usage", usage(wanted, wanted.tokens)}};
    std::string text_body = json::serialize(body);
    const std::string type = json_type;
    ++completed_;
    truth_.tell("request", {{"id", id}, {"ok", true}, {"tokens", wanted.tokens}});
    co_return co_await send(session, request, http::status::ok, type, text_body);
}

Async<bool> Server::streamed(Session& session, const Request& request, const TokenRequest& wanted, std::string id,
                             int fault) {
    http::response<http::empty_body> head{http::status::ok, request.version()};
    head.set(http::field::date, http_date());
    head.set(http::field::server, "uvicorn");
    head.set(http::field::content_type, "text/event-stream; charset=utf-8");
    head.keep_alive(request.keep_alive());
    head.chunked(true);
    http::response_serializer<http::empty_body> serializer{head};
    access(session, request, 200);
    error_code failed;
    co_await http::async_write_header(session.stream, serializer, asio::redirect_error(asio::use_awaitable, failed));
    const std::int64_t created = realtime_us() / 1000000;
    auto sequence = engine_.submit(wanted.prompt_tokens, wanted.tokens);
    int sent = 0;
    std::string why;
    while (!failed && sent < wanted.tokens && why.empty()) {
        if (sequence->produced == sent) {
            error_code ignored;
            co_await sequence->changed.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
            continue;
        }
        std::string frames;
        if (sent == 0 && wanted.chat) {
            json::object first = frame(wanted, id, created);
            first["choices"] = json::array{json::object{{"index", 0},
                                                        {"delta", json::object{{"role", "assistant"}, {"content", ""}}},
                                                        {"logprobs", nullptr},
                                                        {"finish_reason", nullptr}}};
            if (wanted.continuous_usage) first["usage"] = usage(wanted, 0);
            frames += event(first);
        }
        ++sent;
        json::object next = frame(wanted, id, created);
        json::array choices;
        choices.push_back(token_choice(wanted, sent));
        next["choices"] = std::move(choices);
        if (wanted.continuous_usage) next["usage"] = usage(wanted, sent);
        frames += event(next);
        if (fault != 0 && sent * 2 >= wanted.tokens) {
            why = options_.faults.fail_with;
            if (why == "error_frame")
                frames += "data: " + error_body("EngineCore encountered an issue.", "InternalServerError", 500) +
                          "\n\ndata: [DONE]\n\n";
        } else if (sent == wanted.tokens) {
            if (wanted.include_usage) {
                json::object last = frame(wanted, id, created);
                last["choices"] = json::array{};
                last["usage"] = usage(wanted, sent);
                frames += event(last);
            }
            frames += "data: [DONE]\n\n";
        }
        const auto chunk = http::make_chunk(asio::buffer(frames));
        co_await asio::async_write(session.stream, chunk, asio::redirect_error(asio::use_awaitable, failed));
    }
    sequence->aborted = true;
    if (failed && why.empty()) why = "client gone";
    if (why.empty())
        ++completed_;
    else
        ++failed_;
    truth_.tell("request", {{"id", id}, {"ok", why.empty()}, {"tokens", sent}, {"why", why}});
    if (why == "reset") {
        session.stream.socket().set_option(asio::socket_base::linger{true, 0}, failed);
        session.stream.close();
    }
    if (failed || why == "reset") co_return false;
    const auto end = http::make_chunk_last();
    co_await asio::async_write(session.stream, end, asio::redirect_error(asio::use_awaitable, failed));
    co_return !failed && request.keep_alive();
}

Async<void> Server::statistics() {
    asio::steady_timer timer{io_, std::chrono::steady_clock::now()};
    auto before = engine_.totals();
    for (;;) {
        timer.expires_at(timer.expiry() + std::chrono::seconds{10});
        co_await timer.async_wait(asio::use_awaitable);
        const auto now = engine_.totals();
        if (now.steps == before.steps) continue;
        char line[300];
        std::snprintf(line, sizeof line,
                      "Engine 000: Avg prompt throughput: %.1f tokens/s, Avg generation throughput: %.1f tokens/s, Running: "
                      "%zu reqs, Waiting: %zu "
                      "reqs, GPU KV cache usage: %.1f%%, Prefix cache hit rate: 0.0%%",
                      static_cast<double>(now.prompt_tokens - before.prompt_tokens) / 10,
                      static_cast<double>(now.generated_tokens - before.generated_tokens) / 10, engine_.running(),
                      engine_.waiting(), 0.1 * static_cast<double>(engine_.running()));
        log_.api("INFO", "loggers.py:259", line);
        before = now;
    }
}

}   // namespace standin
