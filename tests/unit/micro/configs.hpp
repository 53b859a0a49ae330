#pragma once
// Configs of our own making, small enough to be added up by hand.

#include <string_view>

#include "instruments/micro/step.hpp"

namespace campaign::micro::testing {

/// 4 layers, hidden 1024, 16 heads of 64, 4 KV heads, MLP 4096, vocabulary 1000.
inline constexpr std::string_view dense = R"({"model_type": "llama", "hidden_size": 1024, "num_hidden_layers": 4,
    "num_attention_heads": 16, "num_key_value_heads": 4, "intermediate_size": 4096, "vocab_size": 1000})";

/// 3 layers of which the first is dense; 16 experts of width 512, 2 a token, 1 shared.
inline constexpr std::string_view latent = R"({"model_type": "deepseek_v3", "hidden_size": 1024, "num_hidden_layers": 3,
    "num_attention_heads": 16, "q_lora_rank": 256, "kv_lora_rank": 128, "qk_nope_head_dim": 64, "qk_rope_head_dim": 32,
    "v_head_dim": 64, "intermediate_size": 2048, "moe_intermediate_size": 512, "n_routed_experts": 16,
    "num_experts_per_tok": 2, "n_shared_experts": 1, "first_k_dense_replace": 1, "vocab_size": 1280})";

inline json::value parsed(std::string_view text) {
    return json::parse(text);
}

/// With members put in or replaced: with(dense, R"({"head_dim": 128})").
inline json::value with(std::string_view base, std::string_view members) {
    json::value out = json::parse(base);
    const json::value more = json::parse(members);
    for (const auto& member : more.as_object()) out.as_object()[member.key()] = member.value();
    return out;
}

inline Request spread(std::int64_t tensor, std::int64_t batch = 1) {
    Request request;
    request.parallel.tensor = tensor;
    request.batch = batch;
    return request;
}

inline Step step_of(const json::value& config, const Request& request) {
    const Result<Model> model = read_model(config);
    if (!model) throw std::runtime_error{model.error().what};
    const Result<Step> step = derive(*model, request);
    if (!step) throw std::runtime_error{step.error().what};
    return *step;
}

inline const Gemm& gemm(const Step& step, std::string_view name) {
    for (const Gemm& one : step.gemms) {
        if (one.name == name) return one;
    }
    throw std::runtime_error{"no GEMM is called " + std::string{name}};
}

}   // namespace campaign::micro::testing
