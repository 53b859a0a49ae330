#include "daemon/api/server.hpp"

#include <gtest/gtest.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <cstdlib>
#include <fstream>
#include <future>
#include <thread>

#include "base/fd.hpp"
#include "base/json.hpp"
#include "fake_reader.hpp"

namespace campaign::api {
namespace {

namespace asio = boost::asio;
using test::FakeReader;

/// Notes what it is asked to do.
class FakeActions final : public Actions {
public:
    std::vector<std::string> calls;
    std::optional<Error> refuse;

    Answer submit(std::string plan_text, std::string file, std::string who) override {
        return did("submit " + plan_text + " " + file, std::move(who));
    }
    Answer approve(std::string name, std::string decision, std::string candidate, std::string who) override {
        return did("approve " + name + " " + decision + " " + candidate, std::move(who));
    }
    Answer cancel(std::string name, std::string who) override { return did("cancel " + name, std::move(who)); }
    Answer resume(std::string name, std::optional<std::string> as, std::string who) override {
        return did("resume " + name + " " + as.value_or("-"), std::move(who));
    }
    Answer restore(std::string name, std::string who) override { return did("restore " + name, std::move(who)); }
    Answer explain(std::string plan_text, bool offline) override {
        return did("explain " + plan_text + (offline ? " offline" : " online"), "nobody");
    }
    Result<std::string> report(std::string name) override { return "# report of " + name + "\n"; }

private:
    Answer did(std::string call, std::string who) {
        calls.push_back(call + " by " + who);
        if (refuse) co_return *refuse;
        json::object answer;
        answer["text"] = call;
        co_return answer;
    }
};

struct Answered {
    unsigned status = 0;
    std::string header;
    std::string body;
    json::value json() const { return parse_json(body, "answer").value(); }
};

class Peer {
public:
    explicit Peer(const std::filesystem::path& path) : fd_{::socket(AF_UNIX, SOCK_STREAM, 0)} {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        path.string().copy(address.sun_path, sizeof address.sun_path - 1);
        EXPECT_EQ(::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    }
    void send(std::string_view bytes) {
        while (!bytes.empty()) {
            const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (sent <= 0) return;   // it has answered and closed
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        }
    }
    bool read_more() {
        char piece[65536];
        const ssize_t got = ::read(fd_.get(), piece, sizeof piece);
        if (got <= 0) return false;
        text_.append(piece, static_cast<std::size_t>(got));
        return true;
    }
    /// Reads until the text holds `needle`.
    bool read_until(std::string_view needle) {
        while (text_.find(needle) == std::string::npos) {
            if (!read_more()) return false;
        }
        return true;
    }
    Answered answer() {
        Answered answered;
        if (!read_until("\r\n\r\n")) return answered;
        const std::size_t end = text_.find("\r\n\r\n") + 4;
        answered.header = text_.substr(0, end);
        answered.status = static_cast<unsigned>(std::atoi(answered.header.c_str() + 9));
        const std::size_t length_at = answered.header.find("Content-Length: ");
        std::size_t length = 0;
        if (length_at != std::string::npos)
            length = static_cast<std::size_t>(std::atol(answered.header.c_str() + length_at + 16));
        while (text_.size() < end + length && read_more()) {
        }
        answered.body = text_.substr(end, length);
        text_.erase(0, end + length);
        return answered;
    }
    Answered ask(const std::string& method, const std::string& target, const std::string& body = "") {
        std::string request = method + " " + target + " HTTP/1.1\r\nHost: x\r\n";
        if (method == "POST") request += "Content-Length: " + std::to_string(body.size()) + "\r\n";
        send(request + "\r\n" + body);
        return answer();
    }
    const std::string& text() const { return text_; }
    void forget() { text_.clear(); }

private:
    Fd fd_;
    std::string text_;
};

class ApiServer : public testing::Test {
protected:
    ApiServer() {
        char pattern[] = "/tmp/campaign-api-XXXXXX";
        folder_ = ::mkdtemp(pattern);
        options_.socket = folder_ / "api.sock";
        options_.version = "0.3.0";
        options_.journal = "/var/lib/campaignd/journal.db";
        reader_.add_campaign("k25", "running");
    }
    ~ApiServer() override {
        if (server_) on_loop([this] { server_->close(); });
        work_.reset();
        if (thread_.joinable()) thread_.join();
        server_.reset();
        std::filesystem::remove_all(folder_);
    }
    void start() {
        server_ = std::make_unique<Server>(
            context_.get_executor(), clock_, reader_, actions_,
            [this](std::string_view sha) -> Result<std::filesystem::path> {
                const auto path = folder_ / std::string{sha};
                if (!std::filesystem::exists(path)) return Error{ErrorKind::not_found, "no such artifact", "", "", ""};
                return path;
            },
            options_);
        ASSERT_TRUE(server_->open());
        thread_ = std::thread{[this] { context_.run(); }};
    }
    /// Runs on the server's thread: the reader and the actions belong to it.
    void on_loop(const std::function<void()>& work) {
        std::promise<void> done;
        asio::post(context_, [&] {
            work();
            done.set_value();
        });
        done.get_future().wait();
    }
    Peer peer() { return Peer{options_.socket}; }

