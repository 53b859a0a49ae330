// A server of which only the OpenAI-compatible API is known: it can be watched and measured, not profiled from inside.

#include "adapters/servers/flavours.hpp"
#include "adapters/servers/openai.hpp"

namespace campaign::servers {

namespace {

Error no_profiler() {
    return Error{ErrorKind::unavailable, "this server has no profiler that campaignd knows", "its kind is generic", "",
                 "measure it from outside (throughput), or with microbenchmarks"};
}

class Generic final : public Server {
public:
    explicit Generic(http::Client& client) : client_{client} {}

    std::string kind() const override { return "generic"; }

    Async<Result<Health>> health(const Endpoint& at) override {
        http::Request ask = openai::request(at, "GET", "/health");
        ask.total_limit = std::chrono::seconds{25};   // some servers generate a token for it
        const Result<http::Response> answer = co_await client_.send(std::move(ask));
        co_return openai::judge_health(answer, Health::loading);
    }

    Async<Result<std::vector<std::string>>> models(const Endpoint& at) override {
        const Result<openai::ModelList> list = co_await openai::models(client_, at);
        if (!list) co_return list.error();
        co_return list->names;
    }

    Async<Result<Capabilities>> capabilities(const Endpoint& at, const std::vector<std::string>&,
                                             const std::vector<std::string>&) override {
        const Result<openai::ModelList> list = co_await openai::models(client_, at);
        if (!list) co_return list.error();
        Capabilities found;
        found.kind = "generic";
        found.models = list->names;
        found.max_model_len = list->max_model_len;
        found.profiler = Ability::no;
        found.profiler_evidence = "the server's kind is not one that campaignd can profile";
        found.profiler_cause = "campaignd knows no profiler of this server";
        co_return found;
    }

    Async<Result<Token>> one_token(const Endpoint& at, std::string model) override {
        co_return co_await openai::one_token(client_, at, std::move(model));
    }

    Result<ProfilerSetting> profiler_setting(const std::string&, const std::string&,
                                             const std::vector<std::string>&) const override {
        return no_profiler();
    }
    Result<ProfilerSetting> nsys_setting(const std::string&, const std::vector<std::string>&) const override {
        return no_profiler();
    }
    Async<Result<http::Response>> start_profile(const Endpoint&, std::string) override { co_return no_profiler(); }
    Async<Result<http::Response>> stop_profile(const Endpoint&, std::string, Millis) override { co_return no_profiler(); }
    Proof profile_log_proof(std::string_view, bool, std::string_view) const override { return Proof::nothing; }
    std::optional<TraceName> trace_name(std::string_view) const override { return std::nullopt; }

private:
    http::Client& client_;
};

}   // namespace

std::unique_ptr<Server> make_generic(http::Client& client) {
    return std::make_unique<Generic>(client);
}

Result<std::unique_ptr<Server>> make_server(const std::string& kind, http::Client& client) {
    if (kind == "vllm") return make_vllm(client);
    if (kind == "generic") return make_generic(client);
    const bool known = kind == "sglang" || kind == "llama-server" || kind == "trtllm-serve";
    return Error{ErrorKind::unavailable,
                 known ? "campaignd cannot profile " + kind + " yet" : "campaignd knows no server kind '" + kind + "'", "",
                 "", "give the service `server: generic` to measure it from outside; profiles work with vllm"};
}

}   // namespace campaign::servers
