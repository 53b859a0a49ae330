#pragma once
// Prompts of about a wanted length without a tokenizer, and the request bodies that carry them.

#include <cstdint>
#include <string>

#include "instruments/load/spec.hpp"

namespace campaign::load {

/// Text of `tokens` common short English words, each one token with its blank in the usual BPE vocabularies. The same (seed,
/// index) always gives the same text; two indices differ from the first word on, so that no prefix cache helps. `ratio` is
/// tokens per word as the server itself counted them (1 until it did).
[[nodiscard]] std::string make_prompt(std::uint64_t seed, std::uint64_t index, std::uint32_t tokens, double ratio = 1.0);

/// Words for a wanted number of tokens, given what a first prompt of `words` words was counted as.
[[nodiscard]] double tokens_per_word(std::uint32_t words, std::int64_t counted);

/// The JSON body of one streaming request.
[[nodiscard]] std::string make_body(const Spec& spec, const std::string& prompt);
/// The whole HTTP request, head and body. `api_key` may be empty.
[[nodiscard]] std::string make_request(const Spec& spec, const std::string& body, const std::string& api_key);

}   // namespace campaign::load
