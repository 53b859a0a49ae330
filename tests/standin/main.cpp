// A stand-in for `vllm serve` on hosts without a GPU: the same command line, log, HTTP contract and trace files, with faults
// on demand.

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>

#include "tests/standin/load.hpp"
#include "tests/standin/server.hpp"

extern char** environ;

namespace standin {
namespace {

std::string file_text(const char* path) {
    if (path == nullptr || *path == '\0') return {};
    std::ifstream file{path};
    return {std::istreambuf_iterator<char>{file}, {}};
}

Environment environment() {
    Environment all;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string text = *entry;
        const auto equals = text.find('=');
        if (equals != std::string::npos) all.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
    return all;
}

/// Of what a start may be asked to keep: variables that systemd makes anew for each start are left out. FNV-1a.
std::string environment_hash(const Environment& all) {
    std::uint64_t hash = 14695981039346656037ull;
    for (const auto& [name, value] : all) {
        if (name == "INVOCATION_ID" || name == "JOURNAL_STREAM" || name == "SYSTEMD_EXEC_PID" || name == "_") continue;
        for (const std::string_view part :
             {std::string_view{name}, std::string_view{"="}, std::string_view{value}, std::string_view{"\n"}})
            for (const char c : part) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
    }
    char text[20];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
    return text;
}

/// The engine and the workers of the real thing are processes of their own; here they only have a name, and end with us.
int spawn_child(const std::string& title, int argc, char** argv) {
    const int parent = ::getpid();
    const int pid = ::fork();
    if (pid != 0) return pid;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(0);
    char* const begin = argv[0];
    char* const end = argv[argc - 1] + std::strlen(argv[argc - 1]);
    std::fill(begin, end, '\0');
    std::copy_n(title.begin(), std::min<std::ptrdiff_t>(std::ssize(title), end - begin), begin);
    ::prctl(PR_SET_NAME, title.substr(0, 15).c_str());
    for (int fd = 0; fd < 3; ++fd) ::close(fd);
    for (;;) ::pause();
}

Pids spawn_children(const Options& options, int argc, char** argv) {
    Pids pids;
    pids.api = ::getpid();
    pids.engine = spawn_child("VLLM::EngineCore", argc, argv);
    if (options.tensor_parallel > 1)
        for (int rank = 0; rank < options.tensor_parallel; ++rank)
            pids.workers.push_back(spawn_child("VLLM::Worker_TP" + std::to_string(rank), argc, argv));
    return pids;
}

class Program {
public:
    Program(const Options& options, const Log& log, const Truth& truth)
        : options_{options},
          log_{log},
          truth_{truth},
          acceptor_{io_},
          signals_{io_, SIGTERM, SIGINT},
          server_{io_, options, log, truth} {}

    /// The exit status. `start` is the truth's first line.
    int run(boost::json::object start) {
        error_code failed;
        const auto address = asio::ip::make_address(options_.host, failed);
        const tcp::endpoint endpoint{failed ? asio::ip::make_address("127.0.0.1") : address, options_.port};
        acceptor_.open(endpoint.protocol());
        acceptor_.set_option(tcp::acceptor::reuse_address{true});
        acceptor_.bind(endpoint, failed);
        if (failed) {
            start["port_in_use"] = true;
            truth_.tell("start", std::move(start));
            say_port_in_use(log_);
            return leave(1, "port in use");
        }
        port_ = acceptor_.local_endpoint().port();
        start["port"] = port_;
        truth_.tell("start", std::move(start));
        asio::co_spawn(io_, until_signal(), asio::detached);
        asio::co_spawn(io_, load(), asio::detached);
        io_.run();
        return status_;
    }

private:
    int leave(int status, std::string_view why) {
        boost::json::object end = server_.served();
        end["why"] = why;
        end["status"] = status;
        truth_.tell("exit", std::move(end));
        for (const int pid : log_.pids().workers) ::kill(pid, SIGTERM);
        ::kill(log_.pids().engine, SIGTERM);
        while (::wait(nullptr) > 0) {
        }
        status_ = status;
        io_.stop();
        return status;
    }

