#include "adapters/systemd/unit_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/json.hpp"
#include "base/text.hpp"

namespace campaign::systemd {

namespace {

bool is_alnum(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}
bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

void append_hex(std::string& out, char c) {
    constexpr std::string_view digits = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    out += digits[byte >> 4];
    out += digits[byte & 15];
}

int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/// Resolves one C escape at text[at] (the character after the backslash); returns how many characters it took, 0 if it is
/// none, and then the backslash stays.
std::size_t unescape(std::string_view text, std::size_t at, std::string& out) {
    if (at >= text.size()) return 0;
    constexpr std::string_view names = "abfnrtvs\\\"'";
    constexpr std::string_view values = "\a\b\f\n\r\t\v \\\"'";
    if (const auto which = names.find(text[at]); which != std::string_view::npos) {
        out += values[which];
        return 1;
    }
    if (text[at] == 'x' && at + 2 < text.size() && hex_value(text[at + 1]) >= 0 && hex_value(text[at + 2]) >= 0) {
        const int value = hex_value(text[at + 1]) * 16 + hex_value(text[at + 2]);
        if (value == 0) return 0;
        out += static_cast<char>(value);
        return 3;
    }
    return 0;
}

}   // namespace

bool valid_unit(std::string_view unit) {
    constexpr std::string_view suffix = ".service";
    if (unit.size() <= suffix.size() || unit.size() > 255 || !unit.ends_with(suffix)) return false;
    if (unit.front() == '-' || unit.front() == '.') return false;
    return std::all_of(unit.begin(), unit.end(),
                       [](char c) { return is_alnum(c) || std::string_view{":_.@-\\"}.find(c) != std::string_view::npos; });
}

std::string object_path(std::string_view unit) {
    std::string path = "/org/freedesktop/systemd1/unit/";
    for (std::size_t i = 0; i < unit.size(); ++i) {
        const char c = unit[i];
        const bool first_digit = i == 0 && c >= '0' && c <= '9';
        if (is_alnum(c) && !first_digit) {
            path += c;
        } else {
            path += '_';
            append_hex(path, c);
        }
    }
    return path;
}

std::string quote_word(std::string_view word) {
    const auto plain = [](char c) {
        return is_alnum(c) || std::string_view{"@+=:,./_-${}%"}.find(c) != std::string_view::npos;
    };
    const bool quotes = word.empty() || !std::all_of(word.begin(), word.end(), plain);
    std::string out;
    if (quotes) out += '"';
    for (const char c : word) {
        switch (c) {
            case '%': out += "%%"; break;
            case '"': out += "\\\""; break;
            case '\\': out += "\\\\"; break;
            case '\n': out += "\\n"; break;
            case '\t': out += "\\t"; break;
            case '\r': out += "\\r"; break;
            default:
                if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
                    out += "\\x";
                    append_hex(out, c);
                } else {
                    out += c;
                }
        }
    }
    if (quotes) out += '"';
    return out;
}

std::string quote_words(std::span<const std::string> words) {
    std::string line;
    for (const std::string& word : words) {
        if (!line.empty()) line += ' ';
        line += quote_word(word);
    }
    return line;
}

std::string literal_dollars(std::string_view word) {
    std::string out;
    for (const char c : word) {
        out += c;
        if (c == '$') out += c;
    }
    return out;
}

std::optional<std::vector<std::string>> split_words(std::string_view line) {
    std::vector<std::string> words;
    std::size_t i = 0;
    while (true) {
        while (i < line.size() && is_blank(line[i])) ++i;
        if (i == line.size()) return words;
        std::string word;
        char quote = 0;
        for (; i < line.size() && (quote != 0 || !is_blank(line[i])); ++i) {
            const char c = line[i];
            if (c == '\\') {
                std::string resolved;
                if (const std::size_t took = unescape(line, i + 1, resolved); took > 0) {
                    word += resolved;
                    i += took;
                } else {
                    word += c;
                    if (i + 1 < line.size()) word += line[++i];   // an unknown escape keeps both characters
                }
            } else if (quote != 0 && c == quote) {
                quote = 0;
            } else if (quote == 0 && (c == '"' || c == '\'')) {
                quote = c;
            } else {
                word += c;
            }
        }
        if (quote != 0) return std::nullopt;
        std::string expanded;
        for (std::size_t k = 0; k < word.size(); ++k) {
            expanded += word[k];
            if (word[k] != '%' || k + 1 == word.size()) continue;
            if (word[k + 1] == '%') {
                ++k;
            } else if (is_alnum(word[k + 1])) {
                return std::nullopt;
            }
        }
        words.push_back(std::move(expanded));
    }
}

