#include <algorithm>
#include <cmath>

#include "adapters/host/files.hpp"
#include "adapters/systemd/command_line.hpp"
#include "adapters/systemd/journal.hpp"
#include "adapters/systemd/scripts.hpp"
#include "adapters/systemd/systemd.hpp"
#include "base/json.hpp"
#include "base/quote.hpp"
#include "base/text.hpp"

namespace campaign::systemd {

namespace {

using host::Command;
using host::Finished;

constexpr std::string_view look_properties =
    "LoadState,ActiveState,SubState,Result,InvocationID,MainPID,NRestarts,ExecMainCode,ExecMainStatus,"
    "ActiveEnterTimestampMonotonic,Job,NeedDaemonReload,DropInPaths";
constexpr std::string_view baseline_properties =
    "LoadState,ActiveState,SubState,Result,InvocationID,MainPID,NRestarts,ExecMainCode,ExecMainStatus,"
    "ActiveEnterTimestampMonotonic,Job,NeedDaemonReload,DropInPaths,Type,User,FragmentPath,EnvironmentFiles,StartLimitBurst,"
    "StartLimitIntervalUSec,TimeoutStartUSec,TimeoutStopUSec,ProtectSystem,ProtectHome,PrivateTmp,DynamicUser,RootDirectory,"
    "TemporaryFileSystem,KillMode,Transient,ControlGroup,RequiredBy,BoundBy,ConsistsOf";
constexpr std::string_view log_fields = "--output-fields=MESSAGE,_PID,UNIT";

Command script(std::string_view text, const char* name, std::vector<std::string> operands, bool as_root) {
    Command command;
    command.argv = {"sh", "-c", std::string{text}, name};
    command.argv.insert(command.argv.end(), std::make_move_iterator(operands.begin()),
                        std::make_move_iterator(operands.end()));
    command.as_root = as_root;
    return command;
}

std::string seen(const Finished& run) {
    const std::string_view said = trim(run.errors.empty() ? std::string_view{run.output} : std::string_view{run.errors});
    return "exit " + std::to_string(run.exit_code) + (said.empty() ? "" : ": " + printable(said, 400));
}

Result<void> check_unit(const std::string& unit) {
    if (valid_unit(unit)) return {};
    return Error{ErrorKind::usage, "'" + printable(unit, 100) + "' is no name of a service unit", "", "",
                 "name it with its suffix, like vllm.service"};
}

bool valid_job(const std::string& name) {
    return !name.empty() && name.size() <= 200 && std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    });
}

json::array words(const std::vector<std::string>& argv) {
    json::array array;
    for (const std::string& word : argv) array.emplace_back(word);
    return array;
}

/// The name given to a container, for asking its runtime where it runs.
std::string container_name(const std::vector<std::string>& argv) {
    for (std::size_t i = 0; i + 1 < argv.size(); ++i) {
        if (argv[i] == "--name") return argv[i + 1];
        if (argv[i].starts_with("--name=")) return argv[i].substr(7);
    }
    return {};
}

class Manager final : public host::ServiceManager {
public:
    Manager(std::shared_ptr<host::Host> host, KindOf kind_of) : host_{std::move(host)}, kind_of_{std::move(kind_of)} {}

    std::string kind() const override { return "systemd"; }

    Async<Result<host::ServiceState>> look(std::string unit) override {
        if (auto valid = check_unit(unit); !valid) co_return valid.error();
        Command command = script(scripts::look, "look", {unit, std::string{look_properties}}, false);
        const Result<Finished> run = co_await host_->run(std::move(command));
        if (!run) co_return run.error();
        if (run->exit_code != 0) co_return no_systemd(*run);
        co_return parse_look(run->output);
    }

