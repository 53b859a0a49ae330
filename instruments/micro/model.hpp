#pragma once
// A model as its Hugging Face config.json describes it: what decides the shapes of a step, and its parameters. What is not
// modelled is refused with the reason, never guessed. Formulas: docs/latency-budget.md.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "instruments/micro/quantization.hpp"

namespace campaign::micro {

enum class QkNorm {
    none,
    head,
    layer
};   ///< layer: over all heads, so that tensor parallelism must all-reduce its variance

/// Parameters of the unsharded model. Multi-token-prediction layers and vision towers are not counted.
struct Parameters {
    std::int64_t embedding = 0;
    std::int64_t lm_head = 0;   ///< 0: tied to the embedding
    std::int64_t attention = 0;
    std::int64_t norms = 0;
    std::int64_t dense_mlp = 0;
    std::int64_t router = 0;
    std::int64_t shared_experts = 0;
    std::int64_t routed_experts = 0;
    std::int64_t total = 0;
    std::int64_t active = 0;   ///< with the experts that one token takes
    std::int64_t active_without_input_embedding = 0;
    std::int64_t active_without_embedding_and_head = 0;
};

/// Multi-head latent attention (DeepSeek): ranks and head sizes.
struct Mla {
    std::int64_t q_rank = 0;
    std::int64_t kv_rank = 0;
    std::int64_t nope = 0;
    std::int64_t rope = 0;
    std::int64_t v = 0;
};

/// The indexer of sparse attention (DeepSeek-V3.2, GLM-5): picks `top` keys a query.
struct Indexer {
    std::int64_t heads = 0;
    std::int64_t dim = 0;
    std::int64_t top = 0;
};

struct Model {
    std::string type;   ///< model_type
    std::int64_t hidden = 0;
    std::int64_t layers = 0;
    std::int64_t heads = 0;
    std::int64_t kv_heads = 0;
    std::int64_t head_dim = 0;   ///< not always hidden / heads
    std::int64_t vocabulary = 0;
    bool tied = false;
    bool qkv_bias = false;
    bool o_bias = false;
    bool sinks = false;   ///< a learned value a head (gpt-oss)
    bool expert_bias = false;
    bool router_bias = false;    ///< an addend of the router's projection
    bool routing_bias = false;   ///< a value an expert that only chooses
    bool fp32_router = false;
    bool padded_experts = false;   ///< back-ends pad the experts' sizes
    QkNorm qk_norm = QkNorm::none;
    std::int64_t norms_per_layer = 2;
    std::optional<Mla> mla;
    std::optional<Indexer> indexer;
    std::optional<std::int64_t> window;   ///< tokens that a sliding layer sees
    std::int64_t sliding_layers = 0;
    std::int64_t experts = 0;   ///< routed; 0: a dense model
    std::int64_t experts_per_token = 0;
    std::int64_t shared_experts = 0;
    std::int64_t expert_width = 0;   ///< intermediate size of one expert
    std::int64_t dense_width = 0;    ///< of the dense layers' MLP; 0: there are none and the config does not say
    std::vector<bool> has_experts;   ///< by layer
    Quantization quantization;

    [[nodiscard]] std::int64_t expert_layers() const;
};

/// `config`: the whole config.json, its text part nested or not; hf_quant_config.json already put into it where there was
/// one. Error kind `unavailable`: not modelled, or not a config.
[[nodiscard]] Result<Model> read_model(const json::value& config);

/// A folder with config.json (and hf_quant_config.json), or the file itself. At most 8 MiB a file.
[[nodiscard]] Result<Model> load_model(const std::filesystem::path& path);

[[nodiscard]] Parameters parameters(const Model& model);

}   // namespace campaign::micro
