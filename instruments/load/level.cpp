#include "instruments/load/level.hpp"

#include <time.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cmath>

#include "instruments/load/prompt.hpp"

namespace campaign::load {
namespace {

namespace asio = boost::asio;
constexpr auto probe_period = std::chrono::milliseconds(10);
constexpr std::size_t connects_at_once = 128;
constexpr std::uint64_t spare_files = 24;   // standard streams, event loop, result file, and room to spare

double thread_cpu_s() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

double seconds_between(SteadyClock::time_point from, SteadyClock::time_point to) {
    return std::chrono::duration<double>(to - from).count();
}

}   // namespace

std::string Session::next_request() {
    const std::string prompt = make_prompt(spec.seed, next_index++, spec.input_tokens, token_ratio);
    return make_request(spec, make_body(spec, prompt), api_key);
}

Level::Level(Session& session, std::uint32_t concurrency, std::uint64_t number, bool warmup)
    : session_{session},
      warmup_{warmup},
      concurrency_{concurrency},
      number_{number},
      tally_{concurrency, {session.spec.input_tokens, session.spec.goodput, session.spec.detailed}},
      probe_{session.io} {
    if (warmup) {
        target_ = session.spec.warmup_requests;
    } else if (session.spec.requests) {
        target_ = *session.spec.requests;
    } else if (!session.spec.duration_s) {
        target_ = std::max<std::uint64_t>(8, 4ULL * concurrency);
    }
}

double Level::duration_s() const {
    return ran_ ? seconds_between(began_, ended_) : 0;
}

void Level::go(std::uint64_t file_limit) {
    if (concurrency_ + spare_files > file_limit) return refuse(file_limit);
    const std::uint64_t useful = target_ ? std::min<std::uint64_t>(concurrency_, *target_) : concurrency_;
    for (std::uint64_t i = 0; i < useful; ++i) lanes_.push_back(std::make_unique<Lane>(session_.room));
    paused_ = std::vector<std::unique_ptr<asio::steady_timer>>(lanes_.size());
    unopened_ = lanes_.size();
    probe_due_ = SteadyClock::now();
    arm_probe();
    for (std::size_t i = 0; i < std::min(connects_at_once, lanes_.size()); ++i) open_next();
    session_.io.restart();
    session_.io.run();   // until nothing is left: end() closes all, so that no handler outlives this level
}

void Level::refuse(std::uint64_t file_limit) {
    tally_.not_run("client_fd_limit");
    tally_.note("this process may open " + std::to_string(file_limit) + " files, too few for " +
                std::to_string(concurrency_) + " connections: raise its hard limit (LimitNOFILE=, ulimit -Hn)");
    const std::uint64_t count = target_.value_or(0);
    for (std::uint64_t i = 0; i < count && session_.on_record; ++i) {
        RequestRecord record;
        record.index = session_.next_record++;
        record.concurrency = concurrency_;
        record.failure_class = "client_fd_limit";
        record.error_message = "not sent: the client may not open enough files for this level";
        session_.on_record(record);
    }
}

void Level::open_next() {
    if (opening_ == lanes_.size()) return;
    lanes_[opening_++]->open([this] {
        if (over_) return;
        if (--unopened_ == 0) return begin();
        open_next();
    });
}

void Level::begin() {
    ran_ = true;
    began_ = ended_ = SteadyClock::now();
    tally_.begin(began_.time_since_epoch() / std::chrono::nanoseconds(1));
    cpu_began_ = thread_cpu_s();
    next_report_ = began_ + std::chrono::seconds(1);
    health_.lateness_ms.clear();
    for (std::size_t i = 0; i < lanes_.size(); ++i) start(i);
}

bool Level::may_start() const {
    if (stopping_ || unreachable_) return false;
    if (target_ && sent_ >= *target_) return false;
    const auto& limit = session_.spec.duration_s;
    return warmup_ || !limit || seconds_between(began_, SteadyClock::now()) < *limit;
}

void Level::start(std::size_t lane) {
    if (over_) return;
    if (!may_start()) {
        if (in_flight_ == 0 && pauses_ == 0) end();
        return;
    }
    ++sent_;
    ++in_flight_;
    const std::uint64_t index = warmup_ ? 0 : session_.next_record++;
    lanes_[lane]->send(session_.next_request(), [this, lane, index](RequestRecord record) {
        record.index = index;
        record.concurrency = concurrency_;
        finished(lane, record);
    });
}

void Level::finished(std::size_t lane, const RequestRecord& record) {
    ended_ = SteadyClock::now();
    --in_flight_;
    tally_.add(record);
    if (!warmup_ && session_.on_record) session_.on_record(record);
    if (warmup_ && record.usage && record.usage->prompt_tokens) {
        const auto words =
            static_cast<std::uint32_t>(std::max(1.0, std::round(session_.spec.input_tokens / session_.token_ratio)));
        ratio_ = tokens_per_word(words, *record.usage->prompt_tokens);
    }
    refusals_ = record.failure_class == "connect_failed" ? refusals_ + 1 : 0;
    if (refusals_ >= std::max<std::uint64_t>(8, concurrency_)) unreachable_ = true;
    // Not from within the lane's own callback; and a server that refuses quickly is not hammered.
    if (record.success()) {
        asio::post(session_.io, [this, lane] { start(lane); });
    } else {
        pause(lane);
    }
}

void Level::pause(std::size_t lane) {
    auto& timer = paused_[lane];
    if (!timer) timer = std::make_unique<asio::steady_timer>(session_.io);
    ++pauses_;
    timer->expires_after(may_start() && !target_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(0));
    timer->async_wait([this, lane](boost::system::error_code) {
        --pauses_;
        start(lane);
    });
}

void Level::arm_probe() {
    probe_due_ = std::max(probe_due_ + probe_period, SteadyClock::now());
    probe_.expires_at(probe_due_);
    probe_.async_wait([this](boost::system::error_code error) {
        if (error || over_) return;
        const auto now = SteadyClock::now();
        health_.lateness_ms.push_back(seconds_between(probe_due_, now) * 1e3);
        if (ran_ && !warmup_ && now >= next_report_) report(now);
        if (session_.stop.load(std::memory_order_relaxed) && !stopping_) stop();
        if (!over_) arm_probe();
    });
}

void Level::stop() {
    stopping_ = true;
    for (const auto& lane : lanes_) lane->give_up("cancelled", "the run was told to stop");
    for (const auto& timer : paused_) {
        if (timer) timer->cancel();
    }
    if (!ran_ || (in_flight_ == 0 && pauses_ == 0)) end();
}

void Level::report(SteadyClock::time_point now) {
    next_report_ = now + std::chrono::seconds(1);
    const double elapsed = seconds_between(began_, now);
    const double done = static_cast<double>(tally_.requests());
    json::value eta = nullptr;
    if (target_ && done > 0) {
        eta = elapsed * (static_cast<double>(*target_) - done) / done;
    } else if (session_.spec.duration_s) {
        eta = std::max(0.0, *session_.spec.duration_s - elapsed);
    }
    json::object out{{"event", "progress"},
                     {"level", number_},
                     {"concurrency", concurrency_},
                     {"done", tally_.requests()},
                     {"requests", target_ ? json::value(*target_) : json::value(nullptr)},
                     {"failed", tally_.failed()},
                     {"in_flight", in_flight_},
                     {"output_tokens", tally_.output_tokens()},
                     {"elapsed_s", elapsed},
                     {"eta_s", std::move(eta)}};
    if (session_.progress) session_.progress(out);
}

void Level::end() {
    if (over_) return;
    over_ = true;
    const double span = seconds_between(began_, SteadyClock::now());
    health_.cpu_share = ran_ && span > 0 ? (thread_cpu_s() - cpu_began_) / span : 0;
    if (unreachable_) tally_.note("ended early: the server could not be reached any more");
    if (stopping_) tally_.note("ended early: the run was told to stop");
    probe_.cancel();
    for (const auto& timer : paused_) {
        if (timer) timer->cancel();
    }
    for (const auto& lane : lanes_) lane->shut();
}

}   // namespace campaign::load