Properties parse_show(std::string_view text) {
    Properties properties;
    for (const std::string& line : split(text, '\n')) {
        const auto equals = line.find('=');
        if (equals == std::string::npos || equals == 0) continue;
        std::string key = line.substr(0, equals);
        std::string value = line.substr(equals + 1);
        if (const auto [place, fresh] = properties.emplace(std::move(key), value); !fresh) place->second += '\n' + value;
    }
    return properties;
}

std::string property(const Properties& properties, const std::string& key) {
    const auto found = properties.find(key);
    return found == properties.end() ? std::string{} : found->second;
}

std::uint64_t number(const Properties& properties, const std::string& key) {
    const std::string text = property(properties, key);
    std::uint64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

std::optional<std::uint64_t> parse_span(std::string_view text) {
    text = trim(text);
    if (text == "infinity") return UINT64_MAX;
    if (text == "0") return 0;
    struct Unit {
        std::string_view name;
        std::uint64_t us;
    };
    constexpr std::array<Unit, 9> units{{{"us", 1},
                                         {"ms", 1'000},
                                         {"s", 1'000'000},
                                         {"min", 60'000'000},
                                         {"h", 3'600'000'000},
                                         {"d", 86'400'000'000},
                                         {"w", 604'800'000'000},
                                         {"month", 2'629'800'000'000},
                                         {"y", 31'557'600'000'000}}};
    std::uint64_t total = 0;
    bool any = false;
    for (const std::string& part : split(text, ' ')) {
        if (part.empty()) continue;
        double value = 0;
        const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
        if (error != std::errc{} || value < 0 || value > 1e12) return std::nullopt;
        const std::string_view name{end, static_cast<std::size_t>(part.data() + part.size() - end)};
        const auto unit = std::find_if(units.begin(), units.end(), [&](const Unit& u) { return u.name == name; });
        if (unit == units.end()) return std::nullopt;
        total += static_cast<std::uint64_t>(value * static_cast<double>(unit->us));
        any = true;
    }
    if (!any) return std::nullopt;
    return total;
}

Result<std::vector<ExecCommand>> parse_exec(std::string_view busctl_json) {
    const Error malformed{ErrorKind::protocol, "busctl's answer for ExecStartEx cannot be read",
                          "not a list of commands with path, words and flags", printable(busctl_json, 300), ""};
    Result<json::value> parsed = parse_json(busctl_json, "busctl's answer for ExecStartEx");
    if (!parsed) return parsed.error();
    const json::value* data = member(*parsed, "data");
    if (data == nullptr || !data->is_array()) return malformed;
    std::vector<ExecCommand> commands;
    for (const json::value& entry : data->get_array()) {
        if (!entry.is_array() || entry.get_array().size() < 3) return malformed;
        const json::array& fields = entry.get_array();
        if (!fields[0].is_string() || !fields[1].is_array() || !fields[2].is_array()) return malformed;
        ExecCommand command;
        command.path = std::string{fields[0].get_string()};
        for (const auto& [from, to] : {std::pair{&fields[1], &command.argv}, std::pair{&fields[2], &command.flags}}) {
            for (const json::value& word : from->get_array()) {
                if (!word.is_string()) return malformed;
                to->emplace_back(word.get_string());
            }
        }
        commands.push_back(std::move(command));
    }
    return commands;
}

std::string exec_prefix(const std::vector<std::string>& flags, bool own_argv0) {
    std::string prefix;
    if (own_argv0) prefix += '@';
    for (const std::string& flag : flags) {
        if (flag == "ignore-failure") prefix += '-';
        if (flag == "no-env-expand") prefix += ':';
        if (flag == "privileged") prefix += '+';
        if (flag == "no-setuid") prefix += '!';
        if (flag == "ambient") prefix += "!!";
    }
    return prefix;
}

}   // namespace campaign::systemd
