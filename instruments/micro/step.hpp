#pragma once
// The operations of one decode step, or of one prefill chunk, on ONE rank: what a model and its parallelism make of it. The
// layout is vLLM's: merged QKV and gate_up, fused q_a + kv_a, latent attention absorbed in decode. Definitions of every
// number: docs/latency-budget.md.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "instruments/micro/gpus.hpp"
#include "instruments/micro/model.hpp"

namespace campaign::micro {

enum class Phase { decode, prefill };

struct Parallel {
    std::int64_t tensor = 1;
    std::int64_t data = 1;
    std::int64_t pipeline = 1;
    bool expert = false;   ///< whole experts over tensor x data ranks
};

struct Request {
    Parallel parallel;
    Phase phase = Phase::decode;
    std::int64_t batch = 1;                 ///< sequences of a data-parallel rank
    std::int64_t context = 1024;            ///< tokens that each sequence has in the cache
    std::int64_t draft = 0;                 ///< speculative tokens a sequence and step
    std::int64_t tokens = 0;                ///< prefill: tokens of the chunk
    std::optional<std::int64_t> kv_bytes;   ///< a cache element's; absent: 1 where the config says FP8, else 2
};

enum class Kind { linear, bmm, grouped };
[[nodiscard]] std::string_view to_string(Kind kind);

/// Routed experts as one rank meets them. The expectation is of a uniform, independent router, E(1-(1-k/E)^T); real routers
/// are skewed, hence the range.
struct Experts {
    std::int64_t local = 0;   ///< held by this rank
    std::int64_t top_k = 0;
    double rows = 0;       ///< expected rows of all experts here
    double distinct = 0;   ///< expected experts hit here
    std::int64_t distinct_low = 0;
    std::int64_t distinct_high = 0;
};

struct Gemm {
    std::string name;
    Kind kind = Kind::linear;
    std::string_view shard;   ///< replicated, column, row, heads, experts, inner
    std::int64_t layers = 0;
    std::int64_t per_layer = 1;
    std::optional<std::int64_t> m;   ///< rows; absent for experts, whose rows are spread over them
    std::int64_t n = 0;
    std::int64_t k = 0;
    Format format = Format::bf16;
    std::optional<std::int64_t> group;   ///< int4_group: weights that share a scale
    std::int64_t weight_bytes = 0;       ///< one weight's (of experts: one expert's), scales and bias included
    std::optional<std::int64_t> heads;   ///< bmm: multiplied in one call
    std::optional<Experts> experts;

    [[nodiscard]] std::int64_t count() const { return layers * per_layer; }
};

struct Collective {
    std::string_view op;      ///< all_reduce, gather, dispatch, combine, send_recv
    std::string_view where;   ///< embedding, attention, qk_norm_variance, mlp, logits, experts, pipeline
    std::int64_t count = 0;
    std::int64_t bytes = 0;     ///< one call's, on one rank
    bool upper_bound = false;   ///< dispatch, combine: the back-end decides what is really sent
    std::int64_t ranks = 0;     ///< 0: the tensor-parallel group
    std::string_view note = {};
};

struct Attention {
    std::string_view kind;   ///< gqa, mla, mla_sparse
    bool absorbed = false;
    std::int64_t q_heads = 0;
    std::int64_t kv_heads = 0;
    std::int64_t qk_dim = 0;
    std::int64_t v_dim = 0;
    std::optional<std::int64_t> top;   ///< keys of a query that the indexer leaves
    std::optional<std::int64_t> window;
    std::int64_t sliding_layers = 0;
};

/// The cache of one rank. Windows shorten what is read, not what is held a token.
struct Cache {
    std::int64_t bytes_per_token_layer = 0;
    std::int64_t bytes_per_token = 0;
    std::int64_t full_layers = 0;
    std::int64_t sliding_layers = 0;
    std::optional<std::int64_t> window;
    bool replicated = false;
    std::int64_t read_bytes = 0;   ///< a step
};

struct Step {
    Request request;
    std::string model_type;
    std::int64_t layers = 0;
    std::int64_t expert_layers = 0;
    std::int64_t expert_ranks = 1;
    std::int64_t tokens = 0;          ///< of this data-parallel rank
    std::int64_t padded_tokens = 0;   ///< rows that the GEMMs see: the CUDA graph's size
    std::vector<Gemm> gemms;
    std::vector<Collective> collectives;
    Attention attention;
    Cache cache;
    Parameters parameters;
    std::int64_t linear_bytes = 0;   ///< weights read once a step, experts apart
    double expert_bytes = 0;         ///< expected
    std::int64_t held_bytes = 0;     ///< weights in this rank's memory
    double flops = 0;
    std::vector<std::int64_t> stages;   ///< layers of each pipeline stage, where there are several
    std::vector<std::string> notes;

    [[nodiscard]] double read_bytes() const { return static_cast<double>(linear_bytes) + expert_bytes; }
    /// The step's least time in microseconds: what must be read, at `bandwidth_gb_s`.
    [[nodiscard]] double floor_us(double bandwidth_gb_s, bool with_cache) const;
};

/// Rows that the GEMMs of a decode step see: the next of vLLM's default CUDA-graph sizes; beyond the largest, `tokens`.
[[nodiscard]] std::int64_t padded_rows(std::int64_t tokens);
/// Layers of each pipeline stage as vLLM splits them: the remainder goes one each to the stages from the last but one
/// backwards.
[[nodiscard]] std::vector<std::int64_t> stage_layers(std::int64_t layers, std::int64_t stages);
/// Mean number of different experts that `tokens` hit, if the router were uniform and independent.
[[nodiscard]] double expected_distinct(std::int64_t experts, std::int64_t per_token, std::int64_t tokens);

/// Error kinds: `refused`, this parallelism does not fit the model (the server would refuse it too); `unavailable`, the
/// numbers are beyond what a step can be.
[[nodiscard]] Result<Step> derive(const Model& model, const Request& request);

/// Members as in docs/latency-budget.md. With a GPU: its floor and the best possible TPOT, and whether the weights fit.
[[nodiscard]] json::object to_json(const Step& step, std::string_view name, const std::optional<Gpu>& gpu);
/// {"refused": "unsupported" | "refused", "reason": ...}
[[nodiscard]] json::object refusal_json(const Error& error, std::string_view name);

}   // namespace campaign::micro
