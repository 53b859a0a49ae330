#include <algorithm>
#include <cmath>
#include <set>

#include "adapters/host/files.hpp"
#include "adapters/process/facts.hpp"
#include "adapters/process/log.hpp"
#include "adapters/process/process.hpp"
#include "adapters/process/scripts.hpp"
#include "base/json.hpp"
#include "base/sha256.hpp"
#include "base/text.hpp"

namespace campaign::process {

namespace {

using host::Command;
using host::Finished;

// Everything runs as the ordinary user of the connection: a plain process needs no more rights than its starter had.
Command script(std::string_view text, const char* name, std::vector<std::string> operands) {
    Command command;
    command.argv = {"sh", "-c", std::string{text}, name};
    command.argv.insert(command.argv.end(), std::make_move_iterator(operands.begin()),
                        std::make_move_iterator(operands.end()));
    return command;
}

std::string seen(const Finished& run) {
    const std::string_view said = trim(run.errors.empty() ? std::string_view{run.output} : std::string_view{run.errors});
    return "exit " + std::to_string(run.exit_code) + (said.empty() ? "" : ": " + printable(said, 400));
}

bool plain_name(const std::string& name) {
    return !name.empty() && name.size() <= 200 && name.front() != '.' && name.front() != '-' &&
           std::all_of(name.begin(), name.end(), [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
                      c == '-';
           });
}

json::array words(const std::vector<std::string>& argv) {
    json::array array;
    for (const std::string& word : argv) array.emplace_back(word);
    return array;
}

class Manager final : public host::ServiceManager {
public:
    Manager(std::shared_ptr<host::Host> host, Clock& clock, std::map<std::string, ProcessSpec> specs)
        : host_{std::move(host)}, clock_{clock}, specs_{std::move(specs)} {}

    std::string kind() const override { return "process"; }

    Async<Result<host::ServiceState>> look(std::string service) override {
        const Result<ProcessSpec> spec = find(service);
        if (!spec) co_return spec.error();
        const Result<ProcessFacts> facts = co_await gather(*spec, false);
        if (!facts) co_return facts.error();
        co_return state_of(*facts, override_path(*spec));
    }

    Async<Result<host::Baseline>> baseline(std::string service) override {
        const Result<ProcessSpec> spec = find(service);
        if (!spec) co_return spec.error();
        const Result<ProcessFacts> facts = co_await gather(*spec, true);
        if (!facts) co_return facts.error();
        host::Baseline baseline;
        baseline.state = state_of(*facts, override_path(*spec));
        baseline.configured_argv = spec->command;
        baseline.running_argv = facts->argv;
        baseline.environment_hashes = facts->environment_hashes;
        baseline.user = facts->user;
        baseline.server_pid = facts->pid;
        baseline.how = "direct";
        baseline.exec_path = spec->command.empty() ? "" : spec->command[0];
        baseline.start_timeout_us = UINT64_MAX;
        baseline.stop_timeout_us = static_cast<std::uint64_t>(spec->stop_timeout.count()) * 1000;
        if (facts->pid == 0) {
            baseline.obstacles.push_back({"no-server", "No process of " + service + " runs on " + host_->name() + ".",
                                          "start it, and begin when it answers"});
        }
        if (facts->pid != 0 && !facts->overridden) {
            for (const auto& [name, hash] : facts->environment_hashes) {
                static const std::set<std::string, std::less<>> ours{"PATH", "HOME", "LANG", "PWD", "OLDPWD", "SHLVL", "_"};
                const auto planned = spec->environment.find(name);
                if (planned == spec->environment.end() ? ours.contains(name) : sha256(planned->second) == hash) continue;
                baseline.obstacles.push_back(
                    {"environment",
                     "The running " + service + " has " + name +
                         (planned == spec->environment.end() ? " in its environment, which the plan does not name"
                                                             : " with another value than the plan names") +
                         ": a restart would change it.",
                     "name it under services." + service + ".process.environment"});
            }
        }
        if (facts->overridden) {
            baseline.obstacles.push_back({"leftover",
                                          "An override of an earlier campaign is still installed for " + service + ".",
                                          "restore the service with `campaignctl doctor` first"});
        }
        co_return baseline;
    }

    Result<host::Change> render(const std::string& service, const host::Baseline& baseline,
                                const host::Override& change) const override {
        const Result<ProcessSpec> spec = find(service);
        if (!spec) return spec.error();
        if (!baseline.obstacles.empty()) {
            const host::Obstacle& first = baseline.obstacles.front();
            return Error{ErrorKind::refused, service + " cannot be restarted in another mode",
                         first.code + ": " + first.sentence, "", first.next};
        }
        return render_override(*spec, change);
    }

