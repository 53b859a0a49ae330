#include <time.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cmath>
#include <memory>

#include "base/json.hpp"
#include "base/text.hpp"
#include "instruments/load/lane.hpp"
#include "instruments/load/load.hpp"
#include "instruments/load/prompt.hpp"
#include "instruments/load/result.hpp"

namespace campaign::load {
namespace {

namespace asio = boost::asio;
using SteadyClock = std::chrono::steady_clock;
constexpr auto probe_period = std::chrono::milliseconds(10);
constexpr std::size_t connects_at_once = 128;
constexpr std::uint64_t spare_files = 24;   // standard streams, event loop, result file, and room to spare

WallTime wall() {
    return std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
}

double thread_cpu_s() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

double seconds_between(SteadyClock::time_point from, SteadyClock::time_point to) {
    return std::chrono::duration<double>(to - from).count();
}

/// All that a run holds from its first request to its last.
struct Session {
    const Spec& spec;
    const Progress& progress;
    const StopFlag& stop;
    const OnRecord& on_record;
    asio::io_context& io;
    LaneRoom& room;
    std::string api_key;
    std::uint64_t next_index = 0;   // of prompts: no two requests of a run have the same one
    std::uint64_t next_record = 0;
    double token_ratio = 1.0;

    std::string next_request() {
        const std::string prompt = make_prompt(spec.seed, next_index++, spec.input_tokens, token_ratio);
        return make_request(spec, make_body(spec, prompt), api_key);
    }
};

/// One closed loop: as many requests in flight as there are lanes, until enough were sent.
class Level {
public:
    Level(Session& session, std::uint32_t concurrency, std::uint64_t number, bool warmup)
        : session_{session},
          warmup_{warmup},
          concurrency_{concurrency},
          number_{number},
          tally_{concurrency},
          probe_{session.io} {
        if (warmup) {
            target_ = session.spec.warmup_requests;
        } else if (session.spec.requests) {
            target_ = *session.spec.requests;
        } else if (!session.spec.duration_s) {
            target_ = std::max<std::uint64_t>(8, 4ULL * concurrency);
        }
    }

