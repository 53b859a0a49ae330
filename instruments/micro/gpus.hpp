#pragma once
// What a GPU can read in a second and how much it holds: the ground of every floor. A table, with its sources.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace campaign::micro {

struct Gpu {
    std::string_view name;       ///< as people type it: "H200"
    double bandwidth_gb_s;       ///< nominal memory bandwidth, 1e9 bytes per second
    std::int64_t memory_bytes;   ///< nominal, decimal gigabytes as the data sheet gives them
    std::int64_t l2_bytes;       ///< binary megabytes as the data sheet or architecture paper gives them
    std::string_view source;
};

[[nodiscard]] std::span<const Gpu> gpus();

/// By name, letter case and the words NVIDIA and AMD put around it ignored: "nvidia h200", "H200", "NVIDIA H200 141GB
/// HBM3e".
[[nodiscard]] std::optional<Gpu> find_gpu(std::string_view name);

}   // namespace campaign::micro