    Async<Result<json::object>> install(std::string service, host::Change change) override {
        const Result<ProcessSpec> spec = find(service);
        if (!spec) co_return spec.error();
        if (change.path != override_path(*spec)) {
            co_return Error{ErrorKind::usage, change.path + " is no override of " + service, "", "", ""};
        }
        const std::string path = change.path;
        const std::string content = change.content;
        const Result<host::WrittenFile> written = co_await host::write_file(*host_, path, content, 0600, false);
        if (!written) co_return written.error();
        const Result<std::string> back = co_await host::read_file(*host_, path, false);
        if (!back) co_return back.error();
        const Result<Start> start = parse_override(*back);
        if (!start) co_return start.error();
        if (start->command != change.effective_argv || written->sha256 != change.sha256) {
            co_return Error{ErrorKind::failed, "the override of " + service + " did not reach the disk as planned", "",
                            written->sha256, ""};
        }
        co_return json::object{{"path", path},
                               {"sha256", written->sha256},
                               {"load_state", "loaded"},
                               {"effective_argv", words(start->command)}};
    }

    Async<Result<json::object>> remove(std::string service, std::string path, std::string sha256) override {
        const Result<ProcessSpec> spec = find(service);
        if (!spec) co_return spec.error();
        if (path != override_path(*spec))
            co_return Error{ErrorKind::usage, path + " is no override of " + service, "", "", ""};
        const Result<bool> removed = co_await host::remove_file(*host_, path, sha256, false);
        if (!removed) co_return removed.error();
        co_return json::object{
            {"path", path}, {"removed", *removed}, {"load_state", "loaded"}, {"effective_argv", words(spec->command)}};
    }

    Async<Result<void>> restart(std::string service) override {
        const Result<ProcessSpec> spec = find(service);
        if (!spec) co_return spec.error();
        // Known before anything is stopped: a server that cannot be started again is not taken down.
        const Result<Start> start = co_await planned_start(*spec);
        if (!start) co_return start.error();
        const Result<void> stopped = co_await end(*spec);
        if (!stopped) co_return stopped.error();
        std::vector<std::string> operands{spec->state_dir, spec->name, spec->directory.empty() ? "/" : spec->directory,
                                          spec->log};
        for (const auto& [name, value] : start->environment) operands.push_back(name + "=" + value);
        operands.insert(operands.end(), start->command.begin(), start->command.end());
        Command command = script(scripts::start, "start", std::move(operands));
        const Result<Finished> run = co_await host_->run(std::move(command));
        if (!run) co_return run.error();
        if (run->exit_code == 0) co_return Result<void>{};
        co_return Error{ErrorKind::failed, service + " could not be started on " + host_->name(), "", seen(*run),
                        "check its directory, log and state_dir"};
    }

    Async<Result<void>> stop(std::string service) override {
        const Result<ProcessSpec> spec = find(service);
        if (!spec) co_return spec.error();
        co_return co_await end(*spec);
    }

    Async<Result<std::string>> log_cursor(std::string service) override {
        const Result<ProcessSpec> spec = find(service);
        if (!spec) co_return spec.error();
        Command command = script(scripts::position, "log-position", {spec->log});
        const Result<Finished> run = co_await host_->run(std::move(command));
        if (!run) co_return run.error();
        const auto position = parse_place(run->output);
        if (run->exit_code != 0 || !position) {
            co_return Error{ErrorKind::unavailable, "the log " + spec->log + " gives no position", "", seen(*run), ""};
        }
        co_return to_text(*position);
    }

    // A log that was rotated is read to its end, then the new one; where lines may be missing a line of our own says so.
    Async<Result<bool>> follow_log(std::string service, std::string cursor, host::OnLog on_log) override {
        const Result<ProcessSpec> spec = find(service);
        if (!spec) co_return spec.error();
        const Result<std::vector<std::string>> operands = tail_operands(*spec, cursor, "follow");
        if (!operands) co_return operands.error();
        Command command = script(scripts::tail, "follow-log", *operands);
        const auto reader = std::make_shared<TailReader>();
        host::OnLine on_line = [reader, on_log = std::move(on_log)](std::string_view text) {
            const auto line = reader->feed(text);
            return !line || on_log(*line);
        };
        co_return co_await host_->follow(std::move(command), std::move(on_line));
    }

    Async<Result<std::vector<host::LogLine>>> read_log(std::string service, std::string cursor, std::size_t limit) override {
        const Result<ProcessSpec> spec = find(service);
        if (!spec) co_return spec.error();
        const Result<std::vector<std::string>> operands = tail_operands(*spec, cursor, "read");
        if (!operands) co_return operands.error();
        Command command = script(scripts::tail, "read-log", *operands);
        command.keep_output = 32u << 20;
        const Result<Finished> run = co_await host_->run(std::move(command));
        if (!run) co_return run.error();
        TailReader reader;
        std::vector<host::LogLine> lines;
        std::vector<std::string> texts = split(run->output, '\n');
        const bool cut = !run->output.empty() && run->output.back() != '\n';
        if (cut && !texts.empty()) texts.pop_back();   // a line that is still being written
        for (const std::string& text : texts) {
            if (lines.size() == limit) break;
            if (auto line = reader.feed(text)) lines.push_back(std::move(*line));
        }
        co_return lines;
    }

