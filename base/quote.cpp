#include "base/quote.hpp"

#include <algorithm>

namespace campaign {

std::string shell_quote(std::string_view word) {
    if (word.find('\0') != std::string_view::npos) return "''";   // no argv can hold it
    const auto plain = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               std::string_view{"@%+=:,./-_"}.find(c) != std::string_view::npos;
    };
    if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return std::string{word};
    std::string quoted = "'";
    for (const char c : word) {
        if (c == '\'') {
            quoted += "'\\''";
        } else {
            quoted += c;
        }
    }
    quoted += '\'';
    return quoted;
}

std::string shell_command(std::span<const std::string> argv) {
    std::string line;
    for (const std::string& word : argv) {
        if (!line.empty()) line += ' ';
        line += shell_quote(word);
    }
    return line;
}

}   // namespace campaign
