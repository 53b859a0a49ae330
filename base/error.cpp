#include "base/error.hpp"

#include <array>
#include <stdexcept>
#include <utility>

namespace campaign {
namespace {

constexpr std::array<std::pair<ErrorKind, std::string_view>, 16> words{{
    {ErrorKind::usage, "usage"},
    {ErrorKind::invalid, "invalid"},
    {ErrorKind::not_found, "not_found"},
    {ErrorKind::refused, "refused"},
    {ErrorKind::unreachable, "unreachable"},
    {ErrorKind::timed_out, "timed_out"},
    {ErrorKind::cancelled, "cancelled"},
    {ErrorKind::in_doubt, "in_doubt"},
    {ErrorKind::conflict, "conflict"},
    {ErrorKind::disk_full, "disk_full"},
    {ErrorKind::io, "io"},
    {ErrorKind::protocol, "protocol"},
    {ErrorKind::unavailable, "unavailable"},
    {ErrorKind::identity, "identity"},
    {ErrorKind::failed, "failed"},
    {ErrorKind::bug, "bug"},
}};

}   // namespace

std::string_view to_string(ErrorKind kind) {
    for (const auto& [value, word] : words) {
        if (value == kind) return word;
    }
    return "bug";
}

ErrorKind error_kind_from(std::string_view word) {
    for (const auto& [value, name] : words) {
        if (name == word) return value;
    }
    return ErrorKind::bug;
}

std::string describe(const Error& error) {
    std::string text = error.what;
    if (!error.why.empty()) text += ": " + error.why;
    if (!error.evidence.empty()) text += "\n  seen    " + error.evidence;
    if (!error.next.empty()) text += "\n  next    " + error.next;
    return text;
}

void throw_exception_from_error(const Error& error, const boost::source_location&) {
    throw std::runtime_error(describe(error));
}

}   // namespace campaign