    Async<Result<void>> start_job(host::Job job) override {
        if (auto valid = check_job(job); !valid) co_return valid.error();
        std::string cpus;
        for (const int cpu : job.cpus) cpus += (cpus.empty() ? "" : ",") + std::to_string(cpu);
        const long long limit = job.limit ? std::max<long long>(1, (job.limit->count() + 999) / 1000) : 0;
        std::vector<std::string> operands{job.directory, job.name, std::to_string(limit), cpus};
        for (const auto& [name, value] : job.environment) operands.push_back(name + "=" + value);
        operands.insert(operands.end(), job.argv.begin(), job.argv.end());
        Command command = script(scripts::start_job, "start-job", std::move(operands));
        const Result<Finished> run = co_await host_->run(std::move(command));
        if (!run) co_return run.error();
        if (run->exit_code == 0) co_return Result<void>{};
        if (run->exit_code == 75) {
            co_return Error{ErrorKind::conflict, "job " + job.name + " is already there on " + host_->name(), "", "",
                            "attach to it"};
        }
        co_return Error{ErrorKind::failed, "job " + job.name + " could not be started on " + host_->name(), "", seen(*run),
                        ""};
    }

    Async<Result<host::JobState>> job_state(host::Job job) override {
        const Result<std::vector<std::string>> answer = co_await ask_job(job);
        if (!answer) co_return answer.error();
        using Is = host::JobState::Is;
        host::JobState state;
        state.output_file = job.directory + "/" + job.name + ".out";
        state.errors_file = job.directory + "/" + job.name + ".err";
        const std::string& word = answer->front();
        if (word == "ended" && answer->size() > 1) {
            state.is = Is::ended;
            state.exit_code = std::atoi((*answer)[1].c_str());
        } else if (word == "running") {
            state.is = Is::running;
        } else if (word == "lost") {
            state.is = Is::ended;   // killed together with its shell: there is no status, and there will be none
            state.exit_code = 137;
        }
        co_return state;
    }

    Async<Result<void>> clear_job(host::Job job) override {
        const Result<std::vector<std::string>> answer = co_await ask_job(job);
        if (!answer) co_return answer.error();
        if (answer->front() != "running" || answer->size() != 4) co_return Result<void>{};
        const std::string boot = (*answer)[1];
        const std::string pid = (*answer)[2];
        const std::string start = (*answer)[3];
        for (const char* signal : {"TERM", "KILL"}) {
            Command command = script(scripts::signal, "signal", {boot, pid, start, signal});
            const Result<Finished> run = co_await host_->run(std::move(command));
            if (!run) co_return run.error();
            for (int look = 0; look < 20; ++look) {
                const Result<std::vector<std::string>> now = co_await ask_job(job);
                if (!now) co_return now.error();
                if (now->front() != "running") co_return Result<void>{};
                co_await clock_.sleep_for(std::chrono::milliseconds{250});
            }
        }
        co_return Error{ErrorKind::failed, "job " + job.name + " could not be ended", "it survived KILL for 5 s", "", ""};
    }

private:
    Result<ProcessSpec> find(const std::string& service) const {
        const auto found = specs_.find(service);
        if (found == specs_.end())
            return Error{ErrorKind::not_found, "no process named '" + printable(service, 100) + "' is configured", "", "",
                         ""};
        const ProcessSpec& spec = found->second;
        const bool absolute = spec.state_dir.starts_with("/") && spec.log.starts_with("/");
        if (!plain_name(spec.name) || spec.command.empty() || spec.command[0].find('=') != std::string::npos || !absolute) {
            return Error{ErrorKind::usage,
                         "the process '" + printable(service, 100) + "' cannot be managed as it is described",
                         "it needs a plain name, a command, and absolute paths for log and state_dir", "", ""};
        }
        return spec;
    }

    static std::string override_path(const ProcessSpec& spec) { return spec.state_dir + "/" + spec.name + ".override"; }

    static Result<void> check_job(const host::Job& job) {
        const bool plain = plain_name(job.name) && job.directory.size() > 1 && job.directory.front() == '/';
        if (plain && !job.argv.empty() && job.argv[0].find('=') == std::string::npos) return {};
        return Error{ErrorKind::usage,
                     "job '" + printable(job.name, 100) + "' needs a plain name, an absolute folder and a command", "", "",
                     ""};
    }

