#pragma once
// One level of a run, with its sockets: effects only. What a record means and what a level adds up to is decided elsewhere.

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "instruments/load/lane.hpp"
#include "instruments/load/load.hpp"
#include "instruments/load/result.hpp"

namespace campaign::load {

using SteadyClock = std::chrono::steady_clock;

/// All that a run holds from its first request to its last.
struct Session {
    const Spec& spec;
    const Progress& progress;
    const StopFlag& stop;
    const OnRecord& on_record;
    boost::asio::io_context& io;
    LaneRoom& room;
    std::string api_key;
    std::uint64_t next_index = 0;   // of prompts: no two requests of a run have the same one
    std::uint64_t next_record = 0;
    double token_ratio = 1.0;

    [[nodiscard]] std::string next_request();
};

/// One closed loop: as many requests in flight as there are lanes, until enough were sent.
class Level {
public:
    Level(Session& session, std::uint32_t concurrency, std::uint64_t number, bool warmup);

    /// Runs the level in this thread until it is over.
    void go(std::uint64_t file_limit);

    [[nodiscard]] const LevelTally& tally() const { return tally_; }
    [[nodiscard]] double duration_s() const;
    [[nodiscard]] json::object result() const { return tally_.to_json(duration_s(), health_); }
    [[nodiscard]] bool unreachable() const { return unreachable_; }
    [[nodiscard]] std::optional<double> ratio() const { return ratio_; }

private:
    void refuse(std::uint64_t file_limit);
    void open_next();
    void begin();
    [[nodiscard]] bool may_start() const;
    void start(std::size_t lane);
    void finished(std::size_t lane, const RequestRecord& record);
    void pause(std::size_t lane);
    void arm_probe();
    void stop();
    void report(SteadyClock::time_point now);
    void end();

    Session& session_;
    bool warmup_;
    std::uint32_t concurrency_;
    std::uint64_t number_;
    std::optional<std::uint64_t> target_;
    LevelTally tally_;
    ClientHealth health_;
    std::vector<std::unique_ptr<Lane>> lanes_;
    std::vector<std::unique_ptr<boost::asio::steady_timer>> paused_;
    boost::asio::steady_timer probe_;
    SteadyClock::time_point began_{}, ended_{}, probe_due_{}, next_report_{};
    double cpu_began_ = 0;
    std::size_t opening_ = 0, unopened_ = 0;
    std::uint64_t sent_ = 0, in_flight_ = 0, pauses_ = 0, refusals_ = 0;
    std::optional<double> ratio_;
    bool ran_ = false, stopping_ = false, unreachable_ = false, over_ = false;
};

}   // namespace campaign::load
