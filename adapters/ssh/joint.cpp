#include "adapters/ssh/joint.hpp"

#include <poll.h>

#include <boost/asio/write.hpp>

namespace campaign::ssh {

namespace asio = boost::asio;

namespace {

constexpr std::size_t read_piece = 64u << 10;
constexpr std::size_t write_piece = 256u << 10;
/// How often a half-closed local peer is asked whether it is gone altogether: nothing else would tell.
constexpr std::chrono::seconds peer_check{1};

}   // namespace

void LocalEnd::close() {
    broken_ = true;
    boost::system::error_code ignored;
    socket_.close(ignored);
}

void LocalEnd::read(const std::shared_ptr<Session>& session) {
    reading_ = true;
    inbound_.resize(read_piece);
    socket_.async_read_some(asio::buffer(inbound_),
                            [self = shared_from_this(), session](boost::system::error_code error, std::size_t got) {
                                self->reading_ = false;
                                self->inbound_.resize(got);
                                if (error) self->ended_ = true;
                                session->changed().notify();
                            });
}

void LocalEnd::write(const std::shared_ptr<Session>& session, std::string bytes) {
    writing_ = true;
    outbound_ = std::move(bytes);
    asio::async_write(socket_, asio::buffer(outbound_),
                      [self = shared_from_this(), session](boost::system::error_code error, std::size_t) {
                          self->writing_ = false;
                          self->outbound_.clear();
                          if (error) self->broken_ = true;
                          session->changed().notify();
                      });
}

bool LocalEnd::peer_gone() {
    pollfd asked{socket_.native_handle(), 0, 0};
    return ::poll(&asked, 1, 0) > 0 && (asked.revents & (POLLHUP | POLLERR)) != 0;
}

Async<> join(std::shared_ptr<Channel> channel, std::shared_ptr<LocalEnd> local) {
    const std::shared_ptr<Session> session = channel->session().shared_from_this();
    bool told_host = false;   // that no more comes from here
    bool told_peer = false;
    while (!local->broken_) {
        bool moved = false;
        if (!local->reading_ && !local->inbound_.empty()) {
            const std::size_t sent = channel->write(local->inbound_);
            local->inbound_.erase(0, sent);
            moved = sent > 0;
        }
        if (!local->reading_ && local->inbound_.empty()) {
            if (!local->ended_) {
                local->read(session);
            } else if (!told_host) {
                channel->send_eof();
                told_host = true;
            } else if (!told_peer && local->peer_gone()) {
                break;
            }
        }
        if (!local->writing_ && !told_peer) {
            std::string bytes = channel->read(false, write_piece);
            if (!bytes.empty()) {
                local->write(session, std::move(bytes));
                moved = true;
            } else if (channel->eof() || !session->alive()) {
                boost::system::error_code ignored;
                local->socket_.shutdown(asio::socket_base::shutdown_send, ignored);
                told_peer = true;
            }
        }
        if (told_peer && (told_host || channel->closed() || !session->alive())) break;
        if (moved) continue;
        const MonoTime until = told_host ? std::chrono::steady_clock::now() + peer_check : MonoTime::max();
        co_await session->changed().wait_until(until);
    }
    channel->close();
    local->close();
}

}   // namespace campaign::ssh