    Async<Result<std::vector<std::string>>> ask_job(const host::Job& job) {
        if (auto valid = check_job(job); !valid) co_return valid.error();
        Command command = script(scripts::job_state, "job-state", {job.directory, job.name});
        const Result<Finished> run = co_await host_->run(std::move(command));
        if (!run) co_return run.error();
        std::vector<std::string> answer = split(trim(run->output), ' ');
        if (run->exit_code != 0 || answer.empty()) {
            co_return Error{ErrorKind::protocol, "the state of job " + job.name + " cannot be read", "", seen(*run), ""};
        }
        co_return answer;
    }

    static Result<std::vector<std::string>> tail_operands(const ProcessSpec& spec, const std::string& cursor,
                                                          const char* mode) {
        const auto position = parse_position(cursor);
        if (!position)
            return Error{ErrorKind::invalid, "'" + printable(cursor, 100) + "' is no position in a log", "", "", ""};
        return std::vector<std::string>{spec.log,
                                        position->device,
                                        position->inode,
                                        std::to_string(position->offset),
                                        std::to_string(position->head_bytes),
                                        position->head_hash,
                                        mode};
    }

    /// With the override's command where one is installed; an override that cannot be read stops a restart.
    Async<Result<Start>> planned_start(ProcessSpec spec) {
        const std::string path = override_path(spec);
        const Result<std::string> content = co_await host::read_file(*host_, path, false);
        if (content) co_return parse_override(*content);
        if (content.error().kind != ErrorKind::not_found) co_return content.error();
        Start start;
        start.command = spec.command;
        start.environment = spec.environment;
        co_return start;
    }

    Async<Result<ProcessFacts>> gather(ProcessSpec spec, bool hashes) {
        // The words that may be found without a pidfile: those of the override, or of the plan. A server that was running
        // before we came has no pidfile, and keeps the plan's words until it is restarted.
        const Result<Start> start = co_await planned_start(spec);
        if (!start) co_return start.error();
        const Result<ProcessFacts> facts = co_await gather_words(spec, hashes, start->command);
        if (!facts || facts->pid != 0 || start->command == spec.command) co_return facts;
        co_return co_await gather_words(spec, hashes, spec.command);
    }

    Async<Result<ProcessFacts>> gather_words(const ProcessSpec& spec, bool hashes, const std::vector<std::string>& words) {
        std::vector<std::string> operands{spec.state_dir, spec.name, hashes ? "yes" : "no"};
        operands.insert(operands.end(), words.begin(), words.end());
        Command command = script(scripts::look, "look", std::move(operands));
        const Result<Finished> run = co_await host_->run(std::move(command));
        if (!run) co_return run.error();
        if (run->exit_code != 0) {
            co_return Error{ErrorKind::failed, "the processes of " + host_->name() + " could not be looked at", "",
                            seen(*run), ""};
        }
        co_return parse_facts(run->output);
    }

    /// TERM, wait, KILL: only the group that this very process leads.
    Async<Result<void>> end(ProcessSpec spec) {
        Result<ProcessFacts> facts = co_await gather(spec, false);
        if (!facts) co_return facts.error();
        if (facts->pid == 0) co_return Result<void>{};
        const std::string who = identity(*facts);
        for (const char* signal : {"TERM", "KILL"}) {
            Command command =
                script(scripts::signal, "signal",
                       {facts->boot_id, std::to_string(facts->pid), std::to_string(facts->start_ticks), signal});
            const Result<Finished> run = co_await host_->run(std::move(command));
            if (!run) co_return run.error();
            const Millis patience =
                signal == std::string_view{"TERM"} ? spec.stop_timeout : Millis{std::chrono::seconds{10}};
            const MonoTime until = clock_.mono() + patience;
            while (true) {
                const Result<ProcessFacts> now = co_await gather(spec, false);
                if (!now) co_return now.error();
                if (now->pid == 0 || identity(*now) != who) co_return Result<void>{};
                if (clock_.mono() >= until) break;
                co_await clock_.sleep_for(std::chrono::milliseconds{200});
            }
        }
        co_return Error{ErrorKind::failed, spec.name + " on " + host_->name() + " did not end", "it survived KILL for 10 s",
                        "process " + std::to_string(facts->pid), "look at the process: it may hang in the kernel"};
    }

    std::shared_ptr<host::Host> host_;
    Clock& clock_;
    std::map<std::string, ProcessSpec> specs_;
};

}   // namespace

std::unique_ptr<host::ServiceManager> make_manager(std::shared_ptr<host::Host> host, Clock& clock,
                                                   std::map<std::string, ProcessSpec> specs) {
    return std::make_unique<Manager>(std::move(host), clock, std::move(specs));
}

}   // namespace campaign::process
