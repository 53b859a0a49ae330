#include "base/json.hpp"
#include "base/text.hpp"
#include "instruments/load/level.hpp"
#include "instruments/load/load.hpp"

namespace campaign::load {
namespace {

namespace asio = boost::asio;

WallTime wall() {
    return std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
}

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
