#pragma once
// The profiler routes' inside: records steps between start and stop, and writes the trace files slowly.

#include "tests/standin/engine.hpp"
#include "tests/standin/log.hpp"
#include "tests/standin/truth.hpp"

namespace standin {

class Profile {
public:
    Profile(asio::io_context& io, const Options& options, const Log& log, const Truth& truth, Engine& engine);

    /// Starting twice is ignored, as vLLM's workers do.
    void start();
    /// Returns when all files are whole (fault `early`: at once). Without a start: nothing.
    Async<void> stop();
    void step(const Step& step);

    [[nodiscard]] bool active() const { return active_; }
    [[nodiscard]] boost::json::object summary() const;

private:
    Async<void> write_traces();
    Async<void> write_slowly(std::vector<std::pair<std::string, std::string>> files);
    void write_table() const;

    asio::io_context& io_;
    const Options& options_;
    const Log& log_;
    const Truth& truth_;
    Engine& engine_;
    bool active_ = false;      ///< between start and stop
    bool recording_ = false;   ///< within the delay and limit of iterations
    bool exporting_ = false;
    bool first_cycle_ = true;
    int seen_ = 0;
    std::vector<Step> steps_;
    std::vector<std::string> written_;
    asio::steady_timer exported_;
};

}   // namespace standin
