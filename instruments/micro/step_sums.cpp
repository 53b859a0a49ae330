#include "instruments/micro/step_sums.hpp"

#include <algorithm>
#include <string>

namespace campaign::micro {
namespace {

constexpr std::int64_t indexer_scale_bytes = 4;   // its keys are fp8 with one fp32 scale each

std::int64_t local_kv_heads(const Model& model, const Request& request) {
    return std::max<std::int64_t>(1, model.kv_heads / request.parallel.tensor);
}

std::int64_t element_bytes(const Model& model, const Request& request) {
    return request.kv_bytes.value_or(model.quantization.fp8_kv_cache() ? 1 : 2);
}

Cache cache_of(const Model& model, const Request& request) {
    Cache out;
    const std::int64_t element = element_bytes(model, request);
    std::int64_t index = 0;
    std::int64_t layer = 2 * local_kv_heads(model, request) * model.head_dim * element;
    out.sliding_layers = model.sliding_layers;
    if (model.mla) {
        layer = (model.mla->kv_rank + model.mla->rope) * element;
        index = model.indexer ? model.indexer->dim + indexer_scale_bytes : 0;
        out.sliding_layers = 0;
    }
    out.full_layers = model.layers - out.sliding_layers;
    const std::int64_t context = request.context;
    const std::int64_t seen = model.indexer ? std::min(context, model.indexer->top) : context;
    std::int64_t read = out.full_layers * (seen * layer + context * index);
    if (out.sliding_layers > 0) {
        out.window = model.window;
        read += out.sliding_layers * std::min(context, model.window.value_or(context)) * layer;
    }
    out.bytes_per_token_layer = layer + index;
    out.bytes_per_token = model.layers * (layer + index);
    out.replicated = model.mla ? request.parallel.tensor > 1 : model.kv_heads < request.parallel.tensor;
    out.read_bytes = read * request.batch;
    return out;
}

Attention attention_of(const Model& model, const Request& request) {
    Attention out;
    out.q_heads = model.heads / request.parallel.tensor;
    if (model.mla) {
        const Mla& mla = *model.mla;
        out.absorbed = is_absorbed(model, request);
        out.kind = model.indexer ? "mla_sparse" : "mla";
        out.kv_heads = out.absorbed ? 1 : out.q_heads;
        out.qk_dim = out.absorbed ? mla.kv_rank + mla.rope : mla.nope + mla.rope;
        out.v_dim = out.absorbed ? mla.kv_rank : mla.v;
        if (model.indexer) out.top = model.indexer->top;
        return out;
    }
    out.kind = "gqa";
    out.kv_heads = local_kv_heads(model, request);
    out.qk_dim = model.head_dim;
    out.v_dim = model.head_dim;
    out.sliding_layers = model.sliding_layers;
    if (model.sliding_layers > 0) out.window = model.window;
    return out;
}

/// kv_b is kept beside what was absorbed from it.
std::int64_t kept_kv_b(const Model& model, const Request& request) {
    const Mla& mla = *model.mla;
    const std::int64_t rows = model.heads / request.parallel.tensor * (mla.nope + mla.v);
    std::int64_t bytes = 0;
    for (std::int64_t layer = 0; layer < model.layers; ++layer) {
        const Format format = model.quantization.format_of("layers." + std::to_string(layer) + ".self_attn.kv_b_proj");
        bytes += weight_bytes(format, rows, mla.kv_rank, model.quantization.group());
    }
    return bytes;
}

}   // namespace

bool is_absorbed(const Model& model, const Request& request) {
    return model.mla && (request.phase == Phase::decode || model.indexer);
}

void add_sums(const Model& model, Step& step) {
    const Request& request = step.request;
    step.attention = attention_of(model, request);
    step.cache = cache_of(model, request);
    step.parameters = parameters(model);
    for (const Gemm& gemm : step.gemms) {
        const std::int64_t bytes = gemm.weight_bytes * gemm.count();
        const double rows = gemm.experts ? gemm.experts->rows : static_cast<double>(gemm.m.value_or(0));
        step.flops +=
            2.0 * rows * static_cast<double>(gemm.n) * static_cast<double>(gemm.k) * static_cast<double>(gemm.count());
        if (gemm.experts) {
            step.expert_bytes += static_cast<double>(bytes) * gemm.experts->distinct;
            step.held_bytes += bytes * gemm.experts->local;
        } else {
            step.linear_bytes += bytes;
            step.held_bytes += bytes;
        }
    }
    const std::int64_t vocabulary = (model.vocabulary + 63) / 64 * 64;
    if (!model.tied) step.held_bytes += vocabulary / request.parallel.tensor * model.hidden * 2;
    if (is_absorbed(model, request)) step.held_bytes += kept_kv_b(model, request);
    if (request.parallel.pipeline > 1) step.stages = stage_layers(model.layers, request.parallel.pipeline);
}

bool within_bounds(const Model& model, const Step& step) {
    constexpr double most = 4e18;
    const Request& request = step.request;
    const auto real = [](std::int64_t value) { return static_cast<double>(value); };
    const double cache_layer =
        model.mla ? real(model.mla->kv_rank + model.mla->rope) * 4 + (model.indexer ? real(model.indexer->dim + 4) : 0)
                  : 8.0 * real(model.kv_heads) * real(model.head_dim);
    const double cache = real(model.layers) * cache_layer * real(request.context) * real(request.batch);
    const double rows = real(std::max(step.padded_tokens, request.batch));
    const double activations = 4.0 * rows * real(model.hidden) * real(model.layers + 1);
    const double spread =
        2.0 * rows * real(std::max<std::int64_t>(1, model.experts_per_token)) * real(model.hidden) * real(model.layers);
    const double logits = 2.0 * rows * real(model.vocabulary + 64);
    return std::max({cache, activations, spread, logits}) < most;
}

}   // namespace campaign::micro
