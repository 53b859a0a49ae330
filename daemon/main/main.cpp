// campaignd: joins the rooms, and runs until it is told to stop.

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdio>
#include <iostream>

#include "adapters/http/http.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "base/sha256.hpp"
#include "daemon/api/server.hpp"
#include "daemon/main/explain.hpp"
#include "daemon/main/loop_journal.hpp"
#include "daemon/main/options.hpp"
#include "daemon/main/supervisor.hpp"
#include "daemon/main/transport.hpp"

namespace campaign::daemon {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

constexpr const char* version = CAMPAIGN_VERSION;

/// campaign-agent: where it was named, beside this program, or where the package puts it.
Result<std::filesystem::path> find_agent(const Options& options) {
    std::vector<std::filesystem::path> places;
    if (options.agent) {
        places.push_back(*options.agent);
    } else {
        std::error_code ignored;
        const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
        places = {self / "campaign-agent", self.parent_path() / "libexec/campaignd/campaign-agent",
                  self.parent_path() / "lib/campaignd/campaign-agent"};
    }
    for (const std::filesystem::path& place : places) {
        if (::access(place.c_str(), X_OK) == 0) return place;
    }
    return Error{ErrorKind::not_found, "campaign-agent is not there", "", places.front().string(), "name it with --agent"};
}

/// All that the daemon is made of, in the order in which it is made.
class Daemon {
public:
    Daemon(asio::io_context& context, const Options& options, std::shared_ptr<spdlog::logger> log)
        : context_{context}, options_{options}, log_{std::move(log)} {}

    Result<void> start() {
        std::error_code error;
        std::filesystem::create_directories(options_.state_dir, error);
        if (error)
            return Error{ErrorKind::io, "the state folder cannot be made", error.message(), options_.state_dir.string(),
                         "name another with --state-dir"};
        std::filesystem::permissions(
            options_.state_dir,
            std::filesystem::perms::owner_all | std::filesystem::perms::group_read | std::filesystem::perms::group_exec,
            error);
        const std::filesystem::path file = options_.state_dir / "journal.db";
        Result<std::unique_ptr<storage::Journal>> journal = storage::Journal::open(file);
        if (!journal) return journal.error();
        Result<std::unique_ptr<storage::Reader>> reader = storage::Reader::open(file);
        if (!reader) return reader.error();
        Result<std::unique_ptr<storage::Reader>> api_reader = storage::Reader::open(file);
        if (!api_reader) return api_reader.error();
        api_reader_ = std::move(*api_reader);
        Result<storage::Vault> vault = storage::Vault::open(options_.state_dir / "vault");
        if (!vault) return vault.error();
        vault_.emplace(std::move(*vault));
        const Result<std::filesystem::path> agent = find_agent(options_);
        if (!agent) return agent.error();
        const Result<std::string> agent_hash = sha256_file(*agent);
        if (!agent_hash) return agent_hash.error();

        journal_ = std::make_unique<LoopJournal>(context_.get_executor(), std::move(*journal), std::move(*reader), [this] {
            if (server_ != nullptr) server_->notify();
        });
        transport_ = std::make_unique<SystemTransport>(context_.get_executor(), clock_, random_, options_.ssh_config);
        http_ = http::make_client(context_.get_executor());
        world_.emplace(engine::World{clock_, random_, *journal_, *transport_, *http_, *vault_, *agent, *agent_hash});
        supervisor_ = std::make_unique<Supervisor>(context_.get_executor(), *world_, log_, version);

        api::ServerOptions server;
        server.socket = options_.socket;
        server.version = version;
        server.journal = file.string();
        std::filesystem::create_directories(options_.socket.parent_path(), error);
        server_ = std::make_unique<api::Server>(
            context_.get_executor(), clock_, *api_reader_, *supervisor_,
            [this](std::string_view hash) { return vault_->find(hash); }, server);
        if (Result<void> open = server_->open(); !open) return open;
        return supervisor_->resume_all();
    }

    /// Feeds systemd's watchdog from the loop itself: a loop that hangs is a daemon that hangs.
    Async<void> keep_alive() {
        std::uint64_t watchdog_us = 0;
        const bool watched = ::sd_watchdog_enabled(0, &watchdog_us) > 0;
        const auto pace = watched ? std::chrono::microseconds{watchdog_us / 3} : std::chrono::microseconds{10s};
        std::string shown;
        for (;;) {
            const std::string status = supervisor_->status_line();
            if (watched) ::sd_notify(0, "WATCHDOG=1");
            if (status != shown) {
                ::sd_notifyf(0, "STATUS=%s", status.c_str());
                shown = status;
            }
            co_await clock_.sleep_for(std::min<std::chrono::microseconds>(pace, 2s));
        }
    }

