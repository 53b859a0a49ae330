#pragma once
// One service on one host that exist only in a test: what the methods ask of them, answered from members that a test sets.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "test_world.hpp"

namespace campaign::engine::test {

/// The truth about the service and its host; the manager and the host below only tell of it.
struct Scene {
    host::ServiceState state;
    std::vector<host::LogLine> log;
    std::vector<host::Command> ran;                                           ///< on the host, in order
    std::vector<http::Request> asked;                                         ///< of the server, in order
    std::function<Result<host::Finished>(const host::Command&)> on_command;   ///< default: status 0, no output
    std::function<Result<http::Response>(const http::Request&)> on_request;   ///< default: 200
    std::function<void()> on_look;                                            ///< before each look at the service
    int followers = 0;                                                        ///< of the log, at this moment

    Scene() {
        state.boot_id = "b0070000-0000-0000-0000-000000000001";
        state.exists = true;
        state.loadable = true;
        state.load_state = "loaded";
        state.active = "active";
        state.sub = "running";
        state.invocation = "0a0a0a0a0a0a0a0a";
        state.main_pid = 100;
    }
};

class ScriptedHost final : public host::Host {
public:
    explicit ScriptedHost(Scene& scene) : scene_{scene} {}
    [[nodiscard]] const std::string& name() const override { return name_; }
    [[nodiscard]] std::string shown(const host::Command& command) const override { return command.argv.front(); }
    Async<Result<host::Finished>> run(host::Command command) override {
        scene_.ran.push_back(command);
        if (scene_.on_command) co_return scene_.on_command(command);
        co_return host::Finished{};
    }
    Async<Result<bool>> follow(host::Command, host::OnLine) override { co_return unused(); }
    Async<Result<host::Fetched>> fetch(std::string, std::filesystem::path, host::OnBytes) override { co_return unused(); }
    Async<Result<host::Fetched>> send(std::filesystem::path, std::string, int, bool) override { co_return unused(); }
    Async<Result<host::Reach>> reach(std::string, int) override { co_return host::Reach{}; }
    void disconnect() override {}

private:
    static Error unused() { return Error{ErrorKind::unavailable, "not in this test", "", "", ""}; }
    Scene& scene_;
    std::string name_ = "gpu1";
};

class ScriptedManager final : public host::ServiceManager {
public:
    explicit ScriptedManager(Scene& scene) : scene_{scene} {}
    [[nodiscard]] std::string kind() const override { return "systemd"; }
    Async<Result<host::ServiceState>> look(std::string) override {
        // A real look leaves the loop to others for a moment.
        co_await boost::asio::post(co_await boost::asio::this_coro::executor, boost::asio::use_awaitable);
        if (scene_.on_look) scene_.on_look();
        co_return scene_.state;
    }
    Async<Result<host::Baseline>> baseline(std::string) override {
        host::Baseline found;
        found.state = scene_.state;
        co_return found;
    }
    [[nodiscard]] Result<host::Change> render(const std::string&, const host::Baseline&,
                                              const host::Override&) const override {
        return unused();
    }
    Async<Result<json::object>> install(std::string, host::Change) override { co_return unused(); }
    Async<Result<json::object>> remove(std::string, std::string, std::string) override { co_return unused(); }
    Async<Result<void>> restart(std::string) override { co_return unused(); }
    Async<Result<void>> stop(std::string) override { co_return unused(); }
    Async<Result<std::string>> log_cursor(std::string) override { co_return std::string{"cursor"}; }
    /// Follows for ever, as a real one does: only a cancel ends it.
    Async<Result<bool>> follow_log(std::string, std::string, host::OnLog) override {
        struct Count {
            explicit Count(int& of) : of_{of} { ++of_; }
            ~Count() { --of_; }
            int& of_;
        } const count{scene_.followers};
        boost::asio::steady_timer never{co_await boost::asio::this_coro::executor,
                                        boost::asio::steady_timer::time_point::max()};
        co_await never.async_wait(boost::asio::use_awaitable);
        co_return true;
    }
    Async<Result<std::vector<host::LogLine>>> read_log(std::string, std::string, std::size_t) override {
        co_return scene_.log;
    }
    Async<Result<void>> start_job(host::Job) override { co_return unused(); }
    Async<Result<host::JobState>> job_state(host::Job) override { co_return unused(); }
    Async<Result<void>> clear_job(host::Job) override { co_return unused(); }

private:
    static Error unused() { return Error{ErrorKind::unavailable, "not in this test", "", "", ""}; }
    Scene& scene_;
};

class ScriptedTransport final : public Transport {
public:
    explicit ScriptedTransport(Scene& scene) : scene_{scene} {}
    std::shared_ptr<host::Host> open(const plans::Host&) override { return std::make_shared<ScriptedHost>(scene_); }
    std::unique_ptr<host::ServiceManager> manager(std::shared_ptr<host::Host>, const plans::Host&,
                                                  const plans::Service&) override {
        return std::make_unique<ScriptedManager>(scene_);
    }
    std::shared_ptr<host::Host> here() override { return std::make_shared<ScriptedHost>(scene_); }

private:
    Scene& scene_;
};

class ScriptedHttp final : public http::Client {
public:
    explicit ScriptedHttp(Scene& scene) : scene_{scene} {}
    Async<Result<http::Response>> send(http::Request request) override {
        scene_.asked.push_back(request);
        if (scene_.on_request) co_return scene_.on_request(request);
        http::Response answer;
        answer.status = 200;
        co_return answer;
    }

private:
    Scene& scene_;
};

/// A plan for one service, "kimi": vllm.service on gpu1.
inline plans::Plan one_service() {
    plans::Plan plan;
    plan.name = "k25";
    plans::Host host;
    host.name = "gpu1";
    host.ssh = "gpu1";
    plan.hosts.emplace("gpu1", host);
    plans::Service service;
    service.name = "kimi";
    service.host = "gpu1";
    service.unit = "vllm.service";
    service.url = "http://127.0.0.1:8000";
    service.server = plans::ServerKind::vllm;
    plan.services.emplace("kimi", service);
    return plan;
}

/// A TestWorld with that service in it.
struct ScriptedWorld {
    Scene scene;
    TestWorld world{one_service(), std::make_unique<ScriptedTransport>(scene), std::make_unique<ScriptedHttp>(scene)};
};

}   // namespace campaign::engine::test
