#pragma once
// In which format a module's weights lie: from a config's quantization_config, module by module.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"

namespace campaign::micro {

enum class Format { bf16, fp32, fp8_block, fp8_tensor, int4_group, mxfp4, nvfp4 };
[[nodiscard]] std::string_view to_string(Format format);

/// Edge of the square of weights that share a scale in fp8_block (DeepSeek-V3's layout).
inline constexpr std::int64_t fp8_block_edge = 128;

/// Bytes of one [n, k] weight: the elements, rounded up to whole bytes; the scales (fp8_block: 4 bytes a block of 128 x 128;
/// int4_group: 2 bytes a group of `group` along k; mxfp4: 1 a group of 32; nvfp4: 1 a group of 16); with `bias`, n x 2 more.
[[nodiscard]] std::int64_t weight_bytes(Format format, std::int64_t n, std::int64_t k, std::optional<std::int64_t> group,
                                        bool bias = false);

class Quantization {
public:
    /// `config` is the quantization_config object, or null for none. What is not modelled, and what cannot be read, is an
    /// error of kind `unavailable`.
    [[nodiscard]] static Result<Quantization> read(const json::value& config);

    Quantization();
    Quantization(Quantization&&) noexcept;
    Quantization& operator=(Quantization&&) noexcept;
    ~Quantization();

    /// `module`: dotted, without the leading "model.": "layers.5.self_attn.o_proj". Routers, embedding and head are never
    /// quantised by the schemes modelled; a module that the ignore list names stays bf16.
    [[nodiscard]] Format format_of(std::string_view module) const;
    [[nodiscard]] std::optional<std::int64_t> group() const { return group_; }   ///< of int4_group
    [[nodiscard]] bool fp8_kv_cache() const { return fp8_kv_cache_; }

private:
    struct Pattern;
    Result<void> ignore(const json::value* list);
    Result<void> read_compressed_tensors(const json::value& config);

    Format format_ = Format::bf16;
    std::optional<std::int64_t> group_;
    bool only_experts_ = false;
    bool fp8_kv_cache_ = false;
    std::vector<Pattern> ignored_;
};

}   // namespace campaign::micro
