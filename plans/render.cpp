#include <algorithm>
#include <string>

#include "base/text.hpp"
#include "plans/parse.hpp"
#include "plans/scan.hpp"
#include "plans/secrets.hpp"

namespace campaign::plans {
namespace {

constexpr int widest = 160;   ///< characters of a source line that are shown

/// Columns that a terminal needs for a character: two for East Asian wide ones and emoji, none for combining marks.
int columns_of(std::string_view character) {
    const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(character[i])); };
    std::uint32_t c = byte(0);
    if (character.size() == 2) c = (c & 0x1FU) << 6 | (byte(1) & 0x3FU);
    if (character.size() == 3) c = (c & 0x0FU) << 12 | (byte(1) & 0x3FU) << 6 | (byte(2) & 0x3FU);
    if (character.size() == 4) c = (c & 0x07U) << 18 | (byte(1) & 0x3FU) << 12 | (byte(2) & 0x3FU) << 6 | (byte(3) & 0x3FU);
    const auto within = [c](std::uint32_t first, std::uint32_t last) { return c >= first && c <= last; };
    if (within(0x300, 0x36F) || within(0x200B, 0x200F) || within(0xFE00, 0xFE0F) || within(0x20D0, 0x20FF)) return 0;
    const bool wide = within(0x1100, 0x115F) || within(0x2E80, 0x303E) || within(0x3041, 0xA4CF) || within(0xAC00, 0xD7A3) ||
                      within(0xF900, 0xFAFF) || within(0xFE30, 0xFE6F) || within(0xFF00, 0xFF60) || within(0xFFE0, 0xFFE6) ||
                      within(0x1F300, 0x1F64F) || within(0x1F900, 0x1F9FF) || within(0x20000, 0x3FFFD);
    return wide ? 2 : 1;
}

struct Cell {
    std::string text;
    int columns = 1;
};

/// A line character by character, each safe to print.
std::vector<Cell> cells_of(std::string_view line) {
    std::vector<Cell> cells;
    for (std::size_t i = 0; i < line.size();) {
        const std::size_t size = utf8_size(line.substr(i));
        if (size == 0) {
            cells.push_back({"\xEF\xBF\xBD", 1});
            ++i;
            continue;
        }
        const std::string_view character = line.substr(i, size);
        const auto c = static_cast<unsigned char>(character[0]);
        if (c == '\t') {
            cells.push_back({" ", 1});
        } else if (c < 0x20 || c == 0x7f || (c == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0)) {
            cells.push_back({"?", 1});
        } else {
            cells.push_back({std::string{character}, columns_of(character)});
        }
        i += size;
    }
    return cells;
}

class Source {
public:
    Source(std::string_view yaml, const Diagnostics& diagnostics)
        : lines_{lines_of(yaml.substr(0, largest_plan))}, hidden_(lines_.size()) {
        bool in_key = false;
        for (std::size_t i = 0; i < lines_.size(); ++i) {
            hidden_[i] = in_key;
            if (begins_private_key(lines_[i])) in_key = true;
            if (ends_private_key(lines_[i])) in_key = false;
        }
        for (const Diagnostic& wrong : diagnostics)
            if (wrong.code == "P021") secrets_.push_back(&wrong);
    }

    [[nodiscard]] bool has(int line) const { return line >= 1 && line <= static_cast<int>(lines_.size()); }
    [[nodiscard]] std::string_view raw(int line) const { return lines_[static_cast<std::size_t>(line - 1)]; }

    /// The line with its secrets starred out.
    [[nodiscard]] std::vector<Cell> cells(int line) const {
        const std::string_view text = raw(line).substr(0, longest_line);
        std::vector<Cell> cells = cells_of(text);
        const auto hide = [&](std::size_t from, std::size_t count) {
            for (std::size_t i = from; i < std::min(cells.size(), from + count); ++i) cells[i] = {"*", 1};
        };
        if (hidden_[static_cast<std::size_t>(line - 1)]) hide(0, cells.size());
        for (const std::vector<Span>& found : {find_secrets(text), find_assigned(text)}) {
            std::size_t byte = 0;   // both are in the order of the line
            std::size_t cell = 0;
            for (const Span& span : found) {
                cell += static_cast<std::size_t>(characters(text.substr(byte, span.begin - byte)));
                byte = span.begin;
                hide(cell, static_cast<std::size_t>(characters(text.substr(span.begin, span.size))));
            }
        }
        for (const Diagnostic* secret : secrets_)
            if (secret->line == line && secret->column > 0)
                hide(static_cast<std::size_t>(secret->column - 1), static_cast<std::size_t>(secret->width));
        return cells;
    }

