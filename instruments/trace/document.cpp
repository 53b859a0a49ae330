#include "instruments/trace/document.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace campaign::trace {
namespace {

constexpr std::size_t padding = 64;                            // readable behind the text
constexpr std::size_t longest_gap = 4096;                      // blanks between { and the first member of an event
constexpr std::size_t longest_value = std::size_t{1} << 20U;   // of the members that are kept
// Broken events are read again from the next beginning within them. Events that hold each other would make that quadratic.
constexpr std::uint64_t may_read_again = std::uint64_t{64} << 20U;
constexpr std::array<std::string_view, 6> kept_members{"baseTimeNanoseconds", "displayTimeUnit", "distributedInfo",
                                                       "schemaVersion",       "traceName",       "vllm_version"};
constexpr std::string_view events_name = "\"traceEvents\"";

/// Blanks of a regular expression.
bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r') || (c >= '\x1c' && c <= '\x1f');
}

bool is_kept(std::string_view name) {
    return std::find(kept_members.begin(), kept_members.end(), name) != kept_members.end();
}

/// "traceEvents" : [ in a text.
struct Found {
    std::size_t begin = std::string_view::npos;
    std::size_t end = 0;
};
Found find_events(std::string_view text, std::size_t from) {
    for (std::size_t name = text.find(events_name, from); name != std::string_view::npos;
         name = text.find(events_name, name + 1)) {
        std::size_t at = name + events_name.size();
        const auto blanks = [&] {
            while (at < text.size() && is_space(text[at])) ++at;
            return at < text.size() ? text[at++] : '\0';
        };
        if (blanks() == ':' && blanks() == '[') return {name, at};
    }
    return {};
}

}   // namespace

Document::Document(ByteSource& source, std::size_t window) : source_{source}, window_{window} {
    buffer_.resize(padding);
}

bool Document::refill() {
    if (at_end_) return false;
    if (keep_ && size_ > max_header) keep_ = false;
    if (!keep_ && at_ > 0) {
        std::memmove(buffer_.data(), buffer_.data() + at_, size_ - at_);
        size_ -= at_;
        at_ = 0;
    }
    const std::size_t room = std::max(window_, size_ / 2);   // what does not fit in a window grows by more each time
    if (buffer_.size() < size_ + room + padding) buffer_.resize(size_ + room + padding);
    const std::size_t got = source_.read(buffer_.data() + size_, room);
    utf8_.add({buffer_.data() + size_, got});
    size_ += got;
    bytes_ += got;
    std::memset(buffer_.data() + size_, 0, padding);
    at_end_ = got == 0;
    return got > 0;
}

void Document::note(const JsonScan& scan) {
    control_chars_ = control_chars_ || scan.control_chars();
    nonfinite_ = nonfinite_ || scan.nonfinite();
}

/// The character at the cursor behind blanks; 0 at the end.
char Document::peek() {
    do {
        JsonScan here = scan();
        const char c = here.peek();
        at_ = static_cast<std::size_t>(here.at() - buffer_.data());
        if (c != '\0' || at_ < size_) return c;
    } while (refill());
    return '\0';
}

bool Document::take(char c) {
    if (peek() != c || at_ >= size_) return false;
    ++at_;
    return true;
}

/// A key with its colon, or a value; read again from its beginning when it does not fit.
bool Document::token(Token& token, bool key) {
    for (;;) {
        JsonScan here = scan();
        const Scan got = key ? here.key(token) : here.value(token);
        if (got == Scan::more && size_ - at_ < max_header) {
            refill();   // where nothing more comes, the text is judged once more as the end
            continue;
        }
        note(here);
        if (got != Scan::ok) return false;
        at_ = static_cast<std::size_t>(here.at() - buffer_.data());
        return true;
    }
}

/// Past a value of any length.
bool Document::walk() {
    JsonWalk walk;
    for (;;) {
        JsonScan here = scan();
        const Scan got = walk.run(here);
        note(here);
        at_ = static_cast<std::size_t>(here.at() - buffer_.data());
        if (got == Scan::ok) return true;
        if (got == Scan::bad || size_ - at_ > max_header || !refill()) {
            if (got == Scan::more && at_end_) continue;   // judged once more, as the end
            return false;
        }
    }
}

bool Document::header_value(const std::string& name) {
    header_.erase(name);
    if (!is_kept(name)) return walk();
    Token value;
    if (!token(value, false)) return false;
    const std::size_t quotes = value.kind == Token::Kind::text ? 1 : 0;
    if (value.raw.size() < longest_value && header_.size() < kept_members.size())
        header_[name] = std::string{value.raw.data() - quotes, value.raw.size() + 2 * quotes};
    return true;
}

/// Members of the outermost object, from the cursor to its end. False: it is no JSON.
void Document::members(EventSink& sink) {
    const bool whole = [&] {
        if (peek() == '}' && !found_events_) return take('}');
        for (bool first = !found_events_;; first = false) {
            // Behind a list a comma or the end must come.
            if (!first) {
                if (peek() == '}') return take('}');
                if (!take(',')) return false;
            }
            peek();
            Token key;
            if (!token(key, true)) return false;
            const std::string name = meaning(key);
            if (name == "traceEvents" && peek() == '[') {
                if (found_events_)
                    sink.another_list();
                else
                    before_events_ = header_;
                ++at_;
                list(sink);
                if (invalid_) return true;
                continue;
            }
            if (!header_value(name)) return false;
        }
    }();
    if (invalid_) return;
    if (!whole || peek() != '\0' || at_ < size_) lose(sink);
}

/// No JSON, found out outside of a list.
void Document::lose(EventSink& sink) {
    invalid_ = true;
    if (!found_events_) return salvage(sink);
    header_ = before_events_;
    sink.first_list_counts();
}

