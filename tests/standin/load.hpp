#pragma once
// What a vLLM of mid 2026 prints while it loads, and when. Order and wording as in the start-up logs in its public issues.

#include <functional>
#include <vector>

#include "tests/standin/log.hpp"
#include "tests/standin/options.hpp"

namespace standin {

/// Something said after a share (0 to 1) of the load has passed.
struct LoadMoment {
    double share;
    std::function<void(const Log&)> speak;
};

/// Ends with the engine's last line; what the API process says afterwards is ready_lines().
[[nodiscard]] std::vector<LoadMoment> load_script(const Options& options);

/// Routes, profiler warning, uvicorn's start: up to "Application startup complete."
void ready_lines(const Log& log, const Options& options, unsigned short port);

/// vLLM's own lines of a load that failed.
void say_out_of_memory(const Log& log);
void say_engine_failed(const Log& log);
void say_port_in_use(const Log& log);

}   // namespace standin
