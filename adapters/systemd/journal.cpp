#include "adapters/systemd/journal.hpp"

#include <charconv>

#include "base/json.hpp"

namespace campaign::systemd {

namespace {

constexpr std::size_t longest_message = 64u << 10;

std::string text_of(const json::value* message) {
    if (message == nullptr) return {};
    if (message->is_string()) return std::string{message->get_string()}.substr(0, longest_message);
    std::string bytes;
    if (!message->is_array()) return bytes;
    for (const json::value& byte : message->get_array()) {
        if (bytes.size() == longest_message) break;
        if (byte.is_int64()) {
            bytes += static_cast<char>(byte.get_int64());
        } else if (byte.is_string()) {
            return std::string{byte.get_string()}.substr(0, longest_message);   // the field came twice: the first
        } else if (byte.is_array()) {
            return text_of(&byte);
        }
    }
    return bytes;
}

template <class T>
T number_of(const std::optional<std::string>& text) {
    T value = 0;
    if (text) std::from_chars(text->data(), text->data() + text->size(), value);
    return value;
}

}   // namespace

std::optional<host::LogLine> parse_journal_line(std::string_view line) {
    const Result<json::value> entry = parse_json(line, "a line of the journal");
    if (!entry) return std::nullopt;
    const auto cursor = string_at(*entry, "__CURSOR");
    if (!cursor || cursor->empty() || cursor->size() > 512) return std::nullopt;
    host::LogLine result;
    result.cursor = *cursor;
    result.realtime_us = number_of<std::uint64_t>(string_at(*entry, "__REALTIME_TIMESTAMP"));
    result.pid = number_of<int>(string_at(*entry, "_PID"));
    result.from_manager = result.pid == 1 && string_at(*entry, "UNIT").has_value();
    result.text = text_of(member(*entry, "MESSAGE"));
    return result;
}

}   // namespace campaign::systemd
