#include "adapters/ssh/session.hpp"

#include <libssh/server.h>
#include <unistd.h>

#include <utility>

#include "base/text.hpp"

namespace campaign::ssh {

namespace asio = boost::asio;

namespace {

constexpr std::chrono::seconds watch_interval{5};
constexpr int quiet_intervals = 3;
constexpr int most_passes = 32;   ///< of 4 KiB each, before others get their turn

}   // namespace

Session::Session(asio::any_io_executor executor, Clock& clock, std::string host)
    : executor_{std::move(executor)}, clock_{clock}, host_{std::move(host)}, fd_{executor_}, watch_timer_{executor_} {}

Session::~Session() {
    forget_fd();
    abandoned_.clear();
    if (event_ != nullptr) {
        ssh_event_remove_session(event_, raw_);
        ssh_event_free(event_);
    }
    if (raw_ != nullptr) {
        ssh_silent_disconnect(raw_);   // ssh_disconnect leaves a descriptor open that was given to it
        ssh_free(raw_);
    }
}

Error Session::failure(ErrorKind kind, std::string_view phase) const {
    std::string text = printable(ssh_get_error(raw_), 500);
    if (text.empty()) text = "the connection ended without a word";
    return Error{kind, host_ + ": " + std::string{phase} + " failed", text, "", ""};
}

void Session::forget_fd() {
    // Not close(): the reactor would go on watching the connection through libssh's own descriptor.
    if (fd_.is_open()) ::close(fd_.release());
}

void Session::end(std::string reason) {
    if (lost_) return;
    lost_ = std::move(reason);
    watch_timer_.cancel();
    forget_fd();
    changed_.notify();
}

void Session::after() {
    if (open_ && !lost_ && ssh_is_connected(raw_) == 0) {
        const std::string text = printable(ssh_get_error(raw_), 300);
        if (text.find("Connection timed out") != std::string::npos) {
            end("lost: the network gave no sign for 15 s");
        } else {
            end(text.find("disconnected") != std::string::npos || text.empty() ? "closed by peer" : "lost (" + text + ")");
        }
    }
    arm();
    const std::uint64_t bytes = counter_.in_bytes + counter_.out_bytes;
    if (bytes != seen_bytes_ || events_ != seen_events_) {
        seen_bytes_ = bytes;
        seen_events_ = events_;
        changed_.notify();
    }
}

void Session::arm() {
    if (lost_ || !fd_.is_open()) return;
    if (!waiting_read_) {
        waiting_read_ = true;
        fd_.async_wait(asio::posix::stream_descriptor::wait_read,
                       [weak = weak_from_this()](boost::system::error_code error) {
                           const auto self = weak.lock();
                           if (!self) return;
                           self->waiting_read_ = false;
                           if (!error) self->on_ready();
                       });
    }
    if (!waiting_write_ && (ssh_get_poll_flags(raw_) & SSH_WRITE_PENDING) != 0) {
        waiting_write_ = true;
        fd_.async_wait(asio::posix::stream_descriptor::wait_write,
                       [weak = weak_from_this()](boost::system::error_code error) {
                           const auto self = weak.lock();
                           if (!self) return;
                           self->waiting_write_ = false;
                           if (!error) self->on_ready();
                       });
    }
}

void Session::on_ready() {
    if (lost_) return;
    if (event_ != nullptr) {
        pump();
        return;
    }
    // Not logged in yet: the waiting call itself has to be made again.
    changed_.notify();
}

void Session::pump() {
    for (int pass = 0; pass < most_passes; ++pass) {
        const std::uint64_t before = counter_.in_bytes;
        if (ssh_event_dopoll(event_, 0) == SSH_ERROR || counter_.in_bytes == before) break;
    }
    tend_abandoned();
    after();
}

void Session::tend_abandoned() {
    std::erase_if(abandoned_, [](const std::function<bool()>& settle) { return settle(); });
}

void Session::watch() {
    watch_timer_.expires_after(watch_interval);
    watch_timer_.async_wait([weak = weak_from_this()](boost::system::error_code error) {
        const auto self = weak.lock();
        if (!self || error || self->lost_) return;
        const std::uint64_t received = self->counter_.in_bytes;
        self->quiet_ = received == self->watched_bytes_ ? self->quiet_ + 1 : 0;
        self->watched_bytes_ = received;
        if (self->quiet_ >= quiet_intervals) {
            self->end("lost: no answer for 15 s");
            return;
        }
        // One call sends, the other collects the answer of the interval before.
        ssh_send_keepalive(self->raw_);
        ssh_send_keepalive(self->raw_);
        self->after();
        self->watch();
    });
}

Async<Result<int>> Session::repeat(const Step& step, int again, MonoTime deadline, std::string_view phase) {
    while (true) {
        if (lost_)
            co_return Error{ErrorKind::unreachable, "link to " + host_ + " " + *lost_ + " during " + std::string{phase}, "",
                            "", ""};
        const int result = step();
        if (result != again) co_return result;
        after();
        if (clock_.mono() >= deadline) {
            co_return Error{ErrorKind::unreachable, host_ + ": no end of " + std::string{phase} + " in time",
                            "the other side does not answer", "", "see that the host is well"};
        }
        co_await changed_.wait_until(deadline);
    }
}

Async<Result<std::shared_ptr<Channel>>> Session::open_command(MonoTime deadline) {
    const std::function<int(ssh_channel)> open = [](ssh_channel channel) { return ssh_channel_open_session(channel); };
    const std::string what = "opening a channel";
    Result<std::shared_ptr<Channel>> opened = co_await open_channel(open, deadline, what);
    co_return opened;
}

Async<Result<std::shared_ptr<Channel>>> Session::open_forward(std::string address, int port, MonoTime deadline) {
    const std::function<int(ssh_channel)> open = [address, port](ssh_channel channel) {
        return ssh_channel_open_forward(channel, address.c_str(), port, "127.0.0.1", 0);
    };
    const std::string what = "connecting to " + address + ":" + std::to_string(port) + " there";
    Result<std::shared_ptr<Channel>> opened = co_await open_channel(open, deadline, what);
    co_return opened;
}

/// Until the answer came: its channel belongs to nobody when the coroutine is given up.
class Opening {
public:
    Opening(ssh_channel channel, std::function<int(ssh_channel)> open, std::vector<std::function<bool()>>& abandoned)
        : channel_{channel}, open_{std::move(open)}, abandoned_{abandoned} {}
    ~Opening() {
        if (channel_ == nullptr) return;
        if (!pending_) {
            ssh_channel_free(channel_);
            return;
        }
        const std::shared_ptr<ssh_channel_struct> kept{channel_, [](ssh_channel channel) { ssh_channel_free(channel); }};
        abandoned_.push_back([kept, open = open_] { return open(kept.get()) != SSH_AGAIN; });
    }
    Opening(const Opening&) = delete;
    Opening& operator=(const Opening&) = delete;

