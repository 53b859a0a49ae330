#pragma once
// Reading JSON that strangers wrote, without exceptions and within bounds.

#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace campaign {

namespace json = boost::json;

/// Parses one JSON text: nesting at most 64 deep. `what` names the text in the error ("answer of GET /v1/models").
[[nodiscard]] Result<json::value> parse_json(std::string_view text, std::string_view what);

/// Members by name; absent, null and of another type are all "nothing".
[[nodiscard]] const json::value* member(const json::value& object, std::string_view key);
[[nodiscard]] std::optional<std::string> string_at(const json::value& object, std::string_view key);
[[nodiscard]] std::optional<std::int64_t> int_at(const json::value& object, std::string_view key);
/// Any number, integers included.
[[nodiscard]] std::optional<double> number_at(const json::value& object, std::string_view key);
[[nodiscard]] std::optional<bool> bool_at(const json::value& object, std::string_view key);

/// The same value always gives the same text: keys sorted, no blanks. What an input hash is taken over.
[[nodiscard]] std::string canonical(const json::value& value);

/// Two-space indentation, for files that people open.
[[nodiscard]] std::string pretty(const json::value& value);

[[nodiscard]] json::object to_json(const Error& error);
[[nodiscard]] Error error_from_json(const json::value& value);

}   // namespace campaign
