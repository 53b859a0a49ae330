#pragma once
// One level in the words of `vllm bench serve`: its field names, by its definitions (docs/load-results.md), so that a result
// can be laid beside those of other tools.

#include <boost/json.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "instruments/load/record.hpp"
#include "instruments/load/spec.hpp"

namespace campaign::load {

/// What of the specification vLLM's figures depend on.
struct VllmAsk {
    std::uint32_t input_tokens = 0;   ///< asked for; counts where the server sent no usage
    std::optional<Goodput> goodput;
    bool detailed = false;   ///< keep the lists of single requests
};

class VllmTally {
public:
    explicit VllmTally(VllmAsk ask) : ask_{std::move(ask)} {}

    /// The level's own beginning: second 0 of the peaks.
    void begin(Stamp at) { began_ = at; }
    /// Not for requests that were cancelled or never sent.
    void add(const RequestRecord& record);
    /// Members of a level's object. `duration_s` runs from before the first request until all have ended.
    void into(json::object& level, double duration_s) const;

private:
    void second(std::vector<double>& buckets, Stamp at, double weight) const;

    struct Detail {
        std::uint64_t input_len = 0, output_len = 0;
        double start_s = 0, ttft_s = 0;
        std::vector<double> itls_s;
        std::string text, error;
    };

    VllmAsk ask_;
    Stamp began_ = 0;
    std::uint64_t completed_ = 0, failed_ = 0, input_ = 0, output_ = 0, good_ = 0;
    std::vector<double> ttft_, tpot_, itl_, e2el_;
    std::vector<double> frames_, tokens_, active_;   // a second each
    std::map<std::uint64_t, Detail> details_;        // by order of sending
};

/// The file that `vllm bench serve --save-result` would have written for one level of campaign.load/1: header and figures in
/// one flat object.
[[nodiscard]] json::object vllm_result(const json::object& result, const json::object& level);

}   // namespace campaign::load
