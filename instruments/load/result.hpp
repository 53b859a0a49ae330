#pragma once
// From records to campaign.load/1 (docs/agent-files.md).

#include <boost/json.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "instruments/load/record.hpp"
#include "instruments/load/stats.hpp"
#include "instruments/load/vllm.hpp"

namespace campaign::load {

/// The client as its own instrument saw it during a level.
struct ClientHealth {
    std::vector<double> lateness_ms;   ///< how late a timer of the event loop fired, every few ms
    double cpu_share = 0;              ///< of one core
};

inline constexpr double late_p99_ms = 5.0;
inline constexpr double busy_cpu_share = 0.9;

/// Adds up one level. Keeps numbers only, no texts and no records.
class LevelTally {
public:
    explicit LevelTally(std::uint32_t concurrency, VllmAsk ask = {}) : concurrency_{concurrency}, vllm_{std::move(ask)} {}

    /// Second 0 of the level, on the clock of RequestRecord::started.
    void begin(Stamp at) { vllm_.begin(at); }

    void add(const RequestRecord& record);
    void note(std::string text) { notes_.push_back(std::move(text)); }
    void not_run(std::string reason) { not_run_ = std::move(reason); }

    [[nodiscard]] std::uint64_t completed() const { return completed_; }
    [[nodiscard]] std::uint64_t failed() const { return failed_; }
    [[nodiscard]] std::uint64_t requests() const { return completed_ + failed_ + cancelled_; }
    [[nodiscard]] std::uint64_t output_tokens() const { return output_tokens_; }
    [[nodiscard]] LevelPoint point(double duration_s) const;
    [[nodiscard]] json::object to_json(double duration_s, const ClientHealth& client) const;

private:
    std::uint32_t concurrency_;
    std::uint64_t completed_ = 0, failed_ = 0, cancelled_ = 0, retries_ = 0, coalesced_ = 0, token_events_ = 0;
    std::uint64_t output_tokens_ = 0, input_tokens_ = 0, with_usage_ = 0, without_usage_ = 0, lost_tokens_ = 0;
    std::uint64_t reasoning_tokens_ = 0;
    bool reasoning_ = false;
    std::map<std::string, std::uint64_t> failures_;
    std::map<std::string, std::string> samples_;   // the first message of each class
    std::map<std::string, std::uint64_t> warnings_;
    std::vector<double> ttft_, ttft_first_choice_, ttfo_, tpot_, itl_, e2el_;
    std::vector<std::string> notes_;
    std::string not_run_;
    VllmTally vllm_;
};

[[nodiscard]] json::value to_json(const std::optional<Summary>& summary);
[[nodiscard]] json::value to_json(const std::optional<Plateau>& plateau);

}   // namespace campaign::load
