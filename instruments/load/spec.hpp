#pragma once
// What to measure: campaign.load-spec/1 (docs/agent-files.md).

#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace campaign::load {

namespace json = boost::json;

struct Url {
    std::string text;
    std::string host;   ///< without brackets
    std::uint16_t port = 80;
    std::string authority;   ///< for the Host header
    std::string base_path;   ///< without a slash at its end; a final /v1 is left out, for the routes bring it
};

/// http:// only. A user part is refused (it would be a secret in plain sight); https is refused with its way out.
[[nodiscard]] Result<Url> parse_url(std::string_view text);

enum class Route { completions, chat };

/// Limits that a request must all hold to be a good one (`vllm bench serve --goodput`), in ms.
struct Goodput {
    std::optional<double> ttft_ms, tpot_ms, e2el_ms;
};

struct Spec {
    Url url;
    std::optional<std::string> unix_socket;   ///< connect here instead of to the url's host
    Route route = Route::completions;
    std::string model;
    std::optional<std::string> api_key_file;   ///< read when the run begins; the key is never written anywhere
    std::vector<std::uint32_t> concurrency;
    std::optional<std::uint32_t> auto_max;   ///< instead of `concurrency`: double until it no longer pays
    std::optional<std::uint64_t> requests;   ///< a level; default max(8, 4 x concurrency)
    std::optional<double> duration_s;        ///< a level: start no request after this; running ones end
    std::uint32_t input_tokens = 1024;
    std::uint32_t output_tokens = 256;
    bool ignore_eos = true;
    std::uint64_t seed = 1;
    double request_timeout_s = 600;
    std::uint32_t warmup_requests = 1;
    std::optional<Goodput> goodput;
    bool detailed = false;    ///< vLLM's lists of single requests in the result
    bool tunnelled = false;   ///< the numbers hold a tunnel's delay too: said in the result
};

/// Unknown members are errors: a misspelt limit must not be ignored silently.
[[nodiscard]] Result<Spec> parse_spec(std::string_view json_text);

}   // namespace campaign::load
