#include "instruments/load/result.hpp"

#include <algorithm>
#include <array>

namespace campaign::load {

void LevelTally::add(const RequestRecord& record) {
    retries_ += record.transport_retries;
    if (record.failure_class == "cancelled") {
        ++cancelled_;
        return;
    }
    vllm_.add(record);
    reasoning_ = reasoning_ || record.reasoning_seen;
    for (const std::string& warning : record.warnings) ++warnings_[warning];
    if (!record.success()) {
        ++failed_;
        ++failures_[record.failure_class];
        samples_.try_emplace(record.failure_class, record.error_message);
        lost_tokens_ += record.token_events;
        return;
    }
    ++completed_;
    coalesced_ += record.coalesced_events;
    token_events_ += record.token_events;
    if (const auto tokens = record.output_tokens()) {
        ++with_usage_;
        output_tokens_ += static_cast<std::uint64_t>(*tokens);
    } else {
        ++without_usage_;
        output_tokens_ += record.token_events;
    }
    if (record.usage) {
        input_tokens_ += static_cast<std::uint64_t>(record.usage->prompt_tokens.value_or(0));
        const auto reasoning = record.usage->reasoning_tokens.value_or(0);
        reasoning_tokens_ += static_cast<std::uint64_t>(reasoning);
        reasoning_ = reasoning_ || reasoning > 0;
    }
    ttft_.push_back(to_ms(*record.first_token));
    e2el_.push_back(to_ms(*record.last_token));
    if (record.first_choice) ttft_first_choice_.push_back(to_ms(*record.first_choice));
    if (record.first_output) ttfo_.push_back(to_ms(*record.first_output));
    if (const auto tpot = record.tpot_ms()) tpot_.push_back(*tpot);
    for (const Stamp gap : record.gaps) itl_.push_back(to_ms(gap));
}

LevelPoint LevelTally::point(double duration_s) const {
    return {concurrency_, duration_s > 0 ? static_cast<double>(output_tokens_) / duration_s : 0};
}

json::object LevelTally::to_json(double duration_s, const ClientHealth& client) const {
    const auto rate = [&](std::uint64_t count) { return duration_s > 0 ? static_cast<double>(count) / duration_s : 0; };
    json::object out;
    vllm_.into(out, duration_s);
    out["max_concurrency"] = concurrency_;
    out["concurrency"] = concurrency_;
    out["status"] = not_run_.empty() ? "run" : "not_run";
    out["reason"] = not_run_.empty() ? json::value(nullptr) : json::value(not_run_);
    out["requests"] = requests();
    out["completed"] = completed_;
    out["failed"] = failed_;
    out["cancelled"] = cancelled_;
    json::object failures{{"http_status", 0}};
    for (const auto& [name, count] : failures_) failures[name] = count;
    out["failures"] = std::move(failures);
    json::object samples;
    for (const auto& [name, message] : samples_) samples[name] = message;
    out["failure_samples"] = std::move(samples);
    json::object warnings;
    for (const auto& [name, count] : warnings_) warnings[name] = count;
    out["warnings"] = std::move(warnings);
    out["duration_s"] = duration_s;
    out["output_tokens"] = output_tokens_;
    out["output_tokens_source"] = completed_ == 0       ? "none"
                                  : without_usage_ == 0 ? "usage"
                                  : with_usage_ == 0    ? "events"
                                                        : "mixed";
    out["input_tokens"] = input_tokens_;
    out["tokens_before_failure"] = lost_tokens_;
    out["output_throughput"] = rate(output_tokens_);
    out["request_throughput"] = rate(completed_);
    out["ttft_ms"] = load::to_json(summarize(ttft_));
    out["ttft_first_choice_ms"] = load::to_json(summarize(ttft_first_choice_));
    out["ttfo_ms"] = load::to_json(summarize(ttfo_));
    out["tpot_ms"] = load::to_json(summarize(tpot_));
    out["itl_ms"] = load::to_json(summarize(itl_));
    out["e2el_ms"] = load::to_json(summarize(e2el_));
    out["token_events"] = token_events_;
    out["coalesced_events"] = coalesced_;
    out["transport_retries"] = retries_;
    const auto lateness = summarize(client.lateness_ms);
    const bool late = (lateness && lateness->p99 > late_p99_ms) || client.cpu_share > busy_cpu_share;
    out["client"] = json::object{{"late_ms_p99", lateness ? json::value(lateness->p99) : json::value(nullptr)},
                                 {"late_ms_max", lateness ? json::value(lateness->max) : json::value(nullptr)},
                                 {"cpu_share", client.cpu_share},
                                 {"late", late}};
    out["reasoning_tokens_seen"] = reasoning_;
    out["reasoning_tokens"] = reasoning_tokens_;
    json::array notes(notes_.begin(), notes_.end());
    if (late) notes.emplace_back("the client itself was late or short of CPU: its times are too long, not the server's");
    if (without_usage_ > 0) notes.emplace_back("some answers had no usage: their output tokens are counted as events");
    if (token_events_ > 1 && itl_.size() > 1 && coalesced_ * 2 > itl_.size()) {
        notes.emplace_back(
            "most events came together with others in one read: something before the client gathers the stream");
    }
    out["notes"] = std::move(notes);
    return out;
}

json::value to_json(const std::optional<Summary>& summary) {
    if (!summary) return nullptr;
    json::object intervals, certified;
    constexpr std::array names{"p50", "p90", "p95", "p99"};
    for (std::size_t i = 0; i < names.size(); ++i) {
        const Summary::Sureness& sure = summary->sure[i];
        const auto end = [](std::optional<double> value) { return value ? json::value(*value) : json::value(nullptr); };
        intervals[names[i]] = json::array{end(sure.low), end(sure.high)};
        certified[names[i]] = sure.certified;
    }
    return json::object{{"n", summary->n},
                        {"mean", summary->mean},
                        {"sd", summary->sd},
                        {"p50", summary->p50},
                        {"p90", summary->p90},
                        {"p95", summary->p95},
                        {"p99", summary->p99},
                        {"min", summary->min},
                        {"max", summary->max},
                        {"interval", std::move(intervals)},
                        {"certified", std::move(certified)}};
}

json::value to_json(const std::optional<Plateau>& plateau) {
    if (!plateau) return nullptr;
    return json::object{{"concurrency", plateau->concurrency},
                        {"output_throughput", plateau->output_throughput},
                        {"reached", plateau->reached}};
}

}   // namespace campaign::load
