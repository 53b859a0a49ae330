#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <thread>

#include "adapters/http/http.hpp"
#include "base/fd.hpp"
#include "sh_host.hpp"

namespace campaign::http {
namespace {

namespace asio = boost::asio;

/// Accepts one connection at a time, reads the request, and does with it what the test says.
class OneServer {
public:
    using Behaviour = std::function<void(int fd, const std::string& request)>;

    explicit OneServer(Behaviour behave) : behave_{std::move(behave)} {
        listener_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof at;
        bind_and_listen(reinterpret_cast<sockaddr*>(&at), size);
        ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&at), &size);
        port_ = ntohs(at.sin_port);
        begin();
    }
    OneServer(const std::string& path, Behaviour behave) : behave_{std::move(behave)} {
        listener_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_un at{};
        at.sun_family = AF_UNIX;
        path.copy(at.sun_path, sizeof at.sun_path - 1);
        bind_and_listen(reinterpret_cast<sockaddr*>(&at), sizeof at);
        begin();
    }
    OneServer(const OneServer&) = delete;
    OneServer& operator=(const OneServer&) = delete;
    ~OneServer() {
        ::shutdown(listener_.get(), SHUT_RDWR);
        if (thread_.joinable()) thread_.join();
    }
    [[nodiscard]] std::string url(const std::string& path = "/x") const {
        return "http://127.0.0.1:" + std::to_string(port_) + path;
    }
    std::atomic<int> connections{0};
    std::string last_request;   ///< read only after the answer has come

private:
    void bind_and_listen(sockaddr* at, socklen_t size) {
        if (::bind(listener_.get(), at, size) != 0 || ::listen(listener_.get(), 16) != 0) std::abort();
    }
    void begin() {
        thread_ = std::thread{[this] {
            while (true) {
                const Fd fd{::accept(listener_.get(), nullptr, nullptr)};
                if (!fd) return;
                ++connections;
                std::string request;
                char buffer[4096];
                while (request.find("\r\n\r\n") == std::string::npos) {
                    const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
                    if (got <= 0) break;
                    request.append(buffer, static_cast<std::size_t>(got));
                }
                last_request = request;
                behave_(fd.get(), request);
            }
        }};
    }
    Behaviour behave_;
    Fd listener_;
    int port_ = 0;
    std::thread thread_;
};

void say(int fd, std::string_view text) {
    while (!text.empty()) {
        const ssize_t put = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
        if (put <= 0) return;
        text.remove_prefix(static_cast<std::size_t>(put));
    }
}

/// Blocks until the client has closed: the server's way of never answering.
void wait_for_close(int fd) {
    char byte = 0;
    while (::read(fd, &byte, 1) > 0) {
    }
}

Result<Response> send(Request request) {
    asio::io_context loop;
    const auto client = make_client(loop.get_executor());
    std::optional<Result<Response>> answer;
    asio::co_spawn(loop, client->send(std::move(request)), [&](std::exception_ptr error, Result<Response> value) {
        if (!error) answer.emplace(std::move(value));
    });
    loop.run();
    return answer ? std::move(*answer) : Result<Response>{Error{ErrorKind::cancelled, "", "", "", ""}};
}

Request get(std::string url) {
    Request request;
    request.url = std::move(url);
    return request;
}

TEST(Http, BringsStatusHeadersAndBody) {
    OneServer server{[](int fd, const std::string&) {
        say(fd, "HTTP/1.1 404 Not Found\r\nX-Thing:  a b \r\nContent-Length: 3\r\n\r\nabc");
    }};
    Request request = get(server.url("/health"));
    request.headers = {"Authorization: Bearer k"};
    const auto answer = send(request);
    ASSERT_TRUE(answer) << describe(answer.error());
    EXPECT_EQ(answer->status, 404);   // no error: the caller knows what it means
    EXPECT_EQ(answer->headers.at("x-thing"), "a b");
    EXPECT_EQ(answer->body, "abc");
    EXPECT_TRUE(server.last_request.starts_with("GET /health HTTP/1.1\r\n"));
    EXPECT_NE(server.last_request.find("Authorization: Bearer k\r\n"), std::string::npos);
}

