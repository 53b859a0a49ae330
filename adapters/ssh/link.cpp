#include "adapters/ssh/link.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pwd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdlib>

#include "adapters/host/child.hpp"
#include "adapters/ssh/joint.hpp"
#include "base/text.hpp"

namespace campaign::ssh {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr std::chrono::seconds config_limit{10};
constexpr std::size_t longest_config = 1u << 20;
constexpr int deepest_jump = 4;

ConfigEnvironment environment() {
    ConfigEnvironment result;
    if (const char* home = std::getenv("HOME"); home != nullptr) {
        result.home = home;
    } else if (const passwd* entry = ::getpwuid(::getuid()); entry != nullptr) {
        result.home = entry->pw_dir;
    }
    if (const char* agent = std::getenv("SSH_AUTH_SOCK"); agent != nullptr) result.agent = agent;
    return result;
}

/// TCP notices a dead line in 15 s, and small requests go out at once.
void tune(int socket) {
    const auto set = [&](int level, int option, int value) { ::setsockopt(socket, level, option, &value, sizeof value); };
    set(IPPROTO_TCP, TCP_NODELAY, 1);
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 5);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
    set(IPPROTO_TCP, TCP_KEEPCNT, 3);
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, 15'000);
}

/// Resolving and connecting, outliving the coroutine that waits for it: a hanging name server cannot be interrupted.
struct Dialing {
    explicit Dialing(const asio::any_io_executor& executor) : resolver{executor}, socket{executor} {}
    tcp::resolver resolver;
    tcp::socket socket;
    host::Event changed;
    std::vector<tcp::endpoint> endpoints;
    std::optional<boost::system::error_code> resolved;
    std::optional<boost::system::error_code> connected;
};

}   // namespace

