#pragma once
// What the stand-in was asked to be: vLLM's command line, its own knobs, and the faults it has to show.

#include <boost/json.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace standin {

using Environment = std::map<std::string, std::string>;

/// --profiler-config, as JSON or in dotted form, with vLLM's defaults.
struct ProfilerConfig {
    std::string profiler;    ///< "", "torch" or "cuda"
    std::string torch_dir;   ///< absolute
    bool ignore_frontend = false;
    bool with_stack = true;
    bool record_shapes = false;
    bool gzip = true;
    bool table = true;   ///< torch_profiler_dump_cuda_time_total
    int delay_iterations = 0;
    int max_iterations = 0;   ///< 0: no limit
};

/// How fast the pretended engine is. Seconds and milliseconds of real time.
struct Pace {
    double load_s = 5;
    double token_ms = 10;     ///< one decode step with one sequence
    double batch_ms = 0.25;   ///< more for each further sequence in the step
    double prefill_us_per_token = 20;
    double stop_s = 2;   ///< how long the export of a profile takes
    double shutdown_s = 0;
    int shards = 56;
    int natural_tokens = 64;    ///< where a sequence ends by itself
    int reasoning_tokens = 0;   ///< of each chat answer, sent as delta.reasoning
    int trace_layers = 4;
};

/// Read from STANDIN_FAULTS at each start.
struct Faults {
    std::string load;       ///< "", oom, stall, killed, engine_failed, never_ready
    double load_at = 0.5;   ///< share of the load after which that shows
    bool hang_completions = false;
    std::string model_name;   ///< listed by /v1/models instead of the right one
    std::string start;        ///< "", error (500)
    std::string stop;         ///< "", no_files, die, early (answers before the files are whole)
    std::optional<double> stop_s;
    std::optional<int> missing_rank;
    std::optional<int> torn_rank;
    int fail_every = 0;              ///< each so many requests for tokens fails
    std::string fail_with = "500";   ///< 500, reset, error_frame
};

struct Options {
    std::string program = "vllm";
    std::string model;
    std::vector<std::string> served_names;
    std::string host = "0.0.0.0";
    unsigned short port = 8000;
    int tensor_parallel = 1;
    int max_model_len = 8192;
    int max_num_seqs = 16;
    int max_batched_tokens = 8192;
    std::string api_key;
    bool access_log = true;
    bool docs = true;
    std::string version = "0.28.0";
    std::vector<std::pair<std::string, std::string>> non_default;   ///< for the log line of that name
    ProfilerConfig profiler;
    Pace pace;
    Faults faults;
    std::string truth_path;
};

/// The command line was refused: what goes to stderr, and the exit status (2 as argparse, 1 for a bad configuration).
struct Refused {
    std::string text;
    int status = 2;
};

struct Parsed {
    std::optional<Options> options;
    std::optional<Refused> refused;
};

/// argv without argv[0]: `serve MODEL --port ...`. `fault_text` is the text of the fault file, "" when there is none.
[[nodiscard]] Parsed parse_options(const std::vector<std::string>& arguments, const Environment& environment,
                                   const std::string& config_text, const std::string& fault_text);

}   // namespace standin
