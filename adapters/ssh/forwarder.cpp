#include "adapters/ssh/forwarder.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <cerrno>
#include <cstdlib>
#include <system_error>

namespace campaign::ssh {

namespace asio = boost::asio;
using Protocol = asio::local::stream_protocol;

namespace {

constexpr std::chrono::seconds open_limit{10};
constexpr std::size_t longest_folder = 60;   // a unix socket's path has 107 bytes

std::string runtime_folder() {
    const char* runtime = std::getenv("RUNTIME_DIRECTORY");   // systemd's, for a service
    if (runtime == nullptr) runtime = std::getenv("XDG_RUNTIME_DIR");
    const std::string folder = runtime == nullptr ? "" : runtime;
    const bool usable = !folder.empty() && folder.size() <= longest_folder && ::access(folder.c_str(), W_OK) == 0;
    return usable ? folder : "/tmp";
}

}   // namespace

Forwarder::Forwarder(asio::any_io_executor executor, Clock& clock, std::shared_ptr<Link> link, std::string address, int port)
    : executor_{std::move(executor)},
      clock_{clock},
      link_{std::move(link)},
      address_{std::move(address)},
      port_{port},
      acceptor_{executor_},
      pause_{executor_} {}

Forwarder::~Forwarder() {
    close();
}

Result<void> Forwarder::listen() {
    std::string pattern = runtime_folder() + "/campaignd-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) {
        return Error{ErrorKind::io, "cannot make a folder for a tunnel", std::generic_category().message(errno), pattern,
                     ""};
    }
    folder_ = pattern;
    path_ = folder_ + "/" + std::to_string(port_);
    boost::system::error_code error;
    acceptor_.open(Protocol{}, error);
    if (!error) acceptor_.bind(Protocol::endpoint{path_}, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error) return Error{ErrorKind::io, "cannot listen on " + path_, error.message(), "", ""};
    accept();
    return {};
}

void Forwarder::accept() {
    acceptor_.async_accept([weak = weak_from_this()](boost::system::error_code error, Protocol::socket socket) {
        const auto self = weak.lock();
        if (!self || error == asio::error::operation_aborted) return;
        if (error) {
            // Out of descriptors: others may be given back meanwhile.
            self->pause_.expires_after(std::chrono::milliseconds{200});
            self->pause_.async_wait([weak](boost::system::error_code stopped) {
                if (const auto again = weak.lock(); again && !stopped) again->accept();
            });
            return;
        }
        const auto local = std::make_shared<LocalEnd>(std::move(socket));
        self->open_.insert(local);
        Async<> served = serve(self, local);
        asio::co_spawn(self->executor_, std::move(served), asio::detached);
        self->accept();
    });
}

Async<> Forwarder::serve(std::shared_ptr<Forwarder> self, std::shared_ptr<LocalEnd> local) {
    const std::weak_ptr<Forwarder> weak = self;
    const std::shared_ptr<Link> link = self->link_;
    const std::string address = self->address_;
    const int port = self->port_;
    const MonoTime deadline = self->clock_.mono() + open_limit;
    self.reset();   // a connection does not keep its forwarder: who closes that closes this
    const Result<std::shared_ptr<Session>> session = co_await link->session(deadline);
    if (session) {
        const Result<std::shared_ptr<Channel>> opened = co_await (*session)->open_forward(address, port, deadline);
        if (opened) {
            const std::shared_ptr<Channel> channel = *opened;
            co_await join(channel, local);
        }
    }
    local->close();
    if (const auto owner = weak.lock()) owner->open_.erase(local);
}

void Forwarder::close() {
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
    for (const auto& local : open_) local->close();
    open_.clear();
    if (!path_.empty()) ::unlink(path_.c_str());
    if (!folder_.empty()) ::rmdir(folder_.c_str());
    path_.clear();
    folder_.clear();
}

}   // namespace campaign::ssh