std::chrono::milliseconds backoff(int failures, double unit) {
    if (failures <= 0) return std::chrono::milliseconds{0};
    const double whole = std::min(30'000.0, 1000.0 * static_cast<double>(1u << std::min(failures - 1, 10)));
    return std::chrono::milliseconds{static_cast<std::int64_t>(whole * (0.5 + 0.5 * unit))};
}

Link::Link(asio::any_io_executor executor, Clock& clock, Random& random, SshTarget target, int depth)
    : executor_{std::move(executor)}, clock_{clock}, random_{random}, target_{std::move(target)}, depth_{depth} {}

Link::~Link() {
    disconnect();
}

void Link::disconnect() {
    if (session_ != nullptr) session_->end("closed by us");
    session_.reset();
}

Async<Result<std::shared_ptr<Session>>> Link::session(MonoTime deadline) {
    const std::shared_ptr<Link> self = shared_from_this();
    while (connecting_) {
        const std::uint64_t attempt = attempts_;
        while (connecting_ && attempts_ == attempt) {
            if (clock_.mono() >= deadline) {
                co_return Error{ErrorKind::unreachable, "no connection to " + target_.name + " in time",
                                "another attempt is still under way", "", ""};
            }
            co_await changed_.wait_until(deadline);
        }
        // Its outcome is ours too. (An attempt that was cancelled has none: then it is our turn.)
        if (session_ != nullptr && session_->alive()) co_return session_;
        if (attempts_ != attempt && last_error_) co_return *last_error_;
    }
    if (session_ != nullptr && session_->alive()) co_return session_;
    session_.reset();

    struct Attempt {
        Link& link;
        explicit Attempt(Link& of) : link{of} { link.connecting_ = true; }
        ~Attempt() {
            link.connecting_ = false;
            link.changed_.notify();
        }
        Attempt(const Attempt&) = delete;
        Attempt& operator=(const Attempt&) = delete;
    };
    const Attempt one_at_a_time{*this};
    if (clock_.mono() < not_before_) {
        if (not_before_ >= deadline && last_error_) co_return *last_error_;
        const MonoTime when = not_before_;
        co_await clock_.sleep_until(when);
    }
    Result<std::shared_ptr<Session>> connected = co_await connect();
    ++attempts_;
    if (connected) {
        session_ = *connected;
        failures_ = 0;
        last_error_.reset();
        not_before_ = MonoTime{};
    } else {
        ++failures_;
        last_error_ = connected.error();
        not_before_ = clock_.mono() + backoff(failures_, random_.unit());
    }
    co_return connected;
}

Async<Result<std::shared_ptr<Session>>> Link::connect() {
    if (!config_) {
        const Result<void> configured = co_await configure();
        if (!configured) co_return configured.error();
    }
    Result<Fd> stream = co_await dial();
    if (!stream) co_return stream.error();
    const auto session = std::make_shared<Session>(executor_, clock_, target_.name);
    Fd connected = std::move(*stream);
    HostConfig config = *config_;
    const Result<void> opened = co_await session->open(std::move(connected), std::move(config));
    if (!opened) co_return opened.error();
    co_return session;
}

Async<Result<void>> Link::configure() {
    const Result<std::vector<std::string>> question = config_question(target_);
    if (!question) co_return question.error();
    const Result<std::shared_ptr<host::Child>> started = host::Child::start(executor_, *question, false);
    if (!started) {
        Error error = started.error();
        error.kind = ErrorKind::unavailable;
        error.what = "cannot read the ssh configuration of " + target_.alias + ": " + error.what;
        error.next = "install openssh-client";
        co_return error;
    }
    host::Child& child = **started;
    std::string text;
    std::string errors;
    const MonoTime deadline = clock_.mono() + config_limit;
    while (true) {
        text += child.take_output();
        errors += child.take_errors();
        if (child.exited() && child.streams_ended()) break;
        if (clock_.mono() >= deadline || text.size() + errors.size() > longest_config) {
            child.terminate();
            child.close();
            co_return Error{ErrorKind::unavailable, "ssh -G " + target_.alias + " does not end", "", printable(errors, 300),
                            "try it in a terminal; a `Match exec` may hang"};
        }
        co_await child.changed().wait_until(deadline);
    }
    if (child.exit_status() != 0) {
        co_return Error{ErrorKind::usage, "ssh -G " + target_.alias + " failed", "", printable(trim(errors), 500),
                        "correct the ssh configuration"};
    }
    Result<HostConfig> config = parse_config(text, target_, environment());
    if (!config) co_return config.error();
    if (!config->jumps.empty()) {
        // The last one named is the nearest to the host; it is itself reached through those before it.
        if (depth_ >= deepest_jump) {
            co_return Error{ErrorKind::usage, "host " + target_.name + ": more than 4 jumps, or a circle of them", "", "",
                            ""};
        }
        Result<SshTarget> jump = jump_target(target_, config->jumps.back());
        if (!jump) co_return jump.error();
        std::string before;
        for (std::size_t i = 0; i + 1 < config->jumps.size(); ++i) before += (i > 0 ? "," : "") + config->jumps[i];
        if (!before.empty()) jump->jump = before;
        jump_ = std::make_shared<Link>(executor_, clock_, random_, std::move(*jump), depth_ + 1);
    }
    config_ = std::move(*config);
    co_return Result<void>{};
}

Async<Result<Fd>> Link::dial() {
    Result<Fd> stream = Fd{};
    if (jump_ != nullptr) {
        stream = co_await dial_through_jump();
    } else {
        stream = co_await dial_directly();
    }
    co_return stream;
}

Async<Result<Fd>> Link::dial_directly() {
    const MonoTime deadline = clock_.mono() + std::chrono::seconds{config_->connect_timeout_s};
    const std::string where = config_->hostname + ":" + std::to_string(config_->port);
    const auto unreachable = [&](const std::string& why) {
        return Error{ErrorKind::unreachable, "cannot reach " + target_.name + " (" + printable(where, 200) + ")", why, "",
                     "see that it is up, and that `ssh " + printable(target_.alias, 100) + "` works from here"};
    };
    const std::string silence = "no answer within " + std::to_string(config_->connect_timeout_s) + " s";
    const auto dialing = std::make_shared<Dialing>(executor_);
    const std::string port = std::to_string(config_->port);
    dialing->resolver.async_resolve(config_->hostname, port, tcp::resolver::numeric_service,
                                    [dialing](boost::system::error_code error, const tcp::resolver::results_type& found) {
                                        for (const auto& entry : found) dialing->endpoints.push_back(entry.endpoint());
                                        dialing->resolved = error;
                                        dialing->changed.notify();
                                    });
    while (!dialing->resolved) {
        if (clock_.mono() >= deadline) co_return unreachable("its name was not resolved within the time for connecting");
        co_await dialing->changed.wait_until(deadline);
    }
    if (*dialing->resolved) co_return unreachable("its name is not known: " + dialing->resolved->message());
    std::string why = "it has no address of the family that the configuration wants";
    for (const tcp::endpoint& endpoint : dialing->endpoints) {
        if (config_->family != 0 && endpoint.address().is_v4() != (config_->family == 4)) continue;
        boost::system::error_code ignored;
        dialing->socket.close(ignored);
        dialing->connected.reset();
        dialing->socket.async_connect(endpoint, [dialing](boost::system::error_code error) {
            dialing->connected = error;
            dialing->changed.notify();
        });
        while (!dialing->connected) {
            if (clock_.mono() >= deadline) {
                dialing->socket.close(ignored);
                co_return unreachable(silence);
            }
            co_await dialing->changed.wait_until(deadline);
        }
        if (!*dialing->connected) {
            const int socket = dialing->socket.release();
            Fd connected{socket};
            ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) | O_NONBLOCK);
            tune(socket);
            co_return connected;
        }
        why = dialing->connected->message();
    }
    co_return unreachable(why);
}

Async<Result<Fd>> Link::dial_through_jump() {
    const MonoTime deadline = clock_.mono() + std::chrono::seconds{config_->connect_timeout_s};
    const Result<std::shared_ptr<Session>> bastion = co_await jump_->session(deadline);
    const std::string through = "cannot reach " + target_.name + " through the jump host";
    if (!bastion) {
        Error error = bastion.error();
        error.why = error.what + (error.why.empty() ? "" : ": " + error.why);
        error.what = through;
        co_return error;
    }
    const std::string address = config_->hostname;
    Result<std::shared_ptr<Channel>> opened = co_await (*bastion)->open_forward(address, config_->port, deadline);
    if (!opened) {
        Error error = opened.error();
        error.kind = ErrorKind::unreachable;
        error.why = error.what + (error.why.empty() ? "" : ": " + error.why);
        error.what = through;
        co_return error;
    }
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
        co_return Error{ErrorKind::io, "no descriptor left for a connection to " + target_.name, "", "", ""};
    }
    Fd ours{ends[1]};
    asio::local::stream_protocol::socket socket{executor_, asio::local::stream_protocol{}, ends[0]};
    auto local = std::make_shared<LocalEnd>(std::move(socket));
    std::shared_ptr<Channel> channel = *opened;
    Async<> joined = join(std::move(channel), std::move(local));
    asio::co_spawn(executor_, std::move(joined), asio::detached);
    co_return ours;
}

}   // namespace campaign::ssh
