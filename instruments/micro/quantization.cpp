#include "instruments/micro/quantization.hpp"

#include <fnmatch.h>

#include <regex>

#include "base/text.hpp"

namespace campaign::micro {
namespace {

constexpr std::size_t most_patterns = 10'000;
constexpr std::size_t longest_pattern = 1'000;

Error unsupported(std::string what) {
    return Error{.kind = ErrorKind::unavailable, .what = std::move(what), .why = {}, .evidence = {}, .next = {}};
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

bool is_router(std::string_view module) {
    return module.ends_with("mlp.gate") || module.ends_with("mlp.router");
}

const json::value* given(const json::value& object, std::string_view key) {
    const json::value* const found = member(object, key);
    return found == nullptr || found->is_null() ? nullptr : found;
}

bool is_block_128(const json::value& size) {
    return size.is_array() && size.as_array().size() == 2 && size.as_array()[0] == fp8_block_edge &&
           size.as_array()[1] == fp8_block_edge;
}

}   // namespace

std::string_view to_string(Format format) {
    switch (format) {
        case Format::bf16: return "bf16";
        case Format::fp32: return "fp32";
        case Format::fp8_block: return "fp8_block";
        case Format::fp8_tensor: return "fp8_tensor";
        case Format::int4_group: return "int4_group";
        case Format::mxfp4: return "mxfp4";
        case Format::nvfp4: return "nvfp4";
    }
    return "unknown";
}

std::int64_t weight_bytes(Format format, std::int64_t n, std::int64_t k, std::optional<std::int64_t> group, bool bias) {
    std::int64_t bytes = bias ? n * 2 : 0;
    switch (format) {
        case Format::bf16: return bytes + n * k * 2;
        case Format::fp32: return bytes + n * k * 4;
        case Format::fp8_tensor: return bytes + n * k;
        case Format::fp8_block: return bytes + n * k + ceil_div(n, fp8_block_edge) * ceil_div(k, fp8_block_edge) * 4;
        case Format::int4_group: return bytes + ceil_div(n * k, 2) + n * ceil_div(k, group.value_or(k)) * 2;
        case Format::mxfp4: return bytes + ceil_div(n * k, 2) + n * ceil_div(k, 32);
        case Format::nvfp4: return bytes + ceil_div(n * k, 2) + n * ceil_div(k, 16);
    }
    return bytes;
}

/// One entry of an ignore list: `re:` a regular expression matched from the name's start, else a glob, else the name of a
/// module or of what holds it.
struct Quantization::Pattern {
    std::string text;
    bool is_glob = false;
    std::optional<std::regex> expression;

