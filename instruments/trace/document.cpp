#include "instruments/trace/document.hpp"

#include <algorithm>

namespace campaign::trace {
namespace {

constexpr std::size_t max_header_members = 64;
constexpr std::size_t longest_scalar = 64;
constexpr std::size_t longest_gap = 4096;   // blanks between { and the first member of an event
// Broken events are read again from the next beginning within them. Events that hold each other would make that quadratic.
constexpr std::uint64_t may_read_again = std::uint64_t{64} << 20U;

bool is_blank(char c) {
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

bool is_scalar(std::string_view text) {
    return text == "null" || text == "true" || text == "false" ||
           (!text.empty() && text.find_first_not_of("0123456789+-.eE") == std::string_view::npos);
}

}   // namespace

bool Document::refill() {
    if (at_ > 0) {
        buffer_.erase(0, at_);
        at_ = 0;
    }
    const std::size_t had = buffer_.size();
    buffer_.resize(had + window_);
    const std::size_t got = source_.read(buffer_.data() + had, window_);
    buffer_.resize(had + got);
    bytes_ += got;
    return got > 0;
}

std::optional<char> Document::peek() {
    for (;;) {
        while (at_ < buffer_.size() && is_blank(buffer_[at_])) ++at_;
        if (at_ < buffer_.size()) return buffer_[at_];
        if (!refill()) return std::nullopt;
    }
}

std::optional<std::size_t> Document::balanced_end(std::size_t limit) {
    std::size_t offset = 0;   // from the cursor, which refill() moves to 0
    std::size_t depth = 0;
    bool in_string = false;
    for (;;) {
        const std::size_t size = std::min(buffer_.size() - at_, limit);
        const char* const text = buffer_.data() + at_;
        for (; offset < size; ++offset) {
            const char c = text[offset];
            if (in_string) {
                if (c == '\\') {
                    ++offset;   // may step one past this window; the byte is then skipped in the next one
                } else if (c == '"') {
                    in_string = false;
                }
                continue;
            }
            if (c == '"') {
                in_string = true;
            } else if (c == '{' || c == '[') {
                ++depth;
            } else if (c == '}' || c == ']') {
                if (--depth == 0) return at_ + offset + 1;
            }
        }
        if (offset >= limit || !refill()) return std::nullopt;
    }
}

std::optional<std::string> Document::key() {
    if (peek() != '"') return std::nullopt;
    std::string name;
    for (++at_; name.size() < 256; ++at_) {
        if (at_ == buffer_.size() && !refill()) return std::nullopt;
        const char c = buffer_[at_];
        if (c == '"') {
            ++at_;
            if (peek() != ':') return std::nullopt;
            ++at_;
            return name;
        }
        name += c;
    }
    return std::nullopt;
}

/// An object or array of any length, behind the events; the text of a long one is not kept.
std::optional<std::string> Document::nested_value() {
    std::string text;
    std::size_t depth = 0;
    bool in_string = false;
    bool escaped = false;
    bool whole = true;
    for (;; ++at_) {
        if (at_ == buffer_.size() && !refill()) return std::nullopt;
        const char c = buffer_[at_];
        whole = whole && text.size() < max_header;
        if (whole) text += c;
        if (in_string) {
            if (!escaped && c == '"') in_string = false;
            escaped = !escaped && c == '\\';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            ++depth;
        } else if ((c == '}' || c == ']') && --depth == 0) {
            ++at_;
            return whole ? std::move(text) : std::string{"null"};
        }
    }
}

std::optional<std::string> Document::value() {
    const std::optional<char> first = peek();
    if (!first) return std::nullopt;
    if (*first == '{' || *first == '[') {
        if (events_found_) return nested_value();
        const std::optional<std::size_t> end =
            balanced_end(max_event);   // kept, to look for the events in it if it is broken
        if (!end) return std::nullopt;
        std::string text = *end - at_ <= max_header ? buffer_.substr(at_, *end - at_) : std::string{"null"};
        at_ = *end;
        return text;
    }
    std::string text;
    bool in_string = false;
    for (; text.size() < max_header; ++at_) {
        if (at_ == buffer_.size() && !refill()) return std::nullopt;
        const char c = buffer_[at_];
        if (in_string && c == '\\') {
            text += c;
            if (++at_ == buffer_.size() && !refill()) return std::nullopt;
        } else if (c == '"') {
            in_string = !in_string;
        } else if (!in_string && (c == ',' || c == '}' || c == ']' || is_blank(c))) {
            if (text.empty()) return std::nullopt;
            return text;
        }
        text += buffer_[at_];
    }
    return std::nullopt;
}

void Document::end_of_document() {
    state_ = State::done;
    ++at_;
    closed_ = !peek();
    if (!closed_) syntax_error_ = true;
}

void Document::read_header() {
    for (;;) {
        const std::optional<char> c = peek();
        if (!c) {
            syntax_error_ = true;
            state_ = State::done;
            return;
        }
        if (*c == ',') {
            ++at_;
            continue;
        }
        if (*c == '}') {
            end_of_document();
            return;
        }
        const std::optional<std::string> name = key();
        if (name == "traceEvents" && !events_found_ && peek() == '[') {
            ++at_;
            events_found_ = true;
            state_ = State::events;
            return;
        }
        std::optional<std::string> text = name ? value() : std::nullopt;
        if (!text) {
            syntax_error_ = true;
            header_lost_ = true;
            find_events();
            return;
        }
        if (header_.size() < max_header_members) header_.insert_or_assign(*name, std::move(*text));
    }
}

/// The header cannot be read: the events may still be found by their name.
void Document::find_events() {
    constexpr std::string_view name = "\"traceEvents\"";
    state_ = State::done;
    while (!events_found_) {
        const std::size_t found = buffer_.find(name, at_);
        if (found != std::string::npos) {
            at_ = found + name.size();
            if (peek() != ':') continue;
            ++at_;
            if (peek() != '[') continue;
            ++at_;
            events_found_ = true;
            state_ = State::events;
            return;
        }
        at_ = std::max(at_, buffer_.size() - std::min(buffer_.size(), name.size()));
        if (!refill()) return;
    }
}

std::optional<std::string_view> Document::event() {
    for (;;) {
        const std::optional<char> c = peek();
        if (!c) {
            syntax_error_ = true;
            state_ = State::done;
            return std::nullopt;
        }
        if (*c == ',') {
            ++at_;
        } else if (*c == ']') {
            events_closed_ = true;
            if (bare_array_) {
                end_of_document();
            } else {
                ++at_;
                state_ = State::header;
            }
            return std::nullopt;
        } else if (*c == '{') {
            const std::optional<std::size_t> end = balanced_end(max_event);
            begin_ = at_;
            if (end) {
                at_ = *end;
                return std::string_view{buffer_}.substr(begin_, at_ - begin_);
            }
            ++bad_events_;
            syntax_error_ = true;
            reread_or_skip(std::min(max_event, buffer_.size() - begin_));
            resync(std::nullopt);
        } else if (const std::size_t end = scalar_end(); end > at_) {
            at_ = end;   // well formed, but no event
        } else {
            ++bad_events_;
            syntax_error_ = true;
            begin_ = at_;
            resync(std::nullopt);
        }
    }
}

/// One past the end of a number or word at the cursor; the cursor where there is none.
std::size_t Document::scalar_end() {
    for (;;) {
        const std::size_t end = buffer_.find_first_of(",] \n\r\t", at_);
        if (end != std::string::npos && end - at_ <= longest_scalar)
            return is_scalar(std::string_view{buffer_}.substr(at_, end - at_)) ? end : at_;
        if (buffer_.size() - at_ > longest_scalar || !refill()) return at_;
    }
}

/// At a {: one of the members that Kineto writes first follows.
bool Document::event_begins() {
    constexpr std::size_t longest_first = 6;
    std::size_t next = 1;
    for (;;) {
        const std::string_view text = std::string_view{buffer_}.substr(at_);
        while (next < text.size() && next < longest_gap && is_blank(text[next])) ++next;
        if (next >= longest_gap) return false;
        if (next + longest_first > text.size() && refill()) continue;
        const std::string_view rest = std::string_view{buffer_}.substr(std::min(at_ + next, buffer_.size()));
        return rest.starts_with("\"ph\"") || rest.starts_with("\"name\"") || rest.starts_with("\"cat\"");
    }
}

/// A broken event of `length` is read again from a beginning within it, unless too much was read again already.
void Document::reread_or_skip(std::size_t length) {
    const std::uint64_t so_far = bytes_ - (buffer_.size() - begin_);
    read_again_ += length;
    if (read_again_ <= may_read_again + 8 * so_far) return;
    gave_up_ = true;
    begin_ += length;
}

void Document::resync(std::optional<std::size_t> length) {
    at_ = begin_;   // from here on offsets count from the cursor, which refill() moves
    std::size_t left = length.value_or(0);
    std::size_t step = 1;   // past the beginning of the broken one
    if (length && left == 0) return;
    for (;;) {
        at_ += step;
        left -= std::min(left, step);
        if (length && left == 0) return;
        if (at_ >= buffer_.size()) {
            if (!refill()) return;
        }
        const std::size_t brace = buffer_.find('{', at_);
        const std::size_t here = (brace == std::string::npos ? buffer_.size() : brace) - at_;
        if (length && here >= left) {
            at_ += left;
            return;
        }
        at_ += here;
        left -= std::min(left, here);
        step = 0;
        if (at_ >= buffer_.size()) continue;
        if (event_begins()) return;
        step = 1;
    }
}

void Document::reject() {
    ++bad_events_;
    syntax_error_ = true;
    const std::size_t end = at_;
    reread_or_skip(end - begin_);
    resync(end - begin_);
}

std::optional<std::string_view> Document::next_event() {
    for (;;) {
        switch (state_) {
            case State::begin: {
                while (buffer_.size() < 3 && refill()) {
                }
                if (buffer_.starts_with("\xEF\xBB\xBF")) {
                    bom_ = true;
                    at_ = 3;
                }
                const std::optional<char> first = peek();
                bare_array_ = first == '[';
                if (first != '{' && first != '[') {
                    syntax_error_ = true;
                    state_ = State::done;
                    break;
                }
                ++at_;
                events_found_ = bare_array_;
                state_ = bare_array_ ? State::events : State::header;
                break;
            }
            case State::header: read_header(); break;
            case State::events:
                if (const std::optional<std::string_view> text = event()) return text;
                break;
            case State::done:   // to the end of the file, so that the check of the gzip stream is made
                do at_ = buffer_.size();
                while (refill());
                return std::nullopt;
        }
    }
}

}   // namespace campaign::trace
