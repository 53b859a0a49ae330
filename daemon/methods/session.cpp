#include "daemon/methods/session.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "daemon/methods/await_ready.hpp"
#include "daemon/methods/restore.hpp"

namespace campaign::methods {
namespace {

std::string trace_dir_of(const Campaign& campaign, const ServiceLink& link, engine::Mode mode) {
    const std::string root = link.service.profiler_dir.value_or(link.where.work_dir + "/traces");
    return root + "/" + campaign.row.name + "-" + std::string{engine::to_string(mode)};
}

std::string nsys_session_of(const Campaign& campaign) {
    return "campaignd-" + campaign.row.name;
}

/// The folder that the server writes its traces to: made before the restart, owned by the service's user.
class MakeTraceDir final : public ServiceStep {
public:
    MakeTraceDir(Campaign& campaign, std::string service, std::string folder, std::string user)
        : ServiceStep{campaign, std::move(service)}, folder_{std::move(folder)}, user_{std::move(user)} {}
    [[nodiscard]] std::string name() const override { return "make-trace-dir"; }
    [[nodiscard]] std::string title() const override { return "make the trace folder " + folder_ + " on " + host(); }
    [[nodiscard]] Effect effect() const override { return Effect::converge; }
    [[nodiscard]] std::string command() const override { return link().host->shown(make()); }
    [[nodiscard]] json::object input() const override {
        json::object object = ServiceStep::input();
        object["folder"] = folder_;
        object["user"] = user_;
        return object;
    }
    Async<Outcome> act(Scope&, const json::object&) override {
        host::Command command = make();
        const Result<host::Finished> finished = co_await link().host->run(std::move(command));
        if (!finished) co_return Outcome::from(finished.error());
        if (finished->exit_code != 0) {
            Error error{ErrorKind::refused, "the trace folder " + folder_ + " cannot be made on " + host(), "",
                        printable(finished->errors, 300),
                        "name a folder that the service's user can write as services." + service_ + ".profiler_dir"};
            co_return Outcome::from(std::move(error));
        }
        const std::uint64_t free_kib = std::strtoull(finished->output.c_str(), nullptr, 10);
        if (free_kib < std::uint64_t{2} << 20) {   // traces of one short window are some hundred MB a rank at most
            Error error{ErrorKind::disk_full, "too little space for traces on " + host(),
                        "less than 2 GiB are free below " + folder_, format_bytes(free_kib * 1024) + " free",
                        "make room, or name another folder as services." + service_ + ".profiler_dir"};
            co_return Outcome::from(std::move(error));
        }
        json::object facts;
        facts["folder"] = folder_;
        facts["free_bytes"] = free_kib * 1024;
        co_return Outcome::done(std::move(facts), folder_ + " is there, " + format_bytes(free_kib * 1024) + " free");
    }

private:
    [[nodiscard]] host::Command make() const {
        host::Command command;
        command.argv = {
            "sh",
            "-c",
            R"sh(set -e; umask 022; mkdir -p "$1"; [ -z "$2" ] || chown "$2" "$1"; chmod 0755 "$1"; df -Pk "$1" | awk 'NR==2 {print $4}')sh",
            "sh",
            folder_,
            user_};
        command.as_root = link().where.sudo;
        command.deadline = campaign_.plan.limits.command;
        return command;
    }
    std::string folder_;
    std::string user_;
};

/// Writes our drop-in, reloads, reads back. Its undo holds everything that bringing production back needs.
class InstallOverride final : public ServiceStep {
public:
    InstallOverride(Campaign& campaign, std::string service, host::Change change, const ServiceFacts& facts)
        : ServiceStep{campaign, std::move(service)}, change_{std::move(change)}, facts_{facts} {}
    [[nodiscard]] std::string name() const override { return "install-override"; }
    [[nodiscard]] std::string title() const override { return "write " + change_.path + " on " + host(); }
    [[nodiscard]] Effect effect() const override { return Effect::converge; }
    [[nodiscard]] std::string command() const override {
        return "write " + change_.path + " (sha256 " + change_.sha256 + "); systemctl daemon-reload";
    }
    [[nodiscard]] json::object input() const override {
        json::object object = ServiceStep::input();
        object["path"] = change_.path;
        object["sha256"] = change_.sha256;
        object["content"] = change_.content;
        return object;
    }
    [[nodiscard]] std::vector<engine::Undo> undos() const override {
        return {service_as_found(campaign_, service_, facts_, change_)};
    }
    Async<Outcome> act(Scope&, const json::object&) override {
        host::Change change = change_;
        const Result<json::object> installed = co_await link().manager->install(unit(), std::move(change));
        if (!installed) co_return Outcome::from(installed.error());
        co_await production(campaign_, service_, "changed", "our override is on disk; the server still runs as found");
        co_return Outcome::done(*installed, change_.path + " is in effect, sha256 " + change_.sha256.substr(0, 12));
    }

private:
    host::Change change_;
    const ServiceFacts& facts_;
};

/// The running process has our arguments, and nothing else than ours is new.
class VerifyEffective final : public ServiceStep {
public:
    VerifyEffective(Campaign& campaign, std::string service, std::vector<std::string> wanted,
                    std::vector<std::string> variables, std::string invocation)
        : ServiceStep{campaign, std::move(service)},
          wanted_{std::move(wanted)},
          variables_{std::move(variables)},
          invocation_{std::move(invocation)} {}
    [[nodiscard]] std::string name() const override { return "verify-effective"; }
    [[nodiscard]] std::string title() const override { return "prove from /proc that " + on_host() + " runs as planned"; }
    [[nodiscard]] Effect effect() const override { return Effect::observe; }
    [[nodiscard]] json::object input() const override {
        json::object object = ServiceStep::input();
        object["invocation"] = invocation_;
        return object;
    }
    Async<Outcome> act(Scope&, const json::object&) override {
        const Result<host::Baseline> now = co_await link().manager->baseline(unit());
        if (!now) co_return Outcome::from(now.error());
        if (now->state.invocation != invocation_) {
            Error error{ErrorKind::conflict, on_host() + " was restarted by somebody else", "",
                        "invocation " + printable(now->state.invocation, 60), ""};
            co_return Outcome::from(std::move(error));
        }
        for (const std::string& argument : wanted_) {
            if (std::find(now->running_argv.begin(), now->running_argv.end(), argument) != now->running_argv.end()) continue;
            Error error{ErrorKind::failed, on_host() + " runs without " + argument,
                        "the argument did not reach the server's own command line",
                        "/proc/" + std::to_string(now->server_pid) + "/cmdline", ""};
            co_return Outcome::from(std::move(error));
        }
        for (const std::string& variable : variables_) {
            if (now->environment_hashes.contains(variable)) continue;
            Error error{ErrorKind::failed, on_host() + " runs without the variable " + variable, "",
                        "/proc/" + std::to_string(now->server_pid) + "/environ", ""};
            co_return Outcome::from(std::move(error));
        }
        json::object facts;
        json::array argv;
        for (const std::string& word : now->running_argv) argv.emplace_back(word);
        facts["argv"] = std::move(argv);
        facts["pid"] = now->server_pid;
        co_return Outcome::done(std::move(facts), "pid " + std::to_string(now->server_pid) + " has all " +
                                                      std::to_string(wanted_.size()) + " arguments");
    }

private:
    std::vector<std::string> wanted_;
    std::vector<std::string> variables_;
    std::string invocation_;
};

Result<host::Override> override_for(Campaign& campaign, const std::string& service, engine::Mode mode,
                                    const ServiceFacts& facts) {
    ServiceLink& link = campaign.link(service);
    const Result<std::unique_ptr<servers::Server>> server = servers::make_server(facts.server_kind, campaign.world.http);
    if (!server) return server.error();
    const std::string folder = trace_dir_of(campaign, link, mode);
    host::Override change;
    if (mode == engine::Mode::profiler) {
        const Result<servers::ProfilerSetting> setting =
            (**server).profiler_setting(facts.version, folder, facts.baseline.running_argv);
        if (!setting) return setting.error();
        change.arguments = setting->arguments;
        change.environment = setting->environment;
        change.removes = setting->removes;
    } else if (mode == engine::Mode::nsys) {
        const Result<servers::ProfilerSetting> setting = (**server).nsys_setting(facts.version, facts.baseline.running_argv);
        if (!setting) return setting.error();
        change.arguments = setting->arguments;
        change.environment = setting->environment;
        change.removes = setting->removes;
        // `nsys launch` starts the server under a named session; collection begins only at `nsys start`. Graph nodes are
        // wanted one by one, since a decode step is one graph launch.
        change.prefix = {facts.nsys.value_or("nsys"),
                         "launch",
                         "--session-new=" + nsys_session_of(campaign),
                         "--trace=cuda,nvtx",
                         "--cuda-graph-trace=node",
                         "--trace-fork-before-exec=true"};
    }
    change.writable = {folder};
    change.marker = "campaign " + campaign.row.name + " of " + format_time(engine::wall_time(campaign.row.submitted)) +
                    ", mode " + std::string{engine::to_string(mode)} +
                    "\nremoved by campaignd when the campaign ends; by hand: campaignctl restore " + campaign.row.name;
    return change;
}

}   // namespace

Result<host::Change> render_mode(Campaign& campaign, const std::string& service, engine::Mode mode,
                                 const ServiceFacts& facts) {
    const Result<host::Override> change = override_for(campaign, service, mode, facts);
    if (!change) return change.error();
    ServiceLink& link = campaign.link(service);
    return link.manager->render(link.unit(), facts.baseline, *change);
}

Async<Result<json::object>> RestartService::before(Scope& scope) {
    const Result<std::string> cursor = co_await link().manager->log_cursor(unit());
    if (!cursor) co_return cursor.error();
    const Result<host::ServiceState> state = co_await link().manager->look(unit());
    if (!state) co_return state.error();
    json::object seen;
    seen["cursor"] = *cursor;
    seen["invocation"] = state->invocation;
    seen["boot_id"] = state->boot_id;
    seen["restarts"] = state->restarts;
    seen["at"] = engine::micros(scope.clock().wall());
    co_return seen;
}

Async<Outcome> RestartService::act(Scope& scope, const json::object& before) {
    const Result<host::ServiceState> state = co_await link().manager->look(unit());
    if (!state) {
        Error error = state.error();
        if (error.kind == ErrorKind::in_doubt)
            error.kind = ErrorKind::unreachable;   // only a look was lost; nothing was sent
        co_return Outcome::from(std::move(error));
    }
    if (!state->loadable) {
        Error error{ErrorKind::refused, on_host() + " is not restarted: its unit does not load",
                    "a restart would be refused, or could not start again", "LoadState=" + printable(state->load_state, 60),
                    "campaignctl restore " + campaign_.row.name};
        co_return Outcome::from(std::move(error));
    }
    const Result<void> sent = co_await link().manager->restart(unit());
    if (!sent) co_return Outcome::from(sent.error());
    co_return co_await see_it_start(scope, before);
}

/// rc 0 of a restart proves nothing: the new InvocationID does. The old process may take its whole TimeoutStopSec to go.
Async<Outcome> RestartService::see_it_start(Scope& scope, const json::object& before) {
    const std::string old = string_at(before, "invocation").value_or("");
    const MonoTime until = scope.clock().mono() + std::chrono::minutes{15};
    std::optional<MonoTime> gone_since;   // between stop and start a unit may be inactive for a moment
    while (scope.clock().mono() < until) {
        const Result<host::ServiceState> now = co_await link().manager->look(unit());
        if (now && !now->invocation.empty() && now->invocation != old) {
            json::object facts;
            facts["invocation"] = now->invocation;
            facts["before"] = old;
            facts["cursor"] = string_at(before, "cursor").value_or("");
            facts["at"] = int_at(before, "at").value_or(0);
            co_await production(campaign_, service_, state_, reason_);
            co_return Outcome::done(std::move(facts),
                                    "InvocationID " + old.substr(0, 8) + ".. -> " + now->invocation.substr(0, 8) + "..");
        }
        const bool gone = now && !now->job_pending && (now->active == "failed" || now->active == "inactive");
        if (!gone) gone_since.reset();
        if (gone && !gone_since) gone_since = scope.clock().mono();
        if (gone && scope.clock().mono() - *gone_since > std::chrono::seconds{10}) {
            Error error{ErrorKind::failed, on_host() + " did not start", "",
                        "ActiveState=" + printable(now->active, 60) + " Result=" + printable(now->result, 60), ""};
            co_return Outcome::from(std::move(error));
        }
        co_await scope.clock().sleep_for(std::chrono::milliseconds{250});
    }
    co_return Outcome::from(
        Error{ErrorKind::in_doubt, "no new invocation of " + on_host() + " within 15 min of its restart", "", "", ""});
}

Async<Confirmation> RestartService::confirm(Scope& scope, const json::object& before) {
    Confirmation seen;
    const Result<host::ServiceState> now = co_await link().manager->look(unit());
    if (!now) {
        seen.evidence = "no answer from " + host() + ": " + now.error().what;
        co_return seen;
    }
    const std::string old = string_at(before, "invocation").value_or("");
    if (!now->invocation.empty() && now->invocation != old) {
        seen.is = Confirmation::Is::done;
        seen.evidence = "InvocationID " + old.substr(0, 8) + ".. -> " + now->invocation.substr(0, 8) + "..";
        seen.value["invocation"] = now->invocation;
        seen.value["before"] = old;
        seen.value["cursor"] = string_at(before, "cursor").value_or("");
        seen.value["at"] = int_at(before, "at").value_or(0);
        co_await production(campaign_, service_, state_, reason_);
        co_return seen;
    }
    if (now->job_pending || now->active == "deactivating" || now->active == "activating") {
        const Outcome started = co_await see_it_start(scope, before);   // it was sent and is under way
        if (started) {
            seen.is = Confirmation::Is::done;
            seen.evidence = started.evidence;
            seen.value = started.value;
        } else {
            seen.evidence = "a job of systemd was pending, and no new invocation came";
        }
        co_return seen;
    }
    seen.is = Confirmation::Is::not_done;
    seen.evidence = "InvocationID is still " + old.substr(0, 8) + ".. and no job is pending";
    co_return seen;
}

Async<Result<Session>> enter_mode(Campaign& campaign, std::string service, engine::Mode mode, const ServiceFacts& facts) {
    Track track{campaign, "session/" + service + "/" + std::string{engine::to_string(mode)}, "session"};
    ServiceLink& link = campaign.link(service);
    Session session;
    session.mode = mode;
    session.trace_dir = trace_dir_of(campaign, link, mode);
    session.nsys_session = nsys_session_of(campaign);

    const Result<host::Override> wanted = override_for(campaign, service, mode, facts);
    if (!wanted) co_return wanted.error();
    const Result<host::Change> change = link.manager->render(link.unit(), facts.baseline, *wanted);
    if (!change) co_return change.error();

    MakeTraceDir folder{campaign, service, session.trace_dir, facts.baseline.user};
    const Outcome made = co_await track.perform(folder);
    if (!made) co_return made.error;

    InstallOverride install{campaign, service, *change, facts};
    const Outcome installed = co_await track.perform(install);
    if (!installed) co_return installed.error;
    co_await production(campaign, service, "changed", "our override is on disk; the server still runs as found");

    RestartService restart{campaign, service, "down",
                           "by plan: restarted into " + std::string{engine::to_string(mode)} + " mode"};
    const Outcome restarted = co_await track.perform(restart);
    if (!restarted) co_return restarted.error;
    session.invocation = string_at(restarted.value, "invocation").value_or("");

    AwaitReady::Start start;
    start.invocation = session.invocation;
    start.cursor = string_at(restarted.value, "cursor").value_or("");
    start.at = int_at(restarted.value, "at").value_or(0);
    AwaitReady ready{campaign, service, facts.server_kind, facts.model, std::string{engine::to_string(mode)}, start};
    const Outcome loaded = co_await track.perform(ready);
    if (!loaded) co_return loaded.error;

    std::vector<std::string> variables;
    for (const auto& [name, value] : wanted->environment) variables.push_back(name);
    VerifyEffective verify{campaign, service, wanted->arguments, std::move(variables), session.invocation};
    const Outcome verified = co_await track.perform(verify);
    if (!verified) co_return verified.error;
    co_return session;
}

}   // namespace campaign::methods
