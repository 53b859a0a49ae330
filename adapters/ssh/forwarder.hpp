#pragma once
// A unix socket here that leads to a port of the host's own network.

#include <boost/asio/local/stream_protocol.hpp>
#include <memory>
#include <set>

#include "adapters/ssh/joint.hpp"
#include "adapters/ssh/link.hpp"

namespace campaign::ssh {

/// Listens in a 0700 folder of its own; each connection becomes a channel. Where nothing listens over there the connection
/// is closed without a byte.
class Forwarder : public std::enable_shared_from_this<Forwarder> {
public:
    Forwarder(boost::asio::any_io_executor executor, Clock& clock, std::shared_ptr<Link> link, std::string address,
              int port);
    ~Forwarder();

    Result<void> listen();
    [[nodiscard]] const std::string& path() const { return path_; }
    /// No more connections; those there are end.
    void close();

private:
    void accept();
    static Async<> serve(std::shared_ptr<Forwarder> self, std::shared_ptr<LocalEnd> local);

    boost::asio::any_io_executor executor_;
    Clock& clock_;
    std::shared_ptr<Link> link_;
    std::string address_;
    int port_;
    std::string folder_;
    std::string path_;
    boost::asio::local::stream_protocol::acceptor acceptor_;
    boost::asio::steady_timer pause_;
    std::set<std::shared_ptr<LocalEnd>> open_;
};

}   // namespace campaign::ssh
