#pragma once
// Talks to the daemon: one HTTP/1.1 connection over its Unix socket, blocking.

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/fd.hpp"
#include "base/json.hpp"

namespace campaign::ctl {

struct Response {
    unsigned status = 0;
    std::string body;
};

class Client {
public:
    explicit Client(std::string socket_path) : path_{std::move(socket_path)} {}

    /// The answer's object. An error answer is returned as the Error it holds; `unreachable` when no daemon answers (why,
    /// what is safe, what next).
    [[nodiscard]] Result<json::value> get(const std::string& target);
    [[nodiscard]] Result<json::value> post(const std::string& target, const json::object& body);
    /// The body as it comes, in pieces, in bounded memory.
    [[nodiscard]] Result<void> download(const std::string& target,
                                        const std::function<Result<void>(std::string_view)>& sink);

    /// What a stream's reader wants after a line, or after nothing came for a while.
    enum class Go { on, stop };
    /// Reads NDJSON lines until the stream or the reader ends. `line` gets each object; `idle` is called whenever nothing
    /// came for `every`, and when `also_fd` (or -1) has something to read. A stream that breaks off is `unreachable`.
    [[nodiscard]] Result<void> stream(const std::string& target, const std::function<Go(const json::value&)>& line,
                                      const std::function<Go()>& idle, std::chrono::milliseconds every, int also_fd = -1);

    [[nodiscard]] const std::string& path() const { return path_; }

private:
    [[nodiscard]] Result<void> connect();
    [[nodiscard]] Result<void> send(std::string_view method, const std::string& target, std::string_view body);
    [[nodiscard]] Result<json::value> exchange(std::string_view method, const std::string& target, std::string_view body);

    std::string path_;
    Fd fd_;
};

/// --socket, else CAMPAIGND_SOCKET, else /run/campaignd/api.sock.
[[nodiscard]] std::string socket_path(const std::string& option);

/// A path segment: everything but letters, digits and -._~ is escaped.
[[nodiscard]] std::string percent_encode(std::string_view text);

}   // namespace campaign::ctl
