#include "instruments/micro/gpus.hpp"

#include <array>
#include <string>

#include "base/text.hpp"

namespace campaign::micro {
namespace {

constexpr std::int64_t gb = 1'000'000'000;
constexpr std::int64_t mib = 1024 * 1024;

constexpr std::array table{
    Gpu{"A100-40GB", 1555, 40 * gb, 40 * mib, "NVIDIA A100 data sheet (SXM and PCIe 40 GB); L2: GA100 whitepaper"},
    Gpu{"A100-80GB", 2039, 80 * gb, 40 * mib, "NVIDIA A100 data sheet (SXM 80 GB); L2: GA100 whitepaper"},
    Gpu{"L4", 300, 24 * gb, 48 * mib, "NVIDIA L4 data sheet"},
    Gpu{"L40S", 864, 48 * gb, 96 * mib, "NVIDIA L40S data sheet; L2: Ada whitepaper"},
    Gpu{"RTX 4090", 1008, 24 * gb, 72 * mib, "NVIDIA Ada whitepaper"},
    Gpu{"RTX 5090", 1792, 32 * gb, 96 * mib, "NVIDIA RTX Blackwell whitepaper"},
    Gpu{"RTX PRO 6000", 1792, 96 * gb, 128 * mib, "NVIDIA RTX PRO 6000 Blackwell data sheet; L2: as its driver reports it"},
    Gpu{"H100 PCIe", 2000, 80 * gb, 50 * mib, "NVIDIA H100 data sheet (PCIe)"},
    Gpu{"H100 NVL", 3900, 94 * gb, 50 * mib, "NVIDIA H100 NVL data sheet"},
    Gpu{"H100", 3350, 80 * gb, 50 * mib, "NVIDIA H100 data sheet (SXM)"},
    Gpu{"H800", 3350, 80 * gb, 50 * mib, "as H100 SXM: the same memory"},
    Gpu{"H20", 4000, 96 * gb, 60 * mib, "NVIDIA H20 data sheet"},
    Gpu{"H200", 4800, 141 * gb, 50 * mib, "NVIDIA H200 data sheet"},
    Gpu{"GH200", 4900, 144 * gb, 50 * mib, "NVIDIA GH200 data sheet (HBM3e)"},
    Gpu{"GB200", 8000, 186 * gb, 126 * mib, "NVIDIA GB200 NVL72 data sheet, per GPU"},
    Gpu{"B200", 8000, 180 * gb, 126 * mib, "NVIDIA HGX B200 data sheet, per GPU"},
    Gpu{"B300", 8000, 270 * gb, 126 * mib, "NVIDIA HGX B300 data sheet, per GPU"},
    Gpu{"MI300X", 5300, 192 * gb, 256 * mib, "AMD Instinct MI300X data sheet; the cache is the Infinity Cache"},
    Gpu{"MI325X", 6000, 256 * gb, 256 * mib, "AMD Instinct MI325X data sheet; the cache is the Infinity Cache"},
    Gpu{"MI355X", 8000, 288 * gb, 256 * mib, "AMD Instinct MI355X data sheet; the cache is the Infinity Cache"},
};

/// Lower case letters and digits only, one blank between words: "NVIDIA H100-PCIe" is "nvidia h100 pcie".
std::string folded(std::string_view text) {
    std::string out = " ";
    for (const char c : text) {
        const bool upper = c >= 'A' && c <= 'Z';
        const char lower = upper ? static_cast<char>(c - 'A' + 'a') : c;
        const bool kept = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9');
        if (kept) out += lower;
        if (!kept && out.back() != ' ') out += ' ';
    }
    if (out.back() != ' ') out += ' ';
    return out;
}

}   // namespace

std::span<const Gpu> gpus() {
    return table;
}

std::optional<Gpu> find_gpu(std::string_view name) {
    const std::string asked = folded(name.substr(0, 200));
    std::optional<Gpu> best;
    std::size_t most = 0;
    for (const Gpu& gpu : table) {
        std::size_t found = 0;
        bool all = true;
        for (const std::string& word : split(trim(folded(gpu.name)), ' ')) {
            all = all && asked.find(' ' + word + ' ') != std::string::npos;
            ++found;
        }
        if (all && found > most) {   // "H100 PCIe" says more than "H100"
            best = gpu;
            most = found;
        }
    }
    return best;
}

}   // namespace campaign::micro
