#include "instruments/micro/model.hpp"

#include <algorithm>
#include <array>
#include <system_error>

#include "base/files.hpp"
#include "base/text.hpp"

namespace campaign::micro {
namespace {

/// What a model_type's class decides, where the config file is silent.
struct Family {
    std::string_view type;
    std::optional<bool> qkv_bias = std::nullopt;   ///< absent: attention_bias decides
    bool o_bias = false;
    bool o_bias_by_config = false;   ///< attention_bias is the output projection's too
    QkNorm qk_norm = QkNorm::none;
    QkNorm qk_norm_if_used = QkNorm::none;   ///< where use_qk_norm is true
    std::int64_t norms_per_layer = 2;
    bool tied = false;             ///< where tie_word_embeddings is absent
    std::int64_t full_every = 0;   ///< sliding window: each n-th layer is full; 0: no such pattern
    bool all_slide = false;
    bool mla = false;
    bool indexer = false;
    bool routing_bias = false;
    bool gpt_oss = false;   ///< sinks, biases of experts and router, padded experts
    bool fp32_router = false;
};

// Sources: the model classes of transformers and vLLM (vllm/model_executor/models), by model_type.
constexpr std::array families{
    Family{.type = "llama", .o_bias_by_config = true},
    Family{.type = "mistral", .o_bias_by_config = true, .all_slide = true},
    Family{.type = "ministral3"},
    Family{.type = "granite", .o_bias_by_config = true},
    Family{.type = "mixtral"},
    Family{.type = "qwen2", .qkv_bias = true},
    Family{.type = "qwen3", .qk_norm = QkNorm::head},
    Family{.type = "qwen3_moe", .qk_norm = QkNorm::head},
    Family{.type = "qwen3_vl_moe_text", .qk_norm = QkNorm::head},
    Family{.type = "gemma2", .norms_per_layer = 4, .tied = true, .full_every = 2},
    Family{.type = "gemma3_text", .qk_norm = QkNorm::head, .norms_per_layer = 4, .tied = true, .full_every = 6},
    Family{.type = "gpt_oss", .o_bias = true, .gpt_oss = true},
    Family{.type = "glm4_moe", .qk_norm_if_used = QkNorm::head, .routing_bias = true},
    Family{.type = "minimax_m2", .qk_norm_if_used = QkNorm::layer, .fp32_router = true},
    Family{.type = "deepseek_v3", .mla = true, .routing_bias = true},
    Family{.type = "kimi_k2", .mla = true, .routing_bias = true},
    Family{.type = "glm_moe_dsa", .mla = true, .indexer = true, .routing_bias = true},
    Family{.type = "deepseek_v32", .mla = true, .indexer = true, .routing_bias = true},
};

/// More than this is no model; below it, sums of bytes stay within 64 bits.
constexpr double most_parameters = 1e15;

Error unsupported(std::string what) {
    return Error{.kind = ErrorKind::unavailable, .what = std::move(what), .why = {}, .evidence = {}, .next = {}};
}

/// The text part of a config, read member by member. The first thing that is wrong is kept; what is asked after it is 0.
class Fields {
public:
    explicit Fields(const json::value& object) : object_{object} {}

    [[nodiscard]] const std::optional<Error>& wrong() const { return wrong_; }
    void refuse(std::string what) {
        if (!wrong_) wrong_ = unsupported(std::move(what));
    }

    [[nodiscard]] const json::value* find(std::string_view key) const {
        const json::value* const found = member(object_, key);
        return found == nullptr || found->is_null() ? nullptr : found;
    }

    std::optional<std::int64_t> number(std::string_view key, std::int64_t low = 1, std::int64_t high = 1'000'000) {
        const json::value* const found = find(key);
        if (found == nullptr) return std::nullopt;
        if (found->is_int64() && found->as_int64() >= low && found->as_int64() <= high) return found->as_int64();
        refuse(std::string{key} + " = " + printable(json::serialize(*found), 40) + " is not a number between " +
               std::to_string(low) + " and " + std::to_string(high));
        return std::nullopt;
    }

    std::int64_t needed(std::string_view key, std::int64_t low = 1, std::int64_t high = 1'000'000) {
        const std::optional<std::int64_t> found = number(key, low, high);
        if (!found) refuse("config has no " + std::string{key});
        return found.value_or(0);
    }

    std::optional<bool> flag(std::string_view key) {
        const json::value* const found = find(key);
        if (found == nullptr) return std::nullopt;
        if (found->is_bool()) return found->as_bool();
        refuse(std::string{key} + " = " + printable(json::serialize(*found), 40) + " is neither true nor false");
        return std::nullopt;
    }

