#include "instruments/trace/json_scan.hpp"

#include <charconv>

#include "instruments/trace/utf8.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace campaign::trace {
namespace {

constexpr std::size_t deepest = 200'000;   // bytes of memory for a text of nothing but brackets

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool is_hex(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/// The next byte of a string that is not itself: a quote, a backslash, a control character. At the latest the 0 at `end`.
const char* special(const char* at, const char* end) {
#if defined(__SSE2__)
    const __m128i quote = _mm_set1_epi8('"');
    const __m128i slash = _mm_set1_epi8('\\');
    const __m128i last_control = _mm_set1_epi8(0x1F);
    while (end - at >= 16) {
        const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
        const __m128i hit = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, slash)),
                                         _mm_cmpeq_epi8(_mm_min_epu8(bytes, last_control), bytes));
        const int mask = _mm_movemask_epi8(hit);
        if (mask != 0) return at + __builtin_ctz(static_cast<unsigned>(mask));
        at += 16;
    }
#endif
    (void)end;
    while (static_cast<unsigned char>(*at) >= 0x20 && *at != '"' && *at != '\\') ++at;
    return at;
}

unsigned code_unit(std::string_view hex) {
    unsigned code = 0;
    std::from_chars(hex.data(), hex.data() + hex.size(), code, 16);
    return code;
}

}   // namespace

bool Token::is(std::string_view plain) const {
    if (kind != Kind::text) return false;
    return escaped ? meaning(*this) == plain : raw == plain;
}

std::string meaning(const Token& text) {
    std::string out;
    if (!text.escaped) {
        append_valid_utf8(out, text.raw);
        return out;
    }
    const std::string_view raw = text.raw;
    for (std::size_t i = 0; i < raw.size();) {
        const std::size_t slash = raw.find('\\', i);
        append_valid_utf8(out, raw.substr(i, slash == std::string_view::npos ? slash : slash - i));
        if (slash == std::string_view::npos || slash + 1 >= raw.size()) break;
        const char c = raw[slash + 1];
        i = slash + 2;
        constexpr std::string_view letters = "bfnrt";
        constexpr std::string_view meant = "\b\f\n\r\t";
        if (const std::size_t known = letters.find(c); known != std::string_view::npos) {
            out += meant[known];
        } else if (c == 'u' && i + 4 <= raw.size()) {
            unsigned code = code_unit(raw.substr(i, 4));
            i += 4;
            if (code >= 0xD800 && code < 0xDC00 && i + 6 <= raw.size() && raw.substr(i, 2) == "\\u") {
                const unsigned low = code_unit(raw.substr(i + 2, 4));
                if (low >= 0xDC00 && low < 0xE000) {
                    code = 0x10000 + ((code - 0xD800) << 10U) + (low - 0xDC00);
                    i += 6;
                }
            }
            append_code_point(out, code);
        } else {
            out += c;
        }
    }
    return out;
}

Scan JsonScan::escape() {   // at the backslash
    const char c = at_[1];
    if (at_ + 1 == end_) {
        at_ = end_;
        return nothing_here();
    }
    if (c == 'u') {
        for (int i = 2; i < 6; ++i) {
            if (is_hex(at_[i])) continue;
            return at_ + i >= end_ && !final_ ? Scan::more : Scan::bad;
        }
        at_ += 6;
        return Scan::ok;
    }
    if (c != '"' && c != '\\' && c != '/' && c != 'b' && c != 'f' && c != 'n' && c != 'r' && c != 't') return Scan::bad;
    at_ += 2;
    return Scan::ok;
}

Scan JsonScan::string(Token& token) {
    const char* const begin = at_ + 1;
    ++at_;
    token.kind = Token::Kind::text;
    token.escaped = false;
    for (;;) {
        at_ = special(at_, end_);
        if (*at_ == '"') {
            token.raw = {begin, static_cast<std::size_t>(at_ - begin)};
            ++at_;
            return Scan::ok;
        }
        if (*at_ == '\\') {
            token.escaped = true;
            if (const Scan got = escape(); got != Scan::ok) return got;
            continue;
        }
        if (at_ == end_) return nothing_here();
        control_chars_ = true;
        ++at_;
    }
}

Scan JsonScan::key(Token& token) {
    if (peek() != '"') return nothing_here();
    if (const Scan got = string(token); got != Scan::ok) return got;
    return take(':');
}

Scan JsonScan::literal(std::string_view text) {
    for (const char c : text) {
        if (*at_ != c) return nothing_here();
        ++at_;
    }
    return Scan::ok;
}

