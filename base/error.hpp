#pragma once
// Errors are values: what happened, why we think so, what was seen, and what to do next.

#include <boost/system/result.hpp>
#include <string>
#include <string_view>

namespace campaign {

/// The class of an error, for code that branches on it. The text is for people.
enum class ErrorKind {
    usage,         ///< the caller asked for something that makes no sense
    invalid,       ///< a value from outside (plan, answer, file) is malformed
    not_found,     ///< the thing named does not exist
    refused,       ///< the other side, a right, or a policy said no
    unreachable,   ///< nothing was started: no connection, no route, no name
    timed_out,     ///< a read-only operation did not end in time; nothing is in doubt
    cancelled,     ///< we were told to stop
    in_doubt,      ///< it may have happened or not: look at the target before anything else
    conflict,      ///< the state is not the one that the request assumed
    disk_full,     ///< ENOSPC or quota, here or there
    io,            ///< another failure of disk or memory
    protocol,      ///< the other side spoke out of turn
    unavailable,   ///< the host or server lacks an ability
    identity,      ///< a host key is unknown, changed or revoked
    failed,        ///< it ran and did not succeed
    bug            ///< our own fault
};

[[nodiscard]] std::string_view to_string(ErrorKind kind);
/// The inverse of to_string; `bug` for an unknown word.
[[nodiscard]] ErrorKind error_kind_from(std::string_view word);

struct Error {
    ErrorKind kind = ErrorKind::bug;
    std::string what;       ///< one line: "gpu07 refused the restart of vllm-k25.service"
    std::string why;        ///< the cause, as far as it is known; may be empty
    std::string evidence;   ///< what was seen, verbatim but made printable: exit status, log line
    std::string next;       ///< what a person can do about it; may be empty

    friend bool operator==(const Error&, const Error&) = default;
};

/// "what: why" on one line, then "  seen" and "  next" lines where there is something to say.
[[nodiscard]] std::string describe(const Error& error);

template <class T = void>
using Result = boost::system::result<T, Error>;

/// What Result::value() throws; code that tests the result first never meets it.
[[noreturn]] void throw_exception_from_error(const Error& error, const boost::source_location& where);

}   // namespace campaign
