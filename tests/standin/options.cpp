#include "tests/standin/options.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string_view>

namespace standin {
namespace {

namespace json = boost::json;

const std::set<std::string, std::less<>>& options_with_value() {
    static const std::set<std::string, std::less<>> names{"host",
                                                          "port",
                                                          "uds",
                                                          "tensor-parallel-size",
                                                          "pipeline-parallel-size",
                                                          "data-parallel-size",
                                                          "max-model-len",
                                                          "max-num-seqs",
                                                          "max-num-batched-tokens",
                                                          "gpu-memory-utilization",
                                                          "dtype",
                                                          "quantization",
                                                          "kv-cache-dtype",
                                                          "api-key",
                                                          "uvicorn-log-level",
                                                          "seed",
                                                          "tokenizer",
                                                          "revision",
                                                          "download-dir",
                                                          "load-format",
                                                          "root-path",
                                                          "chat-template",
                                                          "tool-call-parser",
                                                          "reasoning-parser",
                                                          "speculative-config",
                                                          "compilation-config",
                                                          "block-size",
                                                          "swap-space",
                                                          "generation-config",
                                                          "stream-interval",
                                                          "distributed-executor-backend",
                                                          "model",
                                                          "attention-backend",
                                                          "optimization-level"};
    return names;
}

const std::set<std::string, std::less<>>& flags() {
    static const std::set<std::string, std::less<>> names{"trust-remote-code",
                                                          "enable-prefix-caching",
                                                          "enable-expert-parallel",
                                                          "enforce-eager",
                                                          "disable-log-requests",
                                                          "enable-log-requests",
                                                          "disable-uvicorn-access-log",
                                                          "enable-auto-tool-choice",
                                                          "use-tqdm-on-load",
                                                          "enable-layerwise-nvtx-tracing",
                                                          "disable-fastapi-docs",
                                                          "enable-chunked-prefill",
                                                          "disable-log-stats",
                                                          "enable-prompt-tokens-details",
                                                          "async-scheduling"};
    return names;
}

std::string long_name(std::string_view given) {
    if (given == "-tp") return "tensor-parallel-size";
    if (given == "-pp") return "pipeline-parallel-size";
    if (given == "-dp") return "data-parallel-size";
    if (given == "-q") return "quantization";
    if (given == "-O") return "optimization-level";
    if (!given.starts_with("--")) return {};
    std::string name{given.substr(2)};
    std::replace(name.begin(), name.end(), '_', '-');
    return name;
}

std::optional<double> number(const std::string& text) {
    if (text.empty()) return std::nullopt;
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (end != text.c_str() + text.size()) return std::nullopt;
    return value;
}

bool truthy(const json::value& value) {
    if (value.is_bool()) return value.get_bool();
    if (value.is_string()) return value.get_string() == "true" || value.get_string() == "True" || value.get_string() == "1";
    return value.is_number() && value.to_number<double>() != 0;
}

int whole(const json::value& value) {
    if (value.is_string()) return static_cast<int>(number(std::string{value.get_string()}).value_or(0));
    return value.is_number() ? static_cast<int>(value.to_number<double>()) : 0;
}

std::string text_of(const json::value& value) {
    return value.is_string() ? std::string{value.get_string()} : json::serialize(value);
}

/// "0.28.0" -> 28; a version that cannot be read counts as new.
int minor_of(const std::string& version) {
    const auto dot = version.find('.');
    return dot == std::string::npos ? 99 : std::atoi(version.c_str() + dot + 1);
}

struct Refusal {
    Refused what;
};

[[noreturn]] void refuse(const std::string& why) {
    throw Refusal{{"usage: vllm serve [model_tag] [options]\nvllm serve: error: " + why + "\n", 2}};
}

[[noreturn]] void refuse_config(const std::string& why) {
    throw Refusal{{"pydantic_core._pydantic_core.ValidationError: 1 validation error for ProfilerConfig\n  Value error, " +
                       why + " [type=value_error]\n",
                   1}};
}

void set_profiler_field(ProfilerConfig& config, std::string key, const json::value& value) {
    std::replace(key.begin(), key.end(), '-', '_');
    if (key == "profiler")
        config.profiler = value.is_null() ? "" : text_of(value);
    else if (key == "torch_profiler_dir")
        config.torch_dir = text_of(value);
    else if (key == "ignore_frontend")
        config.ignore_frontend = truthy(value);
    else if (key == "torch_profiler_with_stack")
        config.with_stack = truthy(value);
    else if (key == "torch_profiler_record_shapes")
        config.record_shapes = truthy(value);
    else if (key == "torch_profiler_use_gzip")
        config.gzip = truthy(value);
    else if (key == "torch_profiler_dump_cuda_time_total")
        config.table = truthy(value);
    else if (key == "delay_iterations")
        config.delay_iterations = whole(value);
    else if (key == "max_iterations")
        config.max_iterations = whole(value);
    else if (key == "torch_profiler_with_memory" || key == "torch_profiler_with_flops" || key == "warmup_iterations" ||
             key == "active_iterations" || key == "wait_iterations" || key == "capture_torch_profiler" ||
             key == "detailed_trace_annotation" || key == "torch_profiler_activities") {
        // Known to vLLM; makes no difference here.
    } else {
        refuse("argument --profiler-config: Unexpected keyword argument '" + key + "'");
    }
}

void check_profiler(ProfilerConfig& config) {
    if (!config.profiler.empty() && config.profiler != "torch" && config.profiler != "cuda")
        refuse("argument --profiler-config: Input should be 'torch', 'cuda' or 'proton', not '" + config.profiler + "'");
    if (config.profiler == "torch" && config.torch_dir.empty())
        refuse_config("torch_profiler_dir must be set when profiler is set to 'torch'");
    if (config.profiler != "torch" && !config.torch_dir.empty())
        refuse_config("torch_profiler_dir is only applicable when profiler is set to 'torch'");
    if (!config.torch_dir.empty())
        config.torch_dir = std::filesystem::absolute(config.torch_dir).lexically_normal().string();
}

class CommandLine {
public:
    CommandLine(const std::vector<std::string>& arguments, Options& options) : arguments_{arguments}, options_{options} {}

