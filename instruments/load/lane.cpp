#include "instruments/load/lane.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/post.hpp>
#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

namespace campaign::load {
namespace asio = boost::asio;
namespace {

/// How long a connection may take after [DONE] to end its body properly before it is thrown away instead of used again.
constexpr auto end_grace = std::chrono::milliseconds(25);
constexpr std::uint32_t held_open_enough = 3;
/// How long connecting ahead of a level may take; after it the request tries for itself, within its own limit.
constexpr auto connect_limit = std::chrono::seconds(10);

std::string class_of_connect(int error) {
    if (error == EMFILE || error == ENFILE) return "client_fd_limit";
    if (error == EADDRNOTAVAIL) return "client_ports_exhausted";
    return "connect_failed";
}

std::string words(int error) {
    return std::generic_category().message(error);
}

}   // namespace

Lane::Lane(LaneRoom& room) : room_{room}, socket_{room.io}, deadline_{room.io}, grace_{room.io} {}

Stamp Lane::now() const {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

void Lane::close() {
    ++turn_;
    boost::system::error_code ignored;
    socket_.close(ignored);
    used_ = false;
}

void Lane::open(std::function<void()> ready) {
    auto once = std::make_shared<std::function<void()>>(std::move(ready));
    const auto tell = [once] {
        if (const auto call = std::exchange(*once, nullptr)) call();
    };
    grace_.expires_after(connect_limit);
    grace_.async_wait([this, tell](boost::system::error_code error) {
        if (error || shut_) return;
        close();
        tell();
    });
    connect(0, [this, tell](int) {
        grace_.cancel();
        tell();
    });
}

void Lane::shut() {
    shut_ = true;
    busy_ = false;
    close();
    grace_.cancel();
    deadline_.cancel();
}

void Lane::connect(std::size_t which, Ready ready) {
    close();
    boost::system::error_code failed;
    const Endpoint& endpoint = room_.endpoints[which];
    socket_.open(endpoint.protocol(), failed);
    if (failed) {
        asio::post(room_.io, [ready = std::move(ready), failed] { ready(failed.value()); });
        return;
    }
    socket_.async_connect(endpoint, [this, which, ready = std::move(ready),
                                     turn = turn_](boost::system::error_code error) mutable {
        if (turn != turn_) return;
        if (error && which + 1 < room_.endpoints.size()) return connect(which + 1, std::move(ready));
        if (error) {
            close();
            return ready(error.value());
        }
        const int on = 1;
        ::setsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);   // of no meaning to a unix socket
        socket_.native_non_blocking(true, error);
        ready(0);
    });
}

bool Lane::still_open() {
    if (!socket_.is_open()) return false;
    char byte = 0;
    // Bytes that nobody asked for are as bad as an end: the next answer would begin with them.
    return ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
           (errno == EAGAIN || errno == EWOULDBLOCK);
}

void Lane::send(std::string request, Done done) {
    request_ = std::move(request);
    done_ = std::move(done);
    record_.reset();
    retries_ = 0;
    busy_ = true;
    began_ = now();
    deadline_.expires_after(room_.timeout);
    deadline_.async_wait([this, serial = ++serial_](boost::system::error_code error) {
        if (!error && busy_ && serial == serial_) give_up("timeout", "no complete answer within the request's time limit");
    });
    begin();
}

void Lane::begin() {
    recorder_.emplace(room_.keep_text);
    written_ = 0;
    if (still_open()) {
        reused_ = used_;
        used_ = true;
        write();
        return;
    }
    reused_ = false;
    connect(0, [this](int error) {
        if (!busy_) return;
        if (error != 0) {
            recorder_->give_up(class_of_connect(error), "connect: " + words(error), now() - began_);
            return complete();
        }
        used_ = true;
        write();
    });
}

void Lane::write() {
    while (written_ < request_.size()) {
        const ssize_t sent = ::send(socket_.native_handle(), request_.data() + written_, request_.size() - written_,
                                    MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent >= 0) {
            written_ += static_cast<std::size_t>(sent);
            continue;
        }
        if (errno == EINTR) continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK) break;   // an answer may lie there all the same: read it
        socket_.async_wait(Socket::wait_write, [this, turn = turn_](boost::system::error_code) {
            if (turn == turn_) write();
        });
        return;
    }
    began_ = now();   // t0: the last byte is the kernel's
    wait_to_read();
}

void Lane::wait_to_read() {
    socket_.async_wait(Socket::wait_read, [this, turn = turn_](boost::system::error_code) {
        if (turn == turn_) read();
    });
}

void Lane::read() {
    for (int rounds = 0; rounds < 8; ++rounds) {
        const ssize_t got = ::recv(socket_.native_handle(), room_.buffer.data(), room_.buffer.size(), MSG_DONTWAIT);
        const Stamp at = now() - began_;   // before anything is parsed
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
        if (got <= 0) return lost(at, got < 0);
        const std::string_view bytes(room_.buffer.data(), static_cast<std::size_t>(got));
        if (record_) {   // after [DONE]: only the end of the body is awaited
            recorder_->drain(bytes);
            if (recorder_->reusable()) {
                room_.held_open = 0;
                return deliver();
            }
            continue;
        }
        recorder_->bytes(bytes, at);
        if (recorder_->finished()) return complete();
        if (bytes.size() < room_.buffer.size()) break;
    }
    wait_to_read();
}

void Lane::lost(Stamp at, bool reset) {
    close();
    if (record_) return deliver();
    // A server may close an idle connection just as we use it; nothing was begun then, so one more try is no second request.
    if (!recorder_->any_bytes() && reused_ && retries_ == 0) {
        ++retries_;
        return begin();
    }
    recorder_->closed(at, reset);
    complete();
}

void Lane::give_up(std::string failure_class, std::string message) {
    if (!busy_) return;
    close();
    if (record_) return deliver();
    recorder_->give_up(std::move(failure_class), std::move(message), now() - began_);
    complete();
}

void Lane::complete() {
    record_ = recorder_->take();
    record_->transport_retries = retries_;
    record_->started = began_;
    if (recorder_->reusable() || !record_->done_seen || !socket_.is_open() || room_.held_open >= held_open_enough)
        return deliver();
    wait_for_end();
}

void Lane::wait_for_end() {
    grace_.expires_after(end_grace);
    grace_.async_wait([this, turn = turn_](boost::system::error_code error) {
        if (error || turn != turn_ || !busy_ || !record_) return;
        ++room_.held_open;
        deliver();
    });
    wait_to_read();
}

void Lane::deliver() {
    record_->connection_reusable = socket_.is_open() && recorder_->reusable();
    if (!record_->connection_reusable) close();
    grace_.cancel();
    deadline_.cancel();
    busy_ = false;
    ++turn_;
    RequestRecord record = *std::move(record_);
    record_.reset();
    const Done done = std::move(done_);
    done(std::move(record));
}

}   // namespace campaign::load
