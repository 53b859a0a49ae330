#pragma once
// The way to one host: its configuration, its one connection, and when to make a new one.

#include <memory>
#include <optional>

#include "adapters/ssh/config.hpp"
#include "adapters/ssh/session.hpp"
#include "base/random.hpp"

namespace campaign::ssh {

/// How long to wait after the nth failure in a row: 1 s doubled up to 30 s, of which a random part of a half.
[[nodiscard]] std::chrono::milliseconds backoff(int failures, double unit);

class Link : public std::enable_shared_from_this<Link> {
public:
    Link(boost::asio::any_io_executor executor, Clock& clock, Random& random, SshTarget target, int depth = 0);
    ~Link();

    /// The live session, made if need be. One attempt at a time: who comes during it gets its outcome. After a failure the
    /// next attempt waits for the back-off; if that ends after `deadline`, the last error is given at once.
    Async<Result<std::shared_ptr<Session>>> session(MonoTime deadline);
    void disconnect();

private:
    Async<Result<std::shared_ptr<Session>>> connect();
    Async<Result<void>> configure();
    Async<Result<Fd>> dial();
    Async<Result<Fd>> dial_directly();
    Async<Result<Fd>> dial_through_jump();

    boost::asio::any_io_executor executor_;
    Clock& clock_;
    Random& random_;
    SshTarget target_;
    int depth_;
    std::optional<HostConfig> config_;
    std::shared_ptr<Link> jump_;
    std::shared_ptr<Session> session_;
    bool connecting_ = false;
    std::uint64_t attempts_ = 0;
    int failures_ = 0;
    MonoTime not_before_{};
    std::optional<Error> last_error_;
    host::Event changed_;
};

}   // namespace campaign::ssh