    std::filesystem::path folder_;
    asio::io_context context_{1};
    asio::executor_work_guard<asio::io_context::executor_type> work_ = asio::make_work_guard(context_);
    SystemClock clock_;
    FakeReader reader_;
    FakeActions actions_;
    ServerOptions options_;
    std::unique_ptr<Server> server_;
    std::thread thread_;
};

TEST_F(ApiServer, AnswersSeveralRequestsOnOneConnection) {
    start();
    Peer client = peer();
    const Answered version = client.ask("GET", "/v1/version");
    EXPECT_EQ(version.status, 200U);
    EXPECT_EQ(string_at(version.json(), "schema"), "campaignctl.version/1");
    EXPECT_EQ(string_at(version.json(), "version"), "0.3.0");
    EXPECT_EQ(int_at(version.json(), "pid"), ::getpid());
    const Answered status = client.ask("GET", "/v1/status");
    EXPECT_EQ(string_at(status.json(), "schema"), "campaignctl.status/1");
    EXPECT_EQ(string_at(client.ask("GET", "/v1/campaigns/k").json(), "name"), "k25");
}

TEST_F(ApiServer, TellsTheActionsWhoAsks) {
    start();
    Peer client = peer();
    const Answered done =
        client.ask("POST", "/v1/campaigns/k25/approve", R"({"decision":"D2","candidate":"torch-profile"})");
    EXPECT_EQ(done.status, 200U);
    EXPECT_EQ(string_at(done.json(), "schema"), "campaignctl.done/1");
    const passwd* self = ::getpwuid(::getuid());
    const std::string who = self == nullptr ? "uid " + std::to_string(::getuid()) : self->pw_name;
    EXPECT_EQ(actions_.calls, std::vector<std::string>{"approve k25 D2 torch-profile by " + who});
}

TEST_F(ApiServer, ResolvesAPrefixBeforeItActs) {
    start();
    Peer client = peer();
    client.ask("POST", "/v1/campaigns/k/cancel", "{}");
    client.ask("POST", "/v1/campaigns/k/resume", R"({"as":"not-done"})");
    client.ask("POST", "/v1/campaigns/k/resume", R"({"as":null})");
    client.ask("POST", "/v1/campaigns/k/restore");
    ASSERT_EQ(actions_.calls.size(), 4U);
    EXPECT_TRUE(actions_.calls[0].starts_with("cancel k25 by "));
    EXPECT_TRUE(actions_.calls[1].starts_with("resume k25 not-done by "));
    EXPECT_TRUE(actions_.calls[2].starts_with("resume k25 - by "));
    EXPECT_TRUE(actions_.calls[3].starts_with("restore k25 by "));
}

TEST_F(ApiServer, SubmitsAndExplainsAPlan) {
    start();
    Peer client = peer();
    const Answered submitted = client.ask("POST", "/v1/campaigns", R"({"plan":"campaign: x","file":"x.yaml"})");
    EXPECT_EQ(string_at(submitted.json(), "schema"), "campaignctl.submitted/1");
    const Answered explained = client.ask("POST", "/v1/explain", R"({"plan":"campaign: x","offline":true})");
    EXPECT_EQ(string_at(explained.json(), "schema"), "campaignctl.explain/1");
    ASSERT_EQ(actions_.calls.size(), 2U);
    EXPECT_TRUE(actions_.calls[0].starts_with("submit campaign: x x.yaml by "));
    EXPECT_EQ(actions_.calls[1], "explain campaign: x offline by nobody");
}

TEST_F(ApiServer, AnErrorOfAnActionKeepsItsWordsAndGetsItsStatus) {
    actions_.refuse = Error{ErrorKind::conflict, "the same plan is already unfinished", "", "", "campaignctl status k25"};
    start();
    Peer client = peer();
    const Answered refused = client.ask("POST", "/v1/campaigns", R"({"plan":"x"})");
    EXPECT_EQ(refused.status, 409U);
    EXPECT_EQ(string_at(refused.json(), "schema"), "campaignctl.error/1");
    EXPECT_EQ(error_from_json(*member(refused.json(), "error")), *actions_.refuse);
}

TEST_F(ApiServer, WrongRequestsAreAnsweredAndChangeNothing) {
    start();
    Peer client = peer();
    EXPECT_EQ(client.ask("GET", "/v1/nothing").status, 404U);
    EXPECT_EQ(client.ask("POST", "/v1/status").status, 405U);
    EXPECT_EQ(client.ask("GET", "/v1/campaigns/other").status, 404U);
    EXPECT_EQ(client.ask("POST", "/v1/campaigns", "{broken").status, 400U);
    EXPECT_EQ(client.ask("POST", "/v1/campaigns", "[1]").status, 400U);
    EXPECT_EQ(client.ask("POST", "/v1/campaigns", R"({"plan":7})").status, 400U);
    EXPECT_EQ(client.ask("POST", "/v1/campaigns/k25/resume", R"({"as":"maybe"})").status, 400U);
    EXPECT_EQ(client.ask("POST", "/v1/campaigns/k25/approve", "{}").status, 400U);
    EXPECT_EQ(client.ask("POST", "/v1/campaigns", std::string(2000, '[')).status, 400U);
    EXPECT_EQ(client.ask("GET", "/v1/artifacts/..%2f..%2fetc%2fpasswd").status, 400U);
    EXPECT_TRUE(actions_.calls.empty());
}

TEST_F(ApiServer, ABodyOverTheLimitIsRefusedBeforeItIsRead) {
    start();
    Peer client = peer();
    client.send("POST /v1/campaigns HTTP/1.1\r\nHost: x\r\nContent-Length: 10485761\r\n\r\n");
    const Answered refused = client.answer();
    EXPECT_EQ(refused.status, 413U);
    EXPECT_EQ(string_at(*member(refused.json(), "error"), "kind"), "invalid");
    EXPECT_FALSE(client.read_more()) << "the connection is closed";
}

TEST_F(ApiServer, AChunkedBodyOverTheLimitIsRefusedToo) {
    options_.body_limit = 1000;
    start();
    Peer client = peer();
    client.send("POST /v1/campaigns HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 20; ++i) client.send("64\r\n" + std::string(100, 'x') + "\r\n");
    EXPECT_EQ(client.answer().status, 413U);
}

TEST_F(ApiServer, AHeaderWithoutEndIsRefused) {
    start();
    Peer client = peer();
    client.send("GET /v1/status HTTP/1.1\r\nX: " + std::string(40'000, 'a'));
    EXPECT_EQ(client.answer().status, 431U);
}

TEST_F(ApiServer, WhatIsNotHttpIsToldSo) {
    start();
    Peer client = peer();
    client.send(std::string{"\x16\x03\x01\x02\x00\x01", 6} + "\r\n\r\n");
    EXPECT_EQ(client.answer().status, 400U);
}

TEST_F(ApiServer, ManyConnectionsAreAnsweredAndOneMoreIsRefused) {
    options_.max_connections = 3;
    start();
    Peer first = peer();
    Peer second = peer();
    Peer third = peer();
    EXPECT_EQ(first.ask("GET", "/v1/version").status, 200U);
    EXPECT_EQ(second.ask("GET", "/v1/version").status, 200U);
    EXPECT_EQ(third.ask("GET", "/v1/version").status, 200U);
    Peer fourth = peer();
    EXPECT_EQ(fourth.answer().status, 503U);
}

TEST_F(ApiServer, ASilentConnectionIsClosed) {
    options_.idle_limit = std::chrono::milliseconds{20};
    start();
    Peer client = peer();
    EXPECT_FALSE(client.read_more());
}

TEST_F(ApiServer, GivesTheReportAndTheBytesOfAnArtifact) {
    const std::string sha(64, 'a');
    const std::string bytes(700'000, 'z');
    std::ofstream{folder_ / sha} << bytes;
    start();
    Peer client = peer();
    EXPECT_EQ(client.ask("GET", "/v1/campaigns/k25/report").body, "# report of k25\n");
    const Answered artifact = client.ask("GET", "/v1/artifacts/" + sha);
    EXPECT_EQ(artifact.status, 200U);
    EXPECT_TRUE(artifact.body == bytes);
    EXPECT_EQ(client.ask("GET", "/v1/artifacts/" + std::string(64, 'b')).status, 404U);
}

TEST_F(ApiServer, EventsWithoutFollowingEndWithTheNewest) {
    for (int i = 0; i < 1200; ++i) reader_.add_event(1, "22:00:00", "note", R"({"text":"n"})");
    start();
    Peer client = peer();
    client.send("GET /v1/campaigns/k25/events?after=1100 HTTP/1.1\r\nHost: x\r\n\r\n");
    ASSERT_TRUE(client.read_until("\r\n0\r\n\r\n"));
    EXPECT_EQ(client.text().find("\"seq\":1100,"), std::string::npos);
    EXPECT_NE(client.text().find("\"seq\":1101,"), std::string::npos);
    EXPECT_NE(client.text().find("{\"seq\":1200,\"at\":\"2026-12-01T22:00:00.000Z\",\"campaign\":\"k25\",\"kind\":\"note\""),
              std::string::npos);
    client.forget();
    EXPECT_EQ(client.ask("GET", "/v1/version").status, 200U) << "the connection can be used again";
}

TEST_F(ApiServer, AWatcherGetsEachEventOnceAsItHappens) {
    options_.heartbeat = std::chrono::milliseconds{10};
    start();
    Peer client = peer();
    client.send("GET /v1/campaigns/k25/events?after=0&follow=1 HTTP/1.1\r\nHost: x\r\n\r\n");
    ASSERT_TRUE(client.read_until("1\r\n\n\r\n")) << "a blank line while nothing happens";
    for (int i = 1; i <= 3; ++i) {
        on_loop([this] { reader_.add_event(1, "22:00:00", "note", R"({"text":"n"})"); });
        server_->notify();
        server_->notify();
        ASSERT_TRUE(client.read_until("\"seq\":" + std::to_string(i) + ","));
    }
    std::size_t lines = 0;
    for (std::size_t p = client.text().find("\"seq\""); p != std::string::npos; p = client.text().find("\"seq\"", p + 1))
        ++lines;
    EXPECT_EQ(lines, 3U);
}

TEST_F(ApiServer, ANotifyAloneWakesAWatcher) {
    options_.heartbeat = std::chrono::hours{1};
    start();
    Peer client = peer();
    client.send("GET /v1/campaigns/k25/events?follow=1 HTTP/1.1\r\nHost: x\r\n\r\n");
    ASSERT_TRUE(client.read_until("\r\n\r\n"));
    on_loop([this] { reader_.add_event(1, "22:00:00", "note", R"({"text":"n"})"); });
    server_->notify();
    EXPECT_TRUE(client.read_until("\"seq\":1,"));
}

TEST_F(ApiServer, AWatcherThatDoesNotReadIsResyncedAndHoldsNobodyUp) {
    options_.heartbeat = std::chrono::milliseconds{10};
    options_.resync_after = 1000;
    start();
    Peer slow = peer();
    slow.send("GET /v1/campaigns/k25/events?follow=1 HTTP/1.1\r\nHost: x\r\n\r\n");
    ASSERT_TRUE(slow.read_until("1\r\n\n\r\n"));
    on_loop([this] {   // far more than its socket holds
        const std::string big = R"({"text":")" + std::string(1900, 'x') + R"("})";
        for (int i = 0; i < 20'000; ++i) reader_.add_event(1, "22:00:00", "note", big);
        reader_.events_read = 0;
    });
    server_->notify();
    Peer other = peer();
    for (int i = 0; i < 50; ++i) EXPECT_EQ(other.ask("GET", "/v1/version").status, 200U);
    std::size_t read_for_it = 0;
    on_loop([&] { read_for_it = reader_.events_read; });
    EXPECT_LE(read_for_it, 500U) << "one page at a time is in memory";
    EXPECT_TRUE(slow.read_until("{\"resync\":20000}"));
    on_loop([this] { reader_.add_event(1, "22:00:00", "note", R"({"text":"after"})"); });
    server_->notify();
    EXPECT_TRUE(slow.read_until("\"seq\":20001,")) << "it goes on behind the gap";
}

TEST_F(ApiServer, MoreWatchersThanAllowedAreRefused) {
    options_.max_watchers = 1;
    start();
    Peer first = peer();
    first.send("GET /v1/campaigns/k25/events?follow=1 HTTP/1.1\r\nHost: x\r\n\r\n");
    ASSERT_TRUE(first.read_until("\r\n\r\n"));
    Peer second = peer();
    EXPECT_EQ(second.ask("GET", "/v1/campaigns/k25/events?follow=1").status, 503U);
}

TEST_F(ApiServer, ClosingEndsEveryConnectionAndRemovesTheFile) {
    start();
    Peer idle = peer();
    EXPECT_EQ(idle.ask("GET", "/v1/version").status, 200U);
    Peer watcher = peer();
    watcher.send("GET /v1/campaigns/k25/events?follow=1 HTTP/1.1\r\nHost: x\r\n\r\n");
    ASSERT_TRUE(watcher.read_until("\r\n\r\n"));
    on_loop([this] { server_->close(); });
    while (idle.read_more()) {
    }
    while (watcher.read_more()) {
    }
    EXPECT_FALSE(std::filesystem::exists(options_.socket));
}

TEST_F(ApiServer, TheSocketIsForItsGroupOnly) {
    const mode_t before = ::umask(0);
    start();
    ::umask(before);
    struct stat facts {};
    ASSERT_EQ(::stat(options_.socket.c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777U, 0660U);
}

TEST_F(ApiServer, AStaleSocketIsReplacedALiveOneIsNot) {
    {
        const Fd dead{::socket(AF_UNIX, SOCK_STREAM, 0)};
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        options_.socket.string().copy(address.sun_path, sizeof address.sun_path - 1);
        ASSERT_EQ(::bind(dead.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    }
    start();
    Server second{context_.get_executor(), clock_, reader_, actions_, {}, options_};
    const Result<void> opened = second.open();
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().kind, ErrorKind::conflict);
    EXPECT_EQ(peer().ask("GET", "/v1/version").status, 200U);
}

TEST_F(ApiServer, AFileInTheWayIsKept) {
    std::ofstream{options_.socket} << "precious";
    Server server{context_.get_executor(), clock_, reader_, actions_, {}, options_};
    const Result<void> opened = server.open();
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().kind, ErrorKind::conflict);
    EXPECT_EQ(std::filesystem::file_size(options_.socket), 8U);
}

TEST_F(ApiServer, ServesOnASocketThatWasKeptForIt) {
    Fd kept{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    options_.socket.string().copy(address.sun_path, sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(kept.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(::listen(kept.get(), 8), 0);
    Server server{context_.get_executor(), clock_, reader_, actions_, {}, options_};
    ASSERT_TRUE(server.open(std::move(kept)));
    thread_ = std::thread{[this] { context_.run(); }};
    EXPECT_EQ(peer().ask("GET", "/v1/version").status, 200U);
    on_loop([&server] { server.close(); });
    EXPECT_TRUE(std::filesystem::exists(options_.socket)) << "systemd keeps it for the next start";
}

TEST(ApiStatus, FollowsTheKindOfTheError) {
    EXPECT_EQ(http_status(Error{ErrorKind::usage, "", "", "", ""}), 400U);
    EXPECT_EQ(http_status(Error{ErrorKind::invalid, "", "", "", ""}), 400U);
    EXPECT_EQ(http_status(Error{ErrorKind::refused, "", "", "", ""}), 403U);
    EXPECT_EQ(http_status(Error{ErrorKind::not_found, "", "", "", ""}), 404U);
    EXPECT_EQ(http_status(Error{ErrorKind::conflict, "", "", "", ""}), 409U);
    EXPECT_EQ(http_status(Error{ErrorKind::disk_full, "", "", "", ""}), 500U);
}

}   // namespace
}   // namespace campaign::api