Scan JsonScan::word(Token& token) {
    switch (*at_) {
        case 'n': token.kind = Token::Kind::null; return literal("null");
        case 't': token.kind = Token::Kind::yes; return literal("true");
        case 'f': token.kind = Token::Kind::no; return literal("false");
        case 'N': token.kind = Token::Kind::nonfinite; return literal("NaN");
        case 'I': token.kind = Token::Kind::nonfinite; return literal("Infinity");
        default: return nothing_here();
    }
}

/// As far as it is a number; what follows is for the grammar to judge.
Scan JsonScan::number(Token& token) {
    if (*at_ == '-') {
        ++at_;
        if (*at_ == 'I') {
            token.kind = Token::Kind::nonfinite;
            return literal("Infinity");
        }
        if (!is_digit(*at_)) return nothing_here();
    }
    token.kind = Token::Kind::integer;
    if (*at_ == '0') {
        ++at_;
    } else {
        while (is_digit(*at_)) ++at_;
    }
    if (*at_ == '.' && is_digit(at_[1])) {
        token.kind = Token::Kind::decimal;
        ++at_;
        while (is_digit(*at_)) ++at_;
    }
    if (*at_ == 'e' || *at_ == 'E') {
        const char* exponent = at_ + 1;
        if (exponent < end_ && (*exponent == '+' || *exponent == '-')) ++exponent;
        if (is_digit(*exponent)) {
            token.kind = Token::Kind::decimal;
            while (is_digit(*exponent)) ++exponent;
            at_ = exponent;
        } else if (exponent >= end_ && !final_) {
            return Scan::more;
        }
    }
    if (at_ + 1 >= end_ && !final_) return Scan::more;   // "1" or "1." may go on
    return Scan::ok;
}

Scan JsonScan::value(Token& token) {
    const char c = peek();
    if (c == '"') return string(token);
    const char* const begin = at_;
    Scan got = Scan::bad;
    if (c == '{' || c == '[') {
        token.kind = Token::Kind::nested;
        JsonWalk walk;
        got = walk.run(*this);
    } else if (is_digit(c) || c == '-') {
        got = number(token);
    } else {
        got = word(token);
    }
    token.escaped = false;
    token.raw = {begin, static_cast<std::size_t>(at_ - begin)};
    if (token.kind == Token::Kind::nonfinite && got == Scan::ok) nonfinite_ = true;
    return got;
}

Scan JsonWalk::run(JsonScan& scan) {
    Token token;
    for (;;) {
        const char c = scan.peek();
        const char* const here = scan.at_;
        Scan got = Scan::ok;
        switch (expect_) {
            case Expect::first_value:
                if (c == ']') {
                    ++scan.at_;
                    closers_.pop_back();
                    expect_ = Expect::after;
                    break;
                }
                [[fallthrough]];
            case Expect::value:
                if (c == '{' || c == '[') {
                    if (closers_.size() >= deepest) return Scan::bad;
                    ++scan.at_;
                    closers_.push_back(c == '{' ? '}' : ']');
                    expect_ = c == '{' ? Expect::first_key : Expect::first_value;
                    break;
                }
                got = scan.value(token);
                expect_ = got == Scan::ok ? Expect::after : expect_;
                break;
            case Expect::first_key:
                if (c == '}') {
                    ++scan.at_;
                    closers_.pop_back();
                    expect_ = Expect::after;
                    break;
                }
                [[fallthrough]];
            case Expect::key:
                got = scan.key(token);
                expect_ = got == Scan::ok ? Expect::value : expect_;
                break;
            case Expect::after:
                if (c == ',') {
                    ++scan.at_;
                    expect_ = closers_.back() == '}' ? Expect::key : Expect::value;
                } else if (c == closers_.back()) {
                    ++scan.at_;
                    closers_.pop_back();
                } else {
                    got = scan.nothing_here();
                }
                break;
        }
        if (got != Scan::ok) {
            if (got == Scan::more) scan.at_ = here;   // this token again, once there is more
            return got;
        }
        if (expect_ == Expect::after && closers_.empty()) return Scan::ok;
    }
}

bool read_members(std::string_view text, std::vector<Member>& members, bool& nonfinite) {
    JsonScan scan{text.data(), text.data() + text.size(), true};
    const bool whole = [&] {
        if (scan.take('{') != Scan::ok) return false;
        if (scan.peek() == '}') return scan.take('}') == Scan::ok && scan.peek() == '\0' && scan.at_end();
        for (;;) {
            Token key;
            Member member;
            if (scan.key(key) != Scan::ok || scan.value(member.value) != Scan::ok) return false;
            member.key = meaning(key);
            members.push_back(std::move(member));
            if (scan.peek() != ',') break;
            if (scan.take(',') != Scan::ok) return false;
        }
        return scan.take('}') == Scan::ok && scan.peek() == '\0' && scan.at_end();
    }();
    nonfinite = nonfinite || scan.nonfinite();
    return whole;
}

}   // namespace campaign::trace