    [[nodiscard]] bool covers(const std::string& full, const std::string& module) const {
        if (expression) return std::regex_search(full, *expression, std::regex_constants::match_continuous);
        if (is_glob)
            return ::fnmatch(text.c_str(), full.c_str(), FNM_NOESCAPE) == 0 ||
                   ::fnmatch(text.c_str(), module.c_str(), FNM_NOESCAPE) == 0;
        return full == text || module == text || (full.starts_with(text) && full[text.size()] == '.');
    }
};

Quantization::Quantization() = default;
Quantization::Quantization(Quantization&&) noexcept = default;
Quantization& Quantization::operator=(Quantization&&) noexcept = default;
Quantization::~Quantization() = default;

Result<void> Quantization::ignore(const json::value* list) {
    if (list == nullptr) return {};
    if (!list->is_array() || list->as_array().size() > most_patterns)
        return unsupported("the list of modules left unquantised is no list of at most 10000 names");
    for (const json::value& entry : list->as_array()) {
        if (!entry.is_string() || entry.as_string().size() > longest_pattern)
            return unsupported("the list of modules left unquantised holds something that is not a name");
        Pattern pattern;
        pattern.text = std::string{std::string_view{entry.as_string()}};
        pattern.is_glob = pattern.text.find_first_of("*?[") != std::string::npos;
        if (pattern.text.starts_with("re:")) {
            try {
                // The polynomial matcher: a pattern of a stranger must not take exponential time.
                pattern.expression.emplace(pattern.text.substr(3), std::regex::ECMAScript | std::regex::optimize |
                                                                       std::regex_constants::__polynomial);
            } catch (const std::regex_error& bad) {
                return unsupported("bad pattern in the list of modules left unquantised: " + printable(pattern.text, 100));
            }
        }
        ignored_.push_back(std::move(pattern));
    }
    return {};
}

Result<void> Quantization::read_compressed_tensors(const json::value& config) {
    const json::value* const groups = given(config, "config_groups");
    if (groups == nullptr || !groups->is_object()) return unsupported("compressed-tensors without config_groups");
    if (groups->as_object().size() != 1)
        return unsupported("compressed-tensors with " + std::to_string(groups->as_object().size()) + " config groups");
    const json::value& group = groups->as_object().begin()->value();
    const json::value* const weights = given(group, "weights");
    if (weights == nullptr) return unsupported("compressed-tensors whose group says nothing of its weights");
    const std::string type = string_at(*weights, "type").value_or("?");
    const std::string strategy = string_at(*weights, "strategy").value_or("?");
    const std::int64_t bits = int_at(*weights, "num_bits").value_or(0);
    if (bits != 4 || type != "int" || strategy != "group")
        return unsupported("compressed-tensors " + printable(type, 40) + std::to_string(bits) + "/" +
                           printable(strategy, 40));
    group_ = int_at(*weights, "group_size");
    if (!group_ || *group_ < 1 || *group_ > 1'000'000)
        return unsupported("compressed-tensors without a group_size between 1 and 1000000");
    format_ = Format::int4_group;
    return ignore(given(config, "ignore"));
}

Result<Quantization> Quantization::read(const json::value& config) {
    Quantization out;
    if (config.is_null() || (config.is_object() && config.as_object().empty())) return out;
    if (!config.is_object()) return unsupported("quantization_config is not an object");
    const std::string method = string_at(config, "quant_method").value_or("");
    out.fp8_kv_cache_ = string_at(config, "kv_cache_quant_algo") == "FP8";
    Result<void> done;
    if (method == "fp8") {
        const json::value* const block = given(config, "weight_block_size");
        if (block != nullptr && !is_block_128(*block))
            return unsupported("fp8 weight_block_size " + printable(json::serialize(*block), 60));
        out.format_ = block != nullptr ? Format::fp8_block : Format::fp8_tensor;
        const json::value* list = given(config, "modules_to_not_convert");
        const bool empty = list != nullptr && list->is_array() && list->as_array().empty();
        if (list == nullptr || empty) list = given(config, "ignored_layers");
        done = out.ignore(list);
    } else if (method == "compressed-tensors") {
        done = out.read_compressed_tensors(config);
    } else if (method == "mxfp4") {
        out.format_ = Format::mxfp4;
        out.only_experts_ = true;
        done = out.ignore(given(config, "modules_to_not_convert"));
    } else if (method == "modelopt") {
        const std::string algorithm = string_at(config, "quant_algo").value_or("");
        if (algorithm != "FP8" && algorithm != "NVFP4")
            return unsupported("modelopt quant_algo '" + printable(algorithm, 40) + "' is not modelled");
        out.format_ = algorithm == "FP8" ? Format::fp8_tensor : Format::nvfp4;
        done = out.ignore(given(config, "exclude_modules"));
    } else {
        return unsupported("quantization method '" + printable(method, 40) + "' is not modelled");
    }
    if (!done) return done.error();
    return out;
}

Format Quantization::format_of(std::string_view name) const {
    if (format_ == Format::bf16 || name == "lm_head" || name == "embed_tokens" || is_router(name)) return Format::bf16;
    const std::string module{name};
    if (only_experts_) return module.find(".experts") != std::string::npos ? format_ : Format::bf16;
    const std::string full = "model." + module;
    for (const Pattern& pattern : ignored_) {
        if (pattern.covers(full, module)) return Format::bf16;
    }
    return format_;
}

}   // namespace campaign::micro