/// A list from behind its bracket to its end.
void Document::list(EventSink& sink) {
    const bool first_list = !found_events_;
    found_events_ = true;
    keep_ = false;
    std::uint64_t elements = 0;
    for (;;) {
        std::uint64_t commas = 0;
        for (;;) {
            const char c = peek();
            if (c != ',') break;
            ++at_;
            ++commas;
        }
        const bool end = at_ < size_ && buffer_[at_] == ']';
        const bool expected = end ? commas == 0 : commas == (elements == 0 ? 0U : 1U);
        if (!expected || at_ >= size_) invalid_ = true;
        const bool salvaged = invalid_;
        if (end || at_ >= size_) {
            if (end) ++at_;
            if (first_list) events_closed_ = end;
            break;
        }
        ++elements;
        if (!first_list && salvaged) break;
        if (!element(sink) && !first_list) break;
    }
    if (invalid_ && !first_list) {   // the first list is what is salvaged
        sink.first_list_counts();
        bad_events_ = 0;
    }
    if (invalid_) header_ = before_events_;
}

/// One entry. False: it could not be read, and the cursor is where the next one seems to begin.
bool Document::element(EventSink& sink) {
    const bool object = buffer_[at_] == '{';
    EventFacts facts;
    Token other;
    for (;;) {
        JsonScan here = scan();
        const Scan got = object ? read_event(here, facts) : here.value(other);
        if (got == Scan::more && size_ - at_ < max_event) {
            refill();
            continue;
        }
        note(here);
        const std::size_t scanned = static_cast<std::size_t>(here.at() - buffer_.data()) - at_;
        if (got == Scan::ok) {
            at_ += scanned;
            sink.event(object ? &facts : nullptr);
            return true;
        }
        invalid_ = true;
        ++bad_events_;
        resync(scanned);
        return false;
    }
}

/// At a {: one of the members that Kineto writes first follows.
bool Document::event_begins() {
    constexpr std::size_t longest_first = 6;
    std::size_t next = 1;
    for (;;) {
        const std::string_view text = rest();
        while (next < text.size() && next < longest_gap && is_space(text[next])) ++next;
        if (next >= longest_gap) return false;
        if (next + longest_first > text.size() && refill()) continue;
        const std::string_view member = rest().substr(std::min(next, size_ - at_));
        return member.starts_with("\"ph\"") || member.starts_with("\"name\"") || member.starts_with("\"cat\"");
    }
}

/// To the next beginning of an event behind the cursor; to the end where there is none.
void Document::resync(std::size_t scanned) {
    read_again_ += scanned;
    std::size_t step = 1;
    if (read_again_ > may_read_again + 8 * (bytes_ - (size_ - at_))) {
        gave_up_ = true;
        step = std::max<std::size_t>(scanned, 1);
    }
    for (;;) {
        at_ = std::min(at_ + step, size_);
        const std::size_t brace = rest().find('{');
        at_ = brace == std::string_view::npos ? size_ : at_ + brace;
        step = 1;
        if (at_ == size_) {
            if (!refill()) return;
            step = 0;
        } else if (event_begins()) {
            return;
        }
    }
}

/// No JSON before any list of events: the first one is looked for by its name.
void Document::salvage(EventSink& sink) {
    header_.clear();
    std::size_t from = 0;
    for (;;) {
        const Found found = find_events({buffer_.data(), size_}, from);
        if (found.begin != std::string_view::npos) {
            if (keep_)
                salvage_header(found.begin);
            else
                header_lost_ = true;
            before_events_ = header_;
            at_ = found.end;
            return list(sink);
        }
        // A name that is not finished begins where at most longest_gap is left.
        from = size_ - std::min(size_, longest_gap);
        if (!keep_) {
            at_ = from;
            from = 0;
        }
        if (!refill()) break;
    }
    at_ = 0;
    const std::size_t bracket = keep_ ? rest().find('[') : std::string_view::npos;
    if (bracket == std::string_view::npos) {
        at_ = size_;
        return;
    }
    at_ = bracket + 1;
    list(sink);
}

/// What stands before the events, closed with a brace, may be an object.
void Document::salvage_header(std::size_t end) {
    std::string head = buffer_.substr(0, end);
    while (!head.empty() && is_space(head.back())) head.pop_back();
    while (!head.empty() && head.back() == ',') head.pop_back();
    head += '}';
    std::vector<Member> members;
    if (!read_members(head, members, nonfinite_)) {
        header_lost_ = true;
        return;
    }
    for (const Member& each : members) {
        if (!is_kept(each.key) || each.value.raw.size() >= longest_value) continue;
        const std::size_t quotes = each.value.kind == Token::Kind::text ? 1 : 0;
        header_[each.key] = std::string{each.value.raw.data() - quotes, each.value.raw.size() + 2 * quotes};
    }
}

bool Document::begin() {
    while (size_ < 3 && refill()) {
    }
    bom_ = std::string_view{buffer_.data(), size_}.starts_with("\xEF\xBB\xBF");
    if (bom_) {
        buffer_.erase(0, 3);
        size_ -= 3;
        bytes_ -= 3;
    }
    const char first = peek();
    bare_list_ = first == '[';
    return first == '[' || first == '{';
}

void Document::read(EventSink& sink) {
    if (!begin()) {
        invalid_ = true;
        salvage(sink);
    } else if (bare_list_) {
        ++at_;
        list(sink);
        if (!invalid_ && (peek() != '\0' || at_ < size_)) invalid_ = true;
    } else {
        ++at_;
        members(sink);
    }
    // To the end of the file, so that the check of the gzip stream and of the text is made.
    keep_ = false;
    do at_ = size_;
    while (refill());
}

}   // namespace campaign::trace
