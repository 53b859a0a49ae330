#include "ctl/client.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <boost/beast/http.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/text.hpp"

namespace campaign::ctl {
namespace {

namespace http = boost::beast::http;

constexpr std::size_t answer_limit = 256 * 1024 * 1024;
constexpr std::size_t line_limit = 4 * 1024 * 1024;

Error no_daemon(const std::string& path, int code) {
    Error error;
    error.kind = ErrorKind::unreachable;
    error.what = "no daemon answers on " + path;
    error.why = code == ENOENT         ? "the socket does not exist: campaignd was not started, or was stopped"
                : code == ECONNREFUSED ? "nobody listens on it: campaignd ended without cleaning up"
                : code == EACCES ? "you may not connect: the socket belongs to another group (see: id, ls -l " + path + ")"
                                 : std::strerror(code);
    if (code == EACCES) {
        error.kind = ErrorKind::refused;
        error.next = "ask for membership of the socket's group";
        return error;
    }
    error.evidence =
        "what is safe: campaigns are on record and go on when the daemon starts again; an undo that is pending "
        "stays on record until it is done";
    error.next = "systemctl status campaignd     (or name its socket with --socket)";
    return error;
}

Error broken(const std::string& why) {
    return Error{ErrorKind::unreachable, "the daemon broke off the connection", why, "", "campaignctl status"};
}

/// Reads one response from a socket and hands its body on in pieces.
class Incoming {
public:
    explicit Incoming(int fd) : fd_{fd} {
        parser_.eager(true);
        parser_.body_limit(boost::none);
    }

    [[nodiscard]] bool done() const { return parser_.is_done(); }
    [[nodiscard]] bool has_header() const { return parser_.is_header_done(); }
    [[nodiscard]] unsigned status() const { return parser_.get().result_int(); }
    [[nodiscard]] bool keep_alive() const { return parser_.is_done() && parser_.get().keep_alive(); }

    /// Waits for one piece of input; its body bytes are appended to `out`.
    Result<void> read(std::string& out) {
        std::array<char, 64 * 1024> piece;
        const ssize_t got = ::read(fd_, piece.data(), piece.size());
        if (got < 0) {
            if (errno == EINTR) return {};
            return broken(std::strerror(errno));
        }
        boost::beast::error_code error;
        if (got == 0) {
            if (pending_.empty() && !parser_.got_some()) return broken("it closed without an answer");
            parser_.put_eof(error);
            if (error) return broken("the answer is not whole");
            return {};
        }
        pending_.append(piece.data(), static_cast<std::size_t>(got));
        while (!pending_.empty() && !parser_.is_done()) {
            http::buffer_body::value_type& body = parser_.get().body();
            body.data = piece.data();
            body.size = piece.size();
            body.more = true;
            const std::size_t used = parser_.put(boost::asio::const_buffer{pending_.data(), pending_.size()}, error);
            out.append(piece.data(), piece.size() - body.size);
            pending_.erase(0, used);
            if (error == http::error::need_more) break;
            if (error && error != http::error::need_buffer)
                return Error{ErrorKind::protocol, "the daemon's answer is not HTTP", error.message(), "", ""};
            if (used == 0) break;
        }
        return {};
    }

private:
    int fd_;
    http::response_parser<http::buffer_body> parser_;
    std::string pending_;
};

Result<json::value> as_object(unsigned status, const std::string& body, const std::string& target) {
    Result<json::value> value = parse_json(body, "the daemon's answer to " + target);
    if (!value) return value.error();
    if (status >= 200 && status < 300) return value;
    if (const json::value* error = member(*value, "error")) return error_from_json(*error);
    return Error{ErrorKind::protocol, "the daemon answered " + std::to_string(status) + " to " + target, "",
                 printable(body, 300), ""};
}

}   // namespace

std::string socket_path(const std::string& option) {
    if (!option.empty()) return option;
    const char* from_environment = std::getenv("CAMPAIGND_SOCKET");
    return from_environment != nullptr && *from_environment != '\0' ? from_environment : "/run/campaignd/api.sock";
}

std::string percent_encode(std::string_view text) {
    static constexpr std::string_view digits = "0123456789ABCDEF";
    std::string out;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                           c == '.' || c == '_' || c == '~';
        if (plain) {
            out += c;
        } else {
            out += '%';
            out += digits[byte >> 4U];
            out += digits[byte & 15U];
        }
    }
    return out;
}

