#include "replay_server.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <stdexcept>

namespace campaign::load::testing {
namespace {

using SteadyClock = std::chrono::steady_clock;

void wait_until(SteadyClock::time_point from, double ms) {
    std::this_thread::sleep_until(
        from + std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double, std::milli>(ms)));
}

bool send_all(int fd, const std::string& bytes) {
    std::size_t sent = 0;
    while (sent < bytes.size()) {
        const ssize_t n = ::send(fd, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
        if (n <= 0) return false;
        sent += static_cast<std::size_t>(n);
    }
    return true;
}

std::string chunk(const std::string& bytes) {
    char size[24];
    std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
    return size + bytes + "\r\n";
}

}   // namespace

ReplayServer::ReplayServer(Answer answer) : answer_{std::move(answer)} {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener_, generic, size) != 0 || ::listen(listener_, 1024) != 0 ||
        ::getsockname(listener_, generic, &size) != 0) {
        throw std::runtime_error("no listening socket");
    }
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_loop(); });
}

ReplayServer::~ReplayServer() {
    stopping_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    {
        const std::lock_guard lock(mutex_);
        for (const int fd : open_) ::shutdown(fd, SHUT_RDWR);
    }
    for (std::thread& thread : threads_) thread.join();
    ::close(listener_);
}

std::vector<std::string> ReplayServer::requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
}

void ReplayServer::accept_loop() {
    while (!stopping_) {
        const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        if (fd < 0) continue;
        ++accepted_;
        const int on = 1;
        ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        const std::lock_guard lock(mutex_);
        open_.push_back(fd);
        threads_.emplace_back([this, fd] { serve(fd); });
    }
}

bool ReplayServer::read_request(int fd, std::string& request) const {
    char buffer[65536];
    while (true) {
        const std::size_t head = request.find("\r\n\r\n");
        if (head != std::string::npos) {
            const std::size_t at = request.find("Content-Length: ");
            const std::size_t length = at < head ? std::stoul(request.substr(at + 16, 12)) : 0;
            if (request.size() >= head + 4 + length) return true;
        }
        const ssize_t n = ::recv(fd, buffer, sizeof buffer, 0);
        if (n <= 0) return false;
        request.append(buffer, static_cast<std::size_t>(n));
    }
}

void ReplayServer::serve(int fd) {
    for (int served = 0;; ++served) {
        std::string request;
        if (!read_request(fd, request)) break;
        {
            const std::lock_guard lock(mutex_);
            requests_.push_back(request);
        }
        if (answer_.close_reused_once && served > 0 && !closed_reused_.exchange(true)) break;
        const int running = ++now_;
        int most = most_at_once_;
        while (most < running && !most_at_once_.compare_exchange_weak(most, running)) {
        }
        const bool kept = answer(fd);
        --now_;
        if (!kept) break;
    }
    const std::lock_guard lock(mutex_);
    std::erase(open_, fd);
    ::close(fd);
}

bool ReplayServer::answer(int fd) {
    const auto began = SteadyClock::now();
    std::size_t size = 0;
    for (const Segment& segment : answer_.segments) size += segment.bytes.size();
    std::string head = "HTTP/1.1 " + std::to_string(answer_.status) + " X\r\n" + answer_.headers;
    if (answer_.framing == "chunked") head += "Transfer-Encoding: chunked\r\n";
    if (answer_.framing == "content-length") head += "Content-Length: " + std::to_string(size) + "\r\n";
    if (answer_.framing == "close") head += "Connection: close\r\n";
    wait_until(began, answer_.headers_at_ms);
    if (!send_all(fd, head + "\r\n")) return false;
    for (const Segment& segment : answer_.segments) {
        wait_until(began, segment.at_ms);
        if (!send_all(fd, answer_.framing == "chunked" ? chunk(segment.bytes) : segment.bytes)) return false;
    }
    wait_until(began, answer_.end_at_ms);
    if (answer_.end == "rst") {
        const linger hard{1, 0};
        ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
        return false;
    }
    if (answer_.end == "close") return false;
    if (answer_.framing == "chunked" && !send_all(fd, "0\r\n\r\n")) return false;
    return answer_.framing != "close";
}

}   // namespace campaign::load::testing
