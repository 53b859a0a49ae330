#pragma once
// Everything that is known about one request. The contract of each number: docs of the fields below.

#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "instruments/load/event.hpp"
#include "instruments/load/sse.hpp"

namespace campaign::load {

/// Times are Stamps: from the moment the last byte of the request was given to the kernel, read when the read returned.
struct RequestRecord {
    std::uint64_t index = 0;   ///< order of sending
    std::uint32_t concurrency = 0;
    std::string
        failure_class;   ///< empty: success. http_status, inband_error, truncated_stream, ...; client_*: our own fault
    std::string error_message;
    json::value error_code;
    std::optional<Stamp> failed_at;
    std::vector<std::string> warnings;
    std::optional<int> http_status;
    std::optional<std::int64_t> retry_after_s;

    std::optional<Stamp> first_token;    ///< first token-bearing event: content, reasoning, tool call or text
    std::optional<Stamp> first_choice;   ///< first event with choices at all: vLLM's own rule for TTFT
    std::optional<Stamp> first_output;   ///< first content or tool call, reasoning not counted
    std::optional<Stamp> last_token;     ///< last token-bearing event: end-to-end latency
    std::optional<Stamp> stream_end;     ///< [DONE] or end of body
    std::optional<Stamp> last_choice;    ///< last event with choices: the end of a request by vLLM's rule
    std::vector<Stamp> choice_gaps;      ///< between events with choices
    std::vector<Stamp> gaps;             ///< between token-bearing events; 0 within one read
    std::uint64_t token_events = 0;
    std::uint64_t coalesced_events = 0;   ///< how many gaps are 0
    std::optional<Usage> usage;           ///< the last one that was not null
    std::optional<std::int64_t> first_event_tokens;

    std::string content;   ///< the three texts only where asked for, and bounded
    std::string reasoning;
    std::string tool_arguments;
    bool reasoning_seen = false;
    std::string finish_reason;
    bool done_seen = false;
    std::uint64_t sse_comments = 0;
    std::uint32_t transport_retries = 0;   ///< sent again after a reused connection died before any answer
    bool connection_reusable = false;

    Stamp started = 0;   ///< t0 on the monotonic clock itself, for windows over a level

    [[nodiscard]] bool success() const { return failure_class.empty(); }
    /// The client, not the server, is at fault: such a request says nothing about the server.
    [[nodiscard]] bool client_fault() const { return failure_class.starts_with("client_"); }
    /// completion_tokens by usage; of failed requests only where the stream ended properly and empty.
    [[nodiscard]] std::optional<std::int64_t> output_tokens() const;
    /// (last token - first token) / (output tokens - 1), in ms; needs two tokens and a usage.
    [[nodiscard]] std::optional<double> tpot_ms() const;
};

[[nodiscard]] double to_ms(Stamp span);
/// One line of a per-request file.
[[nodiscard]] json::object to_json(const RequestRecord& record);

}   // namespace campaign::load
