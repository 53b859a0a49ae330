#include "instruments/trace/event.hpp"

#include <charconv>
#include <cstddef>

namespace campaign::trace {
namespace {

/// A cursor over one object's text. Every step says whether the text is still JSON.
class Cursor {
public:
    explicit Cursor(std::string_view text) : text_{text} {}

    char peek() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
            ++at_;
        return at_ < text_.size() ? text_[at_] : '\0';
    }
    [[nodiscard]] bool take(char c) {
        if (peek() != c) return false;
        ++at_;
        return true;
    }
    [[nodiscard]] bool at_end() { return peek() == '\0' && at_ == text_.size(); }

    /// A string's inside, escapes as they stand.
    [[nodiscard]] std::optional<std::string_view> string(bool& control_chars) {
        if (!take('"')) return std::nullopt;
        const std::size_t begin = at_;
        for (; at_ < text_.size(); ++at_) {
            const char c = text_[at_];
            if (c == '"') return text_.substr(begin, at_++ - begin);
            if (c == '\\') ++at_;
            if (static_cast<unsigned char>(c) < 0x20) control_chars = true;
        }
        return std::nullopt;
    }
    /// A number or a literal.
    [[nodiscard]] std::optional<std::string_view> scalar(bool& nonfinite) {
        peek();
        const std::size_t begin = at_;
        while (at_ < text_.size() && std::string_view{",}] \n\t\r\":{["}.find(text_[at_]) == std::string_view::npos) ++at_;
        const std::string_view word = text_.substr(begin, at_ - begin);
        if (word == "null" || word == "true" || word == "false" || is_number(word)) return word;
        if (word == "NaN" || word == "Infinity" || word == "-Infinity") {
            nonfinite = true;
            return word;
        }
        return std::nullopt;
    }
    /// Past an object or array, by quotes and depth.
    [[nodiscard]] bool skip_nested() {
        std::size_t depth = 0;
        bool in_string = false;
        for (; at_ < text_.size(); ++at_) {
            const char c = text_[at_];
            if (in_string) {
                if (c == '\\') ++at_;
                if (c == '"') in_string = false;
            } else if (c == '"') {
                in_string = true;
            } else if (c == '{' || c == '[') {
                ++depth;
            } else if ((c == '}' || c == ']') && --depth == 0) {
                ++at_;
                return true;
            }
        }
        return false;
    }

private:
    static bool is_number(std::string_view word) {
        std::size_t at = word.starts_with('-') ? 1 : 0;
        const auto digits = [&] {
            const std::size_t begin = at;
            while (at < word.size() && word[at] >= '0' && word[at] <= '9') ++at;
            return at > begin;
        };
        if (!digits()) return false;
        if (at < word.size() && word[at] == '.' && (++at, !digits())) return false;
        if (at < word.size() && (word[at] == 'e' || word[at] == 'E')) {
            ++at;
            if (at < word.size() && (word[at] == '+' || word[at] == '-')) ++at;
            if (!digits()) return false;
        }
        return at == word.size();
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

void append_utf8(std::string& out, unsigned code) {
    if (code < 0x80) {
        out += static_cast<char>(code);
    } else if (code < 0x800) {
        out += static_cast<char>(0xC0U | (code >> 6U));
        out += static_cast<char>(0x80U | (code & 0x3FU));
    } else {
        out += static_cast<char>(0xE0U | (code >> 12U));
        out += static_cast<char>(0x80U | ((code >> 6U) & 0x3FU));
        out += static_cast<char>(0x80U | (code & 0x3FU));
    }
}

std::string unescaped(std::string_view raw) {
    if (raw.find('\\') == std::string_view::npos) return std::string{raw};
    std::string out;
    for (std::size_t i = 0; i < raw.size(); ++i) {
        if (raw[i] != '\\' || i + 1 == raw.size()) {
            out += raw[i];
            continue;
        }
        const char c = raw[++i];
        constexpr std::string_view letters = "bfnrt";
        constexpr std::string_view meant = "\b\f\n\r\t";
        if (const std::size_t known = letters.find(c); known != std::string_view::npos) {
            out += meant[known];
        } else if (c == 'u' && i + 4 < raw.size()) {
            unsigned code = 0;
            std::from_chars(raw.data() + i + 1, raw.data() + i + 5, code, 16);
            append_utf8(out, code >= 0xD800 && code < 0xE000 ? 0xFFFD : code);
            i += 4;
        } else {
            out += c;
        }
    }
    return out;
}

struct Reader {
    Cursor cursor;
    EventFacts facts;

    /// One value; `text` gets a scalar or a string's inside.
    bool value(std::string_view& text) {
        const char c = cursor.peek();
        std::optional<std::string_view> got;
        if (c == '{' || c == '[') return cursor.skip_nested();
        if (c == '"') {
            got = cursor.string(facts.control_chars);
        } else {
            got = cursor.scalar(facts.nonfinite);
        }
        if (got) text = *got;
        return got.has_value();
    }

    bool object(bool outer) {
        if (!cursor.take('{')) return false;
        if (cursor.take('}')) return true;
        do {
            const std::optional<std::string_view> key = cursor.string(facts.control_chars);
            if (!key || !cursor.take(':')) return false;
            if (outer && *key == "args" && cursor.peek() == '{') {
                facts.device = {};
                facts.correlation.reset();
                if (!object(false)) return false;
                continue;
            }
            std::string_view text;
            if (!value(text)) return false;
            outer ? keep(*key, text) : keep_argument(*key, text);
        } while (cursor.take(','));
        return cursor.take('}');
    }
    void keep(std::string_view key, std::string_view text) {
        if (key == "ph") facts.phase = text;
        if (key == "cat") facts.category = text;
        if (key == "name") facts.name = unescaped(text);
        if (key == "ts") facts.start = text;
        if (key == "dur") facts.duration = text;
        if (key == "pid") facts.process = text;
    }
    void keep_argument(std::string_view key, std::string_view text) {
        if (key == "device") facts.device = text;
        if (key != "correlation") return;
        std::int64_t number = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        facts.correlation.reset();
        if (error == std::errc{} && end == text.data() + text.size()) facts.correlation = number;
    }
};

}   // namespace

std::optional<EventFacts> read_event(std::string_view text) {
    Reader reader{Cursor{text}, {}};
    if (!reader.object(true) || !reader.cursor.at_end()) return std::nullopt;
    return std::move(reader.facts);
}

bool valid_utf8(std::string_view text) {
    for (std::size_t i = 0; i < text.size();) {
        const auto lead = static_cast<unsigned char>(text[i]);
        const std::size_t more = lead < 0x80                   ? 0
                                 : lead >= 0xC2 && lead < 0xE0 ? 1
                                 : lead >= 0xE0 && lead < 0xF0 ? 2
                                 : lead >= 0xF0 && lead < 0xF5 ? 3
                                                               : 4;
        if (more == 4 || i + more >= text.size() + (more == 0 ? 1 : 0)) return false;
        for (std::size_t k = 1; k <= more; ++k)
            if ((static_cast<unsigned char>(text[i + k]) & 0xC0U) != 0x80U) return false;
        const unsigned second = more > 1 ? static_cast<unsigned char>(text[i + 1]) : 0;
        if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) || (lead == 0xF0 && second < 0x90) ||
            (lead == 0xF4 && second > 0x8F))
            return false;
        i += more + 1;
    }
    return true;
}

}   // namespace campaign::trace
