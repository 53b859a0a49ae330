#include "instruments/micro/quantization.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs.hpp"

namespace campaign::micro {
namespace {

using ::testing::HasSubstr;
using testing::parsed;

Quantization read(std::string_view text) {
    Result<Quantization> formats = Quantization::read(parsed(text));
    if (!formats) throw std::runtime_error{formats.error().what};
    return std::move(*formats);
}

TEST(Quantization, BytesOfAWeightHoldItsScales) {
    struct Case {
        Format format;
        std::int64_t n, k;
        std::optional<std::int64_t> group;
        bool bias;
        std::int64_t bytes;
    };
    const Case cases[] = {{Format::bf16, 10, 100, {}, false, 2000},
                          {Format::bf16, 10, 100, {}, true, 2020},
                          {Format::fp32, 10, 100, {}, false, 4000},
                          {Format::fp8_tensor, 10, 100, {}, false, 1000},
                          {Format::fp8_block, 256, 384, {}, false, 256 * 384 + 2 * 3 * 4},
                          {Format::fp8_block, 129, 1, {}, false, 129 + 2 * 4},   // begun blocks count whole
                          {Format::int4_group, 4, 64, 32, false, 128 + 4 * 2 * 2},
                          {Format::int4_group, 1, 33, 32, false, 17 + 2 * 2},   // half a byte and a group begun
                          {Format::mxfp4, 2, 64, {}, false, 64 + 2 * 2},
                          {Format::nvfp4, 2, 64, {}, false, 64 + 2 * 4}};
    for (const Case& c : cases)
        EXPECT_EQ(weight_bytes(c.format, c.n, c.k, c.group, c.bias), c.bytes) << to_string(c.format) << " " << c.n;
}

TEST(Quantization, FormatByMethod) {
    struct Case {
        const char* config;
        Format experts, attention;
    };
    const Case cases[] = {
        {"null", Format::bf16, Format::bf16},
        {"{}", Format::bf16, Format::bf16},
        {R"({"quant_method": "fp8"})", Format::fp8_tensor, Format::fp8_tensor},
        {R"({"quant_method": "fp8", "weight_block_size": [128, 128]})", Format::fp8_block, Format::fp8_block},
        {R"({"quant_method": "mxfp4"})", Format::mxfp4, Format::bf16},
        {R"({"quant_method": "modelopt", "quant_algo": "FP8"})", Format::fp8_tensor, Format::fp8_tensor},
        {R"({"quant_method": "modelopt", "quant_algo": "NVFP4"})", Format::nvfp4, Format::nvfp4},
        {R"({"quant_method": "compressed-tensors", "config_groups": {"g": {"weights":
             {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32}}}})",
         Format::int4_group, Format::int4_group}};
    for (const Case& c : cases) {
        const Quantization formats = read(c.config);
        EXPECT_EQ(formats.format_of("layers.3.mlp.experts.0.up_proj"), c.experts) << c.config;
        EXPECT_EQ(formats.format_of("layers.3.self_attn.o_proj"), c.attention) << c.config;
        for (const char* never : {"lm_head", "embed_tokens", "layers.3.mlp.gate", "layers.3.mlp.router"})
            EXPECT_EQ(formats.format_of(never), Format::bf16) << c.config << never;
    }
}

TEST(Quantization, AnIgnoreListNamesModulesInThreeWays) {
    struct Case {
        const char* pattern;
        const char* module;
        bool ignored;
    };
    const Case cases[] = {{"model.layers.1.mlp", "layers.1.mlp.up_proj", true},   // what holds it
                          {"model.layers.1.mlp", "layers.11.mlp.up_proj", false},
                          {"model.layers.1", "layers.10.mlp.up_proj", false},       // a name ends where it ends
                          {"layers.1.mlp.up_proj", "layers.1.mlp.up_proj", true},   // without the leading model.
                          {"layers.1.mlp", "layers.1.mlp.up_proj", false},
                          {"model.layers.*.self_attn*", "layers.7.self_attn.o_proj", true},
                          {"*self_attn", "layers.7.self_attn.o_proj", false},   // a glob covers the whole name
                          {"layers.[0-3].mlp.*", "layers.2.mlp.up_proj", true},
                          {"layers.[0-3].mlp.*", "layers.4.mlp.up_proj", false},
                          {"re:.*self_attn.*", "layers.7.self_attn.o_proj", true},
                          {"re:model\\.layers\\.(0|1)\\.", "layers.1.mlp.up_proj", true},   // from the start, not to the end
                          {"re:layers", "layers.1.mlp.up_proj", false},
                          {"", "layers.1.mlp.up_proj", false}};
    for (const Case& c : cases) {
        json::object config;
        config["quant_method"] = "fp8";
        config["modules_to_not_convert"] = json::array({c.pattern});
        const Result<Quantization> formats = Quantization::read(json::value(config));
        ASSERT_TRUE(formats) << c.pattern;
        EXPECT_EQ(formats->format_of(c.module) == Format::bf16, c.ignored) << c.pattern << " " << c.module;
    }
}

TEST(Quantization, WhatIsNotModelledIsRefusedWithItsName) {
    struct Case {
        const char* config;
        const char* reason;
    };
    const Case cases[] = {
        {"3", "not an object"},
        {"[]", "not an object"},
        {R"({"quant_method": "awq"})", "'awq'"},
        {R"({"quant_method": 8})", "not modelled"},
        {R"({"bits": 4})", "not modelled"},
        {R"({"quant_method": "fp8", "weight_block_size": [64, 64]})", "[64,64]"},
        {R"({"quant_method": "fp8", "weight_block_size": "big"})", "weight_block_size"},
        {R"({"quant_method": "fp8", "modules_to_not_convert": "lm_head"})", "no list"},
        {R"({"quant_method": "fp8", "modules_to_not_convert": [7]})", "not a name"},
        {R"({"quant_method": "fp8", "modules_to_not_convert": ["re:("]})", "bad pattern"},
        {R"({"quant_method": "modelopt", "quant_algo": "W4A8"})", "'W4A8'"},
        {R"({"quant_method": "compressed-tensors"})", "without config_groups"},
        {R"({"quant_method": "compressed-tensors", "config_groups": {}})", "0 config groups"},
        {R"({"quant_method": "compressed-tensors", "config_groups": {"a": {}, "b": {}}})", "2 config groups"},
        {R"({"quant_method": "compressed-tensors", "config_groups": {"a": {}}})", "nothing of its weights"},
        {R"({"quant_method": "compressed-tensors", "config_groups": {"a": {"weights":
             {"num_bits": 8, "type": "float", "strategy": "channel"}}}})",
         "float8/channel"},
        {R"({"quant_method": "compressed-tensors", "config_groups": {"a": {"weights":
             {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 0}}}})",
         "group_size"}};
    for (const Case& c : cases) {
        const Result<Quantization> formats = Quantization::read(parsed(c.config));
        ASSERT_FALSE(formats) << c.config;
        EXPECT_EQ(formats.error().kind, ErrorKind::unavailable);
        EXPECT_THAT(formats.error().what, HasSubstr(c.reason)) << c.config;
    }
}

TEST(Quantization, AStrangersPatternDoesNotTakeForEver) {
    const std::string a(40, 'a');
    json::object config;
    config["quant_method"] = "fp8";
    config["ignored_layers"] = json::array({"re:(.*)*(.*)*(.*)*x"});
    const Result<Quantization> formats = Quantization::read(json::value(config));
    ASSERT_TRUE(formats);
    EXPECT_EQ(formats->format_of(a), Format::fp8_tensor);   // an exponential matcher would not come back
}

}   // namespace
}   // namespace campaign::micro
