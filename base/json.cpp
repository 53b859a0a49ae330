#include "base/json.hpp"

#include <algorithm>
#include <vector>

namespace campaign {
namespace {

void write_canonical(const json::value& value, std::string& out) {
    if (const auto* object = value.if_object()) {
        std::vector<std::pair<std::string_view, const json::value*>> members;
        members.reserve(object->size());
        for (const auto& entry : *object) members.emplace_back(std::string_view{entry.key()}, &entry.value());
        std::sort(members.begin(), members.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        out += '{';
        for (const auto& [key, item] : members) {
            if (out.back() != '{') out += ',';
            out += json::serialize(json::string_view{key});
            out += ':';
            write_canonical(*item, out);
        }
        out += '}';
    } else if (const auto* array = value.if_array()) {
        out += '[';
        for (const auto& item : *array) {
            if (out.back() != '[') out += ',';
            write_canonical(item, out);
        }
        out += ']';
    } else {
        out += json::serialize(value);
    }
}

void write_pretty(const json::value& value, std::string& out, std::size_t depth) {
    const auto indent = [&out](std::size_t level) {
        out += '\n';
        out.append(level * 2, ' ');
    };
    if (const auto* object = value.if_object(); object != nullptr && !object->empty()) {
        out += '{';
        bool first = true;
        for (const auto& entry : *object) {
            if (!first) out += ',';
            first = false;
            indent(depth + 1);
            out += json::serialize(entry.key());
            out += ": ";
            write_pretty(entry.value(), out, depth + 1);
        }
        indent(depth);
        out += '}';
    } else if (const auto* array = value.if_array(); array != nullptr && !array->empty()) {
        out += '[';
        bool first = true;
        for (const auto& item : *array) {
            if (!first) out += ',';
            first = false;
            indent(depth + 1);
            write_pretty(item, out, depth + 1);
        }
        indent(depth);
        out += ']';
    } else {
        out += json::serialize(value);
    }
}

}   // namespace

Result<json::value> parse_json(std::string_view text, std::string_view what) {
    json::parse_options options;
    options.max_depth = 64;
    json::error_code error;
    json::value value = json::parse(json::string_view{text.data(), text.size()}, error, {}, options);
    if (error) return Error{ErrorKind::invalid, std::string{what} + " is not valid JSON", error.message(), "", ""};
    return value;
}

const json::value* member(const json::value& object, std::string_view key) {
    const auto* members = object.if_object();
    if (members == nullptr) return nullptr;
    const json::value* found = members->if_contains(json::string_view{key.data(), key.size()});
    return found == nullptr || found->is_null() ? nullptr : found;
}

std::optional<std::string> string_at(const json::value& object, std::string_view key) {
    const json::value* found = member(object, key);
    if (found == nullptr || !found->is_string()) return std::nullopt;
    return std::string{found->get_string()};
}

std::optional<std::int64_t> int_at(const json::value& object, std::string_view key) {
    const json::value* found = member(object, key);
    if (found == nullptr) return std::nullopt;
    if (found->is_int64()) return found->get_int64();
    if (found->is_uint64() && found->get_uint64() <= static_cast<std::uint64_t>(INT64_MAX)) {
        return static_cast<std::int64_t>(found->get_uint64());
    }
    return std::nullopt;
}

std::optional<double> number_at(const json::value& object, std::string_view key) {
    const json::value* found = member(object, key);
    if (found == nullptr) return std::nullopt;
    if (found->is_int64()) return static_cast<double>(found->get_int64());
    if (found->is_uint64()) return static_cast<double>(found->get_uint64());
    if (found->is_double()) return found->get_double();
    return std::nullopt;
}

std::optional<bool> bool_at(const json::value& object, std::string_view key) {
    const json::value* found = member(object, key);
    if (found == nullptr || !found->is_bool()) return std::nullopt;
    return found->get_bool();
}

std::string canonical(const json::value& value) {
    std::string out;
    write_canonical(value, out);
    return out;
}

std::string pretty(const json::value& value) {
    std::string out;
    write_pretty(value, out, 0);
    out += '\n';
    return out;
}

json::object to_json(const Error& error) {
    json::object object;
    object["kind"] = std::string{to_string(error.kind)};
    object["what"] = error.what;
    if (!error.why.empty()) object["why"] = error.why;
    if (!error.evidence.empty()) object["evidence"] = error.evidence;
    if (!error.next.empty()) object["next"] = error.next;
    return object;
}

Error error_from_json(const json::value& value) {
    return Error{error_kind_from(string_at(value, "kind").value_or("bug")), string_at(value, "what").value_or(""),
                 string_at(value, "why").value_or(""), string_at(value, "evidence").value_or(""),
                 string_at(value, "next").value_or("")};
}

}   // namespace campaign
