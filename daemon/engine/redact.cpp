#include "daemon/engine/redact.hpp"

#include <array>
#include <cctype>

namespace campaign::engine {
namespace {

constexpr std::string_view mark = "[redacted]";

bool token_char(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.' || c == '/' || c == '+' ||
           c == '=';
}
bool word_char(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

std::size_t token_end(std::string_view text, std::size_t from) {
    while (from < text.size() && token_char(text[from])) ++from;
    return from;
}

/// Past quotes, blanks, commas and one '=' or ':' that stand between a name and its value, as shells, Python lists and dicts
/// print them.
std::size_t value_begin(std::string_view text, std::size_t from) {
    std::size_t at = from;
    while (at < text.size() && at < from + 6 && std::string_view{" '\"=:,[("}.find(text[at]) != std::string_view::npos) ++at;
    return at;
}

bool equal_fold(std::string_view a, std::string_view b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (std::tolower(static_cast<unsigned char>(a[i])) != std::tolower(static_cast<unsigned char>(b[i]))) return false;
    }
    return true;
}

/// If a secret begins at `at`: where its value begins and ends.
bool secret_at(std::string_view text, std::size_t at, std::size_t& begin, std::size_t& end) {
    const bool word_start = at == 0 || !word_char(text[at - 1]);
    static constexpr std::array<std::string_view, 6> prefixes{"hf_", "sk-", "nvapi-", "ghp_", "glpat-", "xoxb-"};
    if (word_start) {
        for (const std::string_view prefix : prefixes) {
            if (text.substr(at, prefix.size()) != prefix) continue;
            end = token_end(text, at);
            if (end - at >= prefix.size() + 8) {
                begin = at;
                return true;
            }
        }
        if (equal_fold(text.substr(at, 7), "bearer ")) {
            begin = at + 7;
            end = token_end(text, begin);
            if (end > begin) return true;
        }
    }
    static constexpr std::array<std::string_view, 12> names{"--api-key", "--hf-token", "--api_key", "--hf_token",
                                                            "_TOKEN",    "_KEY",       "_SECRET",   "_PASSWORD",
                                                            "api_key",   "hf_token",   "API_KEY",   "password"};
    for (const std::string_view name : names) {
        if (!equal_fold(text.substr(at, name.size()), name)) continue;
        const std::size_t after = at + name.size();
        if (after >= text.size() || word_char(text[after])) continue;
        begin = value_begin(text, after);
        if (begin == after) continue;
        end = token_end(text, begin);
        const std::string_view value = text.substr(begin, end - begin);
        if (value.size() >= 4 && value != "None" && value != "null" && value != "True" && value != "False" &&
            value != "false" && value != "true")
            return true;
    }
    if (text.substr(at, 3) == "://") {
        const std::size_t stop = text.find_first_of("/ \n\t'\"", at + 3);
        const std::string_view authority =
            text.substr(at + 3, stop == std::string_view::npos ? std::string_view::npos : stop - at - 3);
        const std::size_t host = authority.rfind('@');
        const std::size_t colon = authority.find(':');
        if (host != std::string_view::npos && colon != std::string_view::npos && colon < host) {
            begin = at + 3 + colon + 1;
            end = at + 3 + host;
            return end > begin;
        }
    }
    return false;
}

}   // namespace

std::string redact(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        std::size_t begin = 0;
        std::size_t end = 0;
        if (secret_at(text, at, begin, end)) {
            out += text.substr(at, begin - at);
            out += mark;
            at = end;
        } else {
            out += text[at++];
        }
    }
    return out;
}

}   // namespace campaign::engine
