#pragma once
// Small traces made for tests, as Kineto writes them.

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace campaign::testing {

/// A folder of its own for each test, gone afterwards.
class InFolder : public ::testing::Test {
protected:
    InFolder() {
        std::string pattern = (std::filesystem::temp_directory_path() / "campaign-test-XXXXXX").string();
        folder_ = ::mkdtemp(pattern.data());
    }
    ~InFolder() override { std::filesystem::remove_all(folder_); }

    std::filesystem::path put(const std::string& name, std::string_view content) {
        const std::filesystem::path file = folder_ / name;
        std::ofstream{file, std::ios::binary} << content;
        return file;
    }
    std::filesystem::path folder_;
};

inline std::string event(std::string_view category, std::string_view name, int start_us, int duration_us,
                         std::string_view args, int pid = 100) {
    return R"({"ph": "X", "cat": ")" + std::string{category} + R"(", "name": ")" + std::string{name} + R"(", "pid": )" +
           std::to_string(pid) + R"(, "tid": 7, "ts": )" + std::to_string(start_us) + R"(.000, "dur": )" +
           std::to_string(duration_us) + R"(.000, "args": {)" + std::string{args} + "}}";
}
inline std::string launch(int at_us, int correlation, std::string_view name = "cudaLaunchKernel") {
    return event("cuda_runtime", name, at_us, 2, R"("correlation": )" + std::to_string(correlation));
}
inline std::string kernel(std::string_view name, int start_us, int duration_us, int correlation, int device = 0) {
    return event(
        "kernel", name, start_us, duration_us,
        R"("device": )" + std::to_string(device) + R"(, "stream": 7, "correlation": )" + std::to_string(correlation));
}
inline std::string mark(std::string_view name, int start_us, int duration_us) {
    return event("user_annotation", name, start_us, duration_us, "");
}
inline std::string document(std::string_view events, int rank = 0, int world_size = 1) {
    return R"({"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": )" + std::to_string(rank) +
           R"(, "world_size": )" + std::to_string(world_size) + R"(}, "traceEvents": [)" + std::string{events} +
           R"(], "traceName": "x.json"})";
}

/// Two decode steps behind a prefill. The device runs 1 ms behind the host, so that its own times would put everything into
/// the wrong step. A decode step: all-reduce 60 µs in 2 operations, gemm 40 µs, all within 100 µs.
inline std::string two_decode_steps(int rank = 0, int world_size = 1) {
    const std::string all_reduce = "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>()";
    std::string events = mark("execute_context_1(512)_generation_0(0)", 0, 100);
    events += "," + launch(10, 1) + "," + kernel("nvjet_prefill", 1000, 500, 1);
    for (int step = 0; step < 2; ++step) {
        const int host = 200 + 200 * step;
        const int device = 1600 + 200 * step;
        const int first = 10 + 10 * step;
        events += "," + mark("execute_context_0(0)_generation_8(8)", host, 100);
        for (int i = 0; i < 3; ++i) events += "," + launch(host + 10 + 10 * i, first + i);
        events += "," + kernel(all_reduce, device, 30, first) + "," + kernel("nvjet_tst_64x8", device + 30, 40, first + 1) +
                  "," + kernel(all_reduce, device + 70, 30, first + 2);
    }
    return document(events, rank, world_size);
}

inline std::string gzip(std::string_view content) {
    z_stream stream{};
    constexpr int with_gzip_header = 15 + 16;
    EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, with_gzip_header, 8, Z_DEFAULT_STRATEGY), Z_OK);
    std::string out(deflateBound(&stream, content.size()) + 64, '\0');
    std::string in{content};
    stream.next_in = reinterpret_cast<unsigned char*>(in.data());
    stream.avail_in = static_cast<uInt>(in.size());
    stream.next_out = reinterpret_cast<unsigned char*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
}

}   // namespace campaign::testing
