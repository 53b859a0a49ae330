#include "plans/scan.hpp"

#include "base/text.hpp"
#include "plans/secrets.hpp"

namespace campaign::plans {
namespace {

constexpr std::size_t none = std::string_view::npos;

bool blank_at(std::string_view line, std::size_t i) {
    return i >= line.size() || line[i] == ' ' || line[i] == '\t' || line[i] == '\r';
}

/// Refuses what is no text. True if there is nothing worth reading after it.
bool not_text(std::string_view yaml, Scan& out) {
    if (yaml.size() > largest_plan) {
        Diagnostic wrong;
        wrong.code = "P006";
        wrong.message = "the file has " + format_bytes(yaml.size()) + "; a plan has at most 1 MiB";
        wrong.hint = "is this the right file?";
        out.found.push_back(wrong);
        return true;
    }
    int line = 1;
    std::size_t line_begin = 0;
    const auto refuse = [&](std::size_t at, std::string message, std::string hint) {
        Diagnostic wrong;
        wrong.code = "P005";
        wrong.message = std::move(message);
        wrong.line = line;
        wrong.column = column_at(yaml.substr(line_begin), at - line_begin);
        wrong.hint = std::move(hint);
        out.found.push_back(std::move(wrong));
        return true;
    };
    if (yaml.starts_with("\xEF\xBB\xBF"))
        return refuse(0, "the file begins with a byte order mark", "save it as UTF-8 without BOM");
    if (yaml.starts_with("\xFF\xFE") || yaml.starts_with("\xFE\xFF"))
        return refuse(0, "the file is UTF-16", "save it as UTF-8 without BOM");
    for (std::size_t i = 0; i < yaml.size();) {
        const auto c = static_cast<unsigned char>(yaml[i]);
        if (i - line_begin > longest_line) {
            Diagnostic wrong;
            wrong.code = "P006";
            wrong.message = "a line of more than " + std::to_string(longest_line) + " bytes";
            wrong.line = line;
            wrong.column = 1;
            wrong.hint = "is this the right file?";
            out.found.push_back(std::move(wrong));
            return true;
        }
        if (c == '\n') {
            ++line;
            line_begin = ++i;
        } else if (c == 0) {
            return refuse(i, "a NUL byte: this is no text file", "is this the right file?");
        } else if (c == '\r' && (i + 1 >= yaml.size() || yaml[i + 1] != '\n')) {
            return refuse(i, "a carriage return inside a line", "end lines with LF or CR LF");
        } else if ((c < 0x20 && c != '\t' && c != '\r') || c == 0x7f) {
            return refuse(i, "a control character", "is this the right file?");
        } else if (const std::size_t size = utf8_size(yaml.substr(i)); size != 0) {
            const std::string_view character = yaml.substr(i, size);
            if (character == "\xC2\x85" || character == "\xE2\x80\xA8" || character == "\xE2\x80\xA9")
                return refuse(i, "a Unicode line separator", "end lines with LF");
            if (character == "\xEF\xBB\xBF") return refuse(i, "a byte order mark inside the file", "remove it");
            i += size;
        } else {
            return refuse(i, "bytes that are not UTF-8", "save the file as UTF-8");
        }
    }
    return false;
}

struct Opener {
    char bracket;
    int line;
    std::size_t byte;
};

class Scanner {
public:
    Scanner(std::string_view yaml, Scan& out) : lines_{lines_of(yaml)}, out_{out} {}

    void run() {
        for (number_ = 1; number_ <= static_cast<int>(lines_.size()); ++number_) {
            line_ = lines_[static_cast<std::size_t>(number_ - 1)];
            secrets();
            mend_.clear();
            if (!in_block()) tokens();
            out_.mended += line_;
            out_.mended += mend_;
            out_.mended += '\n';
        }
        if (!open_.empty()) out_.readable = false;
        for (const Opener& opener : open_) {
            if (mended_any_ || too_deep_) break;   // said already, or explained by a quote
            Diagnostic wrong;
            wrong.code = "P003";
            wrong.message = std::string{"`"} + opener.bracket + "` is never closed";
            wrong.line = opener.line;
            wrong.column = column_of(opener);
            wrong.hint = "opened here";
            out_.found.push_back(std::move(wrong));
        }
    }

private:
    static constexpr std::size_t most = 300;   // more than are ever shown

    [[nodiscard]] int column_of(const Opener& opener) const {
        return column_at(lines_[static_cast<std::size_t>(opener.line - 1)], opener.byte);
    }

    void opened(char bracket, std::size_t byte) {
        open_.push_back({bracket, number_, byte});
        if (open_.size() <= 2 * deepest_plan || too_deep_) return;
        too_deep_ = true;
        report("P006", byte, 1, "nested more than " + std::to_string(deepest_plan) + " levels deep");
        out_.readable = false;
    }

