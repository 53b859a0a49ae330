#include "instruments/load/record.hpp"

namespace campaign::load {
namespace {

json::value ms_or_null(const std::optional<Stamp>& at) {
    return at ? json::value(to_ms(*at)) : json::value(nullptr);
}

template <class T>
json::value or_null(const std::optional<T>& value) {
    return value ? json::value(*value) : json::value(nullptr);
}

json::value or_null(const std::string& text) {
    return text.empty() ? json::value(nullptr) : json::value(text);
}

std::string hex(std::string_view bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out;
    for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        out += digits[byte >> 4U];
        out += digits[byte & 15U];
    }
    return out;
}

void add_tokens(json::object& out, const RequestRecord& record) {
    const auto tokens = record.output_tokens();
    const bool counted = record.usage && (record.success() || record.failure_class == "empty_response");
    const Usage usage = counted ? *record.usage : Usage{};
    out["output_tokens"] = or_null(tokens);
    out["output_tokens_source"] = counted ? "usage" : "none";
    out["reasoning_tokens"] = or_null(usage.reasoning_tokens);
    out["prompt_tokens"] = or_null(usage.prompt_tokens);
    out["cached_tokens"] = or_null(usage.cached_tokens);
    out["tpot_ms"] = or_null(record.tpot_ms());
    if (!record.success()) {
        out["tokens_before_failure"] = record.token_events;
        return;
    }
    const double span = to_ms(*record.last_token - *record.first_token);
    if (!record.usage) {
        out["output_tokens_estimate"] = record.token_events;
        out["tpot_estimate_ms"] = record.token_events > 1 ? json::value(span / static_cast<double>(record.token_events - 1))
                                                          : json::value(nullptr);
    } else if (tokens && *tokens > 1) {
        out["tokens_per_event"] = static_cast<double>(*tokens) / static_cast<double>(record.token_events);
        if (record.first_event_tokens && *record.first_event_tokens > 0 && *tokens > *record.first_event_tokens) {
            out["tpot_after_first_event_ms"] = span / static_cast<double>(*tokens - *record.first_event_tokens);
        }
    }
}

}   // namespace

double to_ms(Stamp span) {
    return static_cast<double>(span) / 1e6;
}

std::optional<std::int64_t> RequestRecord::output_tokens() const {
    if (!usage || (!success() && failure_class != "empty_response")) return std::nullopt;
    return usage->completion_tokens;
}

std::optional<double> RequestRecord::tpot_ms() const {
    const auto tokens = output_tokens();
    if (!success() || !tokens || *tokens < 2 || !first_token || !last_token) return std::nullopt;
    return to_ms(*last_token - *first_token) / static_cast<double>(*tokens - 1);
}

json::object to_json(const RequestRecord& record) {
    json::object out;
    out["index"] = record.index;
    out["concurrency"] = record.concurrency;
    out["outcome"] = record.success() ? "success" : "failed";
    out["failure_class"] = or_null(record.failure_class);
    out["error_message"] = or_null(record.error_message);
    out["error_code"] = record.error_code;
    out["failed_at_ms"] = ms_or_null(record.failed_at);
    out["warnings"] = json::array(record.warnings.begin(), record.warnings.end());
    out["http_status"] = or_null(record.http_status);
    if (record.retry_after_s) out["retry_after_s"] = *record.retry_after_s;
    out["ttft_ms"] = ms_or_null(record.first_token);
    out["ttft_first_choice_ms"] = ms_or_null(record.first_choice);
    out["ttfo_ms"] = ms_or_null(record.first_output);
    out["last_token_ms"] = ms_or_null(record.last_token);
    out["stream_end_ms"] = ms_or_null(record.stream_end);
    out["token_events"] = record.token_events;
    json::array gaps;
    gaps.reserve(record.gaps.size());
    for (const Stamp gap : record.gaps) gaps.emplace_back(to_ms(gap));
    out["gaps_ms"] = std::move(gaps);
    out["coalesced_events"] = record.coalesced_events;
    add_tokens(out, record);
    out["content"] = record.content;
    out["content_utf8_hex"] = hex(record.content);
    out["reasoning"] = record.reasoning;
    out["tool_arguments"] = record.tool_arguments;
    out["finish_reason"] = or_null(record.finish_reason);
    out["done_seen"] = record.done_seen;
    out["sse_comments"] = record.sse_comments;
    out["transport_retries"] = record.transport_retries;
    out["connection_reusable"] = record.connection_reusable;
    out["counted_in_success_latency"] = record.success();
    out["counted_in_success_throughput"] = record.success();
    return out;
}

}   // namespace campaign::load
