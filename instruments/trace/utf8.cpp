#include "instruments/trace/utf8.hpp"

#include <cstring>

namespace campaign::trace {
namespace {

/// Of a sequence: how many bytes are as they should be, and how many it should have. `wanted` 0: its first byte begins none.
struct Sequence {
    std::size_t good = 0;
    std::size_t wanted = 0;
};

Sequence sequence_at(std::string_view text) {
    const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned lead = byte(0);
    if (lead < 0x80) return {1, 1};
    const std::size_t wanted = lead >= 0xC2 && lead < 0xE0   ? 2
                               : lead >= 0xE0 && lead < 0xF0 ? 3
                               : lead >= 0xF0 && lead < 0xF5 ? 4
                                                             : 0;
    if (wanted == 0) return {1, 0};
    // The second byte's range tells overlong forms, surrogates and what is beyond U+10FFFF.
    const unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    const unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    std::size_t good = 1;
    while (good < wanted && good < text.size() &&
           (good == 1 ? byte(1) >= low && byte(1) <= high : (byte(good) & 0xC0U) == 0x80U))
        ++good;
    return {good, wanted};
}

/// Past the leading ASCII.
std::size_t ascii_prefix(std::string_view text) {
    std::size_t i = 0;
    constexpr std::uint64_t high_bits = 0x8080808080808080ULL;
    for (; i + 32 <= text.size(); i += 32) {
        std::uint64_t words[4];
        std::memcpy(words, text.data() + i, sizeof words);
        if (((words[0] | words[1] | words[2] | words[3]) & high_bits) != 0) break;
    }
    while (i < text.size() && static_cast<unsigned char>(text[i]) < 0x80) ++i;
    return i;
}

/// The place of the first fault, or the text's size. A sequence that the end cuts off is a fault.
std::size_t valid_prefix(std::string_view text) {
    std::size_t i = 0;
    for (;;) {
        i += ascii_prefix(text.substr(i));
        if (i == text.size()) return i;
        const Sequence found = sequence_at(text.substr(i));
        if (found.good != found.wanted) return i;
        i += found.good;
    }
}

}   // namespace

bool valid_utf8(std::string_view text) {
    return valid_prefix(text) == text.size();
}

void append_valid_utf8(std::string& out, std::string_view text) {
    for (;;) {
        const std::size_t good = valid_prefix(text);
        out += text.substr(0, good);
        if (good == text.size()) return;
        out += "\xEF\xBF\xBD";
        text.remove_prefix(good + sequence_at(text.substr(good)).good);
    }
}

std::string as_valid_utf8(std::string_view text) {
    std::string out;
    append_valid_utf8(out, text);
    return out;
}

void append_code_point(std::string& out, unsigned code) {
    if ((code >= 0xD800 && code < 0xE000) || code > 0x10FFFF) code = 0xFFFD;
    const auto tail = [&out, code](unsigned shift) { out += static_cast<char>(0x80U | ((code >> shift) & 0x3FU)); };
    if (code < 0x80) {
        out += static_cast<char>(code);
    } else if (code < 0x800) {
        out += static_cast<char>(0xC0U | (code >> 6U));
        tail(0);
    } else if (code < 0x10000) {
        out += static_cast<char>(0xE0U | (code >> 12U));
        tail(6);
        tail(0);
    } else {
        out += static_cast<char>(0xF0U | (code >> 18U));
        tail(12);
        tail(6);
        tail(0);
    }
}

void Utf8Check::add(std::string_view piece) {
    while (valid_ && !open_.empty() && !piece.empty()) {
        open_ += piece.front();
        piece.remove_prefix(1);
        const Sequence found = sequence_at(open_);
        if (found.good == found.wanted)
            open_.clear();
        else if (found.good < open_.size())
            valid_ = false;
    }
    if (!valid_) return;
    const std::size_t good = valid_prefix(piece);
    if (good == piece.size()) return;
    const std::string_view rest = piece.substr(good);
    const Sequence found = sequence_at(rest);
    if (found.wanted != 0 && found.good == rest.size())
        open_ = rest;
    else
        valid_ = false;
}

}   // namespace campaign::trace
