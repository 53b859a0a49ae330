#include "instruments/micro/step.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "configs.hpp"

namespace campaign::micro {
namespace {

using testing::dense;
using testing::gemm;
using ::testing::HasSubstr;
using testing::latent;
using testing::parsed;
using testing::spread;
using testing::step_of;
using testing::with;

TEST(Step, RowsArePaddedToTheNextGraph) {
    const std::pair<std::int64_t, std::int64_t> cases[] = {{1, 1},     {2, 2},     {3, 4},     {4, 4},
                                                           {5, 8},     {17, 24},   {248, 248}, {249, 256},
                                                           {257, 272}, {512, 512}, {513, 513}, {4000, 4000}};
    for (const auto& [tokens, rows] : cases) EXPECT_EQ(padded_rows(tokens), rows) << tokens;
}

TEST(Step, TheLastStageHoldsNoneOfTheRemainder) {
    using Layers = std::vector<std::int64_t>;
    EXPECT_EQ(stage_layers(8, 2), (Layers{4, 4}));
    EXPECT_EQ(stage_layers(61, 4), (Layers{15, 15, 16, 15}));
    EXPECT_EQ(stage_layers(63, 4), (Layers{16, 16, 16, 15}));
}

TEST(Step, ExpectedExpertsLieBetweenOneTokensAndAll) {
    EXPECT_DOUBLE_EQ(expected_distinct(16, 2, 1), 2);
    EXPECT_DOUBLE_EQ(expected_distinct(2, 1, 2), 1.5);   // by hand: the second token hits the other one half of the time
    EXPECT_NEAR(expected_distinct(16, 2, 10'000), 16, 1e-9);
    EXPECT_EQ(expected_distinct(0, 0, 5), 0);
}

TEST(Step, ADenseModelAtTwoRanksByHand) {
    const Step step = step_of(parsed(dense), spread(2, 3));
    EXPECT_EQ(step.tokens, 3);
    EXPECT_EQ(step.padded_tokens, 4);
    const Gemm& qkv = gemm(step, "qkv");
    EXPECT_EQ(qkv.n, 8 * 64 + 2 * 2 * 64);
    EXPECT_EQ(qkv.k, 1024);
    EXPECT_EQ(qkv.m, 4);
    EXPECT_EQ(qkv.count(), 4);
    EXPECT_EQ(gemm(step, "gate_up").n, 4096);
    EXPECT_EQ(gemm(step, "down").k, 2048);
    EXPECT_EQ(gemm(step, "lm_head").n, 1024 / 2);   // 1000 padded to 1024
    EXPECT_EQ(gemm(step, "lm_head").m, 3);
    EXPECT_EQ(step.cache.bytes_per_token, 4 * 2 * 2 * 64 * 2);
    EXPECT_EQ(step.cache.read_bytes, 3 * 1024 * step.cache.bytes_per_token);
    std::int64_t reduced = 0;
    for (const Collective& one : step.collectives) {
        if (one.op == "all_reduce") reduced += one.count * one.bytes;
    }
    EXPECT_EQ(reduced, (1 + 4 + 4) * 4 * 1024 * 2);
    EXPECT_DOUBLE_EQ(step.floor_us(1000, false), step.read_bytes() / 1e6);
}

TEST(Step, LatentAttentionIsAbsorbedInDecodeAndExpandedInPrefill) {
    const Step decode = step_of(parsed(latent), spread(2));
    EXPECT_EQ(gemm(decode, "mla_absorb_uk").count(), 3 * 8);
    EXPECT_EQ(gemm(decode, "mla_absorb_uk").n, 128);
    EXPECT_EQ(decode.attention.kv_heads, 1);
    EXPECT_EQ(decode.cache.bytes_per_token_layer, (128 + 32) * 2);
    EXPECT_TRUE(decode.cache.replicated);
    Request chunk = spread(2);
    chunk.phase = Phase::prefill;
    chunk.tokens = 100;
    const Step prefill = step_of(parsed(latent), chunk);
    EXPECT_EQ(gemm(prefill, "kv_b").n, 8 * (64 + 64));
    EXPECT_EQ(*gemm(prefill, "kv_b").m, 100);   // a chunk is not padded
    EXPECT_EQ(prefill.attention.kv_heads, 8);
}

TEST(Step, DraftsMultiplyTheRowsButNotTheLogits) {
    Request request = spread(1, 8);
    request.draft = 3;
    const Step step = step_of(parsed(dense), request);
    EXPECT_EQ(step.tokens, 32);
    EXPECT_EQ(*gemm(step, "qkv").m, 32);
    EXPECT_EQ(*gemm(step, "lm_head").m, 8);
}

TEST(Step, KvHeadsFewerThanRanksAreHeldTwice) {
    const Step step = step_of(parsed(dense), spread(8));
    EXPECT_EQ(step.attention.kv_heads, 1);
    EXPECT_TRUE(step.cache.replicated);
    EXPECT_FALSE(step_of(parsed(dense), spread(4)).cache.replicated);
}

TEST(Step, AWindowShortensWhatIsReadNotWhatIsHeld) {
    const json::value config = with(dense, R"({"model_type": "gemma2", "sliding_window": 100})");
    const Step windowed = step_of(config, spread(1));
    const Step whole = step_of(with(dense, R"({"model_type": "gemma2"})"), spread(1));
    EXPECT_EQ(windowed.cache.bytes_per_token, whole.cache.bytes_per_token);
    EXPECT_EQ(windowed.cache.read_bytes, whole.cache.read_bytes / 1024 * (2 * 1024 + 2 * 100) / 4);
}

TEST(Step, ChangingOnePatternChangesJustThatModulesBytes) {
    const auto bytes = [](const char* pattern) {
        json::value config = parsed(latent);
        json::object quantization;
        quantization["quant_method"] = "fp8";
        if (*pattern != 0) quantization["ignored_layers"] = json::array({pattern});
        config.as_object()["quantization_config"] = quantization;
        std::map<std::string, std::int64_t> out;
        for (const Gemm& one : step_of(config, spread(1)).gemms) out[one.name] += one.weight_bytes * one.count();
        return out;
    };
    const auto all = bytes("");
    struct Case {
        const char* pattern;
        std::vector<std::string> changed;
    };
    const Case cases[] = {{"re:.*q_b_proj", {"q_b"}},
                          {"model.layers.*.self_attn.o_proj", {"o"}},
                          {"re:.*shared_experts.*", {"shared_gate_up", "shared_down"}},
                          {"model.layers.0.mlp", {"gate_up", "down"}},
                          {"nothing.of.that.name", {}}};
    for (const Case& c : cases) {
        for (const auto& [name, now] : bytes(c.pattern)) {
            const bool changed = std::find(c.changed.begin(), c.changed.end(), name) != c.changed.end();
            EXPECT_EQ(now, changed ? 2 * all.at(name) : all.at(name)) << c.pattern << " " << name;
        }
    }
}

TEST(Step, LayersOfTwoFormatsAreTwoLines) {
    const json::value config = with(
        dense, R"({"quantization_config": {"quant_method": "fp8", "ignored_layers": ["model.layers.0.self_attn.o_proj"]}})");
    std::vector<std::pair<Format, std::int64_t>> lines;
    for (const Gemm& one : step_of(config, spread(1)).gemms) {
        if (one.name == "o") lines.emplace_back(one.format, one.layers);
    }
    EXPECT_EQ(lines, (std::vector<std::pair<Format, std::int64_t>>{{Format::fp8_tensor, 3}, {Format::bf16, 1}}));
}

TEST(Step, WhatTheServerWouldRefuseIsRefused) {
    struct Case {
        json::value config;
        Request request;
        const char* reason;
    };
    const auto fp8 = [](json::value base) {
        base.as_object()["quantization_config"] = parsed(R"({"quant_method": "fp8", "weight_block_size": [128, 128]})");
        return base;
    };
    Request staged = spread(1);
    staged.parallel.pipeline = 9;
    Request wide = spread(1, 70'000);
    const Case cases[] = {
        {with(dense, R"({"num_attention_heads": 28, "head_dim": 64, "num_key_value_heads": 4})"), spread(8),
         "28 attention heads"},
        {with(dense, R"({"num_key_value_heads": 12, "num_attention_heads": 48, "head_dim": 64})"), spread(8), "12 KV heads"},
        {with(dense, R"({"intermediate_size": 4100})"), spread(8), "4100"},
        {with(
             latent,
             R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128], "ignored_layers": ["re:.*(self_attn|shared_experts).*"]}})"),
         spread(8), "fp8 block 128 does not divide the expert shard 512/8 = 64"},
        {fp8(parsed(latent)), spread(8), "fp8 block 128 does not divide the shard of q_b (N=192 K=256)"},
        {fp8(with(dense, R"({"intermediate_size": 1000})")), spread(2),
         "fp8 block 128 does not divide the shard of gate_up"},
        {parsed(dense), staged, "9 pipeline stages"},
        {parsed(dense), wide, "batch 70000"},
        {parsed(dense), spread(0), "tp 0"},
        {parsed(dense), spread(-8), "tp -8"}};
    for (const Case& c : cases) {
        const Result<Step> step = derive(*read_model(c.config), c.request);
        ASSERT_FALSE(step) << c.reason;
        EXPECT_EQ(step.error().kind, ErrorKind::refused);
        EXPECT_THAT(step.error().what, HasSubstr(c.reason));
    }
}

TEST(Step, WholeExpertsMakeACutBlockFit) {
    const json::value config =
        with(latent, R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128],
        "ignored_layers": ["re:.*(self_attn|shared_experts).*"]}})");
    EXPECT_FALSE(derive(*read_model(config), spread(8)));
    Request request = spread(8);
    request.parallel.expert = true;
    EXPECT_TRUE(derive(*read_model(config), request));
}

