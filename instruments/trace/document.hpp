#pragma once
// One trace document, split into its events without believing in its layout: by quotes and depth, in a bounded window.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "instruments/trace/byte_source.hpp"

namespace campaign::trace {

class Document {
public:
    static constexpr std::size_t max_event = std::size_t{4} << 20U;    ///< a longer event is broken
    static constexpr std::size_t max_header = std::size_t{1} << 20U;   ///< a longer header value is passed over, not kept
    static constexpr std::size_t usual_window = std::size_t{1} << 20U;

    /// `window`: how many bytes are read at a time. The result does not depend on it.
    explicit Document(ByteSource& source, std::size_t window = usual_window) : source_{source}, window_{window} {}

    /// The text of the next event, from { to }; valid until the next call. Nothing at the end of the document.
    [[nodiscard]] std::optional<std::string_view> next_event();
    /// The event last given could not be read: look for another one within it, else go on behind it.
    void reject();

    /// Members beside traceEvents, as text, from before and after it. All there once next_event() has given nothing.
    [[nodiscard]] const std::map<std::string, std::string, std::less<>>& header() const { return header_; }
    [[nodiscard]] bool found_events() const { return state_ == State::events || events_found_; }
    [[nodiscard]] bool events_closed() const { return events_closed_; }
    /// The outermost bracket was closed, and only blanks followed.
    [[nodiscard]] bool closed() const { return closed_; }
    [[nodiscard]] bool syntax_error() const { return syntax_error_; }
    [[nodiscard]] bool byte_order_mark() const { return bom_; }
    [[nodiscard]] bool header_lost() const { return header_lost_; }
    [[nodiscard]] std::uint64_t bad_events() const { return bad_events_; }
    /// So much was broken that what stood within broken events was looked for no longer.
    [[nodiscard]] bool gave_up() const { return gave_up_; }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

private:
    enum class State { begin, header, events, done };

    bool refill();
    /// The byte at the cursor after blanks; nothing at the end.
    std::optional<char> peek();
    /// One past the end of the object or array at the cursor; nothing when it does not end within `limit` or at all.
    std::optional<std::size_t> balanced_end(std::size_t limit);
    std::optional<std::string> key();
    std::optional<std::string> value();
    std::optional<std::string> nested_value();
    std::size_t scalar_end();
    void read_header();
    void find_events();
    void end_of_document();
    std::optional<std::string_view> event();
    /// To the next place where an event seems to begin, behind the one that begins at begin_. `length`: of the broken event
    /// from there on, where its end is known: then no further than that.
    void resync(std::optional<std::size_t> length);
    void reread_or_skip(std::size_t length);
    bool event_begins();

    ByteSource& source_;
    std::size_t window_;
    std::string buffer_;
    std::size_t at_ = 0;      // the cursor
    std::size_t begin_ = 0;   // of the event last given
    State state_ = State::begin;
    bool bare_array_ = false;
    bool events_found_ = false, events_closed_ = false, closed_ = false;
    bool syntax_error_ = false, bom_ = false, header_lost_ = false, gave_up_ = false;
    std::uint64_t bad_events_ = 0;
    std::uint64_t read_again_ = 0;   // bytes of broken events
    std::uint64_t bytes_ = 0;
    std::map<std::string, std::string, std::less<>> header_;
};

}   // namespace campaign::trace
