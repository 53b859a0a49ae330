#pragma once
// Finding secrets that somebody wrote down, so that they can be refused without being repeated.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace campaign::plans {

struct Span {
    std::size_t begin = 0;   ///< bytes
    std::size_t size = 0;
    std::string what;   ///< "a Hugging Face token"
};

/// Everything on one line that looks like a token, key or password, first to last, without overlap.
[[nodiscard]] std::vector<Span> find_secrets(std::string_view line);
/// A variable whose value would be a secret: HF_TOKEN, OPENAI_API_KEY, DB_PASSWORD; not TOKENIZERS_PARALLELISM, not
/// KEY_FILE.
[[nodiscard]] bool names_a_secret(std::string_view variable);
/// The option is followed by a secret: --api-key, --hf-token, --password.
[[nodiscard]] bool option_takes_secret(std::string_view argument);
/// `text` with every secret replaced by stars, and printable.
[[nodiscard]] std::string shown(std::string_view text, std::size_t limit = 60);
/// What follows the name of a secret and a `:` or `=` on the line, whatever it is: hidden to be safe, not refused for that.
[[nodiscard]] std::vector<Span> find_assigned(std::string_view line);
/// Does the line begin (or end) a PEM private key?
[[nodiscard]] bool begins_private_key(std::string_view line);
[[nodiscard]] bool ends_private_key(std::string_view line);

}   // namespace campaign::plans
