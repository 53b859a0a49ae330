#include "daemon/api/route.hpp"

#include <array>
#include <charconv>
#include <vector>

#include "base/text.hpp"

namespace campaign::api {
namespace {

struct Entry {
    std::string_view method;
    std::string_view path;   ///< "*" stands for one segment: the first is the name, the second the detail
    Route route;
};

constexpr std::array<Entry, 15> table{{
    {"GET", "/v1/version", Route::version},
    {"GET", "/v1/status", Route::status},
    {"GET", "/v1/events", Route::all_events},
    {"POST", "/v1/campaigns", Route::submit},
    {"GET", "/v1/campaigns/*", Route::campaign},
    {"GET", "/v1/campaigns/*/decisions/*", Route::decision},
    {"POST", "/v1/campaigns/*/approve", Route::approve},
    {"POST", "/v1/campaigns/*/cancel", Route::cancel},
    {"POST", "/v1/campaigns/*/resume", Route::resume},
    {"POST", "/v1/campaigns/*/restore", Route::restore},
    {"GET", "/v1/campaigns/*/events", Route::events},
    {"GET", "/v1/campaigns/*/artifacts", Route::artifacts},
    {"GET", "/v1/campaigns/*/report", Route::report},
    {"GET", "/v1/artifacts/*", Route::artifact},
    {"POST", "/v1/explain", Route::explain},
}};

/// The segments that the stars stand for, if the path has this form.
bool matches(const std::vector<std::string>& form, const std::vector<std::string>& path, std::vector<std::string>& stars) {
    if (form.size() != path.size()) return false;
    stars.clear();
    for (std::size_t i = 0; i < form.size(); ++i) {
        if (form[i] == "*") {
            if (path[i].empty()) return false;
            stars.push_back(path[i]);
        } else if (form[i] != path[i]) {
            return false;
        }
    }
    return true;
}

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

Result<void> read_query(std::string_view query, Target& target) {
    for (const std::string& pair : split(query, '&')) {
        const std::size_t equals = pair.find('=');
        const std::string key = pair.substr(0, equals);
        const std::string value = equals == std::string::npos ? "" : pair.substr(equals + 1);
        if (key == "after") {
            const auto [end, bad] = std::from_chars(value.data(), value.data() + value.size(), target.after);
            if (bad != std::errc{} || end != value.data() + value.size() || target.after < 0)
                return Error{ErrorKind::usage, "after must be the number of an event", "", printable(value, 60), ""};
        } else if (key == "follow") {
            if (value != "0" && value != "1")
                return Error{ErrorKind::usage, "follow must be 0 or 1", "", printable(value, 60), ""};
            target.follow = value == "1";
        } else {
            return Error{ErrorKind::usage, "unknown query parameter " + printable(key, 60), "", "", ""};
        }
    }
    return {};
}

}   // namespace

Result<std::string> percent_decode(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        char c = text[i];
        if (c == '%') {
            const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
            const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
            if (high < 0 || low < 0) return Error{ErrorKind::usage, "the path holds a broken percent escape", "", "", ""};
            c = static_cast<char>(high * 16 + low);
            i += 2;
        }
        if (c == '\0') return Error{ErrorKind::usage, "the path holds a NUL", "", "", ""};
        out += c;
    }
    return out;
}

Result<Target> route(std::string_view method, std::string_view request) {
    const std::size_t question = request.find('?');
    const std::string_view path_text = request.substr(0, question);
    std::vector<std::string> path;
    for (const std::string& segment : split(path_text, '/')) {
        const Result<std::string> plain = percent_decode(segment);
        if (!plain) return plain.error();
        path.push_back(*plain);
    }
    std::string_view other_method;
    std::vector<std::string> stars;
    for (const Entry& entry : table) {
        if (!matches(split(entry.path, '/'), path, stars)) continue;
        if (entry.method != method) {
            other_method = entry.method;
            continue;
        }
        Target target;
        target.route = entry.route;
        if (!stars.empty()) target.name = stars[0];
        if (stars.size() > 1) target.detail = stars[1];
        if (question != std::string_view::npos) {
            if (const Result<void> read = read_query(request.substr(question + 1), target); !read) return read.error();
        }
        return target;
    }
    if (!other_method.empty()) {
        return Error{ErrorKind::usage, printable(path_text, 200) + " does not know " + printable(method, 20), "", "",
                     "use " + std::string{other_method}};
    }
    return Error{ErrorKind::not_found, "the API has no " + printable(path_text, 200), "", "",
                 "docs/api.md lists what it has"};
}

}   // namespace campaign::api
