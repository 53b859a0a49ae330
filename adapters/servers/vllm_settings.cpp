#include "adapters/servers/vllm_settings.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/json.hpp"
#include "base/text.hpp"

namespace campaign::servers::vllm {

namespace {

// --profiler-config came with 0.13; the variables were removed about 0.16, by date and give or take one release.
constexpr Version first_with_option{0, 13};
constexpr Version variables_surely_work_below{0, 15};
constexpr Version variables_surely_gone_from{0, 17};
constexpr std::string_view profiler_option = "--profiler-config";

std::string lower(std::string_view text) {
    std::string out{text};
    std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return out;
}

/// The option's name alone, with '-' for '_', as vLLM's parser takes it.
std::string option_name(std::string_view word) {
    std::string name{word.substr(0, word.find('='))};
    if (name.starts_with("--")) std::replace(name.begin(), name.end(), '_', '-');
    return name;
}

std::optional<int> digits_after(std::string_view text, std::string_view mark) {
    const auto at = text.rfind(mark);
    if (at == std::string_view::npos) return std::nullopt;
    int value = 0;
    const std::string_view rest = text.substr(at + mark.size());
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (error != std::errc{} || end == rest.data() || end == rest.data() + rest.size() || *end != '.') return std::nullopt;
    return value;
}

bool has_name(const std::vector<std::string>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

/// Time limits inside vLLM that a trace written in mid-step, or a long load, would break.
void widen_limits(ProfilerSetting& setting) {
    setting.environment["VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS"] = "7200";
    setting.environment["VLLM_ENGINE_READY_TIMEOUT_S"] = "7200";
}

void replace_present(ProfilerSetting& setting, const std::vector<std::string>& argv) {
    if (has_profiler_option(argv)) setting.removes.emplace_back(profiler_option);
}

}   // namespace

std::optional<Version> parse_version(std::string_view text) {
    if (!text.empty() && (text.front() == 'v' || text.front() == 'V')) text.remove_prefix(1);
    Version version;
    const char* const end = text.data() + text.size();
    const auto [dot, error] = std::from_chars(text.data(), end, version.major);
    if (error != std::errc{} || dot == end || *dot != '.') return std::nullopt;
    if (std::from_chars(dot + 1, end, version.minor).ec != std::errc{}) return std::nullopt;
    // setuptools-scm's name for a tree without tags: 0.1.dev1+g...
    if (version == Version{0, 1} && text.find("dev") != std::string_view::npos) return std::nullopt;
    return version;
}

std::optional<std::string> option(const std::vector<std::string>& argv, const std::vector<std::string_view>& names) {
    std::optional<std::string> value;
    for (std::size_t i = 0; i < argv.size(); ++i) {
        const std::string name = option_name(argv[i]);
        if (std::find(names.begin(), names.end(), name) == names.end()) continue;
        if (name.size() < argv[i].size()) {
            value = argv[i].substr(name.size() + 1);
        } else if (i + 1 < argv.size()) {
            value = argv[i + 1];
        }
    }
    return value;
}

bool has_profiler_option(const std::vector<std::string>& argv) {
    return std::any_of(argv.begin(), argv.end(), [](const std::string& word) {
        const std::string name = option_name(word);
        return name == profiler_option || name.starts_with(std::string{profiler_option} + ".");
    });
}

bool torch_profiler_on(const std::string& version, const std::vector<std::string>& argv,
                       const std::vector<std::string>& environment_names) {
    std::string profiler = option(argv, {"--profiler-config.profiler"}).value_or("");
    if (const auto config = option(argv, {profiler_option}); config && profiler.empty()) {
        const Result<json::value> parsed = parse_json(*config, "--profiler-config");
        if (parsed) profiler = string_at(*parsed, "profiler").value_or("");
    }
    if (!profiler.empty()) return profiler == "torch";
    const auto known = parse_version(version);
    return known && *known < variables_surely_work_below && has_name(environment_names, "VLLM_TORCH_PROFILER_DIR");
}

Parallelism parallelism(const std::vector<std::string>& argv) {
    const auto size = [&](const std::vector<std::string_view>& names) {
        int value = 1;
        if (const auto text = option(argv, names)) std::from_chars(text->data(), text->data() + text->size(), value);
        return std::clamp(value, 1, 4096);
    };
    return {size({"--tensor-parallel-size", "-tp"}), size({"--pipeline-parallel-size", "-pp"}),
            size({"--data-parallel-size", "-dp"})};
}

std::string profiler_cause(const std::string& version, const std::vector<std::string>& argv,
                           const std::vector<std::string>& environment_names) {
    const auto known = parse_version(version);
    const std::string named = version.empty() ? "this version of vLLM" : "vLLM " + printable(version, 60);
    const bool variable = has_name(environment_names, "VLLM_TORCH_PROFILER_DIR");
    if (has_profiler_option(argv)) return "the server was started with --profiler-config, but that names no profiler";
    if (known && *known < first_with_option) {
        return variable ? "VLLM_TORCH_PROFILER_DIR is set, and " + named + " has no profile routes all the same"
                        : "the server was started without VLLM_TORCH_PROFILER_DIR, which " + named + " wants";
    }
    if (variable) return "VLLM_TORCH_PROFILER_DIR is set, but " + named + " takes the setting only from --profiler-config";
    return "the server was started without --profiler-config";
}

Result<ProfilerSetting> torch_setting(const std::string& version, const std::string& trace_dir,
                                      const std::vector<std::string>& argv) {
    if (trace_dir.empty() || trace_dir.front() != '/') {
        return Error{ErrorKind::usage, "the folder for traces must be an absolute path", "", printable(trace_dir, 200), ""};
    }
    const auto known = parse_version(version);
    ProfilerSetting setting;
    widen_limits(setting);
    if (!known || *known < variables_surely_gone_from) {
        setting.environment["VLLM_TORCH_PROFILER_DIR"] = trace_dir;
        setting.environment["VLLM_TORCH_PROFILER_WITH_STACK"] = "0";
        setting.environment["VLLM_TORCH_PROFILER_DISABLE_ASYNC_LLM"] = "1";
    }
    const bool option_present = has_profiler_option(argv);
    if (!known || *known >= variables_surely_work_below || option_present) {
        const std::string dotted = std::string{profiler_option} + ".";
        setting.arguments = {dotted + "profiler=torch", dotted + "torch_profiler_dir=" + trace_dir,
                             dotted + "torch_profiler_with_stack=false", dotted + "ignore_frontend=true"};
    }
    replace_present(setting, argv);
    return setting;
}

Result<ProfilerSetting> cuda_setting(const std::string& version, const std::vector<std::string>& argv) {
    const auto known = parse_version(version);
    if (known && *known < Version{0, 12}) {
        return Error{ErrorKind::unavailable, "vLLM " + printable(version, 60) + " cannot mark a capture range for nsys",
                     "that came with 0.12", "", "profile it with torch instead"};
    }
    ProfilerSetting setting;
    widen_limits(setting);
    setting.environment["VLLM_WORKER_MULTIPROC_METHOD"] = "spawn";
    if (known && *known < first_with_option) {
        setting.environment["VLLM_TORCH_CUDA_PROFILE"] = "1";
    } else {
        setting.arguments = {std::string{profiler_option} + ".profiler=cuda"};
    }
    replace_present(setting, argv);
    return setting;
}

Server::Proof log_proof(std::string_view line, bool start, std::string_view tag) {
    using Proof = Server::Proof;
    const std::string route = start ? "/start_profile" : "/stop_profile";
    // uvicorn writes its access line when the answer goes out: INFO: 127.0.0.1:40 - "POST /start_profile?step=T HTTP/1.1"
    // 200 OK
    const std::string request = "\"POST " + route;
    if (const auto at = line.find(request); at != std::string_view::npos) {
        const std::string_view rest = line.substr(at + request.size());
        const std::string query = "?step=" + std::string{tag};
        if (tag.empty() || !rest.starts_with(query)) return Proof::nothing;
        const std::string_view after = rest.substr(query.size());
        if (after.empty() || (after.front() != ' ' && after.front() != '&' && after.front() != '"')) return Proof::nothing;
        const auto quote = after.find('"');
        if (quote == std::string_view::npos) return Proof::arrived;
        const std::string_view status = trim(after.substr(quote + 1));
        if (status.starts_with("200")) return Proof::done;
        return status.empty() ? Proof::arrived : Proof::failed;
    }
    if (line.find("HTTP/1.") != std::string_view::npos) return Proof::nothing;   // another request's access line
    const std::string text = lower(line);
    const auto says = [&](std::string_view words) { return text.find(words) != std::string::npos; };
    if (says(start ? "failed to start profiler" : "failed to stop profiler")) return Proof::failed;
    if (says("invocation of profile method failed")) return Proof::failed;
    if (says(start ? "profiler started" : "profiler stopped")) return Proof::done;
    if (says(start ? "starting profiler" : "stopping profiler")) return Proof::arrived;
    return Proof::nothing;
}

std::optional<Server::TraceName> trace_name(std::string_view file) {
    if (!file.ends_with(".pt.trace.json") && !file.ends_with(".pt.trace.json.gz")) return std::nullopt;
    Server::TraceName name;
    if (file.find(".async_llm.") != std::string_view::npos) {
        name.frontend = true;
        return name;
    }
    name.rank = digits_after(file, "_rank");                    // [prefix_]dp0_pp0_tp3_dcp0_ep3_rank3.<ns>.pt.trace.json.gz
    if (!name.rank) name.rank = digits_after(file, "-rank-");   // <instance>-rank-3.<ns>.pt.trace.json.gz
    return name;                                                // <host>_<pid>.<ns>.pt.trace.json.gz tells no rank
}

}   // namespace campaign::servers::vllm
