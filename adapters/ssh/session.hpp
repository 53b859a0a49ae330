#pragma once
// One ssh connection on the loop: the only code that calls libssh.
//
// libssh is used without ever blocking: it gets a connected non-blocking descriptor, each call that would wait is made again
// when something has changed, and after each call the descriptor's wish to write is asked for anew. A call may decode
// packets for any channel, so whatever moved wakes every waiter of the session.

#include <libssh/callbacks.h>
#include <libssh/libssh.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/host/event.hpp"
#include "adapters/ssh/config.hpp"
#include "base/error.hpp"
#include "base/fd.hpp"

namespace campaign::ssh {

class Channel;

class Session : public std::enable_shared_from_this<Session> {
public:
    Session(boost::asio::any_io_executor executor, Clock& clock, std::string host);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    /// Key exchange, host key, login over a connected stream; then the session is pumped and watched by itself.
    /// Errors: unreachable, identity, refused, protocol. A session that failed here is only good for destruction.
    Async<Result<void>> open(Fd connected, HostConfig config);

    [[nodiscard]] bool alive() const { return open_ && !lost_; }
    /// Why it is over, to be put behind "link to HOST": "closed by peer", ...
    [[nodiscard]] std::string lost() const { return lost_.value_or("closed"); }
    /// Ends it: all waiters find it lost for this reason.
    void end(std::string reason);
    host::Event& changed() { return changed_; }

    /// A channel for one command. refused: the host allows no more of them now. unreachable: nothing was opened.
    Async<Result<std::shared_ptr<Channel>>> open_command(MonoTime deadline);
    /// A connection from the host to `address`:`port`. refused: nothing listens there, or it is forbidden.
    Async<Result<std::shared_ptr<Channel>>> open_forward(std::string address, int port, MonoTime deadline);

private:
    friend class Channel;
    using Step = std::function<int()>;

    Async<Result<int>> repeat(const Step& step, int again, MonoTime deadline, std::string_view phase);
    Async<Result<void>> log_in(const HostConfig& config);
    Async<bool> agent_answers(std::string path);
    Async<Result<std::shared_ptr<Channel>>> open_channel(std::function<int(ssh_channel)> open, MonoTime deadline,
                                                         std::string what);
    Result<void> set_options(const HostConfig& config, const std::vector<std::string>& known_types, int socket);
    Result<void> check_host_key(const HostConfig& config);
    Error failure(ErrorKind kind, std::string_view phase) const;

    void after();
    void arm();
    void forget_fd();
    void on_ready();
    void pump();
    void watch();
    void tend_abandoned();

    boost::asio::any_io_executor executor_;
    Clock& clock_;
    std::string host_;
    ssh_session raw_ = nullptr;
    ssh_event event_ = nullptr;
    ssh_counter_struct counter_{};
    std::uint64_t seen_bytes_ = 0;   ///< in and out, when waiters were last woken
    std::uint64_t seen_events_ = 0;
    std::uint64_t events_ = 0;                   ///< channel callbacks so far
    boost::asio::posix::stream_descriptor fd_;   ///< a duplicate: libssh closes its own when it likes
    bool waiting_read_ = false;
    bool waiting_write_ = false;
    bool open_ = false;
    std::optional<std::string> lost_;
    host::Event changed_;
    boost::asio::steady_timer watch_timer_;
    std::uint64_t watched_bytes_ = 0;
    int quiet_ = 0;
    /// Channels whose opener went away before the answer: closed once it is there, or they would stay open over there.
    std::vector<std::function<bool()>> abandoned_;
};

/// RAII over one libssh channel. Every call is followed by what Session needs.
class Channel {
public:
    Channel(std::shared_ptr<Session> session, ssh_channel raw);
    ~Channel();
    Channel(const Channel&) = delete;
    Channel& operator=(const Channel&) = delete;

    [[nodiscard]] Session& session() { return *session_; }
    /// Asks for the command. refused: the host said no; in_doubt: it may have been started.
    Async<Result<void>> exec(std::string line, MonoTime deadline);

    /// What has come, at most `most` bytes; empty: nothing yet, or the end (see ended()).
    std::string read(bool errors, std::size_t most);
    /// How much of it was taken; 0 while the window is closed.
    std::size_t write(std::string_view bytes);
    void send_eof();
    /// Asks the host to end the command (SIGTERM to its session), without waiting for anything.
    void terminate();
    /// Gives the channel up. The command over there is not ended by that.
    void close();

    [[nodiscard]] bool eof() const { return eof_; }
    [[nodiscard]] bool closed() const { return closed_; }
    [[nodiscard]] std::optional<int> exit_status() const { return exit_status_; }
    [[nodiscard]] std::optional<std::string> signal() const { return signal_; }

private:
    std::shared_ptr<Session> session_;
    ssh_channel raw_;
    ssh_channel_callbacks_struct callbacks_{};
    bool eof_ = false;
    bool closed_ = false;
    std::optional<int> exit_status_;
    std::optional<std::string> signal_;
};

}   // namespace campaign::ssh
