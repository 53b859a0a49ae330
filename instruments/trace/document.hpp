#pragma once
// One trace document, split into its events without believing in its layout, in a bounded window.
//
// A document that is JSON is read as JSON. One that is not is salvaged: every event that can be read is kept, from the first
// list called traceEvents, or from the first list where none has that name; behind one that cannot be read the next
// beginning of an event is looked for ({ followed by "ph", "name" or "cat"). Of the members beside the events, those before
// them count.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "instruments/trace/byte_source.hpp"
#include "instruments/trace/event.hpp"
#include "instruments/trace/utf8.hpp"

namespace campaign::trace {

/// Who is told of the events, in their order.
class EventSink {
public:
    EventSink() = default;
    EventSink(const EventSink&) = delete;
    EventSink& operator=(const EventSink&) = delete;
    virtual ~EventSink() = default;
    /// An entry of the list that is no object counts, and has no facts.
    virtual void event(const EventFacts* facts) = 0;
    /// Another list of the same name begins: in JSON the last one counts.
    virtual void another_list() = 0;
    /// The document turned out not to be JSON behind its first list: that one counts.
    virtual void first_list_counts() = 0;
};

class Document {
public:
    static constexpr std::size_t max_event = std::size_t{4} << 20U;     ///< a longer event is broken
    static constexpr std::size_t max_header = std::size_t{16} << 20U;   ///< kept of what stands before the events
    static constexpr std::size_t usual_window = std::size_t{1} << 20U;

    /// Values of the members beside traceEvents that matter, as text of JSON.
    using Header = std::map<std::string, std::string, std::less<>>;

    /// `window`: how many bytes are read at a time. The result does not depend on it.
    explicit Document(ByteSource& source, std::size_t window = usual_window);

    /// Reads it to its end.
    void read(EventSink& sink);

    [[nodiscard]] const Header& header() const { return header_; }
    [[nodiscard]] bool bare_list() const { return bare_list_; }
    [[nodiscard]] bool found_events() const { return found_events_; }
    [[nodiscard]] bool events_closed() const { return events_closed_; }
    [[nodiscard]] bool is_json() const { return !invalid_; }
    [[nodiscard]] bool byte_order_mark() const { return bom_; }
    [[nodiscard]] bool header_lost() const { return header_lost_; }
    [[nodiscard]] bool control_chars() const { return control_chars_; }
    [[nodiscard]] bool nonfinite() const { return nonfinite_; }
    [[nodiscard]] bool valid_utf8() const { return utf8_.valid(); }
    [[nodiscard]] std::uint64_t bad_events() const { return bad_events_; }
    /// So much was broken that what stood within broken events was looked for no longer.
    [[nodiscard]] bool gave_up() const { return gave_up_; }
    /// Of the text, without its byte order mark.
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

private:
    bool refill();
    [[nodiscard]] std::string_view rest() const { return {buffer_.data() + at_, size_ - at_}; }
    [[nodiscard]] JsonScan scan() const { return {buffer_.data() + at_, buffer_.data() + size_, at_end_}; }
    void note(const JsonScan& scan);
    char peek();
    bool take(char c);
    bool token(Token& token, bool key);
    bool walk();
    bool header_value(const std::string& name);
    bool begin();
    void members(EventSink& sink);
    void list(EventSink& sink);
    bool element(EventSink& sink);
    void resync(std::size_t scanned);
    bool event_begins();
    void salvage(EventSink& sink);
    void salvage_header(std::size_t end);
    void lose(EventSink& sink);
    void drain();

    ByteSource& source_;
    std::size_t window_;
    std::string buffer_;     // behind size_ it is 0
    std::size_t size_ = 0;   // of what is in it
    std::size_t at_ = 0;     // the cursor
    bool at_end_ = false;    // nothing more comes
    bool keep_ = true;       // what is behind the cursor too: it may have to be salvaged
    bool bare_list_ = false;
    bool found_events_ = false, events_closed_ = false, invalid_ = false, bom_ = false, header_lost_ = false;
    bool control_chars_ = false, nonfinite_ = false, gave_up_ = false;
    std::uint64_t bad_events_ = 0;
    std::uint64_t read_again_ = 0;   // bytes of broken events
    std::uint64_t bytes_ = 0;
    Utf8Check utf8_;
    Header header_;
    Header before_events_;
};

}   // namespace campaign::trace
