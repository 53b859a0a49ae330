#include "adapters/servers/openai.hpp"

#include "base/json.hpp"
#include "base/text.hpp"

namespace campaign::servers::openai {

http::Request request(const Endpoint& at, std::string method, std::string path) {
    http::Request made;
    made.method = std::move(method);
    made.url = at.base_url + path;
    made.unix_socket = at.unix_socket;
    if (at.api_key) made.headers.push_back("Authorization: Bearer " + *at.api_key);
    return made;
}

Result<ModelList> parse_models(const http::Response& response) {
    if (response.status == 401 || response.status == 403) {
        return Error{ErrorKind::refused, "the server wants an API key for its list of models", "",
                     "GET /v1/models answered " + std::to_string(response.status),
                     "give the plan the key (services.NAME.api_key)"};
    }
    if (response.status != 200) {
        return Error{ErrorKind::protocol, "the server does not list its models", "",
                     "GET /v1/models answered " + std::to_string(response.status) + " " + printable(response.body, 200), ""};
    }
    const Result<json::value> parsed = parse_json(response.body, "the answer of GET /v1/models");
    if (!parsed) return parsed.error();
    const json::value* data = member(*parsed, "data");
    if (data == nullptr || !data->is_array()) {
        return Error{ErrorKind::protocol, "the answer of GET /v1/models holds no list of models", "",
                     printable(response.body, 200), ""};
    }
    ModelList list;
    for (const json::value& model : data->get_array()) {
        const auto name = string_at(model, "id");
        if (!name) continue;
        if (list.names.empty()) {
            list.owned_by = string_at(model, "owned_by").value_or("");
            if (const auto length = int_at(model, "max_model_len")) list.max_model_len = static_cast<int>(*length);
        }
        list.names.push_back(*name);
        if (list.names.size() == 1000) break;
    }
    return list;
}

Async<Result<ModelList>> models(http::Client& client, const Endpoint& at) {
    http::Request ask = request(at, "GET", "/v1/models");
    const Result<http::Response> answer = co_await client.send(std::move(ask));
    if (!answer) co_return answer.error();
    co_return parse_models(*answer);
}

Token judge_token(const http::Response& response, const std::string& model) {
    Token token;
    token.took = response.took;
    token.model = model;
    token.evidence = "POST /v1/completions answered " + std::to_string(response.status);
    if (response.status != 200) {
        token.evidence += ": " + printable(response.body, 200);
        return token;
    }
    const Result<json::value> parsed = parse_json(response.body, "the answer of POST /v1/completions");
    const json::value* choices = parsed ? member(*parsed, "choices") : nullptr;
    if (choices == nullptr || !choices->is_array() || choices->get_array().empty()) {
        token.evidence += " without a choice: " + printable(response.body, 200);
        return token;
    }
    const std::string named = string_at(*parsed, "model").value_or(model);
    if (named != model) {
        token.evidence += " by another model, " + printable(named, 100);
        return token;
    }
    const json::value* usage = member(*parsed, "usage");
    const auto counted = usage == nullptr ? std::nullopt : int_at(*usage, "completion_tokens");
    const std::string text = string_at(choices->get_array()[0], "text").value_or("");
    // The text of one token may be empty (half a character, a hidden end token): the count decides where there is one.
    token.generated = counted ? *counted >= 1 : !text.empty();
    token.evidence += counted ? " with " + std::to_string(*counted) + " token(s)" : " without a count of tokens";
    token.evidence += " in " + format_span(response.took);
    return token;
}

Async<Result<Token>> one_token(http::Client& client, const Endpoint& at, std::string model) {
    http::Request ask = request(at, "POST", "/v1/completions");
    ask.headers.emplace_back("Content-Type: application/json");
    ask.body = json::serialize(
        json::object{{"model", model}, {"prompt", "The"}, {"max_tokens", 1}, {"temperature", 0}, {"stream", false}});
    ask.total_limit = std::chrono::seconds{120};
    const Result<http::Response> answer = co_await client.send(std::move(ask));
    if (!answer) co_return answer.error();
    co_return judge_token(*answer, model);
}

Result<Health> judge_health(const Result<http::Response>& answer, Health unavailable_means) {
    if (answer) {
        if (answer->status == 200) return Health::ready;
        if (answer->status == 503) return unavailable_means;
        if (answer->status >= 500) return Health::dead;
        return Error{ErrorKind::protocol, "GET /health gave an answer that says nothing about health", "",
                     std::to_string(answer->status) + " " + printable(answer->body, 200), "check services.NAME.url"};
    }
    const Error& error = answer.error();
    // A name that does not resolve or a host that does not answer is no loading server.
    if (error.kind == ErrorKind::timed_out) return Health::down;
    if (error.kind == ErrorKind::unreachable) {
        const bool no_name = error.evidence.find("resolve") != std::string::npos;
        const bool no_route =
            error.evidence.find("No route") != std::string::npos || error.evidence.find("unreachable") != std::string::npos;
        return no_name || no_route ? Health::down : Health::loading;
    }
    // Through a forwarded port a refused connection looks like one that was accepted and dropped at once.
    if (error.kind == ErrorKind::in_doubt && error.why == "the connection ended") return Health::loading;
    return error;
}

}   // namespace campaign::servers::openai
