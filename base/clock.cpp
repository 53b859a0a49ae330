#include "base/clock.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace campaign {

WallTime SystemClock::wall() const {
    return std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
}

MonoTime SystemClock::mono() const {
    return std::chrono::steady_clock::now();
}

Async<> SystemClock::sleep_until(MonoTime when) {
    boost::asio::steady_timer timer{co_await boost::asio::this_coro::executor, when};
    co_await timer.async_wait(boost::asio::use_awaitable);
}

}   // namespace campaign
