#include "daemon/report/markdown.hpp"

#include <array>
#include <cstdio>

#include "base/text.hpp"

namespace campaign::report {

std::string escaped(std::string_view untrusted, std::size_t limit) {
    std::string out;
    for (const char c : printable(untrusted, limit)) {
        if (c == '<') {
            out += "&lt;";
        } else if (c == '>') {
            out += "&gt;";
        } else if (c == '&') {
            out += "&amp;";
        } else if (std::string_view{"\\`*_{}[]#|~$"}.find(c) != std::string_view::npos) {
            out += '\\';
            out += c;
        } else {
            out += c;
        }
    }
    return out;
}

std::string code(std::string_view text, std::size_t limit) {
    std::string shown = printable(text, limit);
    for (char& c : shown) {
        if (c == '`' || c == '|') c = '\'';
    }
    return shown.empty() ? "-" : "`" + shown + "`";
}

std::string row(const std::vector<std::string>& cells) {
    std::string line = "|";
    for (const std::string& cell : cells) line += " " + (cell.empty() ? std::string{"-"} : cell) + " |";
    return line + "\n";
}

std::string header(const std::vector<std::string>& cells) {
    std::string line = row(cells) + "|";
    for (std::size_t i = 0; i < cells.size(); ++i) line += " --- |";
    return line + "\n";
}

std::string number(std::optional<double> value, int digits) {
    if (!value) return "not measured";
    std::array<char, 400> text{};   // the largest double has 309 digits
    std::snprintf(text.data(), text.size(), "%.*f", digits, *value);
    return text.data();
}

}   // namespace campaign::report
