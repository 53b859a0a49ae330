#include "adapters/local/local.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>

#include "adapters/host/child.hpp"
#include "adapters/host/stream_host.hpp"

namespace campaign::local {

namespace {

using host::Child;
using host::Ending;
using host::Exchange;
using host::Finished;

/// After the trailer, or after the process: how long the other signs of the end may take.
constexpr std::chrono::seconds grace{2};

class LocalHost final : public host::StreamHost {
public:
    LocalHost(boost::asio::any_io_executor executor, Clock& clock, Random& random, std::string name, bool sudo)
        : StreamHost{std::move(name), sudo, clock, random}, executor_{std::move(executor)} {}

    Async<Result<host::Reach>> reach(std::string, int) override { co_return host::Reach{}; }
    void disconnect() override {}

protected:
    Async<Result<Finished>> exchange(Exchange& exchange) override;

private:
    boost::asio::any_io_executor executor_;
    std::vector<std::shared_ptr<Child>> abandoned_;   ///< reaped when they end
};

/// Streams close with the waiter, however it ends; a process still alive is watched until it can be reaped.
class Owned {
public:
    Owned(std::shared_ptr<Child> child, bool endless, std::vector<std::shared_ptr<Child>>& abandoned)
        : child_{std::move(child)}, endless_{endless}, abandoned_{abandoned} {}
    ~Owned() {
        if (endless_) child_->terminate();
        child_->close();
        if (!child_->exited()) abandoned_.push_back(child_);
    }
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;

private:
    std::shared_ptr<Child> child_;
    bool endless_;
    std::vector<std::shared_ptr<Child>>& abandoned_;
};

Async<Result<Finished>> LocalHost::exchange(Exchange& exchange) {
    std::erase_if(abandoned_, [](const std::shared_ptr<Child>& child) { return child->exited(); });
    const MonoTime began = clock_.mono();
    Result<std::shared_ptr<Child>> started = Child::start(executor_, exchange.argv, exchange.has_input);
    if (!started) co_return started.error();
    Child& child = **started;
    const Owned owned{*started, exchange.endless, abandoned_};

    bool input_open = exchange.has_input;
    MonoTime last_byte = began;
    std::optional<MonoTime> over_at;   // the grace, once an end was seen
    Ending ending;
    ending.host = name_;
    ending.shown = exchange.shown;
    while (true) {
        const std::string output = child.take_output();
        const std::string errors = child.take_errors();
        exchange.framed.errors(errors);
        exchange.framed.output(output);
        const MonoTime now = clock_.mono();
        if (!output.empty() || !errors.empty()) last_byte = now;
        if (exchange.framed.stopped() || exchange.framed.complete()) break;
        if (child.exited() && child.streams_ended()) break;
        if ((child.exited() || exchange.framed.ended()) && !over_at) over_at = now + grace;
        if (over_at && now >= *over_at) break;

        if (input_open && child.input_idle()) {
            Result<std::string> next = exchange.next_input();
            if (!next) co_return next.error();
            last_byte = now;
            if (next->empty()) {
                child.close_input();
                input_open = false;
            } else {
                child.write(std::move(*next));
            }
            continue;
        }
        MonoTime deadline = MonoTime::max();
        if (!exchange.endless) deadline = (exchange.idle ? last_byte : began) + exchange.deadline;
        if (now >= deadline) {
            ending.deadline = true;
            break;
        }
        const MonoTime until = over_at ? std::min(*over_at, deadline) : deadline;
        co_await child.changed().wait_until(until);
    }
    // The wrapping shell ends right after its trailer: wait for it, so that no process is left to collect.
    const MonoTime collected_by = clock_.mono() + grace;
    while (exchange.framed.ended() && !child.exited() && clock_.mono() < collected_by) {
        co_await child.changed().wait_until(collected_by);
    }
    ending.after = clock_.mono() - began;
    ending.exit_status = child.exit_status();
    if (child.signal()) {
        const char* name = ::sigabbrev_np(*child.signal());
        ending.signal = name != nullptr ? name : std::to_string(*child.signal());
    }
    co_return exchange.framed.verdict(ending);
}

}   // namespace

std::shared_ptr<host::Host> make_local_host(boost::asio::any_io_executor executor, Clock& clock, Random& random,
                                            std::string name, bool sudo) {
    return std::make_shared<LocalHost>(std::move(executor), clock, random, std::move(name), sudo);
}

}   // namespace campaign::local
