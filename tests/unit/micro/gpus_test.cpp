#include "instruments/micro/gpus.hpp"

#include <gtest/gtest.h>

namespace campaign::micro {
namespace {

TEST(Gpus, AreFoundAsPeopleAndDriversCallThem) {
    struct Case {
        const char* asked;
        const char* found;
    };
    const Case cases[] = {{"H200", "H200"},
                          {"nvidia h200", "H200"},
                          {"NVIDIA H200 141GB HBM3e", "H200"},
                          {"NVIDIA H100 80GB HBM3", "H100"},
                          {"NVIDIA H100 PCIe", "H100 PCIe"},
                          {"NVIDIA A100-SXM4-80GB", "A100-80GB"},
                          {"NVIDIA A100-PCIE-40GB", "A100-40GB"},
                          {"NVIDIA GeForce RTX 5090", "RTX 5090"},
                          {"NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000"},
                          {"NVIDIA GB200", "GB200"},
                          {"AMD Instinct MI300X", "MI300X"}};
    for (const Case& c : cases) {
        const std::optional<Gpu> gpu = find_gpu(c.asked);
        ASSERT_TRUE(gpu) << c.asked;
        EXPECT_EQ(gpu->name, c.found) << c.asked;
    }
}

TEST(Gpus, OfAnotherNameAreNotGuessed) {
    for (const char* name : {"", "H2000", "A100", "V100", "NVIDIA", "200", "H"}) EXPECT_FALSE(find_gpu(name)) << name;
}

TEST(Gpus, EachNameIsItsOwnAndHasASource) {
    for (const Gpu& gpu : gpus()) {
        EXPECT_EQ(find_gpu(gpu.name)->name, gpu.name);
        EXPECT_FALSE(gpu.source.empty()) << gpu.name;
        EXPECT_GT(gpu.bandwidth_gb_s, 100) << gpu.name;
        EXPECT_GT(gpu.memory_bytes, gpu.l2_bytes) << gpu.name;
    }
}

}   // namespace
}   // namespace campaign::micro