    Async<void> until_signal() {
        co_await signals_.async_wait(asio::use_awaitable);
        log_.api("INFO", "launcher.py:110", "[shutdown] API server: shutdown triggered");
        log_.api("INFO", "launcher.py:131", "[shutdown] stopping engine client mode=abort timeout=0s");
        if (options_.pace.shutdown_s > 0) {
            asio::steady_timer timer{io_, std::chrono::nanoseconds{static_cast<long long>(options_.pace.shutdown_s * 1e9)}};
            co_await timer.async_wait(asio::use_awaitable);
        }
        log_.api("INFO", "launcher.py:140", "[shutdown] engine client stopped");
        if (ready_) {
            log_.uvicorn("Shutting down");
            log_.uvicorn("Waiting for application shutdown.");
            log_.uvicorn("Application shutdown complete.");
            log_.uvicorn("Finished server process [" + std::to_string(log_.pids().api) + "]");
        }
        leave(0, "signal");
    }

    /// Whether the load goes on.
    bool fault_strikes() {
        const std::string& fault = options_.faults.load;
        if (fault == "oom") {
            say_out_of_memory(log_);
            leave(1, "oom");
        } else if (fault == "engine_failed") {
            say_engine_failed(log_);
            leave(1, "engine failed");
        } else if (fault == "killed") {
            truth_.tell("dies", {{"during", "load"}});
            ::raise(SIGKILL);
        } else {
            return fault != "stall";
        }
        return false;
    }

    Async<void> load() {
        const auto began = std::chrono::steady_clock::now();
        const auto script = load_script(options_);
        const auto at = [&](double share) {
            return began + std::chrono::nanoseconds{static_cast<long long>(share * options_.pace.load_s * 1e9)};
        };
        asio::steady_timer timer{io_};
        bool struck = options_.faults.load.empty() || options_.faults.load == "never_ready";
        for (const auto& moment : script) {
            if (!struck && moment.share >= options_.faults.load_at) {
                struck = true;
                timer.expires_at(at(options_.faults.load_at));
                co_await timer.async_wait(asio::use_awaitable);
                if (!fault_strikes()) co_return;
            }
            timer.expires_at(at(moment.share));
            co_await timer.async_wait(asio::use_awaitable);
            moment.speak(log_);
        }
        timer.expires_at(at(1));
        co_await timer.async_wait(asio::use_awaitable);
        ready_lines(log_, options_, port_);
        if (options_.faults.load == "never_ready") co_return;
        server_.start_engine();
        acceptor_.listen(2048);
        ready_ = true;
        truth_.tell("ready", {{"port", port_}});
        co_await server_.serve(acceptor_);
    }

    const Options& options_;
    const Log& log_;
    const Truth& truth_;
    asio::io_context io_{1};
    tcp::acceptor acceptor_;
    asio::signal_set signals_;
    Server server_;
    unsigned short port_ = 0;
    bool ready_ = false;
    int status_ = 0;
};

int start(int argc, char** argv) {
    ::signal(SIGPIPE, SIG_IGN);
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    const auto all = environment();
    if (arguments.size() == 1 && (arguments[0] == "--version" || arguments[0] == "-v")) {
        const auto version = all.find("STANDIN_VERSION");
        std::cout << (version == all.end() ? Options{}.version : version->second) << "\n";
        return 0;
    }
    const Parsed parsed =
        parse_options(arguments, all, file_text(std::getenv("STANDIN_CONFIG")), file_text(std::getenv("STANDIN_FAULTS")));
    if (parsed.refused) {
        std::cerr << parsed.refused->text;
        return parsed.refused->status;
    }
    const Options& options = *parsed.options;
    boost::json::array argv_json;
    for (int i = 0; i < argc; ++i) argv_json.emplace_back(argv[i]);
    const Log log{spawn_children(options, argc, argv)};
    const Truth truth{options.truth_path};
    Program program{options, log, truth};
    const auto invocation = all.find("INVOCATION_ID");
    return program.run({{"argv", std::move(argv_json)},
                        {"env_hash", environment_hash(all)},
                        {"profiler", options.profiler.profiler},
                        {"invocation_id", invocation == all.end() ? "" : invocation->second}});
}

}   // namespace
}   // namespace standin

int main(int argc, char** argv) {
    return standin::start(argc, argv);
}
