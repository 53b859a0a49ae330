#include "daemon/api/server.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

#include "base/json.hpp"
#include "base/text.hpp"
#include "daemon/api/digest.hpp"
#include "daemon/api/listen.hpp"
#include "daemon/api/route.hpp"
#include "daemon/api/views.hpp"

namespace campaign::api {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Protocol = asio::local::stream_protocol;
using Stream = beast::basic_stream<Protocol>;
using Request = http::request<http::string_body>;
using Code = boost::system::error_code;

constexpr std::size_t event_page = 500;
constexpr std::size_t file_chunk = 256 * 1024;

/// Puts the schema first.
json::object with_schema(std::string_view schema, json::object members) {
    json::object out;
    out["schema"] = schema;
    for (auto& entry : members) out[entry.key()] = std::move(entry.value());
    return out;
}

Result<json::object> body_object(const Request& request) {
    if (trim(request.body()).empty()) return json::object{};
    const Result<json::value> parsed = parse_json(request.body(), "the request's body");
    if (!parsed) return parsed.error();
    if (!parsed->is_object()) return Error{ErrorKind::invalid, "the request's body is not a JSON object", "", "", ""};
    return parsed->get_object();
}

Error missing(std::string_view key) {
    return Error{ErrorKind::invalid, "the request lacks the text \"" + std::string{key} + "\"", "", "",
                 "docs/api.md shows it"};
}

bool is_sha256(std::string_view text) {
    return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}   // namespace

unsigned http_status(const Error& error) {
    switch (error.kind) {
        case ErrorKind::usage:
        case ErrorKind::invalid: return 400;
        case ErrorKind::refused: return 403;
        case ErrorKind::not_found: return 404;
        case ErrorKind::conflict: return 409;
        default: return 500;
    }
}

struct Server::State : std::enable_shared_from_this<Server::State> {
    State(asio::any_io_executor executor_, const Clock& clock_, storage::Reader& reader_, Actions& actions_,
          FindArtifact find_, ServerOptions options_)
        : executor{std::move(executor_)},
          clock{clock_},
          reader{reader_},
          actions{actions_},
          find_artifact{std::move(find_)},
          options{std::move(options_)},
          acceptor{executor},
          started{clock_.wall()} {}

    Async<> accept_all();
    Async<> session(Stream& stream, const std::string& who);
    Async<> serve(std::shared_ptr<Stream> stream, bool refuse);
    /// Answers one request; false ends the connection.
    Async<bool> handle(Stream& stream, const Request& request, const std::string& who);
    Async<Result<json::object>> answer(const Target& target, const Request& request, const std::string& who);
    Async<bool> send(Stream& stream, unsigned status, std::string_view type, std::string body, bool keep_alive);
    Async<bool> send_error(Stream& stream, const Error& error, unsigned status, bool keep_alive);
    Async<bool> send_file(Stream& stream, const std::string& sha256, bool keep_alive);
    Async<bool> send_events(Stream& stream, const Target& target, bool keep_alive);
    Async<bool> send_chunk(Stream& stream, const std::string& text, std::chrono::steady_clock::duration limit);
    Result<std::string> event_lines(const std::vector<storage::EventRow>& rows);
    About about() const { return About{options.version, clock.wall()}; }

