#include "instruments/micro/model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs.hpp"

namespace campaign::micro {
namespace {

using testing::dense;
using ::testing::HasSubstr;
using testing::latent;
using testing::parsed;
using testing::with;

std::string reason(const json::value& config) {
    const Result<Model> model = read_model(config);
    if (model) return "modelled";
    EXPECT_EQ(model.error().kind, ErrorKind::unavailable);
    return model.error().what;
}

TEST(Model, ParametersOfADenseOneAddUpByHand) {
    const Parameters p = parameters(*read_model(parsed(dense)));
    EXPECT_EQ(p.embedding, 1000 * 1024);
    EXPECT_EQ(p.lm_head, 1000 * 1024);
    EXPECT_EQ(p.attention, 4 * (1024 * (1024 + 2 * 256) + 1024 * 1024));
    EXPECT_EQ(p.dense_mlp, 4 * 3 * 1024 * 4096);
    EXPECT_EQ(p.norms, 4 * 2 * 1024 + 1024);
    EXPECT_EQ(p.total, p.embedding + p.lm_head + p.attention + p.dense_mlp + p.norms);
    EXPECT_EQ(p.active, p.total);
}

TEST(Model, ATokenUsesOnlyItsExperts) {
    const Parameters p = parameters(*read_model(parsed(latent)));
    const std::int64_t expert = 3 * 1024 * 512;
    EXPECT_EQ(p.routed_experts, 2 * 16 * expert);
    EXPECT_EQ(p.shared_experts, 2 * expert);
    EXPECT_EQ(p.dense_mlp, 3 * 1024 * 2048);
    EXPECT_EQ(p.total - p.active, 2 * 14 * expert);
}

TEST(Model, WhatTheClassDecidesWhereTheFileIsSilent) {
    const auto model = [](std::string_view members) { return *read_model(with(dense, members)); };
    EXPECT_FALSE(model("{}").tied);
    EXPECT_TRUE(model(R"({"model_type": "gemma2"})").tied);
    EXPECT_FALSE(model(R"({"model_type": "gemma2", "tie_word_embeddings": false})").tied);
    EXPECT_TRUE(model(R"({"model_type": "qwen2"})").qkv_bias);
    EXPECT_FALSE(model(R"({"model_type": "qwen3"})").qkv_bias);
    EXPECT_TRUE(model(R"({"attention_bias": true})").o_bias);
    EXPECT_EQ(model(R"({"model_type": "qwen3"})").qk_norm, QkNorm::head);
    EXPECT_EQ(model(R"({"model_type": "minimax_m2", "use_qk_norm": true})").qk_norm, QkNorm::layer);
    EXPECT_EQ(model(R"({"model_type": "minimax_m2"})").qk_norm, QkNorm::none);
    EXPECT_EQ(model("{}").head_dim, 64);
    EXPECT_EQ(model(R"({"head_dim": 128})").head_dim, 128);
    EXPECT_EQ(model(R"({"num_key_value_heads": null})").kv_heads, 16);
}

TEST(Model, WindowsByListByPatternOrNotAtAll) {
    const auto sliding = [](std::string_view members) { return read_model(with(dense, members))->sliding_layers; };
    EXPECT_EQ(sliding("{}"), 0);
    EXPECT_EQ(sliding(R"({"sliding_window": 64})"), 0);   // llama has none
    EXPECT_EQ(sliding(R"({"model_type": "mistral", "sliding_window": 64})"), 4);
    EXPECT_EQ(sliding(R"({"model_type": "mistral", "sliding_window": null})"), 0);
    EXPECT_EQ(sliding(R"({"model_type": "gemma2", "sliding_window": 64})"), 2);   // every second is full
    EXPECT_EQ(sliding(R"({"model_type": "gemma3_text", "sliding_window": 64, "sliding_window_pattern": 4})"), 3);
    EXPECT_EQ(sliding(R"({"sliding_window": 64, "layer_types":
        ["full_attention", "sliding_attention", "full_attention", "full_attention"]})"),
              1);
    EXPECT_EQ(sliding(R"({"sliding_window": 64, "use_sliding_window": false, "layer_types":
        ["full_attention", "sliding_attention", "full_attention", "full_attention"]})"),
              0);
}

