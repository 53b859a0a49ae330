// Sources: vLLM's own log calls as listed with their versions in the project's notes on start-up logs (v0.6 to mid 2026);
// the wording of [file.py:line] prefixes is never matched.

#include "instruments/startup/patterns.hpp"

#include <array>

namespace campaign::startup {
namespace {

constexpr std::array phases{
    PhasePattern{"vLLM server version", Phase::start},       // >= 0.27
    PhasePattern{"vLLM API server version", Phase::start},   // older
    PhasePattern{"non-default args:", Phase::start},
    PhasePattern{"Resolved architecture:", Phase::config},
    PhasePattern{"Using max model len", Phase::config},
    PhasePattern{"Chunked prefill is enabled", Phase::config},
    PhasePattern{"Initializing a V1 LLM engine", Phase::config},
    PhasePattern{"Initializing an LLM engine", Phase::config},   // 0.6
    PhasePattern{"Initializing a V0 LLM engine", Phase::config},
    PhasePattern{"is assigned as DP rank", Phase::distributed_init},
    PhasePattern{"vLLM is using nccl==", Phase::distributed_init},
    PhasePattern{"Starting to load model", Phase::weights},
    PhasePattern{"Loading drafter model", Phase::weights},
    PhasePattern{"checkpoint shards:", Phase::weights},
    PhasePattern{"Multi-thread loading shards", Phase::weights, ""},
    PhasePattern{"Loading safetensors using", Phase::weights},
    PhasePattern{"Loading weights took", Phase::weights},
    PhasePattern{"Loading model weights took", Phase::weights},   // 0.6
    PhasePattern{"Model loading took", Phase::weights},
    PhasePattern{"for vLLM's torch.compile", Phase::compile},
    PhasePattern{"Dynamo bytecode transform time", Phase::compile},
    PhasePattern{"Compiling a graph for", Phase::compile},
    PhasePattern{"Directly load the compiled graph", Phase::compile},
    PhasePattern{"Cache the graph of", Phase::compile},
    PhasePattern{"torch.compile takes", Phase::compile},
    PhasePattern{"torch.compile took", Phase::compile},
    PhasePattern{"Available KV cache memory", Phase::kv_cache},
    PhasePattern{"GPU KV cache size", Phase::kv_cache},
    PhasePattern{"# GPU blocks", Phase::kv_cache},   // 0.6
    PhasePattern{"Maximum concurrency for", Phase::kv_cache},
    PhasePattern{"Compile and warming up model", Phase::warmup},
    PhasePattern{"DeepGEMM warmup", Phase::warmup},
    PhasePattern{"FlashInfer autotun", Phase::warmup},
    PhasePattern{"Capturing CUDA graph", Phase::graphs},
    PhasePattern{"Capturing cudagraphs", Phase::graphs},
    PhasePattern{"Capturing the model for CUDA graphs", Phase::graphs},   // 0.6
    PhasePattern{"Graph capturing finished", Phase::graphs},
    PhasePattern{"init engine (profile, create kv cache", Phase::graphs},
    PhasePattern{"Supported tasks:", Phase::api_start},
    PhasePattern{"Starting vLLM server on", Phase::api_start},
    PhasePattern{"Starting vLLM API server", Phase::api_start},
    PhasePattern{"Available routes are", Phase::api_start},
    PhasePattern{"Started server process", Phase::api_start, ""},
    PhasePattern{"Waiting for application startup", Phase::api_start, ""},
    PhasePattern{"Application startup complete.", Phase::ready, "vllm", true},
    PhasePattern{"OpenAI server is ready to accept requests", Phase::ready},   // the Rust front end
    PhasePattern{"server_args=ServerArgs(", Phase::start, "sglang"},
    PhasePattern{"Init torch distributed begin", Phase::distributed_init, "sglang"},
    PhasePattern{"sglang is using nccl==", Phase::distributed_init, "sglang"},
    PhasePattern{"Load weight begin", Phase::weights, "sglang"},
    PhasePattern{"Load weight end", Phase::weights, "sglang"},
    PhasePattern{"KV Cache is allocated", Phase::kv_cache, "sglang"},
    PhasePattern{"Memory pool end", Phase::kv_cache, "sglang"},
    PhasePattern{"Capture cuda graph b", Phase::graphs, "sglang"},
    PhasePattern{"Capturing batches", Phase::graphs, "sglang"},
    PhasePattern{"The server is fired up and ready to roll!", Phase::ready, "sglang", true},
    PhasePattern{"llama_model_loader: loaded meta data", Phase::weights, "llamacpp"},
    PhasePattern{"load_model: loading model", Phase::weights, "llamacpp"},
    PhasePattern{"load_tensors: loading model tensors", Phase::weights, "llamacpp"},
    PhasePattern{"llama_kv_cache: size", Phase::kv_cache, "llamacpp"},
    PhasePattern{"warming up the model with an empty run", Phase::warmup, "llamacpp"},
    PhasePattern{"initializing slots, n_slots", Phase::api_start, "llamacpp"},
    PhasePattern{"server is listening on http", Phase::ready, "llamacpp"},
};

constexpr std::array failures{
    FailurePattern{"To serve at least one request with the model", "kv_cache_too_small"},
    FailurePattern{"No available memory for the cache blocks", "kv_cache_no_memory"},
    FailurePattern{"is less than desired GPU memory utilization", "cuda_oom", Weight::cause, Phase::distributed_init},
    FailurePattern{"CUDA out of memory", "cuda_oom"},
    FailurePattern{"not enough GPU memory", "cuda_oom"},
    FailurePattern{"Out of memory: Killed process", "host_oom_killed"},
    FailurePattern{"oom-kill:", "host_oom_killed"},
    FailurePattern{"A process of this unit has been killed by the OOM killer", "host_oom_killed"},
    FailurePattern{"Failed with result 'oom-kill'", "host_oom_killed"},
    FailurePattern{"were killed due to the node running low on memory", "host_oom_killed"},   // Ray
    FailurePattern{"Cannot allocate memory", "host_oom"},
    FailurePattern{"Not enough memory. Please try to increase --mem-fraction-static", "kv_cache_too_small", Weight::cause,
                   Phase::kv_cache},                                                             // SGLang
    FailurePattern{"failed to open GGUF file", "missing_file", Weight::cause, Phase::weights},   // llama.cpp
    FailurePattern{"[Errno 98]", "port_in_use"},
    FailurePattern{"Address already in use", "port_in_use"},
    FailurePattern{"failed to bind listener for OpenAI server", "bind_failed"},   // the Rust front end
    FailurePattern{"[Errno 99]", "bind_failed"},
    FailurePattern{"unrecognized arguments:", "bad_argument", Weight::cause, Phase::start},
    FailurePattern{": error: argument", "bad_argument", Weight::cause, Phase::start},
    FailurePattern{"Invalid repository ID or local directory", "missing_file"},
    FailurePattern{"Cannot find any model weights", "missing_file"},
    FailurePattern{"FileNotFoundError:", "missing_file"},
    FailurePattern{"You are trying to access a gated repo", "auth", Weight::cause, Phase::config},
    FailurePattern{"GatedRepoError:", "auth", Weight::cause, Phase::config},
    FailurePattern{"Cannot access gated repo", "auth", Weight::cause, Phase::config},
    FailurePattern{"401 Client Error", "auth", Weight::echo, Phase::config},
    FailurePattern{"Access to model", "auth", Weight::cause, Phase::config},
    FailurePattern{"SafetensorError", "corrupt_weights"},
    FailurePattern{"Error 803:", "driver_error", Weight::cause, Phase::distributed_init},
    FailurePattern{"CUDA driver version is insufficient", "driver_error", Weight::cause, Phase::distributed_init},
    FailurePattern{"NVML: Driver/library version mismatch", "driver_error"},
    FailurePattern{"NCCL error", "nccl_error"},
    FailurePattern{"DistBackendError", "nccl_error"},
    FailurePattern{"ncclUnhandledCudaError", "nccl_error"},
    FailurePattern{"ncclSystemError", "nccl_error"},
    FailurePattern{"died unexpectedly", "worker_died", Weight::symptom},
    FailurePattern{"WorkerProc failed to start", "worker_died", Weight::symptom},
    FailurePattern{"WorkerProc hit an exception", "worker_died", Weight::symptom},
    FailurePattern{"Process RustFrontend (PID", "worker_died", Weight::symptom},   // "... died with exit code 2"
    FailurePattern{"EngineCore failed to start", "engine_core_failed", Weight::echo},
    FailurePattern{"Engine core initialization failed", "engine_core_failed", Weight::echo},
    FailurePattern{"EngineCore encountered a fatal error", "engine_core_failed", Weight::echo},
    FailurePattern{"EngineCore encountered an issue", "engine_core_failed", Weight::echo},
    FailurePattern{"Timed out waiting for engine core processes to start", "engine_core_failed", Weight::echo},
    FailurePattern{"Timed out waiting for engines to send initial message", "engine_core_failed", Weight::echo},   // older
    FailurePattern{"Did not receive response from front-end process within", "engine_core_failed", Weight::echo},
    FailurePattern{"failed to connect to engine core", "engine_core_failed", Weight::echo},   // the Rust front end
};

constexpr std::array warnings{
    WarningPattern{"_profile HTTP/1.1\" 404", "profiler_not_enabled"},   // uvicorn's access log of start and stop
    WarningPattern{"RPC call to execute_model timed out", "profiler_timeout", true},   // a flush longer than a step may take
    WarningPattern{"RPC call to sample_tokens timed out", "profiler_timeout", true},
    WarningPattern{"Failed to start profiler:", "profiler_failed"},   // only logged: HTTP says 200
    WarningPattern{"Failed to stop profiler:", "profiler_failed"},
    WarningPattern{"Invocation of profile method failed", "profiler_failed"},
    WarningPattern{"Profiler was not started, nothing to stop", "profiler_not_started"},
    WarningPattern{"No available shared memory broadcast block found", "waiting_for_workers"},   // harmless while compiling
    WarningPattern{"cudaMalloc failed: out of memory", "gpu_memory_short", false, true},   // llama.cpp; it may go on without
    WarningPattern{"ggml_cuda_init: failed to initialize CUDA", "no_gpu", false, true},    // llama.cpp goes on with the CPU
    WarningPattern{"warning: no usable GPU found", "no_gpu", false, true},                 // llama.cpp
    WarningPattern{"generating GPU P2P access cache in", "first_p2p_check"},               // slow, once a host
};

constexpr std::array<std::string_view, 3> armed{
    "Profiler with mode",        // since the flag --profiler-config
    "Torch profiling enabled",   // from 0.6 on; since 2026 only at the first start of a profile
    "Torch profiler enabled",
};

constexpr std::array<std::string_view, 8> stops{
    "[shutdown] API server: shutdown triggered",   // vLLM's launcher
    "Shutting down",                               // uvicorn, also on SIGTERM
    "Finished server process [",                   // uvicorn
    "SIGTERM received. signum=",                   // SGLang
    "Gracefully exiting...",                       // SGLang
    "Received signal 15",                          // trtllm-serve
    "operator(): operator(): cleaning up before exit...",
    "llama_server: cleaning up before exit...",
};

}   // namespace

std::span<const std::string_view> stop_patterns() {
    return stops;
}
std::span<const PhasePattern> phase_patterns() {
    return phases;
}
std::span<const FailurePattern> failure_patterns() {
    return failures;
}

std::span<const WarningPattern> warning_patterns() {
    return warnings;
}
std::span<const std::string_view> armed_patterns() {
    return armed;
}

}   // namespace campaign::startup
