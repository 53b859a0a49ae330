#pragma once
// How the scripts carry bytes through a line.

#include <optional>
#include <string>
#include <string_view>

namespace campaign::systemd {

/// nullopt for anything that is not whole, padded base64. No line breaks.
[[nodiscard]] inline std::optional<std::string> from_base64(std::string_view text) {
    if (text.size() % 4 != 0) return std::nullopt;
    const auto value = [](char c) -> int {
        if (c >= 'A' && c <= 'Z') return c - 'A';
        if (c >= 'a' && c <= 'z') return c - 'a' + 26;
        if (c >= '0' && c <= '9') return c - '0' + 52;
        return c == '+' ? 62 : c == '/' ? 63 : -1;
    };
    std::string out;
    out.reserve(text.size() / 4 * 3);
    for (std::size_t i = 0; i < text.size(); i += 4) {
        const bool last = i + 4 == text.size();
        std::size_t padding = 0;
        if (last && text[i + 3] == '=') padding = text[i + 2] == '=' ? 2 : 1;
        unsigned bits = 0;
        for (std::size_t k = 0; k < 4; ++k) {
            const int digit = k >= 4 - padding ? 0 : value(text[i + k]);
            if (digit < 0) return std::nullopt;
            bits = (bits << 6) | static_cast<unsigned>(digit);
        }
        for (std::size_t k = 0; k < 3 - padding; ++k) out += static_cast<char>((bits >> (16 - 8 * k)) & 0xff);
    }
    return out;
}

}   // namespace campaign::systemd