TEST(Model, ExpertLayersByEachOfTheFourWays) {
    const auto layers = [](std::string_view members) { return read_model(with(latent, members))->has_experts; };
    using Layers = std::vector<bool>;
    EXPECT_EQ(layers("{}"), (Layers{false, true, true}));
    EXPECT_EQ(layers(R"({"first_k_dense_replace": 0})"), (Layers{true, true, true}));
    EXPECT_EQ(layers(R"({"first_k_dense_replace": 0, "moe_layer_freq": 2})"), (Layers{true, false, true}));
    EXPECT_EQ(layers(R"({"first_k_dense_replace": 0, "decoder_sparse_step": 2})"), (Layers{false, true, false}));
    EXPECT_EQ(layers(R"({"mlp_only_layers": [2]})"), (Layers{false, true, false}));
}

TEST(Model, TheTextPartMayBeNestedAndItsQuantisationInside) {
    json::object outer;
    outer["model_type"] = "some_vision_wrapper";
    outer["text_config"] = with(dense, R"({"quantization_config": {"quant_method": "fp8"}})");
    const Result<Model> model = read_model(json::value(outer));
    ASSERT_TRUE(model) << model.error().what;
    EXPECT_EQ(model->quantization.format_of("layers.0.mlp.up_proj"), Format::fp8_tensor);
}

TEST(Model, RefusalsNameTheReason) {
    struct Case {
        const char* members;
        const char* reason;
    };
    const Case cases[] = {{R"({"model_type": "mamba"})", "'mamba'"},
                          {R"({"model_type": null})", "model_type is absent"},
                          {R"({"layer_types": ["linear_attention", "full_attention", "full_attention", "full_attention"]})",
                           "linear_attention"},
                          {R"({"layer_types": ["full_attention"]})", "1 entries for 4 layers"},
                          {R"({"layer_types": "full"})", "not a list"},
                          {R"({"hidden_size": 1000})", "head_dim is absent"},
                          {R"({"shared_intermediate_size": 512})", "shared_intermediate_size"},
                          {R"({"num_local_experts": 4})", "0 per token"},
                          {R"({"num_local_experts": 4, "num_experts_per_tok": 5})", "5 per token"},
                          {R"({"mlp_only_layers": ["one"]})", "not a number"},
                          {R"({"quantization_config": {"quant_method": "gptq"}})", "'gptq'"},
                          {R"({"attention_bias": "yes"})", "attention_bias"},
                          {R"({"intermediate_size": null})", "no intermediate_size"},
                          {R"({"hidden_size": 1000000, "intermediate_size": 1000000, "num_hidden_layers": 10000})", "1e15"}};
    for (const Case& c : cases) EXPECT_THAT(reason(with(dense, c.members)), HasSubstr(c.reason)) << c.members;
    EXPECT_THAT(reason(with(latent, R"({"q_lora_rank": null})")), HasSubstr("q_lora_rank"));
    EXPECT_THAT(reason(json::value(3)), HasSubstr("not an object"));
    EXPECT_THAT(reason(parsed(R"({"text_config": []})")), HasSubstr("text_config"));
}

/// Every field missing, null, negative, huge or of a wrong type: an answer or a refusal, never anything else.
TEST(Model, EveryFieldSpoilt) {
    const char* const values[] = {
        "null",  "-1", "0",  "1",   "1e30", "99999999999999999999", "1000000", "9223372036854775807", "true",
        "\"x\"", "[]", "{}", "[1]", "3.5",  "{\"model_type\": 3}"};
    const char* const extra[] = {
        "head_dim",       "layer_types",         "mlp_only_layers",         "quantization_config", "text_config",
        "sliding_window", "tie_word_embeddings", "num_key_value_heads",     "moe_layer_freq",      "decoder_sparse_step",
        "index_topk",     "use_qk_norm",         "shared_intermediate_size"};
    int refused = 0;
    for (const std::string_view base : {dense, latent}) {
        std::vector<std::string> names(std::begin(extra), std::end(extra));
        const json::value fields = parsed(base);
        for (const auto& field : fields.as_object()) names.emplace_back(std::string_view{field.key()});
        for (const std::string& name : names) {
            for (const char* value : values) {
                json::value config = parsed(base);
                config.as_object()[name] = json::parse(value);
                const Result<Model> model = read_model(config);
                if (!model) {
                    ++refused;
                    EXPECT_FALSE(model.error().what.empty());
                    continue;
                }
                EXPECT_GT(parameters(*model).total, 0) << name << " " << value;
                for (const std::int64_t tensor : {1, 8}) {
                    const Result<Step> step = derive(*model, testing::spread(tensor, 64));
                    if (step) {
                        EXPECT_GE(step->held_bytes, 0) << name << " " << value;
                    }
                }
            }
            json::value config = parsed(base);
            config.as_object().erase(name);
            (void)read_model(config);
        }
    }
    EXPECT_GT(refused, 300);
}

}   // namespace
}   // namespace campaign::micro
