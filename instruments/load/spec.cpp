#include "instruments/load/spec.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/json.hpp"
#include "base/text.hpp"

namespace campaign::load {
namespace {

Error bad(std::string what, std::string next = {}) {
    return Error{ErrorKind::invalid, "the load specification is not usable: " + std::move(what), "", "", std::move(next)};
}

constexpr std::array<std::string_view, 20> known = {"schema",     "url",          "unix_socket",       "route",
                                                    "model",      "api_key_file", "concurrency",       "auto",
                                                    "requests",   "duration_s",   "input_tokens",      "output_tokens",
                                                    "ignore_eos", "seed",         "request_timeout_s", "warmup_requests",
                                                    "tunnelled",  "notes",        "goodput",           "detailed"};

/// Reads members one by one; the first fault is kept.
class Members {
public:
    explicit Members(const json::object& object) : object_{object} {}

    const json::value* find(std::string_view key) const {
        const json::value* found = object_.if_contains(key);
        return found == nullptr || found->is_null() ? nullptr : found;
    }
    template <class T>
    void whole(std::string_view key, T& into, std::int64_t least, std::int64_t most) {
        const json::value* found = find(key);
        if (found == nullptr) return;
        const std::int64_t* number = found->if_int64();
        if (number == nullptr || *number < least || *number > most) {
            complain(key, "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
        } else {
            into = static_cast<T>(*number);
        }
    }
    void seconds(std::string_view key, double& into) {
        const json::value* found = find(key);
        if (found == nullptr) return;
        boost::system::error_code failed;
        const double number = found->is_number() ? found->to_number<double>(failed) : 0;
        if (failed || !std::isfinite(number) || number <= 0 || number > 7 * 86400.0) {
            complain(key, "seconds above 0 and up to a week");
        } else {
            into = number;
        }
    }
    void text(std::string_view key, std::string& into) {
        const json::value* found = find(key);
        if (found == nullptr) return;
        if (!found->is_string() || found->get_string().size() > 4096) return complain(key, "a text");
        into = std::string_view{found->get_string()};
    }
    void flag(std::string_view key, bool& into) {
        const json::value* found = find(key);
        if (found == nullptr) return;
        if (!found->is_bool()) return complain(key, "true or false");
        into = found->get_bool();
    }
    void complain(std::string_view key, const std::string& wanted) {
        if (fault.empty()) fault = "'" + std::string(key) + "' must be " + wanted;
    }

    std::string fault;

private:
    const json::object& object_;
};

void read_levels(Members& members, Spec& spec) {
    constexpr std::int64_t most = 100000;
    if (const json::value* list = members.find("concurrency")) {
        const bool usable = list->is_array() && list->get_array().size() <= 256 &&
                            std::all_of(list->get_array().begin(), list->get_array().end(), [](const json::value& level) {
                                return level.is_int64() && level.get_int64() >= 1 && level.get_int64() <= most;
                            });
        if (!usable) return members.complain("concurrency", "a list of at most 256 numbers from 1 to 100000");
        for (const json::value& level : list->get_array())
            spec.concurrency.push_back(static_cast<std::uint32_t>(level.get_int64()));
    }
    if (const json::value* search = members.find("auto"); search != nullptr && spec.concurrency.empty()) {
        const auto max = int_at(*search, "max");
        if (!max || *max < 1 || *max > most) return members.complain("auto", R"(like {"max": 256})");
        spec.auto_max = static_cast<std::uint32_t>(*max);
    }
    if (spec.concurrency.empty() && !spec.auto_max && members.fault.empty())
        members.fault = "it names no 'concurrency' and no 'auto'";
}

void read_goodput(Members& members, Spec& spec) {
    const json::value* const found = members.find("goodput");
    if (found == nullptr) return;
    const auto wrong = [&] { members.complain("goodput", R"(like {"ttft": 500, "tpot": 20, "e2el": 4000}: ms, above 0)"); };
    if (!found->is_object() || found->get_object().empty()) return wrong();
    Goodput limits;
    for (const auto& [name, value] : found->get_object()) {
        boost::system::error_code failed;
        const double number = value.is_number() ? value.to_number<double>(failed) : 0;
        std::optional<double>* const limit = name == "ttft"   ? &limits.ttft_ms
                                             : name == "tpot" ? &limits.tpot_ms
                                             : name == "e2el" ? &limits.e2el_ms
                                                              : nullptr;
        if (limit == nullptr || failed || !std::isfinite(number) || number <= 0) return wrong();
        *limit = number;
    }
    spec.goodput = limits;
}

}   // namespace

Result<Url> parse_url(std::string_view text) {
    constexpr std::string_view plain = "http://";
    if (text.size() > 2048 || std::any_of(text.begin(), text.end(), [](char c) { return c <= ' ' || c == 127; })) {
        return bad("'url' holds blanks or control characters, or is longer than 2048 bytes");
    }
    if (text.starts_with("https://")) {
        return Error{ErrorKind::unavailable, "https:// is not supported by this load generator",
                     "it speaks plain HTTP/1.1 only", "",
                     "measure on the server's own host by http://127.0.0.1:PORT, where TLS does not add to the times"};
    }
    if (!text.starts_with(plain)) return bad("'url' does not begin with http://", "write it like http://127.0.0.1:8000");
    Url url;
    std::string_view rest = text.substr(plain.size());
    const std::size_t slash = rest.find_first_of("/?#");
    const std::string_view authority = rest.substr(0, slash);
    std::string_view path = slash == std::string_view::npos ? std::string_view{} : rest.substr(slash);
    if (authority.find('@') != std::string_view::npos) {
        return bad("'url' holds a user or password", "give the key as a file: \"api_key_file\"");
    }
    if (path.find_first_of("?#") != std::string_view::npos) return bad("'url' holds a query or fragment");
    std::string_view host = authority;
    std::string_view port;
    if (authority.starts_with('[')) {
        const std::size_t end = authority.find(']');
        if (end == std::string_view::npos) return bad("'url' has a '[' without ']'");
        host = authority.substr(1, end - 1);
        port = authority.substr(end + 1);
        if (!port.empty() && !port.starts_with(':')) return bad("'url' has text after ']'");
    } else if (const std::size_t colon = authority.rfind(':'); colon != std::string_view::npos) {
        host = authority.substr(0, colon);
        port = authority.substr(colon);
    }
    if (host.empty()) return bad("'url' names no host");
    if (!port.empty()) {
        port.remove_prefix(1);
        const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), url.port);
        if (error != std::errc{} || end != port.data() + port.size() || url.port == 0)
            return bad("'url' has no usable port");
    }
    while (path.ends_with('/')) path.remove_suffix(1);
    if (path.ends_with("/v1")) path.remove_suffix(3);
    url.text = text;
    url.host = host;
    url.authority = authority;
    url.base_path = path;
    return url;
}

