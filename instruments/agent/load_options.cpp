#include "instruments/agent/load_options.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include "base/text.hpp"

namespace campaign::agent {
namespace {

/// How the text of a value becomes a member of the specification.
enum class Kind { text, whole, seconds, levels, most, route, goodput, off, on, requests_out, result_out, vllm_out, as_json };

struct Option {
    std::string_view name;
    Kind kind;
    std::string_view member;   ///< of the specification; "" where it is none
};

constexpr std::array<Option, 23> options = {{
    {"--api", Kind::route, "route"},
    {"--model", Kind::text, "model"},
    {"--concurrency", Kind::levels, "concurrency"},
    {"--auto", Kind::most, "auto"},
    {"--requests", Kind::whole, "requests"},
    {"--duration", Kind::seconds, "duration_s"},
    {"--input-tokens", Kind::whole, "input_tokens"},
    {"--max-tokens", Kind::whole, "output_tokens"},
    {"--output-tokens", Kind::whole, "output_tokens"},
    {"--seed", Kind::whole, "seed"},
    {"--timeout", Kind::seconds, "request_timeout_s"},
    {"--warmup", Kind::whole, "warmup_requests"},
    {"--api-key-file", Kind::text, "api_key_file"},
    {"--unix-socket", Kind::text, "unix_socket"},
    {"--stop-at-eos", Kind::off, "ignore_eos"},
    {"--tunnelled", Kind::on, "tunnelled"},
    {"--goodput", Kind::goodput, "goodput"},
    {"--detailed", Kind::on, "detailed"},
    {"--vllm-out", Kind::vllm_out, ""},
    {"--requests-out", Kind::requests_out, ""},
    {"--out", Kind::result_out, ""},
    {"--json", Kind::as_json, ""},
    {"-o", Kind::result_out, ""},
}};

Error wrong(std::string what, std::string next = {}) {
    return Error{ErrorKind::usage, std::move(what), "", "",
                 next.empty() ? "campaignctl load --help shows the options" : next};
}

std::optional<std::int64_t> whole(std::string_view text) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return number;
}

/// "90s", "36m" as plans write it, or a bare number of seconds.
std::optional<double> seconds(std::string_view text) {
    if (const auto span = parse_duration(text)) return std::chrono::duration<double>(*span).count();
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(number)) return std::nullopt;
    return number;
}

std::optional<json::array> levels(std::string_view text) {
    json::array list;
    for (const std::string& part : split(text, ',')) {
        const auto level = whole(trim(part));
        if (!level) return std::nullopt;
        list.emplace_back(*level);
    }
    if (list.empty()) return std::nullopt;
    return list;
}

/// "ttft:500,tpot:20": as vLLM writes limits, in ms.
std::optional<json::object> goodput(std::string_view text) {
    json::object limits;
    for (const std::string& part : split(text, ',')) {
        const std::size_t colon = part.find(':');
        if (colon == std::string::npos) return std::nullopt;
        const std::string name{trim(part.substr(0, colon))};
        const std::string value{trim(part.substr(colon + 1))};
        double number = 0;
        const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
        if (error != std::errc{} || end != value.data() + value.size() || limits.contains(name)) return std::nullopt;
        limits[name] = number;
    }
    return limits;
}

bool takes_value(Kind kind) {
    return kind != Kind::off && kind != Kind::on && kind != Kind::as_json;
}

Result<void> take(const Option& option, const std::string& value, LoadAsked& asked) {
    const auto not_usable = [&](const std::string& wanted) {
        return wrong(std::string{option.name} + " is " + wanted + ", not '" + printable(value, 100) + "'");
    };
    json::value member;
    switch (option.kind) {
        case Kind::text: member = value; break;
        case Kind::off: member = false; break;
        case Kind::on: member = true; break;
        case Kind::as_json: asked.as_json = true; return {};
        case Kind::requests_out: asked.requests_out = value; return {};
        case Kind::vllm_out: asked.vllm_out = value; return {};
        case Kind::result_out: asked.result_out = value; return {};
        case Kind::route:
            if (value != "chat" && value != "completions") return not_usable("chat or completions");
            member = value;
            break;
        case Kind::goodput: {
            auto limits = goodput(value);
            if (!limits) return not_usable("like ttft:500,tpot:20,e2el:4000 (ms; one or more)");
            member = std::move(*limits);
            break;
        }
        case Kind::whole: {
            const auto number = whole(value);
            if (!number) return not_usable("a whole number");
            member = *number;
            break;
        }
        case Kind::most: {
            const auto number = whole(value);
            if (!number) return not_usable("the highest concurrency to try");
            member = json::object{{"max", *number}};
            break;
        }
        case Kind::seconds: {
            const auto number = seconds(value);
            if (!number) return not_usable("a time like 90s or 5m");
            member = *number;
            break;
        }
        case Kind::levels: {
            auto list = levels(value);
            if (!list) return not_usable("a number or a list like 1,8,32");
            member = std::move(*list);
            break;
        }
    }
    if (asked.spec.contains(option.member)) return wrong(std::string{option.name} + " is given twice");
    asked.spec[option.member] = std::move(member);
    return {};
}

}   // namespace