    void read() {
        if (arguments_.empty() || arguments_[0] != "serve")
            refuse("argument subcommand: invalid choice (choose from 'serve')");
        for (next_ = 1; next_ < arguments_.size();) {
            const std::string& word = arguments_[next_++];
            if (word.starts_with("-") && word.size() > 1)
                option(word);
            else if (options_.model.empty())
                options_.model = word;
            else
                unknown_.push_back(word);
        }
        if (!unknown_.empty()) {
            std::string all;
            for (const auto& word : unknown_) all += " " + word;
            throw Refusal{
                {"usage: vllm [-h] [-v]\n            {chat,complete,serve,launch,bench,collect-env,run-batch} ...\n"
                 "vllm: error: unrecognized arguments:" +
                     all + "\n",
                 2}};
        }
        if (options_.model.empty()) options_.model = "Qwen/Qwen3-0.6B";
        if (options_.served_names.empty()) options_.served_names.push_back(options_.model);
    }

private:
    void option(const std::string& word) {
        const auto equals = word.find('=');
        const std::string name = long_name(std::string_view{word}.substr(0, equals));
        if (name == "profiler-config" || name.starts_with("profiler-config.")) {
            if (minor_of(options_.version) < 13) return unknown_.push_back(word);
            return profiler(name, value(word, equals));
        }
        if (name == "served-model-name") return served(word, equals);
        if (options_with_value().contains(name)) return with_value(name, value(word, equals));
        if (flags().contains(name) || (name.starts_with("no-") && flags().contains(name.substr(3)))) return flag(name);
        unknown_.push_back(word);
    }

    std::string value(const std::string& word, std::size_t equals) {
        if (equals != std::string::npos) return word.substr(equals + 1);
        if (next_ >= arguments_.size()) refuse("argument " + word + ": expected one argument");
        return arguments_[next_++];
    }

