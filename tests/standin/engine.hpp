#pragma once
// The pretended engine: continuous batching with exact timing. Each step has a length that follows from what is in it, and
// starts where the one before ended, by an absolute schedule: nothing drifts, however long it runs.

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "tests/standin/asio.hpp"
#include "tests/standin/options.hpp"
#include "tests/standin/trace.hpp"

namespace standin {

/// One request in the engine.
struct Sequence {
    Sequence(asio::io_context& io, int prompt, int tokens) : prompt_tokens{prompt}, max_tokens{tokens}, changed{io} {
        changed.expires_at(asio::steady_timer::time_point::max());
    }
    int prompt_tokens;
    int max_tokens;
    int prefilled = 0;
    int produced = 0;
    bool aborted = false;
    [[nodiscard]] bool finished() const { return produced >= max_tokens; }

    asio::steady_timer changed;   ///< cancelled whenever `produced` grows
};

struct EngineTotals {
    long long prompt_tokens = 0;
    long long generated_tokens = 0;
    long long steps = 0;
};

class Engine {
public:
    Engine(asio::io_context& io, const Options& options);

    std::shared_ptr<Sequence> submit(int prompt_tokens, int max_tokens);
    /// Called after each step.
    std::function<void(const Step&)> on_step;
    /// No step begins while it is paused (the export of a profile blocks the real one too).
    void pause(bool on);
    Async<void> run();

    [[nodiscard]] std::size_t running() const { return running_.size(); }
    [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }
    [[nodiscard]] const EngineTotals& totals() const { return totals_; }

private:
    using Clock = std::chrono::steady_clock;
    void admit();
    /// What the next step does; marks the context tokens as taken.
    Step compose(std::vector<std::shared_ptr<Sequence>>& yields);
    Async<void> until_woken();

    asio::io_context& io_;
    const Options& options_;
    asio::steady_timer wake_;
    asio::steady_timer step_timer_;
    bool paused_ = false;
    std::deque<std::shared_ptr<Sequence>> waiting_;
    std::vector<std::shared_ptr<Sequence>> running_;
    EngineTotals totals_;
};

/// Length of a step with that content.
[[nodiscard]] std::chrono::nanoseconds step_length(const Pace& pace, int generating, int context_tokens);

}   // namespace standin