    const json::array* list(std::string_view key) {
        const json::value* const found = find(key);
        if (found == nullptr) return nullptr;
        if (found->is_array()) return &found->as_array();
        refuse(std::string{key} + " is not a list");
        return nullptr;
    }

private:
    const json::value& object_;
    std::optional<Error> wrong_;
};

void read_attention(Fields& fields, const Family& family, Model& model) {
    model.heads = fields.needed("num_attention_heads");
    model.kv_heads = fields.number("num_key_value_heads").value_or(model.heads);
    const std::optional<std::int64_t> head_dim = fields.number("head_dim");
    const bool even = model.heads > 0 && model.hidden % model.heads == 0;
    if (!head_dim && !family.mla && !even) fields.refuse("head_dim is absent and hidden_size is no multiple of the heads");
    model.head_dim = head_dim.value_or(model.heads > 0 ? model.hidden / model.heads : 0);
    const bool attention_bias = fields.flag("attention_bias").value_or(false);
    model.qkv_bias = family.qkv_bias.value_or(attention_bias);
    model.o_bias = family.o_bias || (family.o_bias_by_config && attention_bias);
    model.sinks = family.gpt_oss;
    model.norms_per_layer = family.norms_per_layer;
    model.qk_norm = fields.flag("use_qk_norm").value_or(false) && family.qk_norm_if_used != QkNorm::none
                        ? family.qk_norm_if_used
                        : family.qk_norm;
    const std::optional<std::int64_t> q_rank = fields.number("q_lora_rank");
    if (family.mla) {
        if (!q_rank) fields.refuse("latent attention without q_lora_rank is not modelled");
        model.mla = Mla{.q_rank = q_rank.value_or(0),
                        .kv_rank = fields.needed("kv_lora_rank"),
                        .nope = fields.needed("qk_nope_head_dim"),
                        .rope = fields.needed("qk_rope_head_dim"),
                        .v = fields.needed("v_head_dim")};
    }
    if (family.indexer)
        model.indexer = Indexer{.heads = fields.needed("index_n_heads"),
                                .dim = fields.needed("index_head_dim"),
                                .top = fields.needed("index_topk")};
}

/// Which layers slide: by the list of layer types, else by the class's pattern.
void read_windows(Fields& fields, const Family& family, Model& model) {
    const std::optional<std::int64_t> window = fields.number("sliding_window", 1, 100'000'000);
    const std::optional<std::int64_t> pattern = fields.number("sliding_window_pattern");
    const bool used = fields.flag("use_sliding_window").value_or(true);
    if (used) model.window = window;
    std::int64_t listed = 0;
    const json::array* const types = fields.list("layer_types");
    if (types != nullptr) {
        if (static_cast<std::int64_t>(types->size()) != model.layers)
            fields.refuse("layer_types has " + std::to_string(types->size()) + " entries for " +
                          std::to_string(model.layers) + " layers");
        for (const json::value& type : *types) {
            const std::string name = type.is_string() ? std::string{std::string_view{type.as_string()}} : "?";
            const bool known = name == "full_attention" || name == "sliding_attention";
            const bool state = name == "linear_attention" || name == "mamba" || name == "?";
            if (state || (!known && !family.mla))
                fields.refuse("layer_types holds '" + printable(name, 40) + "', which is not modelled");
            if (name == "sliding_attention") ++listed;
        }
    }
    if (!model.window) return;
    const bool is_listed = types != nullptr && !types->empty();
    const std::int64_t every = family.full_every > 0 ? pattern.value_or(family.full_every) : 0;
    if (is_listed) {
        model.sliding_layers = listed;
    } else if (every > 0) {
        model.sliding_layers = model.layers - model.layers / every;
    } else if (family.all_slide) {
        model.sliding_layers = model.layers;
    }
}

void read_experts(Fields& fields, const Family& family, Model& model) {
    const std::optional<std::int64_t> names[] = {fields.number("n_routed_experts"), fields.number("num_experts"),
                                                 fields.number("num_local_experts")};
    for (const std::optional<std::int64_t>& name : names) {
        if (model.experts == 0) model.experts = name.value_or(0);
    }
    const std::optional<std::int64_t> by_token[] = {fields.number("num_experts_per_tok"),
                                                    fields.number("experts_per_token")};
    const std::optional<std::int64_t> width = fields.number("intermediate_size");
    const std::optional<std::int64_t> expert_width = fields.number("moe_intermediate_size");
    const std::int64_t shared = fields.number("n_shared_experts", 0, 1000).value_or(0);
    const std::int64_t first = fields.number("first_k_dense_replace", 0, 10'000).value_or(0);
    const std::int64_t frequency = fields.number("moe_layer_freq").value_or(1);
    const std::int64_t step = fields.number("decoder_sparse_step").value_or(1);
    const bool use_routing_bias = fields.flag("use_routing_bias").value_or(false);
    if (fields.number("shared_intermediate_size", 0, 1'000'000).value_or(0) != 0)
        fields.refuse("shared_intermediate_size is not modelled");
    if (!width && !expert_width) fields.refuse("config has no intermediate_size");
    model.dense_width = width.value_or(0);
    model.expert_width = expert_width.value_or(model.dense_width);
    if (model.experts > 0) {
        model.experts_per_token = by_token[0].value_or(by_token[1].value_or(0));
        model.shared_experts = shared;
        if (model.experts_per_token < 1 || model.experts_per_token > model.experts)
            fields.refuse(std::to_string(model.experts) + " experts, but " + std::to_string(model.experts_per_token) +
                          " per token");
    }
    model.expert_bias = family.gpt_oss;
    model.router_bias = family.gpt_oss;
    model.padded_experts = family.gpt_oss;
    model.fp32_router = family.fp32_router;
    model.routing_bias = family.routing_bias || use_routing_bias || family.gpt_oss;
    std::vector<std::int64_t> only_dense;
    if (const json::array* const list = fields.list("mlp_only_layers"); list != nullptr) {
        for (const json::value& layer : *list) {
            if (!layer.is_int64())
                fields.refuse("mlp_only_layers holds something that is not a number");
            else
                only_dense.push_back(layer.as_int64());
        }
    }
    std::sort(only_dense.begin(), only_dense.end());
    for (std::int64_t layer = 0; layer < model.layers; ++layer) {
        const bool dense = std::binary_search(only_dense.begin(), only_dense.end(), layer);
        model.has_experts.push_back(model.experts > 0 && layer >= first && layer % frequency == 0 && !dense &&
                                    (layer + 1) % step == 0);
    }
    if (!width && model.expert_layers() < model.layers)
        fields.refuse("config has no intermediate_size for its dense layers");
}

/// About as many as parameters() will say, in real numbers: to refuse what would not fit into 64 bits.
double rough_parameters(const Model& model) {
    const auto real = [](std::int64_t value) { return static_cast<double>(value); };
    const double hidden = real(model.hidden);
    double attention = hidden * real(model.head_dim) * 2 * (real(model.heads) + real(model.kv_heads));
    if (model.mla) {
        const Mla& mla = *model.mla;
        attention = (hidden + real(model.heads) * real(mla.nope + mla.rope)) * real(mla.q_rank) +
                    (hidden + real(model.heads) * real(mla.nope + mla.v)) * real(mla.kv_rank + mla.rope) +
                    real(model.heads) * real(mla.v) * hidden;
    }
    if (model.indexer)
        attention += real(model.indexer->heads) * real(model.indexer->dim) * real(model.mla->q_rank) +
                     hidden * real(model.indexer->dim);
    const double experts = real(model.experts + model.shared_experts) * real(model.expert_width) + real(model.experts);
    return real(model.layers) * (attention + hidden * 3 * (experts + real(model.dense_width))) +
           2 * real(model.vocabulary) * hidden;
}

}   // namespace

std::int64_t Model::expert_layers() const {
    return std::count(has_experts.begin(), has_experts.end(), true);
}

Result<Model> read_model(const json::value& config) {
    if (!config.is_object()) return unsupported("config is not an object");
    const json::value* text = member(config, "text_config");
    if (text == nullptr || text->is_null()) text = &config;
    if (!text->is_object()) return unsupported("text_config is not an object");

    Model model;
    const std::optional<std::string> type = string_at(*text, "model_type");
    if (!type) return unsupported("model_type is absent");
    const auto* const family =
        std::find_if(families.begin(), families.end(), [&](const Family& f) { return f.type == *type; });
    if (family == families.end()) return unsupported("model_type '" + printable(*type, 60) + "' is not modelled");
    model.type = *type;

    const json::value* quantization = member(config, "quantization_config");
    const bool on_top = quantization != nullptr && !quantization->is_null() &&
                        !(quantization->is_object() && quantization->as_object().empty());
    if (!on_top) quantization = member(*text, "quantization_config");
    Result<Quantization> formats = Quantization::read(quantization != nullptr ? *quantization : json::value(nullptr));
    if (!formats) return formats.error();
    model.quantization = std::move(*formats);

    Fields fields{*text};
    model.hidden = fields.needed("hidden_size");
    model.layers = fields.needed("num_hidden_layers", 1, 10'000);
    model.vocabulary = fields.needed("vocab_size", 1, 100'000'000);
    Fields top{config};
    std::optional<bool> tied = top.flag("tie_word_embeddings");
    if (!tied) tied = fields.flag("tie_word_embeddings");
    model.tied = tied.value_or(family->tied);
    if (fields.wrong()) return *fields.wrong();
    if (top.wrong()) return *top.wrong();
    read_attention(fields, *family, model);
    read_windows(fields, *family, model);
    read_experts(fields, *family, model);
    if (fields.wrong()) return *fields.wrong();
    if (rough_parameters(model) > most_parameters) return unsupported("more than 1e15 parameters: no model is that large");
    return model;
}

Result<Model> load_model(const std::filesystem::path& path) {
    constexpr std::size_t most_bytes = std::size_t{8} << 20U;
    std::error_code ignored;
    const bool folder = std::filesystem::is_directory(path, ignored);
    const std::filesystem::path file = folder ? path / "config.json" : path;
    const Result<std::string> text = read_text(file, most_bytes);
    if (!text) return unsupported("cannot read the config: " + text.error().what);
    Result<json::value> config = parse_json(*text, file.filename().string());
    if (!config) return unsupported("cannot read the config: " + describe(config.error()));
    const std::filesystem::path beside = path / "hf_quant_config.json";
    const bool has_own = config->is_object() && config->as_object().contains("quantization_config");
    if (folder && config->is_object() && !has_own && std::filesystem::exists(beside, ignored)) {
        const Result<std::string> more = read_text(beside, most_bytes);
        if (!more) return unsupported("cannot read the config: " + more.error().what);
        const Result<json::value> parsed = parse_json(*more, "hf_quant_config.json");
        if (!parsed) return unsupported("cannot read the config: " + describe(parsed.error()));
        const json::value* const inner = member(*parsed, "quantization");
        if (inner == nullptr || !inner->is_object()) return unsupported("hf_quant_config.json has no object 'quantization'");
        json::object quantization = inner->as_object();
        quantization["quant_method"] = "modelopt";
        config->as_object()["quantization_config"] = std::move(quantization);
    }
    return read_model(*config);
}

Parameters parameters(const Model& m) {
    Parameters out;
    std::int64_t attention = 0;
    if (m.mla) {
        const Mla& a = *m.mla;
        attention = m.hidden * a.q_rank + a.q_rank + a.q_rank * m.heads * (a.nope + a.rope) +
                    m.hidden * (a.kv_rank + a.rope) + a.kv_rank + a.kv_rank * m.heads * (a.nope + a.v) +
                    m.heads * a.v * m.hidden;
    } else {
        const std::int64_t q = m.heads * m.head_dim;
        const std::int64_t kv = m.kv_heads * m.head_dim;
        attention = m.hidden * (q + 2 * kv) + q * m.hidden + (m.qkv_bias ? q + 2 * kv : 0) + (m.o_bias ? m.hidden : 0);
        if (m.qk_norm == QkNorm::head) attention += 2 * m.head_dim;
        if (m.qk_norm == QkNorm::layer) attention += q + kv;
        if (m.sinks) attention += m.heads;
    }
    if (m.indexer)
        attention += m.mla->q_rank * m.indexer->heads * m.indexer->dim + m.hidden * m.indexer->dim + 2 * m.indexer->dim +
                     m.hidden * m.indexer->heads;
    const std::int64_t with_experts = m.expert_layers();
    const std::int64_t dense = m.layers - with_experts;
    const std::int64_t one_expert = 3 * m.hidden * m.expert_width + (m.expert_bias ? 2 * m.expert_width + m.hidden : 0);
    out.embedding = m.vocabulary * m.hidden;
    out.lm_head = m.tied ? 0 : out.embedding;
    out.attention = attention * m.layers;
    out.norms = m.norms_per_layer * m.hidden * m.layers + m.hidden;
    out.dense_mlp = dense * 3 * m.hidden * m.dense_width;
    out.router = with_experts * (m.hidden * m.experts + (m.routing_bias ? m.experts : 0));
    out.shared_experts = with_experts * 3 * m.hidden * m.expert_width * m.shared_experts;
    out.routed_experts = with_experts * m.experts * one_expert;
    out.total = out.embedding + out.lm_head + out.attention + out.norms + out.dense_mlp + out.router + out.shared_experts +
                out.routed_experts;
    out.active = out.total - out.routed_experts + with_experts * m.experts_per_token * one_expert;
    // A tied embedding is the head too: it is read.
    out.active_without_input_embedding = out.active - (m.tied ? 0 : out.embedding);
    out.active_without_embedding_and_head = out.active - out.embedding - out.lm_head;
    return out;
}

}   // namespace campaign::micro
