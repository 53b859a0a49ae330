#include "adapters/host/event.hpp"

#include <algorithm>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace campaign::host {

namespace asio = boost::asio;

class Event::Waiter {
public:
    Waiter(Event& event, const asio::any_io_executor& executor, MonoTime deadline)
        : event_{event}, timer{executor, deadline} {
        event_.waiters_.push_back(this);
    }
    ~Waiter() { std::erase(event_.waiters_, this); }
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

private:
    Event& event_;

public:
    asio::steady_timer timer;
};

void Event::notify() {
    for (Waiter* waiter : waiters_) waiter->timer.cancel();
}

Async<> Event::wait_until(MonoTime deadline) {
    const asio::any_io_executor executor = co_await asio::this_coro::executor;
    Waiter waiter{*this, executor, deadline};
    boost::system::error_code ignored;
    co_await waiter.timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    co_await stop_if_cancelled();
}

Async<> stop_if_cancelled() {
    const asio::cancellation_state state = co_await asio::this_coro::cancellation_state;
    if (state.cancelled() != asio::cancellation_type::none) {
        throw boost::system::system_error{asio::error::operation_aborted};
    }
}

}   // namespace campaign::host
