#pragma once
// JSON text, token by token and to the letter: what a strict parser refuses is refused here, at the same byte. What Kineto
// writes against the standard (NaN, Infinity, control characters in strings) is let pass and remembered.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace campaign::trace {

enum class Scan : std::uint8_t {
    ok,
    bad,    ///< no JSON, whatever may follow
    more,   ///< the text ends here; whether it is JSON depends on what follows
};

/// One value as it stands in the text.
struct Token {
    enum class Kind : std::uint8_t { absent, null, yes, no, integer, decimal, nonfinite, text, nested };

    Kind kind = Kind::absent;
    bool escaped = false;   ///< the text holds escapes
    std::string_view raw;   ///< a string's inside, else the value's whole text; valid as long as the buffer

    [[nodiscard]] bool is(std::string_view plain) const;
};

/// The meaning of a string's inside. Half of a surrogate pair and bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string meaning(const Token& text);

/// Reads from `at`. The byte at `end` must be readable and 0.
class JsonScan {
public:
    JsonScan(const char* at, const char* end, bool final) : at_{at}, end_{end}, final_{final} {}

    [[nodiscard]] const char* at() const { return at_; }
    [[nodiscard]] bool control_chars() const { return control_chars_; }
    [[nodiscard]] bool nonfinite() const { return nonfinite_; }

    void blanks() {
        while (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t') ++at_;
    }
    /// One character that must come now, behind blanks.
    [[nodiscard]] Scan take(char c) {
        blanks();
        if (*at_ == c) {
            ++at_;
            return Scan::ok;
        }
        return nothing_here();
    }
    /// The next character behind blanks, not taken; 0 at the end.
    [[nodiscard]] char peek() {
        blanks();
        return *at_;
    }
    [[nodiscard]] bool at_end() const { return at_ == end_; }
    /// At the opening quote.
    [[nodiscard]] Scan string(Token& token);
    /// A key and its colon.
    [[nodiscard]] Scan key(Token& token);
    /// Any value. Nested ones are walked through, and `raw` is their whole text.
    [[nodiscard]] Scan value(Token& token);
    /// What is wrong where nothing expected stands: the text ended, or it is no JSON.
    [[nodiscard]] Scan nothing_here() const { return at_ == end_ && !final_ ? Scan::more : Scan::bad; }

private:
    friend class JsonWalk;
    [[nodiscard]] Scan escape();
    [[nodiscard]] Scan number(Token& token);
    [[nodiscard]] Scan word(Token& token);
    [[nodiscard]] Scan literal(std::string_view text);

    const char* at_;
    const char* end_;
    bool final_;
    bool control_chars_ = false;
    bool nonfinite_ = false;
};

/// Past one value of any length and depth, in pieces: after `more` it goes on where it was, given a scan at the same place
/// with more text.
class JsonWalk {
public:
    [[nodiscard]] Scan run(JsonScan& scan);

private:
    enum class Expect : std::uint8_t { value, first_value, first_key, key, after };
    std::vector<char> closers_;   // of the containers that are open
    Expect expect_ = Expect::value;
};

struct Member {
    std::string key;
    Token value;
};
/// The members of one object and nothing behind it. `text` must be followed by a readable 0.
[[nodiscard]] bool read_members(std::string_view text, std::vector<Member>& members, bool& nonfinite);

}   // namespace campaign::trace
