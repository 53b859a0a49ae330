#pragma once
// HTTP to inference servers: libcurl's multi interface on the one loop.

#include <boost/asio/any_io_executor.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"

namespace campaign::http {

struct Request {
    std::string method = "GET";
    std::string url;                          ///< "http://127.0.0.1:8000/health"
    std::optional<std::string> unix_socket;   ///< connect to this path instead of the URL's host and port
    std::vector<std::string> headers;         ///< "Name: value"
    std::optional<std::string> body;
    Millis connect_limit{std::chrono::seconds{5}};
    Millis total_limit{std::chrono::seconds{30}};   ///< 0: none (stop_profile has no total time-out)
    std::size_t keep_body = 4u << 20;               ///< a longer body is an error of kind protocol
};

struct Response {
    int status = 0;
    std::map<std::string, std::string> headers;   ///< names in lower case
    std::string body;
    Millis took{0};
};

/// Errors: unreachable (no connection: nothing was sent), in_doubt (sent, no whole answer), timed_out (not sent in time).
/// A status is no error here. Cancellation throws operation_aborted.
class Client {
public:
    virtual ~Client() = default;
    virtual Async<Result<Response>> send(Request request) = 0;
};

/// libcurl's multi interface on `executor`, which must be of one thread; requests run side by side. No redirect is followed,
/// no proxy is used, only http and https are spoken. Requests must have ended when it is destroyed.
[[nodiscard]] std::unique_ptr<Client> make_client(boost::asio::any_io_executor executor);

}   // namespace campaign::http
