#include "instruments/load/event.hpp"

#include "base/json.hpp"
#include "base/text.hpp"

namespace campaign::load {
namespace {

constexpr std::size_t message_limit = 500;

json::parse_options tolerant() {
    json::parse_options options;
    options.max_depth = 64;
    options.allow_invalid_utf8 = true;   // one broken character is the model's affair, not a broken stream
    return options;
}

std::string_view text_at(const json::object& object, std::string_view key) {
    const json::value* found = object.if_contains(key);
    if (found == nullptr) return {};
    const json::string* text = found->if_string();
    return text == nullptr ? std::string_view{} : std::string_view{text->data(), text->size()};
}

const json::object* object_at(const json::object& object, std::string_view key) {
    const json::value* found = object.if_contains(key);
    return found == nullptr ? nullptr : found->if_object();
}

const json::array* array_at(const json::object& object, std::string_view key) {
    const json::value* found = object.if_contains(key);
    return found == nullptr ? nullptr : found->if_array();
}

std::optional<std::int64_t> count_at(const json::object* object, std::string_view key) {
    const json::value* found = object == nullptr ? nullptr : object->if_contains(key);
    const std::int64_t* number = found == nullptr ? nullptr : found->if_int64();
    if (number == nullptr || *number < 0) return std::nullopt;
    return *number;
}

json::value plain_copy(const json::value* value) {
    if (value == nullptr) return nullptr;
    if (value->is_string()) return json::value(printable(std::string_view{value->get_string()}, message_limit));
    if (value->is_int64() || value->is_bool() || value->is_double()) return json::value(*value, json::storage_ptr{});
    return nullptr;
}

Usage read_usage(const json::object& object) {
    Usage usage;
    usage.prompt_tokens = count_at(&object, "prompt_tokens");
    usage.completion_tokens = count_at(&object, "completion_tokens");
    usage.reasoning_tokens = count_at(object_at(object, "completion_tokens_details"), "reasoning_tokens");
    if (!usage.reasoning_tokens) usage.reasoning_tokens = count_at(&object, "reasoning_tokens");   // SGLang: flat
    usage.cached_tokens = count_at(object_at(object, "prompt_tokens_details"), "cached_tokens");
    return usage;
}

}   // namespace

std::optional<ServerError> error_in(const json::object& body) {
    if (const json::value* error = body.if_contains("error")) {
        if (const json::object* object = error->if_object(); object != nullptr && !object->empty()) {
            return ServerError{printable(text_at(*object, "message"), message_limit),
                               plain_copy(object->if_contains("code"))};
        }
        if (const json::string* text = error->if_string(); text != nullptr && !text->empty()) {
            return ServerError{printable(std::string_view{text->data(), text->size()}, message_limit), nullptr};
        }
    }
    if (text_at(body, "object") == "error") {
        return ServerError{printable(text_at(body, "message"), message_limit), plain_copy(body.if_contains("code"))};
    }
    return std::nullopt;
}

ServerError error_of_status(std::string_view body) {
    boost::system::error_code failed;
    const json::value value = json::parse(body, failed, {}, tolerant());
    const json::object* object = failed ? nullptr : value.if_object();
    if (object == nullptr) return {printable(body.substr(0, message_limit), message_limit), nullptr};
    if (auto error = error_in(*object)) return *std::move(error);
    for (const std::string_view key : {"message", "detail"}) {
        if (const std::string_view text = text_at(*object, key); !text.empty())
            return {printable(text, message_limit), nullptr};
    }
    return {printable(body.substr(0, message_limit), message_limit), nullptr};
}

const EventFacts& EventReader::read(std::string_view data) {
    facts_.kind = EventFacts::Kind::chunk;
    facts_.has_choices = facts_.tool_call = false;
    facts_.content.clear();
    facts_.reasoning.clear();
    facts_.tool_arguments.clear();
    facts_.finish_reason.clear();
    facts_.usage.reset();
    if (data == "[DONE]") {
        facts_.kind = EventFacts::Kind::done;
        return facts_;
    }
    json::monotonic_resource memory(arena_.data(), arena_.size());
    json::parser parser(json::storage_ptr{}, tolerant(), scratch_.data(), scratch_.size());
    parser.reset(&memory);
    boost::system::error_code failed;
    parser.write(data.data(), data.size(), failed);
    if (failed) {
        facts_.kind = EventFacts::Kind::bad_json;
        return facts_;
    }
    const json::value value = parser.release();
    const json::object* object = value.if_object();
    if (object == nullptr) {
        facts_.kind = EventFacts::Kind::bad_json;
        return facts_;
    }
    if (auto error = error_in(*object)) {
        facts_.kind = EventFacts::Kind::error;
        facts_.error = *std::move(error);
        return facts_;
    }
    chunk(*object);
    return facts_;
}

void EventReader::chunk(const json::object& object) {
    if (const json::object* usage = object_at(object, "usage")) facts_.usage = read_usage(*usage);
    const json::array* choices = array_at(object, "choices");
    if (choices == nullptr || choices->empty()) return;
    facts_.has_choices = true;
    const json::object* choice = choices->front().if_object();
    if (choice == nullptr) return;
    facts_.content = text_at(*choice, "text");
    facts_.finish_reason = text_at(*choice, "finish_reason");
    const json::object* delta = object_at(*choice, "delta");
    if (delta == nullptr) return;
    if (const std::string_view content = text_at(*delta, "content"); !content.empty()) facts_.content = content;
    facts_.reasoning = text_at(*delta, "reasoning_content");
    if (facts_.reasoning.empty()) facts_.reasoning = text_at(*delta, "reasoning");
    const json::array* calls = array_at(*delta, "tool_calls");
    if (calls == nullptr) return;
    for (const json::value& call : *calls) {
        const json::object* entry = call.if_object();
        const json::object* function = entry == nullptr ? nullptr : object_at(*entry, "function");
        if (function == nullptr) continue;
        const std::string_view arguments = text_at(*function, "arguments");
        facts_.tool_arguments += arguments;
        if (!arguments.empty() || !text_at(*function, "name").empty()) facts_.tool_call = true;
    }
}

}   // namespace campaign::load