    void profiler(const std::string& name, const std::string& text) {
        if (name != "profiler-config") {
            boost::system::error_code failed;
            const json::value parsed = json::parse(text, failed);
            set_profiler_field(options_.profiler, name.substr(16), failed ? json::value(text) : parsed);
        } else {
            boost::system::error_code failed;
            const json::value parsed = json::parse(text, failed);
            if (failed || !parsed.is_object())
                refuse("argument --profiler-config: Value " + text + " cannot be converted to ProfilerConfig.");
            for (const auto& field : parsed.get_object()) set_profiler_field(options_.profiler, field.key(), field.value());
        }
        options_.non_default.emplace_back("profiler_config",
                                          "ProfilerConfig(profiler='" + options_.profiler.profiler + "')");
    }

    void served(const std::string& word, std::size_t equals) {
        if (equals != std::string::npos) {
            options_.served_names.push_back(word.substr(equals + 1));
        } else {
            while (next_ < arguments_.size() && !arguments_[next_].starts_with("-"))
                options_.served_names.push_back(arguments_[next_++]);
        }
        if (options_.served_names.empty()) refuse("argument --served-model-name: expected at least one argument");
        options_.non_default.emplace_back("served_model_name", "['" + options_.served_names.front() + "']");
    }

    int integer(const std::string& name, const std::string& text) {
        const auto value = number(text);
        if (!value || *value != static_cast<int>(*value) || *value < 0)
            refuse("argument --" + name + ": invalid int value: '" + text + "'");
        return static_cast<int>(*value);
    }

    void with_value(const std::string& name, const std::string& text) {
        std::string shown = "'" + text + "'";
        if (number(text)) shown = text;
        std::string key = name;
        std::replace(key.begin(), key.end(), '-', '_');
        options_.non_default.emplace_back(key, name == "api-key" ? "['***']" : shown);
        if (name == "host") options_.host = text;
        if (name == "port") options_.port = static_cast<unsigned short>(integer(name, text));
        if (name == "tensor-parallel-size") options_.tensor_parallel = std::clamp(integer(name, text), 1, 64);
        if (name == "max-model-len") options_.max_model_len = std::max(1, integer(name, text));
        if (name == "max-num-seqs") options_.max_num_seqs = std::max(1, integer(name, text));
        if (name == "max-num-batched-tokens") options_.max_batched_tokens = std::max(1, integer(name, text));
        if (name == "api-key") options_.api_key = text;
        if (name == "model") options_.model = text;
        if (name == "reasoning-parser") options_.pace.reasoning_tokens = 8;
    }

    void flag(const std::string& name) {
        std::string key = name;
        std::replace(key.begin(), key.end(), '-', '_');
        options_.non_default.emplace_back(key, name.starts_with("no-") ? "False" : "True");
        if (name == "disable-uvicorn-access-log") options_.access_log = false;
        if (name == "disable-fastapi-docs") options_.docs = false;
    }

    const std::vector<std::string>& arguments_;
    Options& options_;
    std::size_t next_ = 1;
    std::vector<std::string> unknown_;
};

json::object object_of(const std::string& text, const char* what) {
    if (text.find_first_not_of(" \t\r\n") == std::string::npos) return {};
    boost::system::error_code failed;
    const json::value parsed = json::parse(text, failed);
    if (failed || !parsed.is_object()) throw Refusal{{std::string{"stand-in: "} + what + " is no JSON object\n", 2}};
    return parsed.get_object();
}

class Knobs {
public:
    Knobs(const Environment& environment, const json::object& config) : environment_{environment}, config_{config} {}

