#include "instruments/micro/step.hpp"

namespace campaign::micro {
namespace {

template <class T>
json::value or_null(const std::optional<T>& value) {
    return value ? json::value(*value) : json::value(nullptr);
}

json::object gemm_json(const Gemm& gemm) {
    json::object out;
    out["name"] = gemm.name;
    out["kind"] = to_string(gemm.kind);
    out["shard"] = gemm.shard;
    out["layers"] = gemm.layers;
    out["per_layer"] = gemm.per_layer;
    out["count"] = gemm.count();
    out["M"] = or_null(gemm.m);
    out["N"] = gemm.n;
    out["K"] = gemm.k;
    out["weights"] = to_string(gemm.format);
    out["weight_bytes_each"] = gemm.weight_bytes;
    if (gemm.group) out["group"] = *gemm.group;
    if (gemm.heads) out["batch"] = *gemm.heads;
    if (gemm.experts) {
        const Experts& experts = *gemm.experts;
        out["experts_local"] = experts.local;
        out["top_k"] = experts.top_k;
        out["expected_rows"] = experts.rows;
        out["expected_distinct"] = experts.distinct;
        out["expected_rows_per_hit_expert"] = experts.rows / experts.distinct;
        out["distinct_low"] = experts.distinct_low;
        out["distinct_high"] = experts.distinct_high;
    }
    return out;
}

json::object collective_json(const Collective& collective) {
    json::object out;
    out["op"] = collective.op;
    out["where"] = collective.where;
    out["count"] = collective.count;
    out[collective.upper_bound ? "bytes_upper" : "bytes"] = collective.bytes;
    if (collective.ranks > 0) out["ranks"] = collective.ranks;
    if (!collective.note.empty()) out["note"] = collective.note;
    return out;
}

json::object all_reduce_json(const Step& step) {
    std::int64_t layers = 0;
    std::int64_t count = 0;
    std::int64_t bytes = 0;
    for (const Collective& collective : step.collectives) {
        if (collective.op != "all_reduce") continue;
        count += collective.count;
        bytes += collective.count * collective.bytes;
        if (collective.where == "attention" || collective.where == "mlp") layers += collective.count;
    }
    json::object out;
    out["layer_count"] = layers;
    out["count"] = count;
    out["message_bytes"] = 0;
    for (const Collective& collective : step.collectives) {
        if (collective.where == "embedding") out["message_bytes"] = collective.bytes;
    }
    out["bytes_total"] = bytes;
    return out;
}

json::object attention_json(const Attention& attention) {
    const bool latent = attention.kind != "gqa";
    json::object out;
    out["kind"] = attention.kind;
    if (latent) out["absorbed"] = attention.absorbed;
    out["q_heads"] = attention.q_heads;
    out["kv_heads"] = attention.kv_heads;
    out["qk_dim"] = attention.qk_dim;
    out["v_dim"] = attention.v_dim;
    if (latent) {
        out["topk"] = or_null(attention.top);
    } else {
        out["sliding_layers"] = attention.sliding_layers;
        out["window"] = or_null(attention.window);
    }
    return out;
}

json::object cache_json(const Cache& cache) {
    json::object out;
    out["bytes_per_token_layer"] = cache.bytes_per_token_layer;
    out["bytes_per_token"] = cache.bytes_per_token;
    out["full_layers"] = cache.full_layers;
    out["sliding_layers"] = cache.sliding_layers;
    out["window"] = or_null(cache.window);
    out["replicated"] = cache.replicated;
    out["read_bytes_per_step"] = cache.read_bytes;
    return out;
}

json::object parameters_json(const Parameters& parameters) {
    json::object out;
    out["embedding"] = parameters.embedding;
    out["lm_head"] = parameters.lm_head;
    out["attention"] = parameters.attention;
    out["norms"] = parameters.norms;
    out["dense_mlp"] = parameters.dense_mlp;
    out["router"] = parameters.router;
    out["shared_experts"] = parameters.shared_experts;
    out["routed_experts"] = parameters.routed_experts;
    out["total"] = parameters.total;
    out["active"] = parameters.active;
    out["active_without_input_embedding"] = parameters.active_without_input_embedding;
    out["active_without_embedding_and_head"] = parameters.active_without_embedding_and_head;
    return out;
}

json::object floor_json(const Step& step, double bandwidth_gb_s) {
    json::object out;
    out["weights"] = step.floor_us(bandwidth_gb_s, false);
    out["weights_and_kv"] = step.floor_us(bandwidth_gb_s, true);
    return out;
}

json::object gpu_json(const Step& step, const Gpu& gpu) {
    json::object out;
    out["name"] = gpu.name;
    out["bandwidth_gb_s"] = gpu.bandwidth_gb_s;
    out["memory_bytes"] = gpu.memory_bytes;
    out["l2_bytes"] = gpu.l2_bytes;
    out["source"] = gpu.source;
    out["weights_fit"] = step.held_bytes <= gpu.memory_bytes;
    if (step.request.phase == Phase::decode) {
        const double floor = step.floor_us(gpu.bandwidth_gb_s, true);
        out["floor_us"] = floor_json(step, gpu.bandwidth_gb_s);
        // With drafts a step gives between one token and all of them.
        out["best_tpot_us"] = floor / static_cast<double>(1 + step.request.draft);
    }
    return out;
}

}   // namespace

json::object to_json(const Step& step, std::string_view name, const std::optional<Gpu>& gpu) {
    const Request& request = step.request;
    const bool decode = request.phase == Phase::decode;
    json::object out;
    out["schema"] = "campaign.micro-shapes/1";
    out["model"] = name;
    out["model_type"] = step.model_type;
    out["phase"] = decode ? "decode" : "prefill";
    out["tp"] = request.parallel.tensor;
    out["dp"] = request.parallel.data;
    out["pp"] = request.parallel.pipeline;
    out["ep"] = step.expert_ranks;
    out["batch"] = request.batch;
    out["draft"] = request.draft;
    out["tokens"] = step.tokens;
    out["padded_tokens"] = step.padded_tokens;
    out["context"] = request.context;
    out["layers"] = step.layers;
    out["moe_layers"] = step.expert_layers;
    json::array gemms;
    for (const Gemm& gemm : step.gemms) gemms.emplace_back(gemm_json(gemm));
    out["gemms"] = std::move(gemms);
    json::array collectives;
    for (const Collective& collective : step.collectives) collectives.emplace_back(collective_json(collective));
    out["comms"] = std::move(collectives);
    out["all_reduce"] = all_reduce_json(step);
    out["attention"] = attention_json(step.attention);
    out["kv"] = cache_json(step.cache);
    out["params"] = parameters_json(step.parameters);
    json::object weights;
    weights["linear_bytes"] = step.linear_bytes;
    weights["expert_bytes_expected"] = step.expert_bytes;
    weights["read_bytes"] = step.read_bytes();
    weights["held_bytes"] = step.held_bytes;
    out["weights"] = std::move(weights);
    out["flops"] = step.flops;
    json::object floors;   // at three usual bandwidths: GDDR7, H100, H200
    if (decode) {
        for (const auto& [label, bandwidth] : {std::pair{"1792", 1792.0}, {"3350", 3350.0}, {"4800", 4800.0}})
            floors[label] = floor_json(step, bandwidth);
    }
    out["floor_us"] = std::move(floors);
    if (gpu) out["gpu"] = gpu_json(step, *gpu);
    if (!step.stages.empty()) out["stages"] = json::value_from(step.stages);
    out["notes"] = json::value_from(step.notes);
    return out;
}

json::object refusal_json(const Error& error, std::string_view name) {
    json::object out;
    out["model"] = name;
    out["refused"] = error.kind == ErrorKind::refused ? "refused" : "unsupported";
    out["reason"] = error.what;
    return out;
}

}   // namespace campaign::micro
