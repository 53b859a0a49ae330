#pragma once
// A loopback server that plays a prepared answer: exact segments at given times, and every way to end. One thread a
// connection.

#include <atomic>
#include <boost/json.hpp>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace campaign::load::testing {

struct Segment {
    double at_ms = 0;   ///< after the whole request was read
    std::string bytes;
};

struct Answer {
    int status = 200;
    std::string headers = "Content-Type: text/event-stream\r\n";
    std::string framing = "chunked";   ///< chunked, content-length, close
    double headers_at_ms = 0;
    std::vector<Segment> segments;
    std::string end = "keepalive";   ///< keepalive, close (before the framing's end), rst
    double end_at_ms = 0;
    bool close_reused_once = false;   ///< the first reused connection is closed after its request was read
};

class ReplayServer {
public:
    explicit ReplayServer(Answer answer);
    ~ReplayServer();
    ReplayServer(const ReplayServer&) = delete;
    ReplayServer& operator=(const ReplayServer&) = delete;

    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] int connections() const { return accepted_; }
    [[nodiscard]] std::vector<std::string> requests() const;   ///< head and body of each
    [[nodiscard]] int most_at_once() const { return most_at_once_; }

private:
    void accept_loop();
    void serve(int fd);
    bool read_request(int fd, std::string& request) const;
    bool answer(int fd);

    Answer answer_;
    int listener_ = -1;
    std::uint16_t port_ = 0;
    std::atomic<int> accepted_{0}, now_{0}, most_at_once_{0};
    std::atomic<bool> stopping_{false}, closed_reused_{false};
    mutable std::mutex mutex_;
    std::vector<std::string> requests_;
    std::vector<int> open_;
    std::vector<std::thread> threads_;
    std::thread acceptor_;
};

}   // namespace campaign::load::testing