    Async<Result<host::Baseline>> baseline(std::string unit) override {
        if (auto valid = check_unit(unit); !valid) co_return valid.error();
        Result<UnitFacts> facts = co_await gather(unit, std::string{}, std::string{});
        if (!facts) co_return facts.error();
        if (property(facts->properties, "LoadState") == "not-found") {
            co_return Error{ErrorKind::not_found, host_->name() + " has no unit " + unit, "", "LoadState=not-found", ""};
        }
        // The processes of a container are in a cgroup of their own, which only its runtime can name.
        if (facts->start.size() == 1) {
            const std::string runtime{base_name(facts->start[0].path)};
            const std::string name = container_name(facts->start[0].argv);
            const bool container = (runtime == "docker" || runtime == "podman") && !name.empty() && name.front() != '-';
            if (container) {
                const std::string program = facts->start[0].path;
                Result<UnitFacts> with_container = co_await gather(unit, program, name);
                if (!with_container) co_return with_container.error();
                facts = std::move(with_container);
            }
        }
        co_return judge(unit, *facts, kind_of_);
    }

    Result<host::Change> render(const std::string& unit, const host::Baseline& baseline,
                                const host::Override& change) const override {
        if (auto valid = check_unit(unit); !valid) return valid.error();
        return render_drop_in(unit, baseline, change, kind_of_);
    }

    Async<Result<json::object>> install(std::string unit, host::Change change) override {
        if (auto valid = check_unit(unit); !valid) co_return valid.error();
        if (!change.path.starts_with("/run/systemd/system/" + unit + ".d/") || !is_ours(change.path)) {
            co_return Error{ErrorKind::usage, change.path + " is no drop-in of ours for " + unit, "", "", ""};
        }
        const std::string path = change.path;
        const std::string content = change.content;
        const Result<host::WrittenFile> written = co_await host::write_file(*host_, path, content, 0644, true);
        if (!written) co_return written.error();
        Result<UnitFacts> loaded = co_await reload(unit);
        if (!loaded && loaded.error().kind == ErrorKind::in_doubt) co_return loaded.error();
        if (!loaded && loaded.error().kind == ErrorKind::unreachable) co_return loaded.error();

        std::string mismatch = loaded ? difference(change, *loaded) : describe(loaded.error());
        if (mismatch.empty() && written->sha256 != change.sha256) mismatch = "the file on the disk has another hash";
        if (mismatch.empty()) {
            co_return json::object{{"path", path},
                                   {"sha256", written->sha256},
                                   {"load_state", "loaded"},
                                   {"effective_argv", words(loaded->start[0].argv)}};
        }
        const std::string sha256 = written->sha256;
        const Result<json::object> removed = co_await remove(unit, path, sha256);
        const std::string fate = removed ? "the drop-in was removed again; nothing was restarted"
                                         : "and the drop-in could not be removed: " + describe(removed.error());
        co_return Error{ErrorKind::failed,
                        "systemd on " + host_->name() + " did not load the drop-in for " + unit + " as planned", fate,
                        mismatch, "look at `systemctl cat " + unit + "`"};
    }

    Async<Result<json::object>> remove(std::string unit, std::string path, std::string sha256) override {
        if (auto valid = check_unit(unit); !valid) co_return valid.error();
        const Result<bool> removed = co_await host::remove_file(*host_, path, sha256, true);
        if (!removed) co_return removed.error();
        const std::string folder = path.substr(0, path.rfind('/'));
        const Result<void> emptied = co_await host::remove_empty_dir(*host_, folder, true);
        if (!emptied) co_return emptied.error();
        const Result<UnitFacts> loaded = co_await reload(unit);
        if (!loaded) co_return loaded.error();
        const host::ServiceState state = state_of(loaded->boot_id, loaded->properties);
        if (std::find(state.drop_ins.begin(), state.drop_ins.end(), path) != state.drop_ins.end()) {
            co_return Error{ErrorKind::conflict, "systemd still lists " + path + " after its removal", "", state.load_state,
                            ""};
        }
        json::object result{{"path", path}, {"removed", *removed}, {"load_state", state.load_state}};
        if (loaded->start.size() == 1) result["effective_argv"] = words(loaded->start[0].argv);
        co_return result;
    }

