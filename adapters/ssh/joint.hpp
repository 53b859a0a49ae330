#pragma once
// A channel and a local stream made one: what jump hosts and forwarded connections run over.

#include <boost/asio/local/stream_protocol.hpp>
#include <memory>

#include "adapters/ssh/session.hpp"

namespace campaign::ssh {

/// The local side. close() from outside ends the joint.
class LocalEnd : public std::enable_shared_from_this<LocalEnd> {
public:
    explicit LocalEnd(boost::asio::local::stream_protocol::socket socket) : socket_{std::move(socket)} {}
    void close();

private:
    friend Async<> join(std::shared_ptr<Channel> channel, std::shared_ptr<LocalEnd> local);
    void read(const std::shared_ptr<Session>& session);
    void write(const std::shared_ptr<Session>& session, std::string bytes);
    [[nodiscard]] bool peer_gone();

    boost::asio::local::stream_protocol::socket socket_;
    std::string inbound_;    ///< from the local peer, not yet sent
    std::string outbound_;   ///< to the local peer, on its way
    bool reading_ = false;
    bool writing_ = false;
    bool ended_ = false;   ///< the local peer sends no more
    bool broken_ = false;
};

/// Carries bytes both ways until both directions have ended, or either side is gone. What the channel still holds when the
/// far side ends is delivered first. Memory: 64 KiB to the host, 256 KiB from it, beside libssh's window.
Async<> join(std::shared_ptr<Channel> channel, std::shared_ptr<LocalEnd> local);

}   // namespace campaign::ssh
