// vLLM: the HTTP contract. What its words mean is in vllm_settings.

#include <algorithm>

#include "adapters/servers/flavours.hpp"
#include "adapters/servers/openai.hpp"
#include "adapters/servers/vllm_settings.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

namespace campaign::servers {

namespace {

/// A tag as it may stand in a query: everything unusual becomes '-', so that the access log shows exactly this.
std::string safe_tag(std::string_view tag) {
    std::string safe{tag.substr(0, 200)};
    std::replace_if(
        safe.begin(), safe.end(),
        [](char c) {
            return !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
                     c == '-');
        },
        '-');
    return safe;
}

class Vllm final : public Server {
public:
    explicit Vllm(http::Client& client) : client_{client} {}

    std::string kind() const override { return "vllm"; }

    // vLLM does not listen while it loads; 503 (500 before 0.11) is its word for a dead engine.
    Async<Result<Health>> health(const Endpoint& at) override {
        http::Request ask = openai::request(at, "GET", "/health");
        ask.total_limit = std::chrono::seconds{10};
        const Result<http::Response> answer = co_await client_.send(std::move(ask));
        co_return openai::judge_health(answer, Health::dead);
    }

    Async<Result<std::vector<std::string>>> models(const Endpoint& at) override {
        const Result<openai::ModelList> list = co_await openai::models(client_, at);
        if (!list) co_return list.error();
        co_return list->names;
    }

    Async<Result<Capabilities>> capabilities(const Endpoint& at, const std::vector<std::string>& argv,
                                             const std::vector<std::string>& environment_names) override {
        Capabilities found;
        found.kind = "vllm";
        const vllm::Parallelism parallel = vllm::parallelism(argv);
        found.tensor_parallel = parallel.tensor;
        found.world_size = parallel.tensor * parallel.pipeline * parallel.data;

        const Result<openai::ModelList> list = co_await openai::models(client_, at);
        if (!list && list.error().kind != ErrorKind::refused) co_return list.error();
        if (list) {
            found.models = list->names;
            found.max_model_len = list->max_model_len;
        }
        http::Request ask_version = openai::request(at, "GET", "/version");
        const Result<http::Response> version = co_await client_.send(std::move(ask_version));
        if (version && version->status == 200) {
            const Result<json::value> parsed = parse_json(version->body, "the answer of GET /version");
            if (parsed) found.version = printable(string_at(*parsed, "version").value_or(""), 100);
        }
        // On SGLang GET /start_profile starts a profile: asked only of what is vLLM for certain.
        const std::string by_argv = detect_kind(argv);
        const std::string owner = list ? list->owned_by : std::string{};
        const bool surely_vllm = by_argv == "vllm" || (by_argv.empty() && owner == "vllm");
        if (!surely_vllm || (!owner.empty() && owner != "vllm")) {
            found.profiler_evidence = "not asked: the server's argv and its list of models do not both say vllm (owned_by " +
                                      (owner.empty() ? std::string{"not told"} : printable(owner, 60)) + ")";
            co_return found;
        }
        const Result<void> probed = co_await probe(at, argv, environment_names, found);
        if (!probed) co_return probed.error();
        co_return found;
    }

    Async<Result<Token>> one_token(const Endpoint& at, std::string model) override {
        co_return co_await openai::one_token(client_, at, std::move(model));
    }

    Result<ProfilerSetting> profiler_setting(const std::string& version, const std::string& trace_dir,
                                             const std::vector<std::string>& argv) const override {
        return vllm::torch_setting(version, trace_dir, argv);
    }

    Result<ProfilerSetting> nsys_setting(const std::string& version, const std::vector<std::string>& argv) const override {
        return vllm::cuda_setting(version, argv);
    }

    Async<Result<http::Response>> start_profile(const Endpoint& at, std::string tag) override {
        co_return co_await profile(at, "/start_profile", tag, std::chrono::minutes{5});
    }

    // It answers when the last rank has written its trace, which may take many minutes.
    Async<Result<http::Response>> stop_profile(const Endpoint& at, std::string tag, Millis limit) override {
        co_return co_await profile(at, "/stop_profile", tag, limit);
    }

    Proof profile_log_proof(std::string_view line, bool start, std::string_view tag) const override {
        const std::string safe = safe_tag(tag);
        return vllm::log_proof(line, start, safe);
    }

    std::optional<TraceName> trace_name(std::string_view file) const override { return vllm::trace_name(file); }

private:
    // No body and no Content-Type: some front ends deny fields or bodies they do not know.
    Async<Result<http::Response>> profile(const Endpoint& at, std::string route, std::string tag, Millis limit) {
        http::Request ask = openai::request(at, "POST", route + "?step=" + safe_tag(tag));
        ask.total_limit = limit;
        co_return co_await client_.send(std::move(ask));
    }

    /// Three witnesses in falling order of worth: the route's status, the API's description, the command line.
    Async<Result<void>> probe(const Endpoint& at, const std::vector<std::string>& argv,
                              const std::vector<std::string>& environment_names, Capabilities& found) {
        http::Request ask = openai::request(at, "GET", "/start_profile");
        const Result<http::Response> route = co_await client_.send(std::move(ask));
        if (!route) co_return route.error();
        found.profiler_evidence = "GET /start_profile answered " + std::to_string(route->status);
        if (route->status == 405) found.profiler = Ability::yes;
        if (route->status == 404) found.profiler = Ability::no;
        if (found.profiler == Ability::unknown) {
            http::Request ask_api = openai::request(at, "GET", "/openapi.json");
            ask_api.keep_body = 16u << 20;
            const Result<http::Response> api = co_await client_.send(std::move(ask_api));
            if (api && api->status == 200) {
                const Result<json::value> parsed = parse_json(api->body, "the answer of GET /openapi.json");
                const json::value* paths = parsed ? member(*parsed, "paths") : nullptr;
                if (paths != nullptr && paths->is_object()) {
                    const bool listed = paths->get_object().contains("/start_profile");
                    found.profiler = listed ? Ability::yes : Ability::no;
                    found.profiler_evidence += listed ? "; /openapi.json lists it" : "; /openapi.json does not list it";
                }
            }
        }
        const bool option = vllm::has_profiler_option(argv);
        const bool variable = std::find(environment_names.begin(), environment_names.end(), "VLLM_TORCH_PROFILER_DIR") !=
                              environment_names.end();
        if (!argv.empty()) {
            found.profiler_evidence += option ? "; argv has --profiler-config" : "; argv has no --profiler-config";
            found.profiler_evidence += variable ? ", VLLM_TORCH_PROFILER_DIR is set" : "";
        }
        if (found.profiler == Ability::no)
            found.profiler_cause = vllm::profiler_cause(found.version, argv, environment_names);
        co_return Result<void>{};
    }

    http::Client& client_;
};

}   // namespace

std::unique_ptr<Server> make_vllm(http::Client& client) {
    return std::make_unique<Vllm>(client);
}

}   // namespace campaign::servers