    void go(std::uint64_t file_limit) {
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

    [[nodiscard]] const LevelTally& tally() const { return tally_; }
    [[nodiscard]] double duration_s() const { return ran_ ? seconds_between(began_, ended_) : 0; }
    [[nodiscard]] json::object result() const { return tally_.to_json(duration_s(), health_); }
    [[nodiscard]] bool unreachable() const { return unreachable_; }
    [[nodiscard]] std::optional<double> ratio() const { return ratio_; }

private:
    void refuse(std::uint64_t file_limit) {
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

    void open_next() {
        if (opening_ == lanes_.size()) return;
        lanes_[opening_++]->open([this] {
            if (over_) return;
            if (--unopened_ == 0) return begin();
            open_next();
        });
    }

    void begin() {
        ran_ = true;
        began_ = ended_ = SteadyClock::now();
        cpu_began_ = thread_cpu_s();
        next_report_ = began_ + std::chrono::seconds(1);
        health_.lateness_ms.clear();
        for (std::size_t i = 0; i < lanes_.size(); ++i) start(i);
    }

    [[nodiscard]] bool may_start() const {
        if (stopping_ || unreachable_) return false;
        if (target_ && sent_ >= *target_) return false;
        const auto& limit = session_.spec.duration_s;
        return warmup_ || !limit || seconds_between(began_, SteadyClock::now()) < *limit;
    }

    void start(std::size_t lane) {
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

    void finished(std::size_t lane, const RequestRecord& record) {
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

    void pause(std::size_t lane) {
        auto& timer = paused_[lane];
        if (!timer) timer = std::make_unique<asio::steady_timer>(session_.io);
        ++pauses_;
        timer->expires_after(may_start() && !target_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(0));
        timer->async_wait([this, lane](boost::system::error_code) {
            --pauses_;
            start(lane);
        });
    }

    void arm_probe() {
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

    void stop() {
        stopping_ = true;
        for (const auto& lane : lanes_) lane->give_up("cancelled", "the run was told to stop");
        for (const auto& timer : paused_) {
            if (timer) timer->cancel();
        }
        if (!ran_ || (in_flight_ == 0 && pauses_ == 0)) end();
    }

    void report(SteadyClock::time_point now) {
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

    void end() {
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

    Session& session_;
    bool warmup_;
    std::uint32_t concurrency_;
    std::uint64_t number_;
    std::optional<std::uint64_t> target_;
    LevelTally tally_;
    ClientHealth health_;
    std::vector<std::unique_ptr<Lane>> lanes_;
    std::vector<std::unique_ptr<asio::steady_timer>> paused_;
    asio::steady_timer probe_;
    SteadyClock::time_point began_{}, ended_{}, probe_due_{}, next_report_{};
    double cpu_began_ = 0;
    std::size_t opening_ = 0, unopened_ = 0;
    std::uint64_t sent_ = 0, in_flight_ = 0, pauses_ = 0, refusals_ = 0;
    std::optional<double> ratio_;
    bool ran_ = false, stopping_ = false, unreachable_ = false, over_ = false;
};

class Campaign {
public:
    Campaign(const Spec& spec, const Progress& progress, const StopFlag& stop, const OnRecord& on_record)
        : spec_{spec},
          room_{io_, {}, timeout(spec), static_cast<bool>(on_record), 0, std::vector<char>(256U << 10U)},
          session_{spec, progress, stop, on_record, io_, room_, {}, 0, 0, 1.0} {}

    static std::chrono::nanoseconds timeout(const Spec& spec) {
        return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(spec.request_timeout_s));
    }

    Result<void> prepare() {
        auto endpoints = resolve(io_, spec_);
        if (!endpoints) return endpoints.error();
        room_.endpoints = *std::move(endpoints);
        auto key = read_api_key(spec_);
        if (!key) return key.error();
        session_.api_key = *std::move(key);
        file_limit_ = raise_file_limit();
        return {};
    }

    void warm_up() {
        if (spec_.warmup_requests == 0) return;
        Level level(session_, 1, 0, true);
        level.go(file_limit_);
        if (const auto ratio = level.ratio()) session_.token_ratio = *ratio;
        if (level.tally().failed() > 0)
            notes_.emplace_back("warm-up requests failed: " + std::to_string(level.tally().failed()));
    }

    void levels() {
        std::size_t i = 0;
        while (!session_.stop.load(std::memory_order_relaxed)) {
            std::optional<std::uint32_t> concurrency;
            if (spec_.auto_max) {
                concurrency = next_level(points_, *spec_.auto_max);
            } else if (i < spec_.concurrency.size()) {
                concurrency = spec_.concurrency[i];
            }
            if (!concurrency) {
                complete_ = true;
                break;
            }
            ++i;
            if (!one(*concurrency, i)) break;
        }
        // Told to stop within the last level: that level is not whole.
        if (session_.stop.load(std::memory_order_relaxed)) complete_ = false;
    }

    void into(json::object& out) {
        out["complete"] = complete_;
        out["levels"] = std::move(levels_);
        out["plateau"] = to_json(find_plateau(points_));
        json::array notes(notes_.begin(), notes_.end());
        if (session_.token_ratio != 1.0) {
            out["tokens_per_word"] = session_.token_ratio;
        }
        out["notes"] = std::move(notes);
    }

private:
    /// False when more levels make no sense.
    bool one(std::uint32_t concurrency, std::size_t number) {
        const json::value levels = spec_.auto_max ? json::value(nullptr) : json::value(spec_.concurrency.size());
        tell({{"event", "level_begin"}, {"level", number}, {"levels", levels}, {"concurrency", concurrency}});
        Level level(session_, concurrency, number, false);
        level.go(file_limit_);
        json::object result = level.result();
        points_.push_back(level.tally().point(level.duration_s()));
        tell({{"event", "level_end"},
              {"level", number},
              {"levels", levels},
              {"concurrency", concurrency},
              {"completed", level.tally().completed()},
              {"failed", level.tally().failed()},
              {"output_throughput", result["output_throughput"]}});
        levels_.emplace_back(std::move(result));
        if (!level.unreachable()) return true;
        notes_.emplace_back("no further level was run: the server could not be reached");
        return false;
    }

    void tell(const json::object& line) {
        if (session_.progress) session_.progress(line);
    }

    const Spec& spec_;
    asio::io_context io_{1};
    LaneRoom room_;
    Session session_;
    std::uint64_t file_limit_ = 0;
    bool complete_ = false;
    json::array levels_;
    std::vector<LevelPoint> points_;
    std::vector<std::string> notes_;
};

}   // namespace

json::object run(const Spec& spec, const Progress& progress, const StopFlag& stop, const OnRecord& on_record) {
    json::object out{{"schema", "campaign.load/1"}, {"tool", "campaign-agent " CAMPAIGN_VERSION}};
    out["url"] = spec.url.text;
    out["unix_socket"] = spec.unix_socket ? json::value(*spec.unix_socket) : json::value(nullptr);
    out["model"] = spec.model;
    out["route"] = spec.route == Route::chat ? "chat" : "completions";
    out["input_tokens"] = spec.input_tokens;
    out["output_tokens"] = spec.output_tokens;
    out["ignore_eos"] = spec.ignore_eos;
    out["seed"] = spec.seed;
    out["warmup_requests"] = spec.warmup_requests;
    out["tunnelled"] = spec.tunnelled;
    out["began"] = format_time(wall());
    Campaign campaign(spec, progress, stop, on_record);
    if (const auto ready = campaign.prepare(); !ready) {
        out["error"] = to_json(ready.error());
    } else {
        campaign.warm_up();
        campaign.levels();
    }
    campaign.into(out);
    out["ended"] = format_time(wall());
    return out;
}

Result<std::vector<RequestRecord>> measure_each(const Spec& spec, std::uint32_t count) {
    Spec one = spec;
    one.concurrency = {1};
    one.auto_max.reset();
    one.requests = count;
    one.duration_s.reset();
    one.warmup_requests = 0;
    std::vector<RequestRecord> records;
    const StopFlag never{false};
    const json::object result = run(one, {}, never, [&](const RequestRecord& record) { records.push_back(record); });
    if (const json::value* error = result.if_contains("error")) return error_from_json(*error);
    return records;
}

Result<RequestRecord> measure_one(const Spec& spec) {
    auto records = measure_each(spec, 1);
    if (!records) return records.error();
    if (records->empty()) return Error{ErrorKind::bug, "a measurement of one request gave no record", "", "", ""};
    return std::move(records->front());
}

}   // namespace campaign::load
