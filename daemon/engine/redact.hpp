#pragma once
// Server logs may show keys; what we store must not.

#include <string>
#include <string_view>

namespace campaign::engine {

/// The text with secrets replaced by "[redacted]": Hugging Face and OpenAI-style tokens, bearer tokens, passwords in URLs,
/// values of --api-key and --hf-token, and of variables whose names end in TOKEN, KEY, SECRET or PASSWORD.
[[nodiscard]] std::string redact(std::string_view text);

}   // namespace campaign::engine
