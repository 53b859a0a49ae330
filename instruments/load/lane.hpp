#pragma once
// One of the client's slots: a connection that carries one request after the other.

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "instruments/load/recorder.hpp"
#include "instruments/load/target.hpp"

namespace campaign::load {

/// What all lanes of a run share. One thread.
struct LaneRoom {
    boost::asio::io_context& io;
    std::vector<Endpoint> endpoints;
    std::chrono::nanoseconds timeout;
    bool keep_text = false;
    std::uint32_t held_open =
        0;   ///< answers in a row whose body stayed open after [DONE]: from three on nobody waits for the end
    std::vector<char> buffer = std::vector<char>(256U << 10U);
};

class Lane {
public:
    using Done = std::function<void(RequestRecord)>;

    explicit Lane(LaneRoom& room);

    /// Connects ahead of the level, so that connecting is in no measured time. `ready` is called in any case.
    void open(std::function<void()> ready);
    /// Sends one request and reads its answer; `done` gets the record. One at a time.
    void send(std::string request, Done done);
    /// Ends a running request with this class.
    void give_up(std::string failure_class, std::string message);
    /// Ends everything without a word; what is still queued in the loop finds nothing to do.
    void shut();

private:
    using Socket = boost::asio::generic::stream_protocol::socket;
    using Ready = std::function<void(int error)>;

    void connect(std::size_t which, Ready ready);
    void begin();
    void write();
    void wait_to_read();
    void read();
    void lost(Stamp at, bool reset);
    void complete();
    void wait_for_end();
    void deliver();
    void close();
    [[nodiscard]] bool still_open();
    [[nodiscard]] Stamp now() const;

    LaneRoom& room_;
    Socket socket_;
    boost::asio::steady_timer deadline_;
    boost::asio::steady_timer grace_;
    std::optional<Recorder> recorder_;
    std::optional<RequestRecord> record_;
    std::string request_;
    std::size_t written_ = 0;
    Stamp began_ = 0;   // monotonic; start of the request's last attempt
    std::uint32_t retries_ = 0;
    std::uint64_t serial_ = 0;   // of requests, for the time limit's handler
    std::uint64_t turn_ = 0;     // handlers of an earlier connection or request know themselves stale by it
    bool reused_ = false;
    bool used_ = false;
    bool busy_ = false;
    bool shut_ = false;
    Done done_;
};

}   // namespace campaign::load
