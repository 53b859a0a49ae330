#include "instruments/micro/step.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "instruments/micro/step_sums.hpp"

namespace campaign::micro {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

std::string text(std::int64_t number) {
    return std::to_string(number);
}

/// Builds the operations of a step. The first reason against it is kept; what is added after it does no harm.
class Builder {
public:
    Builder(const Model& model, const Request& request) : model_{model}, request_{request} {}

    Result<Step> build() {
        const bool drafts = request_.phase == Phase::decode;
        step_.request = request_;
        step_.model_type = model_.type;
        step_.layers = model_.layers;
        step_.expert_layers = model_.expert_layers();
        step_.tokens = drafts ? request_.batch * (1 + request_.draft) : request_.tokens;
        step_.padded_tokens = drafts ? padded_rows(step_.tokens) : step_.tokens;
        if (parallel().expert && model_.experts > 0) step_.expert_ranks = parallel().tensor * parallel().data;
        check();
        if (wrong_) return *wrong_;
        if (!within_bounds(model_, step_))
            return Error{.kind = ErrorKind::unavailable,
                         .what = "a step of more than 4e18 bytes: no server runs one",
                         .why = {},
                         .evidence = {},
                         .next = {}};
        for (std::int64_t layer = 0; layer < model_.layers; ++layer) {
            all_.push_back(layer);
            (model_.has_experts[static_cast<std::size_t>(layer)] ? sparse_ : dense_).push_back(layer);
        }
        attention();
        dense_mlp();
        experts();
        head();
        if (wrong_) return *wrong_;
        collectives();
        add_sums(model_, step_);
        if (model_.padded_experts)
            step_.notes.emplace_back("mxfp4 back-ends pad N and K of the experts (64, 128 or 256); logical sizes are given");
        if (wrong_) return *wrong_;
        return std::move(step_);
    }

private:
    [[nodiscard]] const Parallel& parallel() const { return request_.parallel; }
    [[nodiscard]] std::int64_t tensor() const { return parallel().tensor; }
    [[nodiscard]] bool whole_experts() const { return step_.expert_ranks > 1; }

    void refuse(std::string why) {
        if (!wrong_)
            wrong_ = Error{.kind = ErrorKind::refused, .what = std::move(why), .why = {}, .evidence = {}, .next = {}};
    }

    /// What the server itself refuses.
    void check() {
        const std::int64_t t = tensor();
        if (model_.heads % t != 0) refuse(text(model_.heads) + " attention heads are not divisible by tp " + text(t));
        const bool kv_fits = model_.kv_heads >= t ? model_.kv_heads % t == 0 : t % model_.kv_heads == 0;
        if (!model_.mla && !kv_fits)
            refuse(text(model_.kv_heads) + " KV heads and tp " + text(t) + ": neither divides the other");
        if (model_.experts > 0 && !whole_experts() && model_.expert_width % t != 0)
            refuse("expert intermediate size " + text(model_.expert_width) + " is not divisible by tp " + text(t));
        if (whole_experts() && model_.experts % step_.expert_ranks != 0)
            step_.notes.push_back("experts " + text(model_.experts) + " % ep " + text(step_.expert_ranks) +
                                  " != 0: ranks hold unequal numbers; the largest share is used");
        if (step_.expert_layers < model_.layers && model_.dense_width % t != 0)
            refuse("intermediate size " + text(model_.dense_width) + " is not divisible by tp " + text(t));
        if (parallel().pipeline > model_.layers)
            refuse(text(model_.layers) + " layers cannot be split over " + text(parallel().pipeline) + " pipeline stages");
    }

    void check_expert_shard(Format format, std::int64_t width) {
        if (format == Format::fp8_block && width % fp8_block_edge != 0)
            refuse("fp8 block 128 does not divide the expert shard " + text(model_.expert_width) + "/" + text(tensor()) +
                   " = " + text(width) + ": use expert parallelism or a smaller tp");
        const std::int64_t group = model_.quantization.group().value_or(1);
        if (format == Format::int4_group && width % group != 0)
            refuse("int4 group " + text(group) + " does not divide the expert shard " + text(width));
    }

