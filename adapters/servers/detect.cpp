#include <algorithm>

#include "adapters/servers/server.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

namespace campaign::servers {

std::string_view to_string(Ability ability) {
    switch (ability) {
        case Ability::yes: return "yes";
        case Ability::no: return "no";
        case Ability::unknown: break;
    }
    return "unknown";
}

json::object to_json(const Capabilities& capabilities) {
    json::array models;
    for (const std::string& model : capabilities.models) models.emplace_back(model);
    json::object object{{"kind", capabilities.kind},
                        {"version", capabilities.version},
                        {"models", std::move(models)},
                        {"profiler", to_string(capabilities.profiler)},
                        {"profiler_evidence", capabilities.profiler_evidence},
                        {"profiler_cause", capabilities.profiler_cause},
                        {"tensor_parallel", capabilities.tensor_parallel},
                        {"world_size", capabilities.world_size}};
    if (capabilities.max_model_len) object["max_model_len"] = *capabilities.max_model_len;
    return object;
}

namespace {

std::string_view base_name(std::string_view path) {
    const auto slash = path.rfind('/');
    return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string kind_of_words(const std::vector<std::string>& words) {
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string_view name = base_name(words[i]);
        const std::string_view next = i + 1 < words.size() ? std::string_view{words[i + 1]} : std::string_view{};
        if (name == "vllm" && next == "serve") return "vllm";
        if (name == "sglang" && next == "serve") return "sglang";
        if (name == "llama-server") return "llama-server";
        if (name == "trtllm-serve") return "trtllm-serve";
        if (words[i] == "-m" && next.starts_with("vllm.entrypoints.")) return "vllm";
        if (words[i] == "-m" && next == "sglang.launch_server") return "sglang";
        if (words[i] == "-m" && next == "tensorrt_llm.commands.serve") return "trtllm-serve";
    }
    return {};
}

/// The image of a container says what its entry point serves.
std::string kind_of_image(const std::vector<std::string>& words) {
    const std::string_view program = base_name(words[0]);
    if (program != "docker" && program != "podman" && program != "nerdctl") return {};
    for (std::size_t i = 1; i < words.size(); ++i) {
        if (words[i].front() == '-') continue;
        if (words[i].find("vllm/vllm-openai") != std::string::npos) return "vllm";
        if (words[i].find("lmsysorg/sglang") != std::string::npos) return "sglang";
        if (words[i].find("ggml-org/llama.cpp:server") != std::string::npos) return "llama-server";
    }
    return {};
}

}   // namespace

std::string detect_kind(const std::vector<std::string>& argv) {
    if (argv.empty() || argv.size() > 4096) return {};
    if (argv[0].starts_with("VLLM::")) return "vllm";
    if (argv[0].starts_with("sglang::")) return "sglang";
    if (std::string kind = kind_of_words(argv); !kind.empty()) return kind;
    for (std::size_t i = 1; i < argv.size(); ++i) {
        // A string for a shell: good enough to recognise, never to change.
        const bool shell_flag =
            argv[i - 1].size() >= 2 && argv[i - 1].front() == '-' && argv[i - 1].back() == 'c' && argv[i - 1][1] != '-';
        if (!shell_flag || argv[i].find(' ') == std::string::npos) continue;
        std::vector<std::string> words;
        for (std::string& word : split(argv[i], ' ')) {
            if (!word.empty()) words.push_back(std::move(word));
        }
        if (std::string kind = kind_of_words(words); !kind.empty()) return kind;
    }
    const bool empty_word = std::any_of(argv.begin(), argv.end(), [](const std::string& word) { return word.empty(); });
    return empty_word ? std::string{} : kind_of_image(argv);
}

}   // namespace campaign::servers
