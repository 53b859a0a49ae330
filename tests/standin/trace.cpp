#include "tests/standin/trace.hpp"

#include <zlib.h>

#include <cstdio>
#include <iterator>
#include <stdexcept>

namespace standin {
namespace {

constexpr std::int64_t base_us = 1767189312000000;   // Kineto counts from a recent fixed day

struct Kernel {
    const char* name;
    double weight;   ///< its part of a layer's time
    const char* grid;
};

constexpr const char* all_reduce_name =
    "void vllm::cross_device_reduce_1stage<__nv_bfloat16, %d>(vllm::RankData*, vllm::RankSignals, vllm::Signal*, "
    "__nv_bfloat16*, int, int)";

constexpr Kernel layer[] = {
    {"triton_red_fused_add_mean_mul_rsqrt_0", 2.0, "1, 1, 1"},
    {"nvjet_tst_64x8_64x16_4x1_v_bz_TNT", 9.0, "132, 1, 1"},
    {"void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, false, false, cutlass::bfloat16_t>, "
     "true, false, false>(flash::Flash_fwd_params)",
     11.0, "1, 8, 4"},
    {"void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int, int, int>, "
     "cutlass::bfloat16_t> >(cutlass::gemm::kernel::GemmUniversal::Params)",
     7.0, "64, 1, 1"},
    {nullptr, 26.0, "36, 1, 1"},
    {"triton_red_fused_add_mean_mul_rsqrt_1", 2.0, "1, 1, 1"},
    {"nvjet_tst_128x8_64x12_2x1_v_bz_TNT", 10.0, "132, 1, 1"},
    {"void vllm::act_and_mul_kernel<c10::BFloat16, &(c10::BFloat16 vllm::silu_kernel<c10::BFloat16>(c10::BFloat16 const&)), "
     "true>(c10::BFloat16*, c10::BFloat16 const*, int)",
     2.0, "1, 1, 1"},
    {"nvjet_tst_64x8_64x16_2x1_v_bz_splitK_TNT", 6.0, "132, 1, 1"},
    {nullptr, 25.0, "36, 1, 1"},
};
constexpr double layer_weight = 100.0;
constexpr double busy_share = 0.94;   // of a step; the rest is launch and gaps

/// -1 to 1, the same for the same place.
double jitter(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
    std::uint64_t x = a * 0x9E3779B97F4A7C15ull + b * 0xBF58476D1CE4E5B9ull + c * 0x94D049BB133111EBull;
    x ^= x >> 30;
    x *= 0xBF58476D1CE4E5B9ull;
    x ^= x >> 27;
    return static_cast<double>(x % 20001) / 10000.0 - 1.0;
}

class Writer {
public:
    Writer(const TraceOf& of) : of_{of} {}

    void event(const char* category, const std::string& name, const std::string& where, double ts, double dur,
               const std::string& args) {
        char head[96];
        std::snprintf(head, sizeof head, ",\n    \"ts\": %.3f, \"dur\": %.3f,\n    \"args\": {\n      ", ts, dur);
        text_ += "  {\n    \"ph\": \"X\", \"cat\": \"" + std::string{category} + "\", \"name\": \"" + name + "\", " + where +
                 head + args + "\n    }\n  },\n";
    }
    void flow(char phase, int id, const std::string& where, double ts) {
        char body[192];
        std::snprintf(
            body, sizeof body,
            "  {\n    \"ph\": \"%c\", \"id\": %d, %s, \"ts\": %.3f,\n    \"cat\": \"ac2g\", \"name\": \"ac2g\"%s\n  },\n",
            phase, id, where.c_str(), ts, phase == 'f' ? ", \"bp\": \"e\"" : "");
        text_ += body;
    }

