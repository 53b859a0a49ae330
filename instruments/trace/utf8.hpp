#pragma once
// UTF-8 that strangers wrote.

#include <cstdint>
#include <string>
#include <string_view>

namespace campaign::trace {

/// Every sequence is well formed UTF-8: no overlong forms, no surrogates, nothing beyond U+10FFFF.
[[nodiscard]] bool valid_utf8(std::string_view text);

/// Appends the text; each longest piece that begins a sequence and does not finish it becomes one U+FFFD, as Unicode
/// recommends and Python's "replace" does.
void append_valid_utf8(std::string& out, std::string_view text);

[[nodiscard]] std::string as_valid_utf8(std::string_view text);

/// Appends one code point; a surrogate becomes U+FFFD.
void append_code_point(std::string& out, unsigned code);

/// The same question about a text that comes in pieces.
class Utf8Check {
public:
    void add(std::string_view piece);
    /// At the end of the text: a sequence that was begun must be finished.
    [[nodiscard]] bool valid() const { return valid_ && open_.empty(); }
    [[nodiscard]] bool known_bad() const { return !valid_; }

private:
    bool valid_ = true;
    std::string open_;   // the beginning of a sequence, at most 3 bytes
};

}   // namespace campaign::trace