    Async<Result<void>> restart(std::string unit) override {
        if (auto valid = check_unit(unit); !valid) co_return valid.error();
        Command command = script(scripts::restart, "restart", {unit}, true);
        const Result<Finished> run = co_await host_->run(std::move(command));
        if (!run) co_return run.error();
        if (run->exit_code == 74) {
            co_return Error{ErrorKind::conflict, unit + " on " + host_->name() + " was not restarted",
                            "it does not load, so its process could not come back", seen(*run),
                            "look at `systemctl status " + unit + "`"};
        }
        if (run->exit_code != 0) co_return refused("the restart", unit, *run);
        co_return Result<void>{};
    }

    Async<Result<void>> stop(std::string unit) override {
        if (auto valid = check_unit(unit); !valid) co_return valid.error();
        Command command;
        command.argv = {"systemctl", "stop", "--no-block", "--", unit};
        command.as_root = true;
        const Result<Finished> run = co_await host_->run(std::move(command));
        if (!run) co_return run.error();
        if (run->exit_code != 0) co_return refused("the stop", unit, *run);
        co_return Result<void>{};
    }

    // Taken without -u: a unit that has logged nothing yet has no cursor, and what it logs first would be lost.
    Async<Result<std::string>> log_cursor(std::string) override {
        Command command;
        command.argv = {"journalctl", "--no-pager", "-q", "-n", "1", "-o", "json", "--output-fields=_PID"};
        command.as_root = true;
        const Result<Finished> run = co_await host_->run(std::move(command));
        if (!run) co_return run.error();
        const auto line = parse_journal_line(trim(run->output));
        if (run->exit_code != 0 || !line) {
            co_return Error{ErrorKind::unavailable, "the journal of " + host_->name() + " gives no position",
                            "it may be empty or not readable", seen(*run), ""};
        }
        co_return line->cursor;
    }

    Async<Result<bool>> follow_log(std::string unit, std::string cursor, host::OnLog on_log) override {
        if (auto valid = check_unit(unit); !valid) co_return valid.error();
        const Result<void> there = co_await check_cursor(cursor);
        if (!there) co_return there.error();
        Command command = journal(unit, cursor);
        command.argv.emplace_back("-f");
        command.argv.emplace_back("--no-tail");
        host::OnLine on_line = [on_log = std::move(on_log), cursor](std::string_view line) {
            const auto entry = parse_journal_line(line);
            return !entry || entry->cursor == cursor || on_log(*entry);
        };
        co_return co_await host_->follow(std::move(command), std::move(on_line));
    }

    Async<Result<std::vector<host::LogLine>>> read_log(std::string unit, std::string cursor, std::size_t limit) override {
        if (auto valid = check_unit(unit); !valid) co_return valid.error();
        const Result<void> there = co_await check_cursor(cursor);
        if (!there) co_return there.error();
        Command command = journal(unit, cursor);
        command.keep_output = 32u << 20;
        const Result<Finished> run = co_await host_->run(std::move(command));
        if (!run) co_return run.error();
        // Without any entry after the cursor some versions answer 1.
        if (run->exit_code > 1) {
            co_return Error{ErrorKind::failed, "the journal of " + host_->name() + " could not be read", "", seen(*run), ""};
        }
        std::vector<host::LogLine> lines;
        for (const std::string& text : split(run->output, '\n')) {
            if (lines.size() == limit) break;
            auto line = parse_journal_line(text);
            if (line && line->cursor != cursor) lines.push_back(std::move(*line));
        }
        co_return lines;
    }

    Async<Result<void>> start_job(host::Job job) override {
        if (auto valid = check_job(job); !valid) co_return valid.error();
        Command command = script(scripts::start_job, "start-job", start_operands(job), true);
        const Result<Finished> run = co_await host_->run(std::move(command));
        if (!run) co_return run.error();
        if (run->exit_code == 0) co_return Result<void>{};
        const bool there = run->exit_code == 75 || run->errors.find("already exists") != std::string::npos ||
                           run->errors.find("already loaded") != std::string::npos;
        if (there) {
            co_return Error{ErrorKind::conflict, "job " + job.name + " is already there on " + host_->name(), "", seen(*run),
                            "attach to it"};
        }
        co_return refused("to start", job_unit(job.name), *run);
    }