    void step(const Step& step, int index) {
        const double began = static_cast<double>(step.began_us - base_us);
        const double took = static_cast<double>(step.took_us);
        const std::string cpu = place(of_.pid, of_.pid);
        const std::string gpu = place(of_.rank, 7);
        const std::string name = "execute_context_" + std::to_string(step.context_requests) + "(" +
                                 std::to_string(step.context_tokens) + ")_generation_" +
                                 std::to_string(step.generation_requests) + "(" + std::to_string(step.generation_requests) +
                                 ")";
        const int external = ++external_;
        event("user_annotation", name, cpu, began, took * 0.5,
              "\"External id\": " + std::to_string(external) +
                  ",\"Record function id\": 0, \"Ev Idx\": " + std::to_string(external));
        const bool graph = step.context_requests == 0;
        int correlation = 0;
        if (graph) {
            correlation = ++correlation_;
            event("cuda_runtime", "cudaGraphLaunch", cpu, began + took * 0.02, took * 0.02,
                  "\"External id\": " + std::to_string(external) +
                      ", \"cbid\": 311, \"correlation\": " + std::to_string(correlation));
            flow('s', correlation, cpu, began + took * 0.02);
        }
        const double gpu_began = began + took * 0.05;
        const double gpu_took = took * busy_share;
        double at = gpu_began;
        for (int l = 0; l < of_.layers; ++l) {
            const double layer_end = gpu_began + gpu_took * (l + 1) / of_.layers;
            for (std::size_t k = 0; k < std::size(layer); ++k)
                at = kernel(k, l, index, at, layer_end, gpu_took / of_.layers, graph, correlation, began, took, external);
        }
        event("gpu_user_annotation", name, gpu, gpu_began, gpu_took, "\"External id\": " + std::to_string(external));
    }

    std::string finish(std::int64_t end_us) {
        char tail[256];
        std::snprintf(tail, sizeof tail,
                      "  {\n    \"name\": \"Iteration Start: PyTorch Profiler\", \"ph\": \"i\", \"s\": \"g\",\n    \"pid\": "
                      "\"Traces\", \"tid\": \"Trace PyTorch "
                      "Profiler\", \"ts\": %.3f\n  }\n  ],\n",
                      static_cast<double>(end_us - base_us));
        return text_ + tail + "  \"traceName\": \"rank" + std::to_string(of_.rank) + ".pt.trace.json\"\n}\n";
    }

    void begin() {
        text_ = "{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [\n";
        for (int gpu = 0; gpu < of_.world_size; ++gpu)
            text_ += "    {\n      \"id\": " + std::to_string(gpu) +
                     ", \"name\": \"NVIDIA H200\", \"totalGlobalMem\": 150109880320,\n"
                     "      \"computeMajor\": 9, \"computeMinor\": 0, \"maxThreadsPerBlock\": 1024, \"warpSize\": 32, "
                     "\"numSms\": 132\n    }" +
                     (gpu + 1 < of_.world_size ? ",\n" : "\n");
        std::string ranks;
        for (int rank = 0; rank < of_.world_size; ++rank) ranks += (rank ? ", " : "") + std::to_string(rank);
        text_ +=
            "  ],\n  \"cupti_version\": 26, \"cuda_runtime_version\": 12080, \"cuda_driver_version\": 12080,\n"
            "  \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": " +
            std::to_string(of_.rank) + ", \"world_size\": " + std::to_string(of_.world_size) +
            ", \"pg_count\": 1, \"pg_config\": [{\"pg_name\": \"0\", \"pg_desc\": \"default_pg\", \"backend_config\": "
            "\"cuda:nccl\", \"pg_size\": " +
            std::to_string(of_.world_size) + ", \"ranks\": [" + ranks +
            "]}], \"nccl_version\": \"2.28.9\"},\n"
            "  \"vllm_version\": \"" +
            of_.version + "\",\n  \"trace_id\": \"0000000000000000000000000000000" + std::to_string(of_.rank % 10) +
            "\",\n"
            "  \"displayTimeUnit\": \"ms\",\n  \"baseTimeNanoseconds\": " +
            std::to_string(base_us * 1000) + ",\n  \"traceEvents\": [\n";
        text_ += "  {\n    \"ph\": \"M\", \"name\": \"process_labels\", \"pid\": " + std::to_string(of_.rank) +
                 ", \"tid\": 0, \"ts\": 0.000,\n"
                 "    \"args\": {\n      \"labels\": \"GPU " +
                 std::to_string(of_.rank) + "\"\n    }\n  },\n";
    }

private:
    static std::string place(int pid, int tid) {
        return "\"pid\": " + std::to_string(pid) + ", \"tid\": " + std::to_string(tid);
    }

