#pragma once
// What one streamed event of an OpenAI-compatible server says, for chat and completions alike.

#include <array>
#include <boost/json.hpp>
#include <boost/json/monotonic_resource.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace campaign::load {

namespace json = boost::json;

/// Cumulative counts of one usage object. Reasoning tokens are part of the completion tokens already.
struct Usage {
    std::optional<std::int64_t> prompt_tokens;
    std::optional<std::int64_t> completion_tokens;
    std::optional<std::int64_t> reasoning_tokens;
    std::optional<std::int64_t> cached_tokens;
};

/// An error object, or the error-shaped bodies that servers send instead of one.
struct ServerError {
    std::string message;   ///< made printable
    json::value code;      ///< as sent: number, text or null
};

struct EventFacts {
    enum class Kind { done, bad_json, error, chunk };
    Kind kind = Kind::chunk;
    ServerError error;
    bool has_choices = false;
    std::string content;     ///< delta.content, or text of completions
    std::string reasoning;   ///< delta.reasoning_content or delta.reasoning; servers may send both with the same text
    std::string tool_arguments;
    bool tool_call = false;   ///< a tool call with a non-empty name or arguments
    std::string finish_reason;
    std::optional<Usage> usage;

    [[nodiscard]] bool bears_token() const { return !content.empty() || !reasoning.empty() || tool_call; }
};

/// Reads events one after the other, reusing its memory.
class EventReader {
public:
    EventReader() = default;
    EventReader(const EventReader&) = delete;
    EventReader& operator=(const EventReader&) = delete;

    /// The result is valid until the next call.
    const EventFacts& read(std::string_view data);

private:
    void chunk(const json::object& object);

    EventFacts facts_;
    std::array<unsigned char, 16384> arena_{};
    std::array<unsigned char, 4096> scratch_{};
};

/// The error in a JSON body: {"error": ...}, {"object": "error", ...}. Nothing when there is none.
[[nodiscard]] std::optional<ServerError> error_in(const json::object& body);
/// The message of a body that came with a status that is not 2xx ("detail" and "message" count too).
[[nodiscard]] ServerError error_of_status(std::string_view body);

}   // namespace campaign::load
