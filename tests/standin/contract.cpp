// The parts of the contract that need no connection: what a request asks for, and the documents that GET routes answer with.
#include <algorithm>
#include <cctype>

#include "tests/standin/server.hpp"

namespace standin {
namespace {

namespace json = boost::json;

/// Words count as tokens: a prompt of N words is N tokens, as a test would expect.
int words(std::string_view text) {
    int count = 0;
    bool inside = false;
    for (const char c : text) {
        const bool blank = std::isspace(static_cast<unsigned char>(c)) != 0;
        if (!blank && !inside) ++count;
        inside = !blank;
    }
    return count;
}

std::optional<int> whole(const json::object& object, std::string_view key) {
    const auto* value = object.if_contains(key);
    if (value == nullptr || !value->is_number()) return std::nullopt;
    return static_cast<int>(std::clamp(value->to_number<double>(), -1e9, 1e9));
}

bool yes(const json::object& object, std::string_view key) {
    const auto* value = object.if_contains(key);
    return value != nullptr && value->is_bool() && value->get_bool();
}

int prompt_length(const json::object& body, TokenRequest& request) {
    if (request.chat) {
        const auto* messages = body.if_contains("messages");
        if (messages == nullptr || !messages->is_array() || messages->get_array().empty()) {
            request.error = "messages: Field required";
            return 0;
        }
        int tokens = 3;   // the template's own
        for (const auto& message : messages->get_array()) {
            const auto* content = message.is_object() ? message.get_object().if_contains("content") : nullptr;
            tokens += 4 + (content != nullptr && content->is_string() ? words(content->get_string()) : 0);
        }
        return tokens;
    }
    const auto* prompt = body.if_contains("prompt");
    if (prompt != nullptr && prompt->is_string()) return std::max(1, words(prompt->get_string()));
    if (prompt != nullptr && prompt->is_array() && !prompt->get_array().empty() && prompt->get_array()[0].is_number())
        return static_cast<int>(prompt->get_array().size());
    request.error = "prompt: Field required";
    return 0;
}

TokenRequest refused(TokenRequest request, int status, std::string why) {
    request.error_status = status;
    request.error = std::move(why);
    return request;
}

}   // namespace

TokenRequest read_token_request(std::string_view body, std::string_view content_type, bool chat, const Options& options) {
    TokenRequest request;
    request.chat = chat;
    if (!content_type.starts_with("application/json"))
        return refused(request, 400, "Unsupported Media Type: Only 'application/json' is allowed");
    boost::system::error_code failed;
    const json::value parsed = json::parse(json::string_view{body.data(), body.size()}, failed);
    if (failed || !parsed.is_object()) return refused(request, 400, "JSON decode error");
    const auto& object = parsed.get_object();

    const std::string& served = options.faults.model_name.empty() ? options.served_names.front() : options.faults.model_name;
    request.model = served;
    if (const auto* model = object.if_contains("model"); model != nullptr && model->is_string()) {
        const std::string asked{model->get_string()};
        const auto& names = options.served_names;
        if (asked != served &&
            (!options.faults.model_name.empty() || std::find(names.begin(), names.end(), asked) == names.end()))
            return refused(request, 404, "The model `" + asked + "` does not exist.");
        request.model = asked;
    }
    if (whole(object, "n").value_or(1) != 1) return refused(request, 400, "n must be 1 here");
    request.stream = yes(object, "stream");
    if (const auto* extra = object.if_contains("stream_options"); extra != nullptr && extra->is_object()) {
        request.include_usage = yes(extra->get_object(), "include_usage");
        request.continuous_usage = request.include_usage && yes(extra->get_object(), "continuous_usage_stats");
    }
    request.prompt_tokens = prompt_length(object, request);
    if (!request.error.empty()) return refused(request, 400, request.error);
    const int room = options.max_model_len - request.prompt_tokens;
    if (room < 1)
        return refused(request, 400,
                       "This model's maximum context length is " + std::to_string(options.max_model_len) +
                           " tokens. However, your request has " + std::to_string(request.prompt_tokens) + " input tokens.");
    std::optional<int> limit = whole(object, "max_tokens");
    if (const auto newer = whole(object, "max_completion_tokens"); chat && newer) limit = newer;
    if (limit && *limit < 1)
        return refused(request, 400, "max_tokens must be at least 1, got " + std::to_string(*limit) + ".");
    const int most = std::min(room, limit.value_or(chat ? room : 16));
    request.reasoning = chat ? std::min(options.pace.reasoning_tokens, most) : 0;
    const int natural = std::max(options.pace.natural_tokens + request.reasoning, whole(object, "min_tokens").value_or(0));
    request.ended_itself = !yes(object, "ignore_eos") && natural <= most;
    request.tokens = request.ended_itself ? natural : most;
    return request;
}

std::string token_text(int n) {
    static constexpr const char* text[] = {" each", " layer", " waits", " for", " the", " slowest", " rank", " before",
                                           " it",   " goes",  " on",    ",",    " so",  " time",    " adds", " up"};
    return text[static_cast<std::size_t>(n) % std::size(text)];
}

std::string Server::models() const {
    json::array data;
    const auto add = [&](const std::string& name) {
        data.push_back(json::object{{"id", name},
                                    {"object", "model"},
                                    {"created", created_},
                                    {"owned_by", "vllm"},
                                    {"root", options_.model},
                                    {"parent", nullptr},
                                    {"max_model_len", options_.max_model_len},
                                    {"permission", json::array{}}});
    };
    if (!options_.faults.model_name.empty())
        add(options_.faults.model_name);
    else
        for (const auto& name : options_.served_names) add(name);
    return json::serialize(json::object{{"object", "list"}, {"data", std::move(data)}});
}

std::string Server::openapi() const {
    json::object paths;
    const auto add = [&](const char* path, const char* method) {
        paths[path] = json::object{{method, json::object{{"responses", json::object{}}}}};
    };
    for (const char* path : {"/health", "/load", "/version", "/v1/models"}) add(path, "get");
    for (const char* path : {"/v1/completions", "/v1/chat/completions"}) add(path, "post");
    if (!options_.profiler.profiler.empty())
        for (const char* path : {"/start_profile", "/stop_profile"}) add(path, "post");
    return json::serialize(json::object{{"openapi", "3.1.0"},
                                        {"info", json::object{{"title", "FastAPI"}, {"version", "0.1.0"}}},
                                        {"paths", std::move(paths)}});
}

std::string Server::metrics() const {
    const std::string label = "{engine=\"0\",model_name=\"" + options_.served_names.front() + "\"} ";
    std::string text;
    const auto add = [&](const char* type, const std::string& name, double value) {
        text += "# HELP " + name + " " + name + "\n# TYPE " + name + " " + type + "\n" + name + label +
                std::to_string(value) + "\n";
    };
    add("gauge", "vllm:num_requests_running", static_cast<double>(engine_.running()));
    add("gauge", "vllm:num_requests_waiting", static_cast<double>(engine_.waiting()));
    add("gauge", "vllm:kv_cache_usage_perc", 0.001 * static_cast<double>(engine_.running()));
    add("counter", "vllm:num_preemptions_total", 0);
    add("counter", "vllm:prompt_tokens_total", static_cast<double>(engine_.totals().prompt_tokens));
    add("counter", "vllm:generation_tokens_total", static_cast<double>(engine_.totals().generated_tokens));
    add("counter", "vllm:prefix_cache_queries_total", static_cast<double>(engine_.totals().prompt_tokens));
    add("counter", "vllm:prefix_cache_hits_total", 0);
    text +=
        "# TYPE vllm:request_success_total "
        "counter\nvllm:request_success_total{engine=\"0\",finished_reason=\"length\",model_name=\"" +
        options_.served_names.front() + "\"} " + std::to_string(completed_) + "\n";
    return text;
}

}   // namespace standin