    Async<void> stop() {
        ::sd_notify(0, "STOPPING=1\nSTATUS=parking campaigns");
        co_await supervisor_->park();
        server_->close();
        context_.stop();
    }

private:
    asio::io_context& context_;
    const Options& options_;
    std::shared_ptr<spdlog::logger> log_;
    SystemClock clock_;
    SystemRandom random_;
    std::unique_ptr<storage::Reader> api_reader_;
    std::optional<storage::Vault> vault_;
    std::unique_ptr<LoopJournal> journal_;
    std::unique_ptr<SystemTransport> transport_;
    std::unique_ptr<http::Client> http_;
    std::optional<engine::World> world_;
    std::unique_ptr<Supervisor> supervisor_;
    std::unique_ptr<api::Server> server_;
};

int complain(const Error& error) {
    std::fprintf(stderr, "campaignd: %s\n", describe(error).c_str());
    return error.kind == ErrorKind::usage ? 2 : 1;
}

int serve(const Options& options) {
    const rlimit no_core{0, 0};   // a core dump could hold a key that was in use
    ::setrlimit(RLIMIT_CORE, &no_core);
    std::signal(SIGPIPE, SIG_IGN);
    auto log = spdlog::stderr_logger_st("campaignd");
    log->set_level(spdlog::level::from_str(options.log_level));
    log->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc);

    asio::io_context context{1};
    Daemon daemon{context, options, log};
    if (Result<void> started = daemon.start(); !started) return complain(started.error());
    asio::signal_set signals{context, SIGTERM, SIGINT};
    signals.async_wait([&](boost::system::error_code error, int) {
        if (error) return;
        log->info("stopping: campaigns are parked and go on at the next start");
        asio::co_spawn(context, daemon.stop(), asio::detached);
    });
    asio::co_spawn(context, daemon.keep_alive(), asio::detached);
    ::sd_notify(0, "READY=1");
    log->info("campaignd {} serves {}", version, options.socket.string());
    context.run();
    return 0;
}

/// `campaignd explain --offline FILE`: the daemon's own planning, without a daemon.
int explain(const Options& options) {
    if (!options.offline)
        return complain(Error{ErrorKind::usage, "explain without --offline is the running daemon's", "", "",
                              "campaignctl plan explain FILE"});
    const Result<std::string> text = read_text(options.plan, std::size_t{1} << 20);
    if (!text) return complain(text.error());
    asio::io_context context{1};
    SystemClock clock;
    SystemRandom random;
    SystemTransport transport{context.get_executor(), clock, random, options.ssh_config};
    const std::unique_ptr<http::Client> http = http::make_client(context.get_executor());
    const std::filesystem::path folder = std::filesystem::temp_directory_path() / ("campaignd-explain-" + random.hex(8));
    const Result<storage::Vault> vault = storage::Vault::open(folder / "vault");
    if (!vault) return complain(vault.error());
    Result<std::unique_ptr<storage::Journal>> journal = storage::Journal::open(folder / "journal.db");
    if (!journal) return complain(journal.error());
    Result<std::unique_ptr<storage::Reader>> reader = storage::Reader::open(folder / "journal.db");
    if (!reader) return complain(reader.error());
    int status = 1;
    {
        LoopJournal port{context.get_executor(), std::move(*journal), std::move(*reader), {}};
        engine::World world{clock, random, port, transport, *http, *vault, "campaign-agent", "0000000000000000"};
        asio::co_spawn(
            context,
            [](engine::World& with, const std::string& plan) -> Async<Result<json::object>> {
                co_return co_await explain_plan(with, plan, true);
            }(world, *text),
            [&status](const std::exception_ptr& thrown, Result<json::object> answer) {
                if (thrown) {
                    try {
                        std::rethrow_exception(thrown);
                    } catch (const std::exception& error) {
                        status = complain(Error{ErrorKind::bug, "the plan could not be explained", error.what(), "",
                                                "please report this with the plan"});
                    }
                    return;
                }
                if (!answer) {
                    status = complain(answer.error());
                    return;
                }
                (*answer)["schema"] = "campaignctl.explain/1";
                std::cout << json::serialize(*answer) << "\n";
                status = 0;
            });
        context.run();
    }
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
    return status;
}

}   // namespace
}   // namespace campaign::daemon

int main(int argc, char** argv) {
    using namespace campaign::daemon;
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    const campaign::Result<Options> options = parse_options(arguments);
    if (!options) return complain(options.error());
    switch (options->what) {
        case Options::Do::help: std::cout << help_text(); return 0;
        case Options::Do::version: std::cout << "campaignd " << version << "\n"; return 0;
        case Options::Do::explain: return explain(*options);
        case Options::Do::serve: return serve(*options);
    }
    return 2;
}
