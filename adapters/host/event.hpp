#pragma once
// Something has changed: wakes every coroutine of one loop that waits for it.

#include <boost/asio/any_io_executor.hpp>
#include <vector>

#include "base/clock.hpp"

namespace campaign::host {

/// Waiters look at the state themselves after each wake. One thread. The waits of the real transports end by their own
/// timers here (a readiness and a deadline in one wait); `Clock` says what time it is.
class Event {
public:
    Event() = default;
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;

    void notify();
    /// Returns after the next notify() or at `deadline`. Throws operation_aborted when the coroutine is cancelled.
    Async<> wait_until(MonoTime deadline);

private:
    class Waiter;
    std::vector<Waiter*> waiters_;
};

/// Throws operation_aborted if the coroutine has been told to stop.
Async<> stop_if_cancelled();

}   // namespace campaign::host
