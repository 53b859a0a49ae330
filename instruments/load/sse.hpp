#pragma once
// Event streams as the WHATWG standard parses them (html.spec.whatwg.org, "server-sent events"), fed in any split.

#include <cstdint>
#include <string>
#include <string_view>

namespace campaign::load {

/// Nanoseconds after the last byte of the request was given to the kernel, on the monotonic clock.
using Stamp = std::int64_t;

/// Receives one event's data. `at` is the stamp of the read that brought the end of its last `data:` line. False: the stream
/// is over, whatever else was read with it.
class SseSink {
public:
    virtual ~SseSink() = default;
    virtual bool event(std::string_view data, Stamp at) = 0;
};

class SseParser {
public:
    static constexpr std::size_t max_event_bytes = 8U << 20U;

    /// LF, CRLF and CR end a line; one BOM is skipped; several data lines are joined by LF.
    void feed(std::string_view bytes, Stamp at, SseSink& sink);
    /// End of body: a last line without its end, and an event without its blank line, still count.
    void finish(SseSink& sink);

    [[nodiscard]] std::uint64_t comments() const { return comments_; }
    /// An event was larger than the limit; nothing after it is parsed.
    [[nodiscard]] bool overflowed() const { return overflowed_; }

private:
    void line(std::string_view text, Stamp at, SseSink& sink);
    void dispatch(SseSink& sink);

    std::string partial_;   // a line whose end has not come yet
    std::string data_;
    Stamp data_at_ = 0;
    Stamp last_at_ = 0;
    std::uint64_t comments_ = 0;
    bool have_data_ = false;
    bool first_line_ = true;
    bool after_cr_ = false;
    bool overflowed_ = false;
    bool stopped_ = false;
};

}   // namespace campaign::load