    Diagnostic& report(std::string code, std::size_t byte, std::size_t bytes, std::string message) {
        if (out_.found.size() >= most) {
            dropped_ = {};
            return dropped_;
        }
        Diagnostic wrong;
        wrong.code = std::move(code);
        wrong.message = std::move(message);
        wrong.line = number_;
        wrong.column = column_at(line_, byte);
        wrong.width = std::max(1, characters(line_.substr(byte, bytes)));
        out_.found.push_back(std::move(wrong));
        return out_.found.back();
    }

    /// Tokens are looked for in the raw text: comments leak as well.
    void secrets() {
        if (in_key_) {
            if (ends_private_key(line_)) in_key_ = false;
            return;
        }
        for (const Span& span : find_secrets(line_)) {
            Diagnostic& wrong = report("P021", span.begin, span.size, span.what + " is written in the plan");
            wrong.hint = "plans hold no secrets";
            wrong.note = "whoever reads the plan has it now: replace the secret, and refer to a file or credential";
        }
        in_key_ = begins_private_key(line_) && !ends_private_key(line_);
    }

    [[nodiscard]] std::size_t indent() const {
        const std::size_t at = line_.find_first_not_of(' ');
        return at == none ? line_.size() : at;
    }

    bool in_block() {
        if (!block_) return false;
        if (trim(line_).empty()) return true;
        if (static_cast<long>(indent()) > block_parent_) return true;
        block_ = false;
        return false;
    }

    void tokens() {
        if (trim(line_).empty()) return;
        std::size_t i = indent();
        if (line_[i] == '\t') {
            const std::size_t end = line_.find_first_not_of(" \t");
            report("P004", i, end - i, "a tab in the indentation").hint = "indent with blanks";
            out_.clean = false;
        }
        if (open_.empty() && i == 0 && line_[0] == '%') {
            report("P009", 0, line_.size(), "YAML directives are not used in plans").hint = "remove the line";
            out_.clean = false;
            return;
        }
        parent_ = -1;
        pending_ = static_cast<long>(i);
        bool start = true;
        while (i < line_.size()) {
            const char c = line_[i];
            if (c == '#' && (i == 0 || blank_at(line_, i - 1))) return;
            if (c == ' ' || c == '\t' || c == '\r') {
                ++i;
            } else if (start) {
                if (!at_start(i, start)) return;
            } else {
                inside(i, start);
            }
        }
    }

    /// Where a value or key may begin. False: the rest of the line is done with.
    bool at_start(std::size_t& i, bool& start) {
        const char c = line_[i];
        const bool flow = !open_.empty();
        if (c == '"' || c == '\'') {
            const std::size_t end = quote_end(line_, i);
            if (end == none) {
                unclosed(i, c);
                return false;
            }
            pending_ = static_cast<long>(i);
            i = end;
            start = false;
            after_quote_ = true;
            return true;
        }
        after_quote_ = false;
        if (!flow && (c == '-' || c == '?') && blank_at(line_, i + 1)) {
            parent_ = static_cast<long>(i);
            ++i;
        } else if (!flow && (c == '|' || c == '>')) {
            block_ = true;
            block_parent_ = parent_;
            return false;
        } else if (c == '&' || c == '*' || c == '!') {
            std::size_t end = i + 1;
            while (!blank_at(line_, end) && std::string_view{",[]{}"}.find(line_[end]) == none) ++end;
            anchor(i, end - i);
            i = end;
            start = c != '*';
        } else if (c == '[' || c == '{') {
            opened(c, i);
            ++i;
        } else if (c == ']' || c == '}') {
            close(i, c);
            ++i;
            start = false;
        } else if (c == ',' && flow) {
            ++i;
        } else {
            pending_ = static_cast<long>(i);
            start = false;
            inside(i, start);
        }
        return true;
    }

    void inside(std::size_t& i, bool& start) {
        const char c = line_[i];
        const bool flow = !open_.empty();
        const bool ends =
            blank_at(line_, i + 1) || (flow && (after_quote_ || std::string_view{",[]{}"}.find(line_[i + 1]) != none));
        if (c == ':' && ends) {
            parent_ = pending_;
            start = true;
            after_quote_ = false;
        } else if (flow && c == ',') {
            start = true;
        } else if (flow && (c == ']' || c == '}')) {
            close(i, c);
        }
        ++i;
    }