    double kernel(std::size_t k, int l, int index, double at, double layer_end, double layer_took, bool graph, int shared,
                  double began, double took, int external) {
        const bool reduce = layer[k].name == nullptr;
        const double part = layer_took * layer[k].weight / layer_weight;
        const double varied =
            part * (0.97 + 0.02 * jitter(static_cast<std::uint64_t>(index), static_cast<std::uint64_t>(of_.rank),
                                         static_cast<std::uint64_t>(l) * 16 + k));
        double dur = varied;
        if (reduce) {
            // Ranks meet in an all-reduce: who comes early waits, all leave together.
            double share = 0;
            for (std::size_t j = 0; j <= k; ++j) share += layer[j].weight;
            dur = layer_end - layer_took * (1 - share / layer_weight) - at;
        }
        const std::string kernel_name = reduce ? reduce_name() : std::string{layer[k].name};
        int correlation = shared;
        if (!graph) {
            correlation = ++correlation_;
            const double launch = began + took * 0.02 + static_cast<double>(l * 10 + static_cast<int>(k)) * 2.0;
            event("cuda_runtime", "cudaLaunchKernel", place(of_.pid, of_.pid), launch, 1.5,
                  "\"External id\": " + std::to_string(external) +
                      ", \"cbid\": 211, \"correlation\": " + std::to_string(correlation));
            flow('s', correlation, place(of_.pid, of_.pid), launch);
        }
        const std::string device = std::to_string(of_.rank);
        event("kernel", kernel_name, place(of_.rank, 7), at, dur,
              "\"External id\": " + std::to_string(external) + ", \"queued\": 0, \"device\": " + device +
                  ", \"context\": 1,\n      \"stream\": 7, \"correlation\": " + std::to_string(correlation) +
                  ",\n      \"registers per thread\": 64, \"shared memory\": 16384, \"grid\": [" + layer[k].grid +
                  "],\n      \"block\": [256, 1, 1], \"est. achieved occupancy %\": 25");
        flow('f', correlation, place(of_.rank, 7), at);
        return at + dur;
    }

    std::string reduce_name() const {
        char name[256];
        std::snprintf(name, sizeof name, all_reduce_name, of_.world_size);
        return name;
    }

    TraceOf of_;
    std::string text_;
    int external_ = 0;
    int correlation_ = 100;
};

}   // namespace

std::string worker_trace(const std::vector<Step>& steps, const TraceOf& of) {
    Writer writer{of};
    writer.begin();
    int index = 0;
    for (const auto& step : steps) writer.step(step, index++);
    return writer.finish(steps.empty() ? base_us : steps.back().began_us + steps.back().took_us);
}

std::string frontend_trace(int pid, std::int64_t now_us) {
    char text[512];
    std::snprintf(text, sizeof text,
                  "{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [],\n  \"displayTimeUnit\": \"ms\",\n  "
                  "\"baseTimeNanoseconds\": %lld,\n"
                  "  \"traceEvents\": [\n  {\n    \"name\": \"Iteration Start: PyTorch Profiler\", \"ph\": \"i\", \"s\": "
                  "\"g\",\n    \"pid\": \"Traces\", "
                  "\"tid\": \"Trace PyTorch Profiler\", \"ts\": %lld.000, \"args\": {\"pid\": %d}\n  }\n  ],\n  "
                  "\"traceName\": \"async_llm\"\n}\n",
                  static_cast<long long>(base_us) * 1000, static_cast<long long>(now_us - base_us), pid);
    return text;
}

std::string gzip(const std::string& text) {
    z_stream stream{};
    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        throw std::runtime_error("zlib");
    std::string out(deflateBound(&stream, text.size()) + 64, '\0');
    std::string in = text;
    stream.next_in = reinterpret_cast<Bytef*>(in.data());
    stream.avail_in = static_cast<uInt>(in.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    const int result = deflate(&stream, Z_FINISH);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    if (result != Z_STREAM_END) throw std::runtime_error("zlib");
    return out;
}

std::string trace_file_name(int rank, std::int64_t time_ns, bool zipped) {
    const std::string r = std::to_string(rank);
    return "dp0_pp0_tp" + r + "_dcp0_ep" + r + "_rank" + r + "." + std::to_string(time_ns) + ".pt.trace.json" +
           (zipped ? ".gz" : "");
}

}   // namespace standin
