#pragma once
// The seam to time: nothing in campaignd reads a clock or sleeps except through this.

#include <boost/asio/awaitable.hpp>
#include <chrono>

namespace campaign {

using WallTime = std::chrono::sys_time<std::chrono::microseconds>;
using MonoTime = std::chrono::steady_clock::time_point;
using Millis = std::chrono::milliseconds;
using Seconds = std::chrono::duration<double>;

template <class T = void>
using Async = boost::asio::awaitable<T>;

class Clock {
public:
    virtual ~Clock() = default;
    /// For records that people read. May jump; never used to measure.
    [[nodiscard]] virtual WallTime wall() const = 0;
    /// For deadlines and durations. Never jumps.
    [[nodiscard]] virtual MonoTime mono() const = 0;
    /// Resumes at `when`, or throws boost::system::system_error(operation_aborted) when the coroutine is cancelled.
    virtual Async<> sleep_until(MonoTime when) = 0;

    Async<> sleep_for(std::chrono::nanoseconds span) {
        const MonoTime when = mono() + std::chrono::duration_cast<MonoTime::duration>(span);
        return sleep_until(when);
    }
};

/// The machine's own clocks, sleeping on the coroutine's executor.
class SystemClock final : public Clock {
public:
    [[nodiscard]] WallTime wall() const override;
    [[nodiscard]] MonoTime mono() const override;
    Async<> sleep_until(MonoTime when) override;
};

}   // namespace campaign
