#include "tests/standin/engine.hpp"

#include <algorithm>

#include "tests/standin/truth.hpp"

namespace standin {

std::chrono::nanoseconds step_length(const Pace& pace, int generating, int context_tokens) {
    const double ms =
        pace.token_ms + pace.batch_ms * std::max(0, generating - 1) + pace.prefill_us_per_token * context_tokens / 1000.0;
    return std::chrono::nanoseconds{static_cast<long long>(ms * 1e6)};
}

Engine::Engine(asio::io_context& io, const Options& options) : io_{io}, options_{options}, wake_{io}, step_timer_{io} {
    wake_.expires_at(Clock::time_point::max());
}

std::shared_ptr<Sequence> Engine::submit(int prompt_tokens, int max_tokens) {
    auto sequence = std::make_shared<Sequence>(io_, prompt_tokens, max_tokens);
    waiting_.push_back(sequence);
    wake_.cancel();
    return sequence;
}

void Engine::pause(bool on) {
    paused_ = on;
    if (!on) wake_.cancel();
}

Async<void> Engine::until_woken() {
    error_code ignored;
    co_await wake_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

void Engine::admit() {
    std::erase_if(running_, [](const auto& s) { return s->aborted || s->finished(); });
    std::erase_if(waiting_, [](const auto& s) { return s->aborted; });
    while (!waiting_.empty() && running_.size() < static_cast<std::size_t>(options_.max_num_seqs)) {
        running_.push_back(waiting_.front());
        waiting_.pop_front();
    }
}

Step Engine::compose(std::vector<std::shared_ptr<Sequence>>& yields) {
    Step step;
    int budget = options_.max_batched_tokens;
    for (const auto& sequence : running_) {
        const int left = sequence->prompt_tokens - sequence->prefilled;
        if (left <= 0) {
            ++step.generation_requests;
            yields.push_back(sequence);
        } else if (budget > 0) {
            const int taken = std::min(left, budget);
            budget -= taken;
            sequence->prefilled += taken;
            ++step.context_requests;
            step.context_tokens += taken;
            if (taken == left) yields.push_back(sequence);   // the last chunk yields the first token
        }
    }
    return step;
}

Async<void> Engine::run() {
    auto boundary = Clock::now();
    std::vector<std::shared_ptr<Sequence>> yields;
    for (;;) {
        admit();
        if (paused_ || running_.empty()) {
            co_await until_woken();
            boundary = Clock::now();
            continue;
        }
        yields.clear();
        Step step = compose(yields);
        const auto length = step_length(options_.pace, step.generation_requests, step.context_tokens);
        const auto behind = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - boundary).count();
        step.began_us = realtime_us() - behind;
        step.took_us = std::chrono::duration_cast<std::chrono::microseconds>(length).count();
        boundary += length;
        step_timer_.expires_at(boundary);
        co_await step_timer_.async_wait(asio::use_awaitable);
        for (const auto& sequence : yields) {
            ++sequence->produced;
            sequence->changed.cancel();
        }
        ++totals_.steps;
        totals_.prompt_tokens += step.context_tokens;
        totals_.generated_tokens += static_cast<long long>(yields.size());
        if (on_step) on_step(step);
    }
}

}   // namespace standin