Result<LoadAsked> read_load_options(std::span<const std::string> words) {
    LoadAsked asked;
    asked.spec["schema"] = "campaign.load-spec/1";
    bool only_words = false;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string_view word = words[i];
        if (!only_words && word == "--") {
            only_words = true;
            continue;
        }
        if (only_words || !word.starts_with('-')) {
            if (asked.spec.contains("url"))
                return wrong("one server at a time: '" + printable(word, 100) + "' is a second URL");
            asked.spec["url"] = word;
            continue;
        }
        const std::size_t equals = word.find('=');
        const std::string_view name = word.substr(0, equals);
        const auto* const option =
            std::find_if(options.begin(), options.end(), [&](const Option& one) { return one.name == name; });
        if (option == options.end()) {
            std::vector<std::string> names;
            for (const Option& one : options) names.emplace_back(one.name);
            const auto near = did_you_mean(name, names);
            return wrong("load has no option '" + printable(name, 60) + "'", near ? "did you mean " + *near + "?" : "");
        }
        std::string value;
        if (equals != std::string_view::npos) {
            if (!takes_value(option->kind)) return wrong(std::string{name} + " takes no value");
            value = word.substr(equals + 1);
        } else if (takes_value(option->kind)) {
            if (i + 1 == words.size()) return wrong(std::string{name} + " needs a value");
            value = words[++i];
        }
        if (const Result<void> taken = take(*option, value, asked); !taken) return taken.error();
    }
    if (!asked.spec.contains("url") && !asked.spec.contains("unix_socket"))
        return wrong("load needs the server's URL", "like campaignctl load http://127.0.0.1:8000 --model NAME");
    if (!asked.spec.contains("model")) return wrong("load needs --model", "its name stands in the answer of GET /v1/models");
    if (!asked.spec.contains("concurrency") && !asked.spec.contains("auto")) asked.spec["concurrency"] = json::array{1};
    // Who counts requests means those; a warm-up is what was asked for, and the result says how many there were.
    if (!asked.spec.contains("warmup_requests")) asked.spec["warmup_requests"] = 0;
    return asked;
}

const char* load_help() {
    return "campaignctl load URL --model NAME [OPTION...]      a server that speaks OpenAI's API, e.g. "
           "http://127.0.0.1:8000\n"
           "campaignctl load SPEC.json RESULT.json            as the file says (docs/agent-files.md)\n"
           "\n"
           "What is sent\n"
           "  --api completions|chat    which route (completions)\n"
           "  --input-tokens N          length of each prompt (1024); exact after a warm-up request has shown the ratio\n"
           "  --max-tokens N            tokens asked for (256); --output-tokens is the same\n"
           "  --stop-at-eos             let the model end early; without it ignore_eos is sent\n"
           "  --seed N                  of the prompts (1): the same seed sends the same prompts\n"
           "  --api-key-file FILE       the key is read from there and written nowhere\n"
           "  --unix-socket PATH        connect there instead of to the URL's host\n"
           "How much\n"
           "  --concurrency N[,N...]    requests in flight, one level after the other (1)\n"
           "  --auto MAX                double the concurrency until it no longer pays, at most MAX\n"
           "  --requests N              of each level (4 x concurrency, at least 8)\n"
           "  --duration TIME           of each level, like 90s: running requests still end\n"
           "  --warmup N                requests before the first level that do not count (0)\n"
           "  --timeout TIME            of one request (10m)\n"
           "  --goodput ttft:MS,...     count requests that hold all of ttft, tpot, e2el (ms): request_goodput\n"
           "  --tunnelled               say in the result that the times hold a tunnel's delay\n"
           "What is kept\n"
           "  --requests-out FILE       one JSON object a line for each request, in the order of sending\n"
           "  -o, --out FILE            the result, campaign.load/1\n"
           "  --vllm-out FILE           each level as vllm bench serve writes it, an object a line\n"
           "  --detailed                with vLLM's lists of single requests in the result\n"
           "  --json                    the result on stdout instead of a table\n";
}

}   // namespace campaign::agent