Result<void> Client::connect() {
    if (fd_) return {};
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path_.size() >= sizeof address.sun_path)
        return Error{ErrorKind::usage, "the socket's path is longer than a socket's path can be", "", printable(path_, 200),
                     ""};
    std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
    Fd fd{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (!fd) return Error{ErrorKind::io, "cannot make a socket", std::strerror(errno), "", ""};
    while (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        if (errno != EINTR) return no_daemon(path_, errno);
    }
    fd_ = std::move(fd);
    return {};
}

Result<void> Client::send(std::string_view method, const std::string& target, std::string_view body) {
    if (const Result<void> connected = connect(); !connected) return connected.error();
    std::string request = std::string{method} + " " + target + " HTTP/1.1\r\nHost: campaignd\r\n";
    if (method == "POST") {
        request += "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
    }
    request += "\r\n";
    request += body;
    std::string_view rest = request;
    while (!rest.empty()) {
        const ssize_t sent = ::send(fd_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) break;   // it may have answered already: too large
        if (sent < 0) return broken(std::strerror(errno));
        rest.remove_prefix(static_cast<std::size_t>(sent));
    }
    return {};
}

Result<json::value> Client::exchange(std::string_view method, const std::string& target, std::string_view body) {
    if (const Result<void> sent = send(method, target, body); !sent) return sent.error();
    Incoming answer{fd_.get()};
    std::string text;
    while (!answer.done()) {
        if (const Result<void> read = answer.read(text); !read) {
            fd_.reset();
            return read.error();
        }
        if (text.size() > answer_limit) {
            fd_.reset();
            return Error{ErrorKind::protocol, "the daemon's answer is larger than " + format_bytes(answer_limit), "", "",
                         ""};
        }
    }
    if (!answer.keep_alive()) fd_.reset();
    return as_object(answer.status(), text, target);
}

Result<json::value> Client::get(const std::string& target) {
    return exchange("GET", target, "");
}

Result<json::value> Client::post(const std::string& target, const json::object& body) {
    return exchange("POST", target, json::serialize(body));
}

Result<void> Client::download(const std::string& target, const std::function<Result<void>(std::string_view)>& sink) {
    if (const Result<void> sent = send("GET", target, ""); !sent) return sent.error();
    Incoming answer{fd_.get()};
    std::string text;
    while (!answer.done()) {
        if (const Result<void> read = answer.read(text); !read) {
            fd_.reset();
            return read.error();
        }
        if (!answer.has_header() || answer.status() != 200) continue;
        if (const Result<void> taken = sink(text); !taken) {
            fd_.reset();
            return taken.error();
        }
        text.clear();
    }
    const unsigned status = answer.status();
    if (!answer.keep_alive()) fd_.reset();
    if (status == 200) return {};
    const Result<json::value> refused = as_object(status, text, target);
    return refused ? Error{ErrorKind::protocol, "the daemon answered " + std::to_string(status), "", "", ""}
                   : refused.error();
}

Result<void> Client::stream(const std::string& target, const std::function<Go(const json::value&)>& line,
                            const std::function<Go()>& idle, std::chrono::milliseconds every, int also_fd) {
    Client own{path_};   // a stream takes its connection to the end
    if (const Result<void> sent = own.send("GET", target, ""); !sent) return sent.error();
    Incoming answer{own.fd_.get()};
    std::string text;
    while (!answer.done()) {
        std::array<pollfd, 2> waits{{{own.fd_.get(), POLLIN, 0}, {also_fd, POLLIN, 0}}};
        const int ready = ::poll(waits.data(), waits.size(), static_cast<int>(every.count()));
        if (ready < 0 && errno != EINTR)
            return Error{ErrorKind::io, "cannot wait for the daemon", std::strerror(errno), "", ""};
        const bool data = ready > 0 && waits[0].revents != 0;
        if (idle() == Go::stop) return {};
        if (!data) continue;
        if (const Result<void> read = answer.read(text); !read) return read.error();
        if (!answer.has_header() || answer.status() != 200) continue;
        std::size_t begin = 0;
        for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
            const std::string_view one = std::string_view{text}.substr(begin, end - begin);
            begin = end + 1;
            if (one.empty()) continue;
            const Result<json::value> event = parse_json(one, "a line of the event stream");
            if (!event) return event.error();
            if (line(*event) == Go::stop) return {};
        }
        text.erase(0, begin);
        if (text.size() > line_limit)
            return Error{ErrorKind::protocol, "a line of the event stream is too long", "", "", ""};
    }
    if (answer.status() == 200) return {};
    const Result<json::value> refused = as_object(answer.status(), text, target);
    return refused ? Error{ErrorKind::protocol, "the daemon answered " + std::to_string(answer.status()), "", "", ""}
                   : refused.error();
}

}   // namespace campaign::ctl
