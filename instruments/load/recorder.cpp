#include "instruments/load/recorder.hpp"

#include <charconv>

#include "base/text.hpp"

namespace campaign::load {
namespace {

bool starts_with_word(std::string_view text, std::string_view word) {
    if (text.size() < word.size()) return false;
    for (std::size_t i = 0; i < word.size(); ++i) {
        const char c = text[i] >= 'A' && text[i] <= 'Z' ? static_cast<char>(text[i] + 32) : text[i];
        if (c != word[i]) return false;
    }
    return true;
}

bool is_failure(std::string_view finish_reason) {
    return finish_reason == "error" || finish_reason == "abort" || finish_reason == "cancelled";
}

}   // namespace

void Recorder::bytes(std::string_view received, Stamp at) {
    if (finished_) return;
    any_bytes_ = true;
    now_ = at;
    http_.feed(received, *this);
    if (http_.has_head() && !record_.http_status) body({});
    if (finished_) {   // by [DONE]: what came with it in this read says nothing about the answer, only about the connection
        transport_failed_ = transport_failed_ || !http_.fault().empty();
        return;
    }
    if (!http_.fault().empty()) {
        fail(http_.fault(), at, http_.fault_detail());
        transport_failed_ = true;
        body_ended(at);
    } else if (sse_.overflowed()) {
        fail("protocol_error", at, "one event is larger than 8 MiB");
        transport_failed_ = true;
        body_ended(at);
    } else if (http_.complete() && !finished_) {
        if (is_sse_) sse_.finish(*this);
        body_ended(at);
    }
}

void Recorder::closed(Stamp at, bool reset) {
    if (finished_) return;
    now_ = at;
    if (!reset) http_.closed();
    if (http_.complete()) {
        if (is_sse_) sse_.finish(*this);
    } else {
        transport_failed_ = true;
        // A status that is no success came first and decides; its body is then of no interest.
        if (!record_.http_status || *record_.http_status < 300) {
            fail("connection_reset", at,
                 reset ? "the connection was reset" : "the connection was closed before the response ended");
        }
    }
    body_ended(at);
}

void Recorder::give_up(std::string failure_class, std::string message, Stamp at) {
    if (finished_) return;
    transport_failed_ = true;
    fail(failure_class, at, std::move(message));
    if (!record_.stream_end) record_.stream_end = at;
    finished_ = true;
}

RequestRecord Recorder::take() {
    record_.sse_comments = sse_.comments();
    return std::move(record_);
}

void Recorder::body(std::string_view bytes) {
    if (!head_seen_) {
        head_seen_ = true;
        record_.http_status = http_.status();
        const std::string_view type = http_.header("content-type").value_or("");
        is_sse_ = http_.status() >= 200 && http_.status() < 300 && starts_with_word(type, "text/event-stream");
        if (const auto wait = http_.header("retry-after")) {
            std::int64_t seconds = 0;
            const auto [end, error] = std::from_chars(wait->data(), wait->data() + wait->size(), seconds);
            if (error == std::errc{} && end == wait->data() + wait->size() && seconds >= 0) record_.retry_after_s = seconds;
        }
    }
    if (finished_) return;
    if (is_sse_) {
        sse_.feed(bytes, now_, *this);
    } else if (plain_.size() < max_plain_bytes) {
        plain_.append(bytes.substr(0, max_plain_bytes - plain_.size()));
    }
}

bool Recorder::event(std::string_view data, Stamp at) {
    const EventFacts& facts = reader_.read(data);
    switch (facts.kind) {
        case EventFacts::Kind::done:
            record_.done_seen = true;
            record_.stream_end = at;
            judge(at);
            finished_ = true;
            return false;
        case EventFacts::Kind::bad_json:
            fail("bad_json", at, "an event is not a JSON object: " + printable(data.substr(0, 120), 120));
            return true;
        case EventFacts::Kind::error: fail("inband_error", at, facts.error.message, facts.error.code); return true;
        case EventFacts::Kind::chunk: break;
    }
    if (facts.usage) record_.usage = facts.usage;
    if (!facts.has_choices) return true;
    if (record_.last_choice) record_.choice_gaps.push_back(at - *record_.last_choice);
    if (!record_.first_choice) record_.first_choice = at;
    record_.last_choice = at;
    if (facts.bears_token()) token(facts, at);
    if (facts.finish_reason.empty()) return true;
    record_.finish_reason = printable(facts.finish_reason, 64);
    if (is_failure(facts.finish_reason)) fail("inband_error", at, "finish_reason=" + record_.finish_reason);
    return true;
}

void Recorder::token(const EventFacts& facts, Stamp at) {
    ++record_.token_events;
    if (!record_.first_token) {
        record_.first_token = at;
        if (facts.usage) record_.first_event_tokens = facts.usage->completion_tokens;
    } else {
        const Stamp gap = at - *record_.last_token;
        record_.gaps.push_back(gap);
        if (gap == 0) ++record_.coalesced_events;
    }
    record_.last_token = at;
    if ((!facts.content.empty() || facts.tool_call) && !record_.first_output) record_.first_output = at;
    record_.reasoning_seen = record_.reasoning_seen || !facts.reasoning.empty();
    keep(record_.content, facts.content);
    keep(record_.reasoning, facts.reasoning);
    keep(record_.tool_arguments, facts.tool_arguments);
}

void Recorder::keep(std::string& text, const std::string& more) const {
    if (keep_text_ && text.size() + more.size() <= max_text_bytes) text += more;
}

void Recorder::fail(std::string_view failure_class, Stamp at, std::string message, json::value code) {
    if (!record_.failure_class.empty()) return;   // the first error decides
    record_.failure_class = failure_class;
    record_.failed_at = at;
    record_.error_message = std::move(message);
    record_.error_code = std::move(code);
}

void Recorder::body_ended(Stamp at) {
    if (finished_) return;
    if (!record_.stream_end) record_.stream_end = at;
    judge(at);
    finished_ = true;
}

void Recorder::judge(Stamp at) {
    if (record_.http_status && (*record_.http_status < 200 || *record_.http_status >= 300)) {
        ServerError error = error_of_status(plain_);
        fail("http_status", at, std::move(error.message), std::move(error.code));
    } else if (record_.http_status && !is_sse_) {
        boost::system::error_code bad;
        const json::value value = json::parse(plain_, bad);
        const json::object* object = bad ? nullptr : value.if_object();
        auto error = object == nullptr ? std::nullopt : error_in(*object);
        if (error) {
            fail("inband_error", at, std::move(error->message), std::move(error->code));
        } else {
            fail("non_sse_body", at, "the answer is no event stream: " + printable(plain_.substr(0, 120), 120));
        }
    }
    if (!record_.success()) return;
    if (!record_.done_seen && record_.finish_reason.empty()) {
        fail("truncated_stream", at, "the stream ended with neither finish_reason nor [DONE]");
    } else if (record_.token_events == 0) {
        fail("empty_response", at, "the stream ended properly and brought no token");
    }
    if (!record_.success()) return;
    if (!record_.done_seen) record_.warnings.emplace_back("missing_done");
    if (record_.finish_reason.empty()) record_.warnings.emplace_back("missing_finish_reason");
    if (!record_.usage) record_.warnings.emplace_back("usage_missing");
}

}   // namespace campaign::load
