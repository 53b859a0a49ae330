#pragma once
// The words of `load` as a value: docs/agent-files.md has the table of options.

#include <span>
#include <string>

#include "base/error.hpp"
#include "base/json.hpp"

namespace campaign::agent {

struct LoadAsked {
    json::object spec;          ///< campaign.load-spec/1, not yet checked: parse_spec owns what a number may be
    std::string requests_out;   ///< one JSON object a line for each request; "" for none
    std::string result_out;
    std::string vllm_out;   ///< vLLM's own result format, a level a line; "" for none
    bool as_json = false;   ///< campaign.load/1 on stdout instead of the table
};

/// `words`: a URL and options, in any order; "--name value" and "--name=value" are the same. Errors: usage, with the nearest
/// name where one was misspelt.
[[nodiscard]] Result<LoadAsked> read_load_options(std::span<const std::string> words);

/// The options for people, one a line.
[[nodiscard]] const char* load_help();

}   // namespace campaign::agent
