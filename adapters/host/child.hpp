#pragma once
// A child process of ours, with its streams on the loop.

#include <sys/types.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adapters/host/event.hpp"
#include "base/error.hpp"

namespace campaign::host {

/// Runs argv (found by PATH) in a process group of its own, with no descriptor of ours but its three streams: standard input
/// is a socket, or /dev/null when there is none. Reads both outputs at once into buffers that the owner takes from; each of
/// them stops reading at 256 KiB until it is taken. Destroying it closes the streams and leaves the process alone.
class Child : public std::enable_shared_from_this<Child> {
public:
    /// Errors: not_found (no such program), io.
    static Result<std::shared_ptr<Child>> start(const boost::asio::any_io_executor& executor,
                                                const std::vector<std::string>& argv, bool has_input);
    ~Child();
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    /// Notified when output came, when input drained, and at the end.
    Event& changed() { return changed_; }
    std::string take_output() { return take(output_); }
    std::string take_errors() { return take(errors_); }
    [[nodiscard]] bool streams_ended() const { return output_.ended && errors_.ended; }

    /// Only when input_idle(). Bytes that the child no longer wants are dropped.
    void write(std::string bytes);
    void close_input();
    [[nodiscard]] bool input_idle() const { return !writing_; }

    /// After the process was reaped: its status or signal.
    [[nodiscard]] bool exited() const { return exited_; }
    [[nodiscard]] std::optional<int> exit_status() const { return exit_status_; }
    [[nodiscard]] std::optional<int> signal() const { return signal_; }
    [[nodiscard]] pid_t pid() const { return pid_; }

    /// SIGTERM to its whole group.
    void terminate() const;
    /// Closes the streams; from here on the process is on its own.
    void close();

private:
    struct Stream {
        explicit Stream(const boost::asio::any_io_executor& executor) : descriptor{executor} {}
        boost::asio::posix::stream_descriptor descriptor;
        std::string buffer;
        bool reading = false;
        bool ended = false;
    };

    explicit Child(const boost::asio::any_io_executor& executor);
    void read(Stream& stream);
    void watch_exit();
    std::string take(Stream& stream);

    Event changed_;
    Stream output_;
    Stream errors_;
    boost::asio::local::stream_protocol::socket input_;
    boost::asio::posix::stream_descriptor process_;   ///< a pidfd: readable once the process has ended
    std::string unwritten_;
    bool writing_ = false;
    pid_t pid_ = -1;
    bool exited_ = false;
    std::optional<int> exit_status_;
    std::optional<int> signal_;
};

}   // namespace campaign::host
