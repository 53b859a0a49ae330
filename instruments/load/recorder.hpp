#pragma once
// From the bytes of one response and the times they came at, to the record of the request. No socket, no clock.

#include <string>
#include <string_view>

#include "instruments/load/http_response.hpp"
#include "instruments/load/record.hpp"

namespace campaign::load {

class Recorder final : private BodySink, private SseSink {
public:
    explicit Recorder(bool keep_text) : keep_text_{keep_text} {}

    void bytes(std::string_view received, Stamp at);
    /// The peer closed its side, or reset the connection (`reset`).
    void closed(Stamp at, bool reset);
    /// Ends the request for a reason of ours: "timeout", "cancelled", "client_fd_limit", ...
    void give_up(std::string failure_class, std::string message, Stamp at);

    /// Nothing more is to be read for the record: [DONE], end of body, or a fault.
    [[nodiscard]] bool finished() const { return finished_; }
    [[nodiscard]] bool any_bytes() const { return any_bytes_; }
    /// The response ended properly, so the connection can carry the next request. May become true after finished().
    [[nodiscard]] bool reusable() const { return http_.reusable() && !transport_failed_; }
    /// Bytes that come after [DONE] and only complete the framing.
    void drain(std::string_view received) { http_.feed(received, *this); }

    /// The record, judged. Call once, when finished.
    [[nodiscard]] RequestRecord take();

private:
    static constexpr std::size_t max_plain_bytes = 64U << 10U;
    static constexpr std::size_t max_text_bytes = 1U << 20U;

    void body(std::string_view bytes) override;
    bool event(std::string_view data, Stamp at) override;
    void token(const EventFacts& facts, Stamp at);
    void fail(std::string_view failure_class, Stamp at, std::string message = {}, json::value code = nullptr);
    void body_ended(Stamp at);
    void judge(Stamp at);
    void keep(std::string& text, const std::string& more) const;

    bool keep_text_;
    bool head_seen_ = false;
    bool is_sse_ = false;
    bool any_bytes_ = false;
    bool finished_ = false;
    bool transport_failed_ = false;
    Stamp now_ = 0;
    ResponseParser http_;
    SseParser sse_;
    EventReader reader_;
    std::string plain_;   // a body that is no event stream
    RequestRecord record_;
};

}   // namespace campaign::load
