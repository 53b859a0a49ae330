#include <libssh/libssh.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "adapters/host/stream_host.hpp"
#include "adapters/ssh/forwarder.hpp"
#include "adapters/ssh/link.hpp"
#include "adapters/ssh/ssh.hpp"
#include "base/quote.hpp"
#include "base/text.hpp"

namespace campaign::ssh {

namespace {

namespace asio = boost::asio;
using host::Ending;
using host::Exchange;
using host::Finished;

/// sshd allows ten sessions a connection unless configured otherwise; two are left for what we do not know of.
constexpr int most_channels = 8;
constexpr std::chrono::seconds open_limit{10};
constexpr std::chrono::seconds grace{2};
constexpr std::chrono::milliseconds retry_pause{250};
constexpr std::size_t read_piece = 64u << 10;
constexpr std::size_t read_round = 1u << 20;   ///< before others get their turn

class SshHost final : public host::StreamHost {
public:
    SshHost(asio::any_io_executor executor, Clock& clock, Random& random, SshTarget target)
        : StreamHost{target.name, target.sudo, clock, random},
          executor_{executor},
          link_{std::make_shared<Link>(std::move(executor), clock, random, std::move(target))} {}
    ~SshHost() override {
        for (const auto& [where, forwarder] : forwarders_) forwarder->close();
        link_->disconnect();
    }

    Async<Result<host::Reach>> reach(std::string address, int port) override;
    void disconnect() override { link_->disconnect(); }

protected:
    Async<Result<Finished>> exchange(Exchange& exchange) override;

private:
    struct Slot {
        explicit Slot(SshHost& of) : host{of} { ++host.in_use_; }
        ~Slot() {
            --host.in_use_;
            host.slots_.notify();
        }
        Slot(const Slot&) = delete;
        Slot& operator=(const Slot&) = delete;
        SshHost& host;
    };

    Async<Result<std::shared_ptr<Channel>>> open_channel(std::unique_ptr<Slot>& slot, MonoTime deadline);
    bool drain(Channel& channel, Exchange& exchange);
    Async<Result<Finished>> converse(Channel& channel, Exchange& exchange, MonoTime began);