    /// The line above, where it is the key that holds this one.
    [[nodiscard]] bool parent_above(int line) const {
        if (line < 2) return false;
        const auto indent = [](std::string_view text) { return std::min(text.find_first_not_of(' '), text.size()); };
        const std::string_view above = raw(line - 1);
        return trim(above).ends_with(':') && indent(above) < indent(raw(line));
    }

private:
    std::vector<std::string_view> lines_;
    std::vector<bool> hidden_;
    std::vector<const Diagnostic*> secrets_;
};

std::string joined(const std::vector<Cell>& cells, std::size_t from, std::size_t to) {
    std::string out;
    for (std::size_t i = from; i < std::min(to, cells.size()); ++i) out += cells[i].text;
    return out;
}

int columns(const std::vector<Cell>& cells, std::size_t from, std::size_t to) {
    int sum = 0;
    for (std::size_t i = from; i < to; ++i) sum += i < cells.size() ? cells[i].columns : 1;
    return sum;
}

std::string numbered(int line, std::size_t gutter, std::string text) {
    while (text.ends_with(' ')) text.pop_back();
    const std::string number = std::to_string(line);
    return std::string(gutter - number.size(), ' ') + number + " |" + (text.empty() ? "" : " " + text) + "\n";
}

void excerpt(std::string& out, const Diagnostic& wrong, const Source& source) {
    const std::size_t gutter = std::to_string(wrong.line).size();
    if (source.parent_above(wrong.line)) {
        const std::vector<Cell> above = source.cells(wrong.line - 1);
        out += numbered(wrong.line - 1, gutter, joined(above, 0, static_cast<std::size_t>(widest)));
    }
    const std::vector<Cell> cells = source.cells(wrong.line);
    const auto begin = static_cast<std::size_t>(std::max(0, wrong.column - 1));
    // A long line is shown around the place.
    const std::size_t from = begin + 40 > static_cast<std::size_t>(widest) ? begin - 80 : 0;
    const std::size_t to = from + static_cast<std::size_t>(widest);
    const std::string lead = from > 0 ? "..." : "";
    out += numbered(wrong.line, gutter, lead + joined(cells, from, to) + (to < cells.size() ? "..." : ""));
    const std::size_t end = std::min(begin + static_cast<std::size_t>(std::max(1, wrong.width)), std::max(to, begin + 1));
    out += std::string(gutter + 1, ' ') + "| " +
           std::string(lead.size() + static_cast<std::size_t>(columns(cells, from, begin)), ' ');
    out += std::string(static_cast<std::size_t>(std::max(1, columns(cells, begin, end))), '^');
    if (!wrong.hint.empty()) out += " " + printable(wrong.hint, 400);
    out += "\n";
}

}   // namespace

std::string render(const Diagnostics& diagnostics, std::string_view file, std::string_view yaml) {
    if (diagnostics.empty()) return {};
    const Source source{yaml, diagnostics};
    std::string out;
    for (const Diagnostic& wrong : diagnostics) {
        out += "error[" + wrong.code + "]: " + printable(wrong.message, 400) + "\n";
        out += "  --> " + printable(file, 400);
        if (wrong.line > 0) out += ":" + std::to_string(wrong.line) + ":" + std::to_string(std::max(1, wrong.column));
        out += "\n";
        std::size_t gutter = 1;
        if (source.has(wrong.line)) {
            gutter = std::to_string(wrong.line).size();
            excerpt(out, wrong, source);
        } else if (!wrong.hint.empty()) {
            out += "  = " + printable(wrong.hint, 400) + "\n";
        }
        if (!wrong.note.empty()) out += std::string(gutter + 1, ' ') + "= " + printable(wrong.note, 400) + "\n";
    }
    out += std::to_string(diagnostics.size()) + (diagnostics.size() == 1 ? " error" : " errors");
    out += "; plan refused       campaignctl explain " + diagnostics.front().code + "\n";
    return out;
}

}   // namespace campaign::plans