    asio::any_io_executor executor;
    const Clock& clock;
    storage::Reader& reader;
    Actions& actions;
    FindArtifact find_artifact;
    ServerOptions options;
    Protocol::acceptor acceptor;
    WallTime started;
    Digest digest;
    std::set<Stream*> streams;
    std::set<asio::steady_timer*> watchers;
    std::map<storage::Id, std::string> names;
    std::atomic<bool> wake_posted{false};
    bool closed = false;
    bool made_file = false;
};

Server::Server(asio::any_io_executor executor, const Clock& clock, storage::Reader& reader, Actions& actions,
               FindArtifact find_artifact, ServerOptions options)
    : state_{std::make_shared<State>(std::move(executor), clock, reader, actions, std::move(find_artifact),
                                     std::move(options))} {}

Server::~Server() {
    close();
}

Result<void> Server::open(Fd adopted) {
    State& state = *state_;
    state.made_file = !adopted;
    if (!adopted) {
        Result<Fd> made = listen_unix(state.options.socket, state.options.mode);
        if (!made) return made.error();
        adopted = std::move(*made);
    }
    Code error;
    state.acceptor.assign(Protocol{}, adopted.get(), error);
    if (error) return Error{ErrorKind::io, "cannot use the listening socket", error.message(), "", ""};
    static_cast<void>(adopted.release());   // the acceptor's now
    asio::co_spawn(
        state.executor, [self = state_]() -> Async<> { return self->accept_all(); }, asio::detached);
    return {};
}

int Server::listener() const {
    return state_->acceptor.is_open() ? state_->acceptor.native_handle() : -1;
}

void Server::notify() {
    if (state_->wake_posted.exchange(true)) return;
    asio::post(state_->executor, [self = state_] {
        self->wake_posted = false;
        for (asio::steady_timer* timer : self->watchers) timer->cancel();
    });
}

void Server::close() {
    State& state = *state_;
    if (state.closed) return;
    state.closed = true;
    Code ignored;
    const bool listening = state.acceptor.is_open();
    state.acceptor.close(ignored);
    for (Stream* stream : state.streams) stream->cancel();
    for (asio::steady_timer* timer : state.watchers) timer->cancel();
    if (listening && state.made_file) ::unlink(state.options.socket.c_str());
}

std::size_t Server::connections() const {
    return state_->streams.size();
}

Async<> Server::State::accept_all() {
    const std::shared_ptr<State> self = shared_from_this();
    while (!closed) {
        Code error;
        auto token = asio::redirect_error(asio::use_awaitable, error);
        Protocol::socket socket = co_await acceptor.async_accept(token);
        if (closed) co_return;
        if (error) {   // out of descriptors, most likely: it passes
            asio::steady_timer pause{executor, std::chrono::milliseconds{200}};
            co_await pause.async_wait(token);
            continue;
        }
        auto stream = std::make_shared<Stream>(std::move(socket));
        const bool refuse = streams.size() >= options.max_connections;
        streams.insert(stream.get());
        asio::co_spawn(
            executor, [self, stream, refuse]() -> Async<> { return self->serve(stream, refuse); }, asio::detached);
    }
}

Async<> Server::State::serve(std::shared_ptr<Stream> stream, bool refuse) {
    struct Entry {
        Entry(std::shared_ptr<State> state_, Stream* stream_) : state{std::move(state_)}, stream{stream_} {}
        Entry(const Entry&) = delete;
        Entry& operator=(const Entry&) = delete;
        ~Entry() { state->streams.erase(stream); }
        std::shared_ptr<State> state;
        Stream* stream;
    };
    const Entry entry{shared_from_this(), stream.get()};
    try {
        if (refuse) {
            Error busy;
            busy.kind = ErrorKind::refused;
            busy.what = "the daemon serves " + std::to_string(options.max_connections) + " connections already";
            busy.next = "close some (campaignctl watch, logs -f), then try again";
            co_await send_error(*stream, busy, 503, false);
            co_return;
        }
        const Result<std::string> who = peer_name(stream->socket().native_handle());
        if (!who) {
            co_await send_error(*stream, who.error(), 500, false);
            co_return;
        }
        co_await session(*stream, *who);
    } catch (const std::exception&) {
        // The connection ends with whatever it was that could not be answered; the daemon goes on.
    }
    Code ignored;
    stream->socket().shutdown(Protocol::socket::shutdown_send, ignored);
}

Async<> Server::State::session(Stream& stream, const std::string& who) {
    beast::flat_buffer buffer{options.header_limit + file_chunk};
    bool again = true;
    while (again && !closed) {
        http::request_parser<http::string_body> parser;
        parser.header_limit(options.header_limit);
        parser.body_limit(options.body_limit);
        Code error;
        auto token = asio::redirect_error(asio::use_awaitable, error);
        stream.expires_after(options.idle_limit);
        co_await http::async_read_header(stream, buffer, parser, token);
        if (!error && !parser.is_done()) {
            stream.expires_after(options.request_limit);
            if (parser.get()[http::field::expect] == "100-continue") {
                http::response<http::empty_body> go_on{http::status::continue_, 11};
                co_await http::async_write(stream, go_on, token);
            }
            if (!error) co_await http::async_read(stream, buffer, parser, token);
        }
        if (error) {
            unsigned status = 0;   // a connection that ended or went silent gets no answer
            Error bad;
            bad.kind = ErrorKind::invalid;
            bad.why = error.message();
            if (error == http::error::body_limit) {
                status = 413;
                bad.what = "the body is larger than " + format_bytes(options.body_limit);
            } else if (error == http::error::header_limit || error == http::error::buffer_overflow) {
                status = 431;
                bad.what = "the header is larger than " + format_bytes(options.header_limit);
            } else if (error.category() == make_error_code(http::error::bad_method).category() &&
                       error != http::error::end_of_stream && error != http::error::partial_message) {
                status = 400;
                bad.what = "this is not an HTTP/1.1 request";
            }
            if (status != 0) co_await send_error(stream, bad, status, false);
            co_return;
        }
        stream.expires_never();   // an action may take its time
        const Request request = parser.release();
        again = co_await handle(stream, request, who);
    }
}

Async<bool> Server::State::handle(Stream& stream, const Request& request, const std::string& who) {
    const std::string_view method{request.method_string().data(), request.method_string().size()};
    const std::string_view path{request.target().data(), request.target().size()};
    const bool keep = request.keep_alive();
    Error failure;
    const Result<Target> target = route(method, path);
    if (!target) {
        failure = target.error();
        const unsigned status = failure.kind == ErrorKind::usage && !failure.next.empty() ? 405U : http_status(failure);
        co_return co_await send_error(stream, failure, status, keep);
    }
    switch (target->route) {
        case Route::artifact: co_return co_await send_file(stream, target->name, keep);
        case Route::events:
        case Route::all_events: co_return co_await send_events(stream, *target, keep);
        case Route::report: {
            const Result<storage::CampaignRow> row = find_campaign(reader, target->name);
            if (!row) {
                failure = row.error();
                co_return co_await send_error(stream, failure, http_status(failure), keep);
            }
            Result<std::string> report = actions.report(row->name);
            if (!report) {
                failure = report.error();
                co_return co_await send_error(stream, failure, http_status(failure), keep);
            }
            std::string text = std::move(*report);
            Async<bool> sending = send(stream, 200, "text/markdown; charset=utf-8", std::move(text), keep);
            co_return co_await std::move(sending);
        }
        default: break;
    }
    Async<Result<json::object>> asking = answer(*target, request, who);
    const Result<json::object> answered = co_await std::move(asking);
    if (!answered) {
        failure = answered.error();
        co_return co_await send_error(stream, failure, http_status(failure), keep);
    }
    std::string text = json::serialize(*answered);
    text += '\n';
    Async<bool> sending = send(stream, 200, "application/json", std::move(text), keep);
    co_return co_await std::move(sending);
}

Async<Result<json::object>> Server::State::answer(const Target& target, const Request& request, const std::string& who) {
    if (target.route == Route::version) {
        json::object view;
        view["version"] = options.version;
        view["pid"] = static_cast<std::int64_t>(::getpid());
        view["started"] = format_time(started);
        view["journal"] = options.journal;
        co_return with_schema("campaignctl.version/1", std::move(view));
    }
    if (const Result<void> read = digest.advance(reader); !read) co_return read.error();
    if (target.route == Route::status) {
        const About now = about();
        co_return status_view(reader, digest, now);
    }
    const Result<json::object> body = body_object(request);
    if (!body) co_return body.error();
    const json::value sent(*body);   // braces would make a list of it
    if (target.route == Route::submit || target.route == Route::explain) {
        std::optional<std::string> plan = string_at(sent, "plan");
        if (!plan) co_return missing("plan");
        if (target.route == Route::explain) {
            Actions::Answer explaining = actions.explain(std::move(*plan), bool_at(sent, "offline").value_or(false));
            Result<json::object> explained = co_await std::move(explaining);
            if (!explained) co_return explained.error();
            co_return with_schema("campaignctl.explain/1", std::move(*explained));
        }
        std::string file = printable(string_at(sent, "file").value_or("plan.yaml"), 400);
        Actions::Answer submitting = actions.submit(std::move(*plan), std::move(file), who);
        Result<json::object> submitted = co_await std::move(submitting);
        if (!submitted) co_return submitted.error();
        co_return with_schema("campaignctl.submitted/1", std::move(*submitted));
    }

    const Result<storage::CampaignRow> row = find_campaign(reader, target.name);
    if (!row) co_return row.error();
    if (target.route == Route::campaign) {
        const About now = about();
        co_return campaign_view(reader, digest, *row, now);
    }
    if (target.route == Route::decision) co_return decision_view(reader, *row, target.detail);
    if (target.route == Route::artifacts) co_return artifacts_view(reader, *row);

    Actions::Answer acting;
    if (target.route == Route::approve) {
        const std::optional<std::string> decision = string_at(sent, "decision");
        const std::optional<std::string> candidate = string_at(sent, "candidate");
        if (!decision) co_return missing("decision");
        if (!candidate) co_return missing("candidate");
        acting = actions.approve(row->name, *decision, *candidate, who);
    } else if (target.route == Route::cancel) {
        acting = actions.cancel(row->name, who);
    } else if (target.route == Route::resume) {
        const std::optional<std::string> as = string_at(sent, "as");
        if (member(sent, "as") != nullptr && (!as || (*as != "done" && *as != "not-done"))) {
            Error bad;
            bad.kind = ErrorKind::invalid;
            bad.what = "\"as\" must be \"done\", \"not-done\" or null";
            co_return bad;
        }
        acting = actions.resume(row->name, as, who);
    } else {
        acting = actions.restore(row->name, who);
    }
    Result<json::object> done = co_await std::move(acting);
    if (!done) co_return done.error();
    co_return with_schema("campaignctl.done/1", std::move(*done));
}

Async<bool> Server::State::send(Stream& stream, unsigned status, std::string_view type, std::string body, bool keep_alive) {
    http::response<http::string_body> response;
    response.result(status);
    response.version(11);
    response.set(http::field::content_type, beast::string_view{type.data(), type.size()});
    response.set(http::field::cache_control, "no-store");
    response.keep_alive(keep_alive);
    response.body() = std::move(body);
    response.prepare_payload();
    Code error;
    auto token = asio::redirect_error(asio::use_awaitable, error);
    stream.expires_after(options.write_limit);
    co_await http::async_write(stream, response, token);
    co_return !error && keep_alive;
}

Async<bool> Server::State::send_error(Stream& stream, const Error& error, unsigned status, bool keep_alive) {
    std::string text = json::serialize(error_view(error));
    text += '\n';
    return send(stream, status, "application/json", std::move(text), keep_alive);
}

Async<bool> Server::State::send_file(Stream& stream, const std::string& sha256, bool keep_alive) {
    Error failure;
    if (!is_sha256(sha256)) {
        failure.kind = ErrorKind::usage;
        failure.what = "an artifact is named by 64 lower-case hexadecimal digits";
        failure.evidence = printable(sha256, 100);
        co_return co_await send_error(stream, failure, 400, keep_alive);
    }
    const Result<std::filesystem::path> found = find_artifact(sha256);
    if (!found) {
        failure = found.error();
        co_return co_await send_error(stream, failure, http_status(failure), keep_alive);
    }
    const Fd file{::open(found->c_str(), O_RDONLY | O_CLOEXEC)};
    struct stat facts {};
    if (!file || ::fstat(file.get(), &facts) != 0) {
        failure.kind = ErrorKind::io;
        failure.what = "cannot read artifact " + sha256;
        failure.why = std::strerror(errno);
        co_return co_await send_error(stream, failure, 500, keep_alive);
    }
    http::response<http::empty_body> head;
    head.version(11);
    head.result(http::status::ok);
    head.set(http::field::content_type, "application/octet-stream");
    head.content_length(static_cast<std::uint64_t>(facts.st_size));
    head.keep_alive(keep_alive);
    http::response_serializer<http::empty_body> serializer{head};
    Code error;
    auto token = asio::redirect_error(asio::use_awaitable, error);
    stream.expires_after(options.write_limit);
    co_await http::async_write_header(stream, serializer, token);
    std::vector<char> chunk(file_chunk);
    auto left = static_cast<std::uint64_t>(facts.st_size);
    while (!error && left > 0) {
        const ssize_t got = ::read(file.get(), chunk.data(), std::min<std::uint64_t>(chunk.size(), left));
        if (got <= 0) co_return false;   // less than was promised: the client sees a short body
        left -= static_cast<std::uint64_t>(got);
        const asio::const_buffer bytes{chunk.data(), static_cast<std::size_t>(got)};
        stream.expires_after(options.write_limit);
        co_await asio::async_write(stream, bytes, token);
    }
    co_return !error && keep_alive;
}

Result<std::string> Server::State::event_lines(const std::vector<storage::EventRow>& rows) {
    std::string text;
    for (const storage::EventRow& row : rows) {
        auto name = names.find(row.campaign);
        if (name == names.end()) {
            const Result<std::optional<storage::CampaignRow>> campaign = reader.campaign(row.campaign);
            if (!campaign) return campaign.error();
            name = names.emplace(row.campaign, *campaign ? (**campaign).name : "").first;
        }
        text += json::serialize(event_view(row, name->second));
        text += '\n';
    }
    return text;
}

Async<bool> Server::State::send_chunk(Stream& stream, const std::string& text, std::chrono::steady_clock::duration limit) {
    Code error;
    auto token = asio::redirect_error(asio::use_awaitable, error);
    const asio::const_buffer bytes{text.data(), text.size()};
    const auto chunk = http::make_chunk(bytes);
    stream.expires_after(limit);
    co_await asio::async_write(stream, chunk, token);
    co_return !error;
}

Async<bool> Server::State::send_events(Stream& stream, const Target& target, bool keep_alive) {
    Error failure;
    storage::Id campaign = 0;
    if (target.route == Route::events) {
        const Result<storage::CampaignRow> row = find_campaign(reader, target.name);
        if (!row) {
            failure = row.error();
            co_return co_await send_error(stream, failure, http_status(failure), keep_alive);
        }
        campaign = row->id;
    }
    if (target.follow && watchers.size() >= options.max_watchers) {
        failure.kind = ErrorKind::refused;
        failure.what = std::to_string(options.max_watchers) + " watchers follow events already";
        failure.next = "close some of them";
        co_return co_await send_error(stream, failure, 503, keep_alive);
    }
    struct Watcher {
        Watcher(std::shared_ptr<State> state_, bool follows) : state{std::move(state_)}, timer{state->executor} {
            if (follows) state->watchers.insert(&timer);
        }
        Watcher(const Watcher&) = delete;
        Watcher& operator=(const Watcher&) = delete;
        ~Watcher() { state->watchers.erase(&timer); }
        std::shared_ptr<State> state;
        asio::steady_timer timer;
    };
    Watcher watcher{shared_from_this(), target.follow};

    http::response<http::empty_body> head;
    head.version(11);
    head.result(http::status::ok);
    head.set(http::field::content_type, "application/x-ndjson");
    head.chunked(true);
    head.keep_alive(keep_alive && !target.follow);
    http::response_serializer<http::empty_body> serializer{head};
    Code error;
    auto token = asio::redirect_error(asio::use_awaitable, error);
    stream.expires_after(options.write_limit);
    co_await http::async_write_header(stream, serializer, token);
    if (error) co_return false;

    const auto limit = target.follow ? options.watcher_limit : options.write_limit;
    storage::Id position = target.after;
    bool caught_up = false;   // until then it reads history, however long that is
    while (!closed) {
        const Result<storage::Id> newest = reader.last_event();
        if (!newest) co_return false;
        if (caught_up && *newest - position > options.resync_after) {
            position = *newest;
            const std::string line = "{\"resync\":" + std::to_string(position) + "}\n";
            if (!co_await send_chunk(stream, line, limit)) co_return false;
            continue;
        }
        const Result<std::vector<storage::EventRow>> rows = reader.events(campaign, position, event_page);
        if (!rows) co_return false;
        if (!rows->empty()) {
            const Result<std::string> text = event_lines(*rows);
            if (!text) co_return false;
            position = rows->back().seq;
            if (!co_await send_chunk(stream, *text, limit)) co_return false;
            continue;
        }
        if (!target.follow) break;
        position = std::max(position, *newest);
        caught_up = true;
        watcher.timer.expires_after(options.heartbeat);
        co_await watcher.timer.async_wait(token);
        if (error || closed) continue;   // woken: there is news
        const std::string blank = "\n";
        if (!co_await send_chunk(stream, blank, limit)) co_return false;
    }
    if (target.follow) co_return false;
    const auto end = http::make_chunk_last();
    stream.expires_after(options.write_limit);
    co_await asio::async_write(stream, end, token);
    co_return !error && keep_alive;
}

}   // namespace campaign::api