    asio::any_io_executor executor_;
    std::shared_ptr<Link> link_;
    std::map<std::string, std::shared_ptr<Forwarder>> forwarders_;
    int budget_ = most_channels;
    std::weak_ptr<Session> budget_of_;   ///< a new connection has its sessions anew
    int in_use_ = 0;
    host::Event slots_;
};

Async<Result<std::shared_ptr<Channel>>> SshHost::open_channel(std::unique_ptr<Slot>& slot, MonoTime deadline) {
    bool reconnected = false;
    while (true) {
        const Result<std::shared_ptr<Session>> session = co_await link_->session(deadline);
        if (!session) co_return session.error();
        if (budget_of_.lock() != *session) {
            budget_of_ = *session;
            budget_ = most_channels;
        }
        while (in_use_ >= budget_) {
            if (clock_.mono() >= deadline) {
                co_return Error{ErrorKind::unreachable, "no session on " + name_ + " became free in time",
                                std::to_string(in_use_) + " of " + std::to_string(budget_) + " are in use", "", ""};
            }
            co_await slots_.wait_until(deadline);
        }
        slot = std::make_unique<Slot>(*this);
        const MonoTime open_by = std::min(deadline, clock_.mono() + open_limit);
        Result<std::shared_ptr<Channel>> opened = co_await (*session)->open_command(open_by);
        if (opened) co_return opened;
        slot.reset();
        if (opened.error().kind != ErrorKind::refused) {
            // The connection had died unnoticed. Nothing was started, so a new one may try.
            if ((*session)->alive() || reconnected) co_return opened.error();
            reconnected = true;
            continue;
        }
        budget_ = std::max(1, std::min(budget_ - 1, in_use_));
        if (clock_.mono() + retry_pause >= deadline) {
            co_return Error{ErrorKind::unreachable, name_ + " refuses more sessions (MaxSessions)",
                            std::to_string(in_use_) + " are open", opened.error().why,
                            "raise MaxSessions in its sshd_config"};
        }
        const MonoTime again = clock_.mono() + retry_pause;
        co_await slots_.wait_until(again);
    }
}

bool SshHost::drain(Channel& channel, Exchange& exchange) {
    bool moved = false;
    for (const bool errors : {true, false}) {
        for (std::size_t taken = 0; taken < read_round && !exchange.framed.stopped();) {
            const std::string bytes = channel.read(errors, read_piece);
            if (bytes.empty()) break;
            taken += bytes.size();
            moved = true;
            errors ? exchange.framed.errors(bytes) : exchange.framed.output(bytes);
        }
    }
    return moved;
}

Async<Result<Finished>> SshHost::exchange(Exchange& exchange) {
    const MonoTime began = clock_.mono();
    const MonoTime start_by = began + exchange.deadline;
    std::unique_ptr<Slot> slot;
    const Result<std::shared_ptr<Channel>> opened = co_await open_channel(slot, start_by);
    if (!opened) co_return opened.error();
    const std::shared_ptr<Channel> channel = *opened;
    const std::string line = shell_command(exchange.argv);
    const MonoTime asked_by = std::min(start_by, clock_.mono() + open_limit);
    const Result<void> started = co_await channel->exec(line, asked_by);
    if (!started) {
        Error error = started.error();
        error.what += " (" + exchange.shown + ")";
        channel->close();
        co_return error;
    }
    Result<Finished> finished = co_await converse(*channel, exchange, began);
    channel->close();
    co_return finished;
}

Async<Result<Finished>> SshHost::converse(Channel& channel, Exchange& exchange, MonoTime began) {
    Session& session = channel.session();
    Ending ending;
    ending.host = name_;
    ending.shown = exchange.shown;
    MonoTime last_byte = clock_.mono();
    std::optional<MonoTime> over_at;
    std::string input;
    bool input_open = exchange.has_input;
    if (!input_open) channel.send_eof();
    while (true) {
        bool moved = drain(channel, exchange);
        const MonoTime now = clock_.mono();
        if (exchange.framed.stopped()) {
            if (exchange.endless) channel.terminate();
            break;
        }
        const bool over = channel.closed() || channel.exit_status() || channel.signal();
        if (exchange.framed.complete() && over) break;
        if (!moved && channel.closed()) break;
        if (!moved && !session.alive()) {
            ending.lost = session.lost();
            break;
        }
        if ((over || exchange.framed.ended()) && !over_at) over_at = now + grace;
        if (!moved && over_at && now >= *over_at) break;

        if (input_open && !over) {
            if (input.empty()) {
                Result<std::string> next = exchange.next_input();
                if (!next) co_return next.error();
                input = std::move(*next);
                if (input.empty()) {
                    channel.send_eof();
                    input_open = false;
                }
            }
            const std::size_t sent = channel.write(input);
            input.erase(0, sent);
            moved = moved || sent > 0;
        }
        if (moved) last_byte = now;
        MonoTime deadline = MonoTime::max();
        if (!exchange.endless) deadline = (exchange.idle ? last_byte : began) + exchange.deadline;
        if (now >= deadline) {
            ending.deadline = true;
            break;
        }
        // After a full round the loop gets its turn before the next.
        const MonoTime until = moved ? now : over_at ? std::min(*over_at, deadline) : deadline;
        co_await session.changed().wait_until(until);
    }
    ending.after = clock_.mono() - began;
    ending.exit_status = channel.exit_status();
    ending.signal = channel.signal();
    co_return exchange.framed.verdict(ending);
}

Async<Result<host::Reach>> SshHost::reach(std::string address, int port) {
    if (port < 1 || port > 65535 || address.empty()) {
        co_return Error{ErrorKind::usage, "not an address: " + printable(address, 100) + ":" + std::to_string(port), "", "",
                        ""};
    }
    const MonoTime deadline = clock_.mono() + std::chrono::seconds{60};
    const Result<std::shared_ptr<Session>> session = co_await link_->session(deadline);
    if (!session) co_return session.error();
    const std::string where = address + ":" + std::to_string(port);
    std::shared_ptr<Forwarder>& forwarder = forwarders_[where];
    if (forwarder == nullptr) {
        auto made = std::make_shared<Forwarder>(executor_, clock_, link_, address, port);
        if (const auto listening = made->listen(); !listening) {
            forwarders_.erase(where);
            co_return listening.error();
        }
        forwarder = std::move(made);
    }
    co_return host::Reach{forwarder->path(), true};
}

}   // namespace

std::shared_ptr<host::Host> make_ssh_host(asio::any_io_executor executor, Clock& clock, Random& random, SshTarget target) {
    static std::once_flag started;   // libssh's own global state: its ciphers and threads
    std::call_once(started, [] { ssh_init(); });
    return std::make_shared<SshHost>(std::move(executor), clock, random, std::move(target));
}

}   // namespace campaign::ssh