Result<Spec> parse_spec(std::string_view json_text) {
    if (json_text.size() > (1U << 20U)) return bad("it is larger than 1 MiB");
    const Result<json::value> parsed = parse_json(json_text, "load specification");
    if (!parsed) return parsed.error();
    const json::object* object = parsed->if_object();
    if (object == nullptr) return bad("it is no JSON object");
    for (const auto& [key, value] : *object) {
        if (std::find(known.begin(), known.end(), std::string_view{key}) == known.end()) {
            const std::vector<std::string> names(known.begin(), known.end());
            const auto near = did_you_mean(std::string_view{key}, names);
            return bad("'" + printable(std::string_view{key}, 60) + "' is no member of it",
                       near ? "did you mean '" + *near + "'?" : "");
        }
    }
    Members members{*object};
    std::string schema;
    members.text("schema", schema);
    if (members.fault.empty() && schema != "campaign.load-spec/1") return bad("'schema' is not \"campaign.load-spec/1\"");
    Spec spec;
    std::string url, unix_socket, route = "completions", api_key_file;
    members.text("url", url);
    members.text("unix_socket", unix_socket);
    members.text("route", route);
    members.text("model", spec.model);
    members.text("api_key_file", api_key_file);
    members.whole("input_tokens", spec.input_tokens, 1, 4'000'000);
    members.whole("output_tokens", spec.output_tokens, 1, 4'000'000);
    members.flag("ignore_eos", spec.ignore_eos);
    members.whole("seed", spec.seed, 0, INT64_MAX);
    members.seconds("request_timeout_s", spec.request_timeout_s);
    members.whole("warmup_requests", spec.warmup_requests, 0, 100000);
    members.flag("tunnelled", spec.tunnelled);
    members.flag("detailed", spec.detailed);
    read_goodput(members, spec);
    std::uint64_t requests = 0;
    double duration = 0;
    members.whole("requests", requests, 1, 100'000'000);
    members.seconds("duration_s", duration);
    if (requests > 0) spec.requests = requests;
    if (duration > 0) spec.duration_s = duration;
    read_levels(members, spec);
    if (route == "chat") {
        spec.route = Route::chat;
    } else if (route != "completions") {
        members.complain("route", "\"completions\" or \"chat\"");
    }
    if (!members.fault.empty()) return bad(members.fault);
    if (spec.model.empty()) return bad("it names no 'model'");
    if (!unix_socket.empty()) spec.unix_socket = unix_socket;
    if (!api_key_file.empty()) spec.api_key_file = api_key_file;
    if (url.empty() && spec.unix_socket) url = "http://localhost";
    auto address = parse_url(url);
    if (!address) return address.error();
    spec.url = *std::move(address);
    return spec;
}

}   // namespace campaign::load