    Gemm& add(Gemm gemm, bool bias = false) {
        const bool cut = gemm.format == Format::fp8_block && tensor() > 1 && gemm.kind == Kind::linear &&
                         ((gemm.shard == "column" && gemm.n % fp8_block_edge != 0) ||
                          (gemm.shard == "row" && gemm.k % fp8_block_edge != 0));
        if (cut)
            refuse("fp8 block 128 does not divide the shard of " + gemm.name + " (N=" + text(gemm.n) + " K=" + text(gemm.k) +
                   ")");
        if (gemm.format == Format::int4_group) gemm.group = model_.quantization.group();
        gemm.weight_bytes = weight_bytes(gemm.format, gemm.n, gemm.k, gemm.group, bias);
        return step_.gemms.emplace_back(std::move(gemm));
    }

    /// One GEMM a format in which the module's weights lie: layers may differ.
    void linear(const std::string& name, std::string_view module, const std::vector<std::int64_t>& layers, std::int64_t n,
                std::int64_t k, std::string_view shard, bool bias = false) {
        std::vector<std::pair<Format, std::int64_t>> formats;
        for (const std::int64_t layer : layers) {
            const Format format = model_.quantization.format_of("layers." + text(layer) + "." + std::string{module});
            const auto known =
                std::find_if(formats.begin(), formats.end(), [&](const auto& f) { return f.first == format; });
            if (known != formats.end())
                ++known->second;
            else
                formats.emplace_back(format, 1);
        }
        std::stable_sort(formats.begin(), formats.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
        for (const auto& [format, count] : formats) {
            Gemm gemm;
            gemm.name = name;
            gemm.shard = shard;
            gemm.layers = count;
            gemm.m = step_.padded_tokens;
            gemm.n = n;
            gemm.k = k;
            gemm.format = format;
            add(std::move(gemm), bias);
        }
    }

    void absorbed(const char* name, std::int64_t heads, std::int64_t n, std::int64_t k) {
        Gemm gemm;
        gemm.name = name;
        gemm.kind = Kind::bmm;
        gemm.shard = "heads";
        gemm.layers = model_.layers;
        gemm.per_layer = heads;
        gemm.m = step_.padded_tokens;
        gemm.n = n;
        gemm.k = k;
        gemm.heads = heads;
        add(std::move(gemm));
    }

    void attention() {
        const std::int64_t heads = model_.heads / tensor();
        if (model_.mla) {
            latent_attention(heads);
            return;
        }
        const std::int64_t q = heads * model_.head_dim;
        const std::int64_t kv = std::max<std::int64_t>(1, model_.kv_heads / tensor()) * model_.head_dim;
        linear("qkv", "self_attn.q_proj", all_, q + 2 * kv, model_.hidden, "column", model_.qkv_bias);
        linear("o", "self_attn.o_proj", all_, model_.hidden, q, "row", model_.o_bias);
    }

    void latent_attention(std::int64_t heads) {
        const Mla& a = *model_.mla;
        linear("fused_qkv_a", "self_attn.q_a_proj", all_, a.q_rank + a.kv_rank + a.rope, model_.hidden, "replicated");
        linear("q_b", "self_attn.q_b_proj", all_, heads * (a.nope + a.rope), a.q_rank, "column");
        if (model_.indexer) {
            const Indexer& indexer = *model_.indexer;
            linear("indexer_wq_b", "self_attn.indexer.wq_b", all_, indexer.heads * indexer.dim, a.q_rank, "replicated");
            Gemm gemm;
            gemm.name = "indexer_wk_weights";
            gemm.shard = "replicated";
            gemm.layers = model_.layers;
            gemm.m = step_.padded_tokens;
            gemm.n = indexer.dim + indexer.heads;
            gemm.k = model_.hidden;
            add(std::move(gemm));
        }
        if (is_absorbed(model_, request_)) {
            absorbed("mla_absorb_uk", heads, a.kv_rank, a.nope);
            absorbed("mla_absorb_uv", heads, a.v, a.kv_rank);
        } else {
            linear("kv_b", "self_attn.kv_b_proj", all_, heads * (a.nope + a.v), a.kv_rank, "column");
        }
        linear("o", "self_attn.o_proj", all_, model_.hidden, heads * a.v, "row");
    }

    void dense_mlp() {
        if (dense_.empty()) return;
        linear("gate_up", "mlp.gate_proj", dense_, 2 * model_.dense_width / tensor(), model_.hidden, "column");
        linear("down", "mlp.down_proj", dense_, model_.hidden, model_.dense_width / tensor(), "row");
    }

    void experts() {
        if (sparse_.empty()) return;
        const std::int64_t layers = step_.expert_layers;
        Gemm router;
        router.name = "router";
        router.shard = "replicated";
        router.layers = layers;
        router.m = step_.padded_tokens;
        router.n = model_.experts;
        router.k = model_.hidden;
        router.format = model_.fp32_router ? Format::fp32 : Format::bf16;
        add(std::move(router), model_.router_bias);
        if (model_.shared_experts > 0) {
            const std::int64_t width = model_.expert_width * model_.shared_experts;
            linear("shared_gate_up", "mlp.shared_experts.gate_proj", sparse_, 2 * width / tensor(), model_.hidden, "column");
            linear("shared_down", "mlp.shared_experts.down_proj", sparse_, model_.hidden, width / tensor(), "row");
        }
        const std::int64_t width = whole_experts() ? model_.expert_width : model_.expert_width / tensor();
        const Format format = model_.quantization.format_of("layers." + text(sparse_.front()) + ".mlp.experts.0.up_proj");
        if (tensor() > 1 && !whole_experts()) check_expert_shard(format, width);
        const Experts shape = expert_load();
        for (const bool first : {true, false}) {
            Gemm gemm;
            gemm.name = first ? "experts_w13" : "experts_w2";
            gemm.kind = Kind::grouped;
            gemm.shard = whole_experts() ? "experts" : "inner";
            gemm.layers = layers;
            gemm.n = first ? 2 * width : model_.hidden;
            gemm.k = first ? model_.hidden : width;
            gemm.format = format;
            gemm.experts = shape;
            add(std::move(gemm), model_.expert_bias);
        }
    }

    [[nodiscard]] Experts expert_load() const {
        const std::int64_t tokens = step_.tokens * parallel().data;   // all data-parallel ranks' tokens meet in the experts
        const auto all = static_cast<double>(model_.experts);
        Experts out;
        out.local = ceil_div(model_.experts, step_.expert_ranks);
        out.top_k = model_.experts_per_token;
        const auto local = static_cast<double>(out.local);
        out.distinct = expected_distinct(model_.experts, out.top_k, tokens) * local / all;
        out.rows = static_cast<double>(tokens) * static_cast<double>(out.top_k) * local / all;
        out.distinct_low = whole_experts() ? std::max<std::int64_t>(0, out.top_k - (model_.experts - out.local)) : out.top_k;
        out.distinct_high = tokens > out.local / out.top_k ? out.local : tokens * out.top_k;
        return out;
    }

    void head() {
        padded_vocabulary_ = ceil_div(model_.vocabulary, 64) * 64;
        if (padded_vocabulary_ % tensor() != 0)
            refuse("padded vocabulary " + text(padded_vocabulary_) + " is not divisible by tp " + text(tensor()));
        Gemm gemm;
        gemm.name = "lm_head";
        gemm.shard = "column";
        gemm.layers = 1;
        gemm.m = request_.batch;   // one row a sequence: only the last token's logits are wanted
        gemm.n = padded_vocabulary_ / tensor();
        gemm.k = model_.hidden;
        add(std::move(gemm));
    }

    /// Activations are bf16.
    void collectives() {
        const std::int64_t activations = step_.padded_tokens * model_.hidden * 2;
        const std::int64_t layers = model_.layers;
        const bool spread = parallel().data > 1 && whole_experts();
        std::vector<Collective>& out = step_.collectives;
        if (tensor() > 1) {
            out.push_back({.op = "all_reduce", .where = "embedding", .count = 1, .bytes = activations});
            out.push_back({.op = "all_reduce", .where = "attention", .count = layers, .bytes = activations});
            if (model_.qk_norm == QkNorm::layer)   // the variance of q and of k, fp32
                out.push_back(
                    {.op = "all_reduce", .where = "qk_norm_variance", .count = layers, .bytes = step_.padded_tokens * 8});
            const std::int64_t reduced = spread ? layers - step_.expert_layers : layers;
            if (reduced > 0) out.push_back({.op = "all_reduce", .where = "mlp", .count = reduced, .bytes = activations});
            out.push_back({.op = "gather",
                           .where = "logits",
                           .count = 1,
                           .bytes = request_.batch * padded_vocabulary_ / tensor() * 2});
        }
        if (spread && step_.expert_layers > 0) {
            const std::int64_t bytes = step_.tokens * model_.experts_per_token * model_.hidden * 2;
            for (const std::string_view op : {"dispatch", "combine"})
                out.push_back({.op = op,
                               .where = "experts",
                               .count = step_.expert_layers,
                               .bytes = bytes,
                               .upper_bound = true,
                               .ranks = step_.expert_ranks});
            step_.notes.emplace_back(
                "dispatch/combine: upper bound, k copies of each token in bf16; the all-to-all backend decides what is "
                "really sent");
        }
        if (parallel().pipeline > 1) {   // hidden states and residual
            out.push_back({.op = "send_recv",
                           .where = "pipeline",
                           .count = parallel().pipeline - 1,
                           .bytes = 2 * activations / tensor(),
                           .note = "hidden_states and residual; sliced by tp and all-gathered on arrival"});
        }
    }

    const Model& model_;
    const Request& request_;
    Step step_;
    std::optional<Error> wrong_;
    std::vector<std::int64_t> all_, dense_, sparse_;
    std::int64_t padded_vocabulary_ = 0;
};

std::optional<std::string> beyond_belief(const Request& request) {
    struct Limit {
        std::string_view name;
        std::int64_t value, low, high;
    };
    const bool prefill = request.phase == Phase::prefill;
    const std::array limits{Limit{"tp", request.parallel.tensor, 1, 1024},
                            Limit{"dp", request.parallel.data, 1, 1024},
                            Limit{"pp", request.parallel.pipeline, 1, 1024},
                            Limit{"batch", request.batch, 1, 65536},
                            Limit{"draft", request.draft, 0, 64},
                            Limit{"context", request.context, 1, 100'000'000},
                            Limit{"tokens", request.tokens, prefill ? 1 : 0, 10'000'000},
                            Limit{"kv-bytes", request.kv_bytes.value_or(2), 1, 4}};
    for (const Limit& limit : limits) {
        if (limit.value < limit.low || limit.value > limit.high)
            return std::string{limit.name} + " " + text(limit.value) + " is not between " + text(limit.low) + " and " +
                   text(limit.high);
    }
    return std::nullopt;
}

}   // namespace

std::string_view to_string(Kind kind) {
    switch (kind) {
        case Kind::linear: return "linear";
        case Kind::bmm: return "bmm";
        case Kind::grouped: return "grouped";
    }
    return "unknown";
}

double Step::floor_us(double bandwidth_gb_s, bool with_cache) const {
    const double bytes = read_bytes() + (with_cache ? static_cast<double>(cache.read_bytes) : 0.0);
    return bytes / (bandwidth_gb_s * 1e3);
}

std::int64_t padded_rows(std::int64_t tokens) {
    // vLLM's default cudagraph_capture_sizes: 1, 2, 4, by 8 to 256, by 16 to 512.
    if (tokens <= 2 || tokens > 512) return tokens;
    if (tokens <= 4) return 4;
    return tokens <= 256 ? ceil_div(tokens, 8) * 8 : ceil_div(tokens, 16) * 16;
}

std::vector<std::int64_t> stage_layers(std::int64_t layers, std::int64_t stages) {
    std::vector<std::int64_t> out(static_cast<std::size_t>(stages), layers / stages);
    for (std::int64_t i = 0; i < layers % stages; ++i) ++out[static_cast<std::size_t>(stages - 2 - i)];
    return out;
}

double expected_distinct(std::int64_t experts, std::int64_t per_token, std::int64_t tokens) {
    if (experts <= 0) return 0;
    const auto all = static_cast<double>(experts);
    return all * (1.0 - std::pow(1.0 - static_cast<double>(per_token) / all, static_cast<double>(tokens)));
}

Result<Step> derive(const Model& model, const Request& request) {
    if (const std::optional<std::string> why = beyond_belief(request))
        return Error{.kind = ErrorKind::refused, .what = *why, .why = {}, .evidence = {}, .next = {}};
    return Builder{model, request}.build();
}

}   // namespace campaign::micro
