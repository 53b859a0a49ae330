#include "instruments/load/vllm.hpp"

#include <algorithm>
#include <array>

#include "base/json.hpp"
#include "instruments/load/stats.hpp"

namespace campaign::load {
namespace {

constexpr std::size_t most_seconds = 1U << 20U;   // 12 days; later events are in no peak

double to_s(Stamp span) {
    return static_cast<double>(span) / 1e9;
}

void summary(json::object& out, const std::string& name, const std::vector<double>& values) {
    const auto got = summarize(values);
    const auto put = [&](const std::string& prefix, double Summary::*value) {
        out[prefix + "_" + name + "_ms"] = got ? json::value((*got).*value) : json::value(nullptr);
    };
    put("mean", &Summary::mean);
    put("median", &Summary::p50);
    put("std", &Summary::sd);
    put("p90", &Summary::p90);
    put("p95", &Summary::p95);
    put("p99", &Summary::p99);
}

json::value highest(const std::vector<double>& buckets) {
    if (buckets.empty()) return nullptr;
    return *std::max_element(buckets.begin(), buckets.end());
}

}   // namespace

void VllmTally::second(std::vector<double>& buckets, Stamp at, double weight) const {
    if (at < began_) return;
    const auto which = static_cast<std::size_t>((at - began_) / 1'000'000'000);
    if (which >= most_seconds) return;
    if (which >= buckets.size()) buckets.resize(which + 1);
    buckets[which] += weight;
}

void VllmTally::add(const RequestRecord& record) {
    Detail* const detail = ask_.detailed ? &details_[record.index] : nullptr;
    if (detail != nullptr) {
        detail->start_s = to_s(record.started);
        detail->input_len = ask_.input_tokens;
        detail->error = record.success() ? "" : record.failure_class + ": " + record.error_message;
    }
    if (!record.success()) {
        ++failed_;
        return;
    }
    ++completed_;
    // By its rule the first event with choices is the first token, a role alone too; a success has had at least one.
    const Stamp first = record.first_choice.value_or(*record.first_token);
    const Stamp last = record.last_choice.value_or(*record.last_token);
    const auto counted = record.usage ? record.usage->prompt_tokens : std::nullopt;
    const auto input = static_cast<std::uint64_t>(counted.value_or(ask_.input_tokens));
    const auto usage = record.output_tokens();
    const auto output = usage ? static_cast<std::uint64_t>(*usage) : record.token_events;
    input_ += input;
    output_ += output;
    ttft_.push_back(to_ms(first));
    e2el_.push_back(to_ms(last));
    const double tpot = output > 1 ? to_ms(last - first) / static_cast<double>(output - 1) : 0;
    if (output > 1) tpot_.push_back(tpot);
    for (const Stamp gap : record.choice_gaps) itl_.push_back(to_ms(gap));
    if (const auto& limit = ask_.goodput) {
        const bool good = (!limit->ttft_ms || to_ms(first) <= *limit->ttft_ms) &&
                          (!limit->tpot_ms || tpot <= *limit->tpot_ms) &&
                          (!limit->e2el_ms || to_ms(last) <= *limit->e2el_ms);
        if (good) ++good_;
    }
    const double weight = static_cast<double>(output) / static_cast<double>(record.choice_gaps.size() + 1);
    Stamp at = record.started + first;
    second(frames_, at, 1);
    second(tokens_, at, weight);
    for (const Stamp gap : record.choice_gaps) {
        at += gap;
        second(frames_, at, 1);
        second(tokens_, at, weight);
    }
    constexpr Stamp one = 1'000'000'000;
    const Stamp end_second = (record.started + last - began_) / one;
    for (Stamp s = std::max<Stamp>(0, (record.started - began_) / one); s <= end_second; ++s)
        second(active_, began_ + s * one, 1);
    if (detail == nullptr) return;
    detail->input_len = input;
    detail->output_len = output;
    detail->ttft_s = to_s(first);
    for (const Stamp gap : record.choice_gaps) detail->itls_s.push_back(to_s(gap));
    detail->text = record.content;
}

void VllmTally::into(json::object& level, double duration_s) const {
    const auto rate = [&](std::uint64_t count) { return duration_s > 0 ? static_cast<double>(count) / duration_s : 0; };
    level["duration"] = duration_s;
    level["completed"] = completed_;
    level["failed"] = failed_;
    level["total_input_tokens"] = input_;
    level["total_output_tokens"] = output_;
    level["request_throughput"] = rate(completed_);
    level["request_goodput"] = ask_.goodput ? json::value(rate(good_)) : json::value(nullptr);
    level["output_throughput"] = rate(output_);
    level["total_token_throughput"] = rate(input_ + output_);
    level["max_output_tokens_per_s"] = highest(frames_);
    level["max_concurrent_requests"] = highest(active_);
    level["peak_output_tokens_per_s"] = highest(tokens_);
    summary(level, "ttft", ttft_);
    summary(level, "tpot", tpot_);
    summary(level, "itl", itl_);
    summary(level, "e2el", e2el_);
    if (!ask_.detailed) return;
    json::array input_lens, output_lens, start_times, ttfts, itls, texts, errors;
    for (const auto& [index, one] : details_) {
        input_lens.emplace_back(one.input_len);
        output_lens.emplace_back(one.output_len);
        start_times.emplace_back(one.start_s);
        ttfts.emplace_back(one.ttft_s);
        itls.emplace_back(json::array(one.itls_s.begin(), one.itls_s.end()));
        texts.emplace_back(one.text);
        errors.emplace_back(one.error);
    }
    level["input_lens"] = std::move(input_lens);
    level["output_lens"] = std::move(output_lens);
    level["start_times"] = std::move(start_times);
    level["ttfts"] = std::move(ttfts);
    level["itls"] = std::move(itls);
    level["generated_texts"] = std::move(texts);
    level["errors"] = std::move(errors);
}

json::object vllm_result(const json::object& result, const json::object& level) {
    const json::value whole(result), one(level);
    const auto text = [&](std::string_view key) { return std::string{string_at(whole, key).value_or("")}; };
    const auto get = [&](std::string_view key) {
        const json::value* const found = member(one, key);
        return found == nullptr ? json::value(nullptr) : *found;
    };
    std::string date;   // 2026-12-07T09:05:00... -> 20261207-090500
    for (const char c : text("began").substr(0, 19)) {
        if (c == 'T') date += '-';
        if (c >= '0' && c <= '9') date += c;
    }
    const std::string backend = text("route") == "chat" ? "openai-chat" : "openai";
    json::object out{{"date", date},
                     {"endpoint_type", backend},
                     {"backend", backend},
                     {"label", nullptr},
                     {"model_id", text("model")},
                     {"tokenizer_id", nullptr},
                     {"num_prompts", get("requests")},
                     {"request_rate", "inf"},
                     {"burstiness", 1.0},
                     {"max_concurrency", get("max_concurrency")}};
    constexpr std::array<std::string_view, 12> body = {"duration",
                                                       "completed",
                                                       "failed",
                                                       "total_input_tokens",
                                                       "total_output_tokens",
                                                       "request_throughput",
                                                       "request_goodput",
                                                       "output_throughput",
                                                       "total_token_throughput",
                                                       "max_output_tokens_per_s",
                                                       "max_concurrent_requests",
                                                       "peak_output_tokens_per_s"};
    for (const std::string_view key : body) out[key] = get(key);
    for (const char* metric : {"ttft", "tpot", "itl", "e2el"}) {
        for (const char* figure : {"mean", "median", "std", "p90", "p95", "p99"}) {
            const std::string key = std::string{figure} + "_" + metric + "_ms";
            out[key] = get(key);
        }
    }
    for (const char* list : {"input_lens", "output_lens", "start_times", "ttfts", "itls", "generated_texts", "errors"}) {
        if (member(one, list) != nullptr) out[list] = get(list);
    }
    return out;
}

}   // namespace campaign::load
