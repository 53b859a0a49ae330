#include "tests/standin/load.hpp"

#include <cmath>
#include <cstdio>

namespace standin {
namespace {

std::string number(const char* format, double value) {
    char text[64];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

std::string clock_text(double seconds) {
    const int whole = static_cast<int>(seconds);
    char text[32];
    std::snprintf(text, sizeof text, "%02d:%02d", whole / 60, whole % 60);
    return text;
}

/// 65536 -> "65,536"
std::string grouped(int value) {
    std::string digits = std::to_string(value);
    for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) digits.insert(static_cast<std::size_t>(at), ",");
    return digits;
}

constexpr double weights_begin = 0.10;
constexpr double weights_end = 0.70;
constexpr double graphs_begin = 0.88;
constexpr double graphs_end = 0.97;

/// vLLM's bar: a carriage return in front (tqdm), a newline at the end (vLLM's own format).
std::string weight_bar(int done, int all, double seconds) {
    const double each = done > 0 ? seconds / done : 0;
    char text[200];
    std::snprintf(text, sizeof text, "\rLoading safetensors checkpoint shards: %3d%% Completed | %d/%d [%s<%s, %s]\n",
                  static_cast<int>(std::lround(100.0 * done / all)), done, all, clock_text(seconds).c_str(),
                  done > 0 ? clock_text(each * (all - done)).c_str() : "?",
                  done == 0   ? "?it/s"
                  : each >= 1 ? (number("%5.2f", each) + "s/it").c_str()
                              : (number("%5.2f", 1 / each) + "it/s").c_str());
    return text;
}

void banner(std::vector<LoadMoment>& script, const Options& options) {
    script.push_back({0.0, [options](const Log& log) {
                          log.api("INFO", "api_utils.py:345",
                                  "\n       █     █     █▄   ▄█\n ▄▄ ▄█ █     █     █ ▀▄▀ █  version " + options.version +
                                      "\n  █▄█▀ █     █     █     █  model   " + options.model +
                                      "\n   ▀▀  ▀▀▀▀▀ ▀▀▀▀▀ ▀     ▀\n");
                          std::string arguments = "non-default args: {'model_tag': '" + options.model + "'";
                          for (const auto& [key, value] : options.non_default)
                              arguments.append(", '").append(key).append("': ").append(value);
                          log.api("INFO", "utils.py:277", arguments + "}");
                      }});
    script.push_back({0.02, [options](const Log& log) {
                          log.api("INFO", "model.py:640", "Resolved architecture: DeepseekV3ForCausalLM");
                          log.api("INFO", "model.py:1985", "Using max model len " + std::to_string(options.max_model_len));
                          log.api("INFO", "scheduler.py:241",
                                  "Chunked prefill is enabled with max_num_batched_tokens=" +
                                      std::to_string(options.max_batched_tokens) + ".");
                      }});
}

void engine_start(std::vector<LoadMoment>& script, const Options& options) {
    script.push_back({0.04, [options](const Log& log) {
                          log.engine("INFO", "core.py:121",
                                     "Initializing a V1 LLM engine (v" + options.version + ") with config: model='" +
                                         options.model + "', max_seq_len=" + std::to_string(options.max_model_len) +
                                         ", tensor_parallel_size=" + std::to_string(options.tensor_parallel));
                      }});
    script.push_back(
        {0.06, [options](const Log& log) {
             for (int rank = options.tensor_parallel - 1; rank >= 0; --rank) {
                 const std::string r = std::to_string(rank);
                 std::string text = "rank " + r + " in world size ";
                 text.append(std::to_string(options.tensor_parallel)).append(" is assigned as DP rank 0, PP rank 0, ");
                 text.append("PCP rank 0, TP rank ").append(r).append(", EP rank N/A, EPLB rank N/A");
                 log.worker(rank, "INFO", "parallel_state.py:1790", text);
             }
             if (options.tensor_parallel > 1) log.worker(0, "INFO", "pynccl.py:111", "vLLM is using nccl==2.28.9");
         }});
    script.push_back({0.08, [options](const Log& log) {
                          for (int rank = 0; rank < options.tensor_parallel; ++rank)
                              log.worker(rank, "INFO", "gpu_model_runner.py:5012",
                                         "Starting to load model " + options.model + "...");
                      }});
}

void weights(std::vector<LoadMoment>& script, const Options& options) {
    const int shards = options.pace.shards;
    const double seconds = options.pace.load_s * (weights_end - weights_begin);
    for (int done = 0; done <= shards; ++done) {
        const double share = weights_begin + (weights_end - weights_begin) * done / shards;
        const std::string bar = weight_bar(done, shards, seconds * done / shards);
        script.push_back({share, [bar](const Log& log) { log.bar(0, bar); }});
    }
    script.push_back({weights_end, [options, seconds, bar = weight_bar(shards, shards, seconds)](const Log& log) {
                          log.bar(0, bar);   // tqdm draws the full bar once more when it is closed
                          log.bar(0, "\n");
                          for (int rank = 0; rank < options.tensor_parallel; ++rank)
                              log.worker(rank, "INFO", "default_loader.py:391",
                                         "Loading weights took " + number("%.2f", seconds) + " seconds");
                      }});
    script.push_back({0.72, [options, seconds](const Log& log) {
                          for (int rank = 0; rank < options.tensor_parallel; ++rank)
                              log.worker(rank, "INFO", "gpu_model_runner.py:5101",
                                         "Model loading took 67.21 GiB memory and " +
                                             number("%.6f", seconds + options.pace.load_s * 0.02) + " seconds");
                      }});
}

void compile_and_memory(std::vector<LoadMoment>& script, const Options& options) {
    const double load = options.pace.load_s;
    script.push_back({0.75, [load](const Log& log) {
                          log.worker(
                              0, "INFO", "backends.py:1096",
                              "Using cache directory: /root/.cache/vllm/torch_compile_cache/4f1c7a90b2/rank_0_0/backbone "
                              "for vLLM's torch.compile");
                          log.worker(0, "INFO", "backends.py:1156",
                                     "Dynamo bytecode transform time: " + number("%.2f", load * 0.03) + " s");
                      }});
    script.push_back(
        {0.82, [load](const Log& log) {
             log.worker(0, "INFO", "backends.py:432",
                        "Compiling a graph for compile range (1, 8192) takes " + number("%.2f", load * 0.07) + " s");
             log.worker(0, "INFO", "monitor.py:53", "torch.compile took " + number("%.2f", load * 0.10) + " s in total");
         }});
    script.push_back({0.85, [options](const Log& log) {
                          log.worker(0, "INFO", "gpu_worker.py:455", "Estimated CUDA graph memory: 1.12 GiB total");
                          for (int rank = 0; rank < options.tensor_parallel; ++rank)
                              log.worker(rank, "INFO", "gpu_worker.py:470", "Available KV cache memory: 51.30 GiB");
                      }});
    script.push_back({0.86, [options](const Log& log) {
                          const double concurrency = 1091104.0 / options.max_model_len;
                          log.engine("INFO", "kv_cache_utils.py:1801",
                                     "GPU KV cache size: 1,091,104 tokens, Maximum concurrency for " +
                                         grouped(options.max_model_len) +
                                         " tokens per request: " + number("%.2f", concurrency) + "x");
                      }});
}

/// A plain tqdm bar: carriage returns only, so journald holds it back as one record until the newline at the end.
void graphs(std::vector<LoadMoment>& script, const Options& options) {
    constexpr int all = 35;
    for (int done = 0; done <= all; ++done) {
        const double share = graphs_begin + (graphs_end - graphs_begin) * done / all;
        char text[200];
        std::snprintf(text, sizeof text, "\rCapturing CUDA graphs (decode, FULL): %3d%%|%-10.*s| %d/%d [%s<%s, %.2fit/s]%s",
                      done * 100 / all, done * 10 / all, "##########", done, all,
                      clock_text(options.pace.load_s * 0.09 * done / all).c_str(),
                      clock_text(options.pace.load_s * 0.09 * (all - done) / all).c_str(),
                      all / std::max(0.01, options.pace.load_s * 0.09), done == all ? "\n" : "");
        script.push_back({share, [bar = std::string{text}, first = done == 0](const Log& log) {
                              if (first)
                                  log.bar(0, bar);
                              else
                                  say(bar);
                          }});
    }
    script.push_back({graphs_end, [options](const Log& log) {
                          log.worker(0, "INFO", "gpu_model_runner.py:6210",
                                     "Graph capturing finished in " + number("%.0f", options.pace.load_s * 0.09) +
                                         " secs, took 1.02 GiB");
                      }});
    script.push_back({0.98, [options](const Log& log) {
                          log.engine("INFO", "core.py:355",
                                     "init engine (profile, create kv cache, warmup model) took " +
                                         number("%.2f", options.pace.load_s * 0.26) +
                                         " s (compilation: " + number("%.2f", options.pace.load_s * 0.10) + " s)");
                      }});
    script.push_back({0.99, [](const Log& log) { log.api("INFO", "api_server.py:592", "Supported tasks: ['generate']"); }});
}

constexpr std::string_view oom =
    "CUDA out of memory. Tried to allocate 896.00 MiB. GPU 0 has a total capacity of 93.09 GiB of which 739.81 MiB is free. "
    "Including "
    "non-PyTorch memory, this process has 92.34 GiB memory in use. Of the allocated memory 91.68 GiB is allocated by "
    "PyTorch, and 1.84 "
    "MiB is reserved by PyTorch but unallocated.";

void say_api_gave_up(const Log& log) {
    log.raw_api("Traceback (most recent call last):");
    log.raw_api("  File \"/opt/vllm/bin/vllm\", line 10, in <module>");
    log.raw_api("    sys.exit(main())");
    log.raw_api(
        "  File \"/opt/vllm/lib/python3.12/site-packages/vllm/v1/engine/utils.py\", line 960, in wait_for_engine_startup");
    log.raw_api("    raise RuntimeError(");
    log.raw_api(
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': 1}");
}

}   // namespace

std::vector<LoadMoment> load_script(const Options& options) {
    std::vector<LoadMoment> script;
    banner(script, options);
    engine_start(script, options);
    weights(script, options);
    compile_and_memory(script, options);
    graphs(script, options);
    return script;
}

void ready_lines(const Log& log, const Options& options, unsigned short port) {
    const bool profiler = !options.profiler.profiler.empty();
    if (profiler)
        log.api("WARNING", "api_router.py:52",
                "Profiler with mode '" + options.profiler.profiler +
                    "' is enabled in the API server. This should ONLY be used for local development!");
    log.api("INFO", "api_server.py:616", "Starting vLLM server on http://" + options.host + ":" + std::to_string(port));
    log.api("INFO", "launcher.py:37", "Available routes are:");
    if (options.docs) {
        log.api("INFO", "launcher.py:46", "Route: /openapi.json, Methods: HEAD, GET");
        log.api("INFO", "launcher.py:46", "Route: /docs, Methods: HEAD, GET");
    }
    for (const char* route :
         {"/health, Methods: GET", "/load, Methods: GET", "/version, Methods: GET", "/v1/models, Methods: GET",
          "/v1/chat/completions, Methods: POST", "/v1/completions, Methods: POST"})
        log.api("INFO", "launcher.py:46", std::string{"Route: "} + route);
    if (profiler) {
        log.api("INFO", "launcher.py:46", "Route: /start_profile, Methods: POST");
        log.api("INFO", "launcher.py:46", "Route: /stop_profile, Methods: POST");
    }
    log.uvicorn("Started server process [" + std::to_string(log.pids().api) + "]");
    log.uvicorn("Waiting for application startup.");
    log.uvicorn("Application startup complete.");
}

void say_out_of_memory(const Log& log) {
    log.worker(
        0, "ERROR", "gpu_model_runner.py:5088",
        "Failed to load model - not enough GPU memory. Try lowering --gpu-memory-utilization to free memory for weights.");
    std::string traceback =
        "WorkerProc failed to start.\nTraceback (most recent call last):\n"
        "  File \"/opt/vllm/lib/python3.12/site-packages/vllm/v1/worker/gpu_worker.py\", line 213, in load_model\n"
        "    self.model_runner.load_model(eep_scale_up=eep_scale_up)\ntorch.OutOfMemoryError: ";
    traceback += oom;
    log.worker(0, "ERROR", "multiproc_executor.py:871", traceback);
    say_engine_failed(log);
}

void say_engine_failed(const Log& log) {
    log.engine("ERROR", "core.py:708",
               "EngineCore failed to start.\nTraceback (most recent call last):\n"
               "  File \"/opt/vllm/lib/python3.12/site-packages/vllm/v1/engine/core.py\", line 699, in run_engine_core\n"
               "    engine_core = EngineCoreProc(*args, **kwargs)\nException: WorkerProc initialization failed due to an "
               "exception in a background process. See stack trace for root cause.");
    log.raw_engine("Process EngineCore:");
    say_api_gave_up(log);
}

void say_port_in_use(const Log& log) {
    log.raw_api("Traceback (most recent call last):");
    log.raw_api(
        "  File \"/opt/vllm/lib/python3.12/site-packages/vllm/entrypoints/openai/api_server.py\", line 512, in "
        "create_server_socket");
    log.raw_api("    sock.bind(addr)");
    log.raw_api("OSError: [Errno 98] Address already in use");
}

}   // namespace standin