    int step() {
        const int result = open_(channel_);
        pending_ = result == SSH_AGAIN;
        return result;
    }
    ssh_channel release() { return std::exchange(channel_, nullptr); }

private:
    ssh_channel channel_;
    std::function<int(ssh_channel)> open_;
    std::vector<std::function<bool()>>& abandoned_;
    bool pending_ = false;
};

Async<Result<std::shared_ptr<Channel>>> Session::open_channel(std::function<int(ssh_channel)> open, MonoTime deadline,
                                                              std::string what) {
    const std::shared_ptr<Session> self = shared_from_this();
    if (!alive()) co_return Error{ErrorKind::unreachable, "link to " + host_ + " " + lost(), "", "", ""};
    const ssh_channel raw = ssh_channel_new(raw_);
    if (raw == nullptr) co_return failure(ErrorKind::io, what);
    Opening opening{raw, std::move(open), abandoned_};
    const Step step = [&opening] { return opening.step(); };
    const Result<int> opened = co_await repeat(step, SSH_AGAIN, deadline, what);
    if (!opened) co_return opened.error();
    if (*opened != SSH_OK) {
        Error error = failure(ErrorKind::refused, what);
        after();
        if (!alive())
            error = Error{ErrorKind::unreachable, "link to " + host_ + " " + lost() + " during " + what, "", "", ""};
        co_return error;
    }
    auto channel = std::make_shared<Channel>(self, opening.release());
    after();
    co_return channel;
}

Channel::Channel(std::shared_ptr<Session> session, ssh_channel raw) : session_{std::move(session)}, raw_{raw} {
    callbacks_.userdata = this;
    callbacks_.channel_exit_status_function = [](ssh_session, ssh_channel, int status, void* user) {
        auto& self = *static_cast<Channel*>(user);
        self.exit_status_ = status;
        ++self.session_->events_;
    };
    callbacks_.channel_exit_signal_function = [](ssh_session, ssh_channel, const char* signal, int, const char*, const char*,
                                                 void* user) {
        auto& self = *static_cast<Channel*>(user);
        self.signal_ = printable(signal, 20);
        ++self.session_->events_;
    };
    callbacks_.channel_eof_function = [](ssh_session, ssh_channel, void* user) {
        auto& self = *static_cast<Channel*>(user);
        self.eof_ = true;
        ++self.session_->events_;
    };
    callbacks_.channel_close_function = [](ssh_session, ssh_channel, void* user) {
        auto& self = *static_cast<Channel*>(user);
        self.eof_ = self.closed_ = true;
        ++self.session_->events_;
    };
    ssh_callbacks_init(&callbacks_);
    ssh_set_channel_callbacks(raw_, &callbacks_);
}

Channel::~Channel() {
    // Also after the close, or libssh may call into a dead object: it keeps a channel until the peer has closed it.
    if (raw_ == nullptr) return;
    ssh_remove_channel_callbacks(raw_, &callbacks_);
    ssh_channel_free(raw_);
}

void Channel::close() {
    if (raw_ == nullptr) return;
    ssh_remove_channel_callbacks(raw_, &callbacks_);
    ssh_channel_free(std::exchange(raw_, nullptr));
    closed_ = true;
    session_->after();
}

Async<Result<void>> Channel::exec(std::string line, MonoTime deadline) {
    const std::string what = "starting the command";
    const Session::Step step = [&] { return ssh_channel_request_exec(raw_, line.c_str()); };
    const Result<int> asked = co_await session_->repeat(step, SSH_AGAIN, deadline, what);
    if (!asked) {
        Error error = asked.error();
        error.kind = ErrorKind::in_doubt;
        co_return error;
    }
    if (*asked != SSH_OK) {
        const Error error = session_->failure(ErrorKind::refused, what);
        session_->after();
        if (session_->alive() && !closed_) co_return error;
        co_return Error{ErrorKind::in_doubt, "link to " + session_->host_ + " " + session_->lost() + " during " + what,
                        error.why, "", ""};
    }
    session_->after();
    co_return Result<void>{};
}

std::string Channel::read(bool errors, std::size_t most) {
    std::string bytes;
    if (raw_ == nullptr) return bytes;
    bytes.resize(most);
    const int got = ssh_channel_read_nonblocking(raw_, bytes.data(), static_cast<std::uint32_t>(most), errors ? 1 : 0);
    bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    session_->after();
    return bytes;
}

std::size_t Channel::write(std::string_view bytes) {
    if (raw_ == nullptr || !session_->alive() || closed_) return 0;
    const std::size_t window = ssh_channel_window_size(raw_);
    bytes = bytes.substr(0, window);
    if (bytes.empty()) return 0;
    const int put = ssh_channel_write(raw_, bytes.data(), static_cast<std::uint32_t>(bytes.size()));
    session_->after();
    return put > 0 ? static_cast<std::size_t>(put) : 0;
}

void Channel::send_eof() {
    if (raw_ == nullptr || !session_->alive() || closed_) return;
    ssh_channel_send_eof(raw_);
    session_->after();
}

void Channel::terminate() {
    if (raw_ == nullptr || !session_->alive() || closed_) return;
    ssh_channel_request_send_signal(raw_, "TERM");
    session_->after();
}

}   // namespace campaign::ssh