    Async<Result<host::JobState>> job_state(host::Job job) override {
        if (auto valid = check_job(job); !valid) co_return valid.error();
        const std::string status = job.directory + "/" + job.name + ".status";
        Command command = script(scripts::job_state, "job-state", {job_unit(job.name), status}, true);
        const Result<Finished> run = co_await host_->run(std::move(command));
        if (!run) co_return run.error();
        if (run->exit_code != 0) co_return no_systemd(*run);
        const Properties properties = parse_show(run->output);
        host::JobState state;
        state.output_file = job.directory + "/" + job.name + ".out";
        state.errors_file = job.directory + "/" + job.name + ".err";
        const std::string load = property(properties, "LoadState");
        const std::string active = property(properties, "ActiveState");
        const std::string written = property(properties, "StatusFile");
        using Is = host::JobState::Is;
        if (!written.empty()) {
            state.is = Is::ended;
            state.exit_code = static_cast<int>(number(properties, "StatusFile"));
        } else if (load.empty()) {
            co_return Error{ErrorKind::protocol, "the state of job " + job.name + " cannot be read", "no LoadState",
                            seen(*run), ""};
        } else if (load == "not-found") {
            state.is = Is::absent;   // whatever Result and ExecMainStatus pretend
        } else if (active == "failed" || property(properties, "SubState") == "exited" || active == "inactive") {
            state.is = Is::ended;
            const host::ServiceState unit = state_of({}, properties);
            state.exit_code = unit.result == "timeout" ? 124 : unit.exit_status.value_or(125);
        } else {
            state.is = Is::running;
        }
        co_return state;
    }

    Async<Result<void>> clear_job(host::Job job) override {
        if (auto valid = check_job(job); !valid) co_return valid.error();
        Command command = script(scripts::clear_job, "clear-job", {job_unit(job.name)}, true);
        const Result<Finished> run = co_await host_->run(std::move(command));
        if (!run) co_return run.error();
        const std::string_view state = trim(run->output);
        if (state != "inactive") {
            co_return Error{ErrorKind::failed, "job " + job.name + " could not be ended", "", seen(*run), ""};
        }
        co_return Result<void>{};
    }

private:
    Error no_systemd(const Finished& run) const {
        return Error{ErrorKind::unavailable, "systemd on " + host_->name() + " does not answer", "", seen(run), ""};
    }

    Error refused(const std::string& what, const std::string& unit, const Finished& run) const {
        return Error{ErrorKind::refused, host_->name() + " refused " + what + " of " + unit, "", seen(run),
                     "check that sudo allows it without a password"};
    }

    static Result<void> check_job(const host::Job& job) {
        const bool folder = job.directory.size() > 1 && job.directory.front() == '/';
        if (valid_job(job.name) && folder && !job.argv.empty()) return {};
        return Error{ErrorKind::usage,
                     "job '" + printable(job.name, 100) + "' needs a name of [a-z0-9-], an absolute folder and a command",
                     "", "", ""};
    }

    // What systemd-run hands to systemd is expanded there once more: '$' is doubled.
    static std::vector<std::string> start_operands(const host::Job& job) {
        std::vector<std::string> words{job_unit(job.name),
                                       job.directory,
                                       job.name,
                                       "--unit=" + job_unit(job.name),
                                       "--quiet",
                                       "--no-ask-password",
                                       "--property=RemainAfterExit=yes",
                                       "--property=WorkingDirectory=" + job.directory};
        if (job.limit) {
            const auto seconds = std::max<long long>(1, (job.limit->count() + 999) / 1000);
            words.push_back("--property=RuntimeMaxSec=" + std::to_string(seconds));
        }
        if (!job.cpus.empty()) {
            std::string list;
            for (const int cpu : job.cpus) list += (list.empty() ? "" : " ") + std::to_string(cpu);
            words.push_back("--property=CPUAffinity=" + list);
        }
        for (const auto& [name, value] : job.environment) words.push_back("--setenv=" + name + "=" + value);
        for (const std::string_view word : {std::string_view{"--"}, std::string_view{"/bin/sh"}, std::string_view{"-c"}}) {
            words.emplace_back(word);
        }
        words.push_back(literal_dollars(scripts::job));
        words.emplace_back("campaignd-job");
        words.push_back(literal_dollars(job.directory));
        words.push_back(job.name);
        for (const std::string& word : job.argv) words.push_back(literal_dollars(word));
        return words;
    }

