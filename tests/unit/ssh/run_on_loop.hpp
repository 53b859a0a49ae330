#pragma once
// Runs one coroutine on a loop of its own until it ends.

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <functional>
#include <optional>
#include <utility>

#include "base/clock.hpp"

namespace campaign {

/// The loop does other work too, but is not waited for once the coroutine has ended.
template <class T>
T run_on_loop(boost::asio::io_context& loop, Async<T> work) {
    std::optional<T> result;
    std::exception_ptr thrown;
    boost::asio::co_spawn(loop, std::move(work), [&](std::exception_ptr error, T value) {
        thrown = error;
        result.emplace(std::move(value));
        loop.stop();
    });
    loop.restart();
    loop.run();
    if (thrown) std::rethrow_exception(thrown);
    return std::move(*result);
}

}   // namespace campaign