TEST(Http, SendsAnEmptyPostWithoutClaimingAContentType) {
    OneServer server{[](int fd, const std::string&) { say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"); }};
    Request request = get(server.url("/start_profile?step=t"));
    request.method = "POST";
    ASSERT_TRUE(send(request));
    EXPECT_TRUE(server.last_request.starts_with("POST /start_profile?step=t HTTP/1.1\r\n"));
    EXPECT_EQ(server.last_request.find("Content-Type"), std::string::npos);
    EXPECT_EQ(server.last_request.find("Expect"), std::string::npos);
    EXPECT_NE(server.last_request.find("Content-Length: 0"), std::string::npos);
}

TEST(Http, RefusedMeansThatNothingWasSent) {
    std::string url;
    {
        OneServer server{[](int, const std::string&) {}};
        url = server.url();
    }
    const auto answer = send(get(url));
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().kind, ErrorKind::unreachable);
}

TEST(Http, AConnectionThatEndsAfterTheRequestIsInDoubt) {
    for (const char* part : {"", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this"}) {
        OneServer server{[part](int fd, const std::string&) { say(fd, part); }};
        const auto answer = send(get(server.url()));
        ASSERT_FALSE(answer) << part;
        EXPECT_EQ(answer.error().kind, ErrorKind::in_doubt) << part;
        EXPECT_EQ(answer.error().why, "the connection ended");
        EXPECT_EQ(server.connections, 1);   // never sent a second time
    }
}

TEST(Http, ALateAnswerIsInDoubt) {
    OneServer server{[](int fd, const std::string&) { wait_for_close(fd); }};
    Request request = get(server.url());
    request.total_limit = Millis{50};
    const auto answer = send(request);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().kind, ErrorKind::in_doubt);
    EXPECT_NE(answer.error().why.find("no answer within"), std::string::npos);
}

TEST(Http, WithoutALimitItWaitsForASlowAnswer) {
    OneServer server{[](int fd, const std::string&) {
        say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n");
        for (const char* byte : {"d", "o", "n", "e"}) {
            std::this_thread::sleep_for(std::chrono::milliseconds{20});
            say(fd, byte);
        }
    }};
    Request request = get(server.url());
    request.total_limit = Millis{0};
    const auto answer = send(request);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->body, "done");
}

TEST(Http, AnEndlessBodyIsAProtocolError) {
    OneServer server{[](int fd, const std::string&) {
        say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + std::string(100000, 'x'));
    }};
    Request request = get(server.url());
    request.keep_body = 1000;
    const auto answer = send(request);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().kind, ErrorKind::protocol);
    request.keep_body = 100000;
    EXPECT_EQ(send(request)->body.size(), 100000u);
}

TEST(Http, FollowsNoRedirect) {
    OneServer server{[](int fd, const std::string&) {
        say(fd, "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n");
    }};
    EXPECT_EQ(send(get(server.url()))->status, 302);
}

TEST(Http, UsesNoProxyOfTheEnvironment) {
    OneServer server{[](int fd, const std::string&) { say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"); }};
    ::setenv("http_proxy", "http://127.0.0.1:1", 1);
    const auto answer = send(get(server.url()));
    ::unsetenv("http_proxy");
    ASSERT_TRUE(answer) << describe(answer.error());
    EXPECT_EQ(answer->status, 200);
}

TEST(Http, SpeaksOnlyHttp) {
    for (const char* url : {"file:///etc/hostname", "ftp://127.0.0.1/x", "", "http://"}) {
        const auto answer = send(get(url));
        ASSERT_FALSE(answer) << url;
        EXPECT_EQ(answer.error().kind, ErrorKind::usage) << url;
    }
    Request request = get("http://127.0.0.1:1/");
    request.headers = {"X: a\r\nEvil: b"};
    EXPECT_EQ(send(request).error().kind, ErrorKind::usage);
}

TEST(Http, GoesThroughAUnixSocket) {
    const test::TempFolder folder;
    const std::string path = (folder.path() / "s").string();
    OneServer server{path, [](int fd, const std::string&) { say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"); }};
    Request request = get("http://gpu1:8000/health");
    request.unix_socket = path;
    const auto answer = send(request);
    ASSERT_TRUE(answer) << describe(answer.error());
    EXPECT_EQ(answer->body, "ok");
    EXPECT_NE(server.last_request.find("Host: gpu1:8000"), std::string::npos);
    request.unix_socket = path + ".none";
    EXPECT_EQ(send(request).error().kind, ErrorKind::unreachable);
}

TEST(Http, CancellationThrowsAndClosesTheConnection) {
    asio::io_context loop;
    asio::cancellation_signal cancel;
    OneServer server{[&](int fd, const std::string&) {
        asio::post(loop, [&] { cancel.emit(asio::cancellation_type::terminal); });
        wait_for_close(fd);   // the test ends only because the client closes
    }};
    const auto client = make_client(loop.get_executor());
    Request request = get(server.url());
    request.total_limit = Millis{0};
    bool aborted = false;
    asio::co_spawn(loop, client->send(std::move(request)),
                   asio::bind_cancellation_slot(cancel.slot(), [&](std::exception_ptr error, const Result<Response>&) {
                       try {
                           if (error) std::rethrow_exception(error);
                       } catch (const boost::system::system_error& e) {
                           aborted = e.code() == asio::error::operation_aborted;
                       }
                   }));
    loop.run();
    EXPECT_TRUE(aborted);
}

TEST(Http, RequestsRunSideBySide) {
    OneServer slow{[](int fd, const std::string&) {
        std::this_thread::sleep_for(std::chrono::milliseconds{100});
        say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nslow");
    }};
    OneServer quick{[](int fd, const std::string&) { say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nquick"); }};
    asio::io_context loop;
    const auto client = make_client(loop.get_executor());
    std::vector<std::string> order;
    for (const std::string& url : {slow.url(), quick.url()}) {
        asio::co_spawn(loop, client->send(get(url)),
                       [&](std::exception_ptr, const Result<Response>& answer) { order.push_back(answer->body); });
    }
    loop.run();
    EXPECT_EQ(order, (std::vector<std::string>{"quick", "slow"}));
}

}   // namespace
}   // namespace campaign::http