TEST(Step, DataParallelRanksMeetInTheExperts) {
    Request request = spread(1, 8);
    request.parallel.data = 4;
    request.parallel.expert = true;
    const Step step = step_of(parsed(latent), request);
    EXPECT_EQ(step.expert_ranks, 4);
    const Experts& experts = *gemm(step, "experts_w13").experts;
    EXPECT_EQ(experts.local, 4);
    EXPECT_DOUBLE_EQ(experts.rows, 8.0 * 4 * 2 / 4);
    ASSERT_EQ(step.collectives.size(), 2U);
    EXPECT_EQ(step.collectives[0].op, "dispatch");
    EXPECT_EQ(step.collectives[0].bytes, 8 * 2 * 1024 * 2);
    EXPECT_TRUE(step.collectives[0].upper_bound);
}

/// Identities that hold for every model and parallelism.
TEST(Step, RandomModelsShardWithoutLoss) {
    std::mt19937 random{7};
    const auto pick = [&](std::initializer_list<std::int64_t> of) {
        return *(of.begin() + static_cast<long>(random() % of.size()));
    };
    int compared = 0;
    for (int round = 0; round < 300; ++round) {
        const bool experts = random() % 2 == 0;
        json::value config = parsed(experts ? latent : dense);
        json::object& members = config.as_object();
        members["hidden_size"] = pick({512, 1024, 7168});
        members["num_hidden_layers"] = pick({3, 8, 61});
        members["num_attention_heads"] = pick({16, 64, 128});
        members["intermediate_size"] = pick({4096, 18432});
        members["head_dim"] = pick({64, 128});
        if (!experts) members["num_key_value_heads"] = 16;
        if (experts) members["num_experts_per_tok"] = pick({1, 2, 8});
        members["vocab_size"] = pick({1024, 131072});
        const std::int64_t tensor = pick({2, 4, 8});
        const std::int64_t batch = pick({1, 8, 64});
        const Step one = step_of(config, spread(1, batch));
        const Step rank = step_of(config, spread(tensor, batch));
        double replicated = 0;
        for (const Gemm& gemm : rank.gemms) {
            if (gemm.shard == "replicated")
                replicated += 2.0 * static_cast<double>(*gemm.m * gemm.count()) * static_cast<double>(gemm.n) *
                              static_cast<double>(gemm.k);
        }
        const auto ranks = static_cast<double>(tensor);
        EXPECT_NEAR((rank.flops * ranks - replicated * (ranks - 1)) / one.flops, 1, 1e-12) << json::serialize(config);
        EXPECT_GE(static_cast<double>(rank.held_bytes) * (1 + 1e-12), rank.read_bytes());
        EXPECT_GE(static_cast<double>(one.held_bytes) * (1 + 1e-12), one.read_bytes());
        if (experts) {
            Request whole = spread(tensor, batch);
            whole.parallel.expert = true;
            EXPECT_NEAR(step_of(config, whole).expert_bytes / rank.expert_bytes, 1, 1e-12) << json::serialize(config);
            ++compared;
        }
    }
    EXPECT_GT(compared, 100);
}

TEST(Step, JsonHoldsTheFloorOfTheGpuAskedFor) {
    const json::value out = to_json(step_of(parsed(dense), spread(1)), "mine", find_gpu("H200"));
    EXPECT_EQ(string_at(out, "schema"), "campaign.micro-shapes/1");
    const json::value& gpu = *member(out, "gpu");
    EXPECT_EQ(string_at(gpu, "name"), "H200");
    EXPECT_EQ(bool_at(gpu, "weights_fit"), true);
    EXPECT_DOUBLE_EQ(*number_at(gpu, "best_tpot_us"),
                     *number_at(*member(*member(out, "floor_us"), "4800"), "weights_and_kv"));
    const json::value refusal =
        refusal_json(Error{.kind = ErrorKind::refused, .what = "why", .why = {}, .evidence = {}, .next = {}}, "mine");
    EXPECT_EQ(string_at(refusal, "refused"), "refused");
    EXPECT_EQ(string_at(refusal, "reason"), "why");
}

}   // namespace
}   // namespace campaign::micro