    void unclosed(std::size_t at, char quote) {
        const std::size_t later = lines_.size() - static_cast<std::size_t>(number_);
        Diagnostic& wrong = report("P002", at, 1, "quote is never closed");
        wrong.hint = "opened here";
        for (std::size_t next = static_cast<std::size_t>(number_); next < lines_.size(); ++next) {
            if (lines_[next].find(quote) == none) continue;
            const std::size_t swallowed = next + 1 - static_cast<std::size_t>(number_);
            wrong.message = "quote is not closed in its line";
            wrong.hint += "; would swallow the text up to the next quote, in line " +
                          std::to_string(number_ + static_cast<int>(swallowed));
            wrong.note = "for text of several lines write `|` and indent the lines below it";
            break;
        }
        if (wrong.message == "quote is never closed" && later > 0)
            wrong.hint += "; swallows the " + (later == 1 ? std::string{"line"} : std::to_string(later) + " lines") +
                          " up to the end of file";
        std::size_t backslashes = 0;
        while (backslashes < line_.size() && line_[line_.size() - 1 - backslashes] == '\\') ++backslashes;
        if (line_.ends_with('\r')) line_.remove_suffix(1);
        mend_ = (quote == '"' && backslashes % 2 == 1) ? " \"" : std::string{quote};
        mended_any_ = true;
        out_.clean = false;
        // Brackets that were closed inside the quote, by what the writer meant.
        if (!open_.empty()) {
            std::string closers;
            for (std::size_t end = line_.size(); end > 0 && (line_[end - 1] == ']' || line_[end - 1] == '}'); --end)
                closers += line_[end - 1];
            mend_ += std::string{closers.rbegin(), closers.rend()};
            for (const char closer : std::string{closers.rbegin(), closers.rend()}) {
                if (!open_.empty() && (closer == ']') == (open_.back().bracket == '[')) open_.pop_back();
            }
        }
    }

    void anchor(std::size_t at, std::size_t size) {
        const char c = line_[at];
        const std::string what = c == '!' ? "tags" : c == '&' ? "anchors" : "aliases";
        Diagnostic& wrong = report("P009", at, size, "YAML " + what + " are not used in plans");
        wrong.hint = c == '!' ? "remove the tag" : "write the value where it is needed";
        if (c == '*') wrong.note = "text that begins with `*` needs quotes";
        out_.clean = false;
    }

    void close(std::size_t at, char c) {
        if (open_.empty()) {
            report("P003", at, 1, std::string{"`"} + c + "` closes nothing").hint = "remove it, or quote the text";
            out_.readable = false;
            return;
        }
        const Opener opener = open_.back();
        open_.pop_back();
        if ((c == ']') == (opener.bracket == '[')) return;
        Diagnostic& wrong = report("P003", at, 1, std::string{"`"} + c + "` does not close `" + opener.bracket + "`");
        wrong.note = "opened in line " + std::to_string(opener.line) + ", column " + std::to_string(column_of(opener));
        out_.readable = false;
    }

    std::vector<std::string_view> lines_;
    Scan& out_;
    std::string_view line_;
    std::string mend_;
    int number_ = 0;
    std::vector<Opener> open_;
    bool mended_any_ = false;
    bool too_deep_ = false;
    Diagnostic dropped_;
    bool in_key_ = false;
    bool after_quote_ = false;
    bool block_ = false;
    long block_parent_ = -1;
    long parent_ = -1;    // column of the key or dash that the next value belongs to
    long pending_ = -1;   // column of what may turn out to be a key
};

}   // namespace

std::size_t utf8_size(std::string_view text) {
    if (text.empty()) return 0;
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    if (first < 0x80) return 1;
    const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || text.size() < size) return 0;
    for (std::size_t i = 1; i < size; ++i)
        if ((byte(i) & 0xC0U) != 0x80U) return 0;
    if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F)) return 0;
    if ((first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F)) return 0;
    return size;
}

int characters(std::string_view text) {
    int count = 0;
    for (std::size_t i = 0; i < text.size(); ++count) i += std::max<std::size_t>(1, utf8_size(text.substr(i)));
    return count;
}

int column_at(std::string_view line, std::size_t byte) {
    return characters(line.substr(0, byte)) + 1;
}

std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> lines;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        std::string_view line = text.substr(begin, end - begin);
        if (line.ends_with('\r')) line.remove_suffix(1);
        lines.push_back(line);
        begin = end + 1;
    }
    return lines;
}

std::size_t quote_end(std::string_view line, std::size_t begin) {
    const char quote = line[begin];
    for (std::size_t i = begin + 1; i < line.size(); ++i) {
        if (quote == '"' && line[i] == '\\') {
            ++i;
        } else if (line[i] == quote) {
            if (quote == '\'' && i + 1 < line.size() && line[i + 1] == '\'') {
                ++i;
                continue;
            }
            return i + 1;
        }
    }
    return none;
}

Scan scan(std::string_view yaml) {
    Scan out;
    if (not_text(yaml, out)) {
        out.readable = false;
        return out;
    }
    Scanner{yaml, out}.run();
    return out;
}

}   // namespace campaign::plans