    std::optional<std::string> text(const std::string& name) const {
        std::string upper = name;
        std::transform(upper.begin(), upper.end(), upper.begin(),
                       [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
        if (const auto found = environment_.find("STANDIN_" + upper); found != environment_.end()) return found->second;
        if (const auto* value = config_.if_contains(name)) return text_of(*value);
        return std::nullopt;
    }

    void set(const std::string& name, double& into) const {
        if (const auto value = text(name)) {
            const auto read = number(*value);
            if (!read || *read < 0) throw Refusal{{"stand-in: knob " + name + " is no number: " + *value + "\n", 2}};
            into = *read;
        }
    }
    void set(const std::string& name, int& into) const {
        double value = into;
        set(name, value);
        into = static_cast<int>(value);
    }

private:
    const Environment& environment_;
    const json::object& config_;
};

Faults faults_of(const json::object& given, bool profiler_on) {
    Faults faults;
    if (const auto* when = given.if_contains("when")) {
        if (*when == "profiler" && !profiler_on) return faults;
        if (*when == "plain" && profiler_on) return faults;
    }
    for (const auto& [key, value] : given) {
        if (key == "load")
            faults.load = text_of(value);
        else if (key == "load_at")
            faults.load_at = value.to_number<double>();
        else if (key == "hang_completions")
            faults.hang_completions = truthy(value);
        else if (key == "model_name")
            faults.model_name = text_of(value);
        else if (key == "start")
            faults.start = text_of(value);
        else if (key == "stop")
            faults.stop = text_of(value);
        else if (key == "stop_s")
            faults.stop_s = value.to_number<double>();
        else if (key == "missing_rank")
            faults.missing_rank = whole(value);
        else if (key == "torn_rank")
            faults.torn_rank = whole(value);
        else if (key == "fail_every")
            faults.fail_every = whole(value);
        else if (key == "fail_with")
            faults.fail_with = text_of(value);
        else if (key != "when")
            throw Refusal{{"stand-in: no such fault: " + std::string{key} + "\n", 2}};
    }
    return faults;
}

}   // namespace

Parsed parse_options(const std::vector<std::string>& arguments, const Environment& environment,
                     const std::string& config_text, const std::string& fault_text) {
    try {
        Options options;
        const json::object config = object_of(config_text, "STANDIN_CONFIG");
        const Knobs knobs{environment, config};
        if (const auto version = knobs.text("version")) options.version = *version;
        CommandLine{arguments, options}.read();
        if (minor_of(options.version) < 16 && options.profiler.profiler.empty()) {
            // Until 0.15 the variable alone turned the profiler on; later builds ignore it.
            if (const auto dir = environment.find("VLLM_TORCH_PROFILER_DIR");
                dir != environment.end() && !dir->second.empty()) {
                options.profiler.profiler = "torch";
                options.profiler.torch_dir = dir->second;
            }
        }
        check_profiler(options.profiler);
        Pace& pace = options.pace;
        knobs.set("load_s", pace.load_s);
        knobs.set("token_ms", pace.token_ms);
        knobs.set("batch_ms", pace.batch_ms);
        knobs.set("prefill_us_per_token", pace.prefill_us_per_token);
        knobs.set("stop_s", pace.stop_s);
        knobs.set("shutdown_s", pace.shutdown_s);
        knobs.set("shards", pace.shards);
        knobs.set("natural_tokens", pace.natural_tokens);
        knobs.set("reasoning_tokens", pace.reasoning_tokens);
        knobs.set("trace_layers", pace.trace_layers);
        pace.shards = std::clamp(pace.shards, 1, 1000);
        pace.trace_layers = std::clamp(pace.trace_layers, 1, 100);
        pace.natural_tokens = std::max(1, pace.natural_tokens);
        if (const auto truth = knobs.text("truth")) options.truth_path = *truth;
        options.faults = faults_of(object_of(fault_text, "STANDIN_FAULTS"), !options.profiler.profiler.empty());
        if (options.faults.stop_s) pace.stop_s = *options.faults.stop_s;
        return {std::move(options), std::nullopt};
    } catch (const Refusal& refusal) {
        return {std::nullopt, refusal.what};
    } catch (const boost::system::system_error& failed) {
        return {std::nullopt, Refused{std::string{"stand-in: a fault has the wrong type: "} + failed.what() + "\n", 2}};
    }
}

}   // namespace standin