    /// From the cursor's own entry on: journalctl 252 with --after-cursor and -u drops the first entry of the unit when the
    /// cursor is another unit's entry (it skips two matching entries, not the cursor and one). Who reads drops the entry
    /// that is the cursor itself.
    static Command journal(const std::string& unit, const std::string& cursor) {
        Command command;
        command.argv = {"journalctl", "--no-pager",         "-q", "-o", "json",
                        "--all",      "--cursor=" + cursor, "-u", unit, std::string{log_fields}};
        command.as_root = true;
        return command;
    }

    /// A cursor whose entry is gone would silently begin at the nearest one that is left.
    Async<Result<void>> check_cursor(std::string cursor) {
        Command command;
        command.argv = {"journalctl",         "--no-pager",          "-q", "-n", "1", "-o", "json",
                        "--cursor=" + cursor, "--output-fields=_PID"};
        command.as_root = true;
        const Result<Finished> run = co_await host_->run(std::move(command));
        if (!run) co_return run.error();
        const std::string first = run->output.substr(0, run->output.find('\n'));
        const auto line = parse_journal_line(first);
        if (run->exit_code == 0 && line && line->cursor == cursor) co_return Result<void>{};
        co_return Error{ErrorKind::not_found,
                        "the journal of " + host_->name() + " no longer has the position that was noted",
                        "it was rotated away, or the host has another journal", seen(*run),
                        "read on from the invocation's beginning and mark a gap"};
    }

    Async<Result<UnitFacts>> gather(std::string unit, std::string runtime, std::string container) {
        Command command = script(scripts::baseline, "baseline",
                                 {unit, std::string{baseline_properties}, object_path(unit), runtime, container}, true);
        const Result<Finished> run = co_await host_->run(std::move(command));
        if (!run) co_return run.error();
        if (run->exit_code != 0) co_return no_systemd(*run);
        if (!trim(run->output).ends_with("end .")) {
            co_return Error{ErrorKind::protocol, "the host's answer about " + unit + " is cut off", "",
                            printable(run->errors, 300), ""};
        }
        co_return parse_facts(run->output);
    }

    Async<Result<UnitFacts>> reload(std::string unit) {
        Command command = script(scripts::reload, "reload", {unit, object_path(unit)}, true);
        command.deadline = std::chrono::minutes{3};   // with many units, generators included, a reload takes its time
        const Result<Finished> run = co_await host_->run(std::move(command));
        if (!run) co_return run.error();
        if (run->exit_code == 72) co_return refused("the daemon-reload", unit, *run);
        if (run->exit_code != 0) co_return no_systemd(*run);
        co_return parse_facts(run->output);
    }

    /// "" when systemd has loaded exactly what was planned; else both sides.
    static std::string difference(const host::Change& change, const UnitFacts& loaded) {
        const host::ServiceState state = state_of(loaded.boot_id, loaded.properties);
        if (!state.loadable) return "LoadState=" + state.load_state;
        const auto place = std::find(state.drop_ins.begin(), state.drop_ins.end(), change.path);
        if (place == state.drop_ins.end())
            return "the drop-in is not in DropInPaths: it is masked by a file of the same name";
        if (loaded.start.size() != 1) return "systemd sees " + std::to_string(loaded.start.size()) + " start commands";
        if (loaded.start[0].argv != change.effective_argv) {
            return "planned: " + printable(shell_command(change.effective_argv)) +
                   " | loaded: " + printable(shell_command(loaded.start[0].argv));
        }
        return {};
    }

    std::shared_ptr<host::Host> host_;
    KindOf kind_of_;
};

}   // namespace

std::string job_unit(const std::string& name) {
    return "campaignd-" + name + ".service";
}

std::unique_ptr<host::ServiceManager> make_manager(std::shared_ptr<host::Host> host, KindOf kind_of) {
    return std::make_unique<Manager>(std::move(host), std::move(kind_of));
}

}   // namespace campaign::systemd
