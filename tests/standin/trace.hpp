#pragma once
// A small torch profiler trace of what the pretended engine did, as Kineto writes it.

#include <cstdint>
#include <string>
#include <vector>

namespace standin {

/// One step of the engine that happened while the profiler ran.
struct Step {
    std::int64_t began_us = 0;   ///< real-time clock
    std::int64_t took_us = 0;
    int context_requests = 0;
    int context_tokens = 0;
    int generation_requests = 0;   ///< each with one token
};

struct TraceOf {
    int rank = 0;
    int world_size = 1;
    int layers = 4;
    int pid = 0;   ///< the worker's
    std::string version;
};

/// Chrome trace JSON: an annotation a step on CPU and GPU; for a pure decode step one cudaGraphLaunch whose correlation all
/// its kernels share. The kernels fill a fixed share of the step and keep fixed proportions (all-reduce about half), with a
/// small jitter that depends only on step, rank and position. Two all-reduces a layer, which end together on all ranks.
[[nodiscard]] std::string worker_trace(const std::vector<Step>& steps, const TraceOf& of);

/// The API process's own trace, which a present vLLM leaves all but empty.
[[nodiscard]] std::string frontend_trace(int pid, std::int64_t now_us);

/// gzip as torch writes it (zlib's default level).
[[nodiscard]] std::string gzip(const std::string& text);

/// dp0_pp0_tp0_dcp0_ep0_rank0.<time_ns>.pt.trace.json[.gz]
[[nodiscard]] std::string trace_file_name(int rank, std::int64_t time_ns, bool zipped);

}   // namespace standin
