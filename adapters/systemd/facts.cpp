#include "adapters/systemd/facts.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "adapters/systemd/base64.hpp"
#include "adapters/systemd/command_line.hpp"
#include "base/text.hpp"

namespace campaign::systemd {

namespace {

template <class T>
T to_number(std::string_view text, T otherwise = 0) {
    T value = otherwise;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} ? value : otherwise;
}

std::vector<std::string> words_of(const std::string& text) {
    std::vector<std::string> words;
    for (std::string& word : split(text, ' ')) {
        if (!word.empty()) words.push_back(std::move(word));
    }
    return words;
}

std::vector<std::string> nul_list(std::string_view bytes) {
    if (!bytes.empty() && bytes.back() == '\0') bytes.remove_suffix(1);
    if (bytes.empty()) return {};
    return split(bytes, '\0');
}

Error unreadable(std::string why, std::string_view seen) {
    return Error{ErrorKind::protocol, "the host's answer about the unit cannot be read", std::move(why),
                 printable(seen, 300), ""};
}

bool on(const std::string& value) {
    return !value.empty() && value != "no" && value != "false" && value != "disabled";
}

}   // namespace

host::ServiceState state_of(const std::string& boot_id, const Properties& properties) {
    host::ServiceState state;
    state.boot_id = boot_id;
    state.load_state = property(properties, "LoadState");
    state.exists = state.load_state != "not-found" && !state.load_state.empty();
    state.loadable = state.load_state == "loaded";
    // Of a unit that does not exist systemd answers Result=success and status 0: nothing of that is taken over.
    if (!state.exists) return state;
    state.active = property(properties, "ActiveState");
    state.sub = property(properties, "SubState");
    state.result = property(properties, "Result");
    state.invocation = property(properties, "InvocationID");
    state.main_pid = static_cast<int>(number(properties, "MainPID"));
    state.restarts = static_cast<int>(number(properties, "NRestarts"));
    state.entered_active_us = number(properties, "ActiveEnterTimestampMonotonic");
    state.job_pending = number(properties, "Job") != 0;
    state.needs_reload = property(properties, "NeedDaemonReload") == "yes";
    state.drop_ins = words_of(property(properties, "DropInPaths"));
    // ExecMainCode is the CLD_ code of waitid: 1 exited, 2 killed, 3 dumped.
    const auto code = number(properties, "ExecMainCode");
    const int status = static_cast<int>(number(properties, "ExecMainStatus"));
    if (code == 1) state.exit_status = status;
    if (code == 2 || code == 3) state.exit_status = 128 + status;
    return state;
}

Result<host::ServiceState> parse_look(std::string_view output) {
    const auto line_end = output.find('\n');
    if (line_end == std::string_view::npos) return unreadable("it has no boot id", output);
    const std::string boot{trim(output.substr(0, line_end))};
    const Properties properties = parse_show(output.substr(line_end + 1));
    if (boot.size() != 36) return unreadable("it has no boot id", output);
    if (property(properties, "LoadState").empty()) return unreadable("it has no LoadState", output);
    return state_of(boot, properties);
}

Result<UnitFacts> parse_facts(std::string_view output) {
    UnitFacts facts;
    double boot_time = 0;
    double ticks = 100;
    bool exec_seen = false;
    std::map<int, std::size_t> place;
    std::string exec_error;
    for (const std::string& line : split(output, '\n')) {
        const auto blank = line.find(' ');
        if (blank == std::string::npos) continue;
        const std::string_view key{line.data(), blank};
        const std::string_view rest = std::string_view{line}.substr(blank + 1);
        if (key == "boot") facts.boot_id = trim(rest);
        if (key == "btime") boot_time = to_number<double>(rest);
        if (key == "ticks") ticks = std::max(1.0, to_number<double>(rest, 100));
        if (key == "show") {
            const auto text = from_base64(rest);
            if (!text) return unreadable("the properties are cut off", line);
            facts.properties = parse_show(*text);
        } else if (key == "exec") {
            const auto text = from_base64(rest);
            if (!text) return unreadable("the command line is cut off", line);
            auto commands = parse_exec(*text);
            if (!commands) return commands.error();
            facts.start = std::move(*commands);
            exec_seen = true;
        } else if (key == "noexec") {
            exec_error = printable(from_base64(rest).value_or(std::string{rest}), 300);
        } else if (key == "proc") {
            const std::vector<std::string> fields = split(rest, ' ');
            if (fields.size() < 3) continue;
            ProcessFact process;
            process.pid = to_number<int>(fields[0]);
            process.parent = to_number<int>(fields[1]);
            process.started = boot_time + to_number<double>(fields[2]) / ticks;
            if (fields.size() > 3) process.argv = nul_list(from_base64(fields[3]).value_or(""));
            if (process.pid <= 0 || process.argv.empty()) continue;   // a kernel thread or a zombie
            place[process.pid] = facts.processes.size();
            facts.processes.push_back(std::move(process));
        } else if (key == "env") {
            const std::vector<std::string> fields = split(rest, ' ');
            if (fields.size() < 3) continue;
            const auto found = place.find(to_number<int>(fields[0]));
            if (found == place.end()) continue;
            ProcessFact& process = facts.processes[found->second];
            process.environment_read = true;
            const std::string_view name = rest.substr(fields[0].size() + fields[1].size() + 2);
            process.environment_hashes.emplace(std::string{name}, fields[1]);
        } else if (key == "file") {
            const auto second = rest.find(' ');
            if (second != std::string_view::npos) {
                facts.modified.emplace(std::string{rest.substr(second + 1)}, to_number<double>(rest.substr(0, second)));
            }
        }
    }
    if (facts.boot_id.size() != 36) return unreadable("it has no boot id", output);
    const std::string load = property(facts.properties, "LoadState");
    if (load.empty()) return unreadable("it has no LoadState", output);
    if (!exec_seen && load == "loaded") {
        return Error{ErrorKind::unavailable, "the unit's exact command line cannot be read", "busctl gave no ExecStartEx",
                     exec_error, "install busctl (package systemd) and a system D-Bus on the host"};
    }
    return facts;
}

namespace {

using host::Baseline;
using host::Obstacle;

const ProcessFact* process_of(const UnitFacts& facts, int pid) {
    const auto found = std::find_if(facts.processes.begin(), facts.processes.end(),
                                    [pid](const ProcessFact& process) { return process.pid == pid; });
    return found == facts.processes.end() ? nullptr : &*found;
}

/// Known servers among the processes; a child that still carries its parent's argv is the parent's worker.
std::vector<const ProcessFact*> known_servers(const UnitFacts& facts, const KindOf& kind_of) {
    std::vector<const ProcessFact*> found;
    for (const ProcessFact& process : facts.processes) {
        if (is_title(process.argv) || is_holder(process.argv) || kind_of(process.argv).empty()) continue;
        found.push_back(&process);
    }
    const auto has_server_above = [&](const ProcessFact* process) {
        int parent = process->parent;
        for (int depth = 0; depth < 32; ++depth) {
            const bool above =
                std::any_of(found.begin(), found.end(), [&](const ProcessFact* p) { return p->pid == parent; });
            if (above) return true;
            const ProcessFact* next = process_of(facts, parent);
            if (next == nullptr) return false;
            parent = next->parent;
        }
        return false;
    };
    std::vector<const ProcessFact*> top;
    std::copy_if(found.begin(), found.end(), std::back_inserter(top),
                 [&](const ProcessFact* process) { return !has_server_above(process); });
    return top;
}

/// direct, shell, wrapper or container, by the configured command alone; `program` is where the launchers end.
std::string shape(const std::vector<std::string>& argv, const std::vector<std::string>& running, std::size_t& program,
                  const KindOf& kind_of) {
    program = 0;
    const auto launchers = launcher_words(argv);
    if (!launchers) return "wrapper";
    program = *launchers;
    const Words command = Words{argv}.subspan(program);
    if (command.empty()) return "wrapper";
    if (shell_string_index(command)) return "shell";
    const std::string_view name = base_name(command[0]);
    if (name == "docker" || name == "podman" || name == "nerdctl" || name == "docker-compose" || name == "podman-compose") {
        return "container";
    }
    const std::vector<std::string> words{command.begin(), command.end()};
    const bool direct = !is_holder(command) && (!kind_of(words).empty() || same_command(command, running));
    return direct && program == 0 ? "direct" : "wrapper";
}

class Judge {
public:
    Judge(const std::string& unit, const UnitFacts& facts, const KindOf& kind_of)
        : unit_{unit}, facts_{facts}, kind_of_{kind_of} {}

    Baseline run() {
        copy_properties();
        find_server();
        look_at_command();
        look_at_files();
        look_at_dependents();
        return std::move(baseline_);
    }

private:
    std::string value(const char* key) const { return property(facts_.properties, key); }

    void obstacle(std::string code, std::string sentence, std::string next) {
        baseline_.obstacles.push_back({std::move(code), std::move(sentence), std::move(next)});
    }

    void copy_properties() {
        baseline_.state = state_of(facts_.boot_id, facts_.properties);
        baseline_.user = value("User");
        baseline_.fragment = value("FragmentPath");
        baseline_.unit_type = value("Type");
        baseline_.start_limit_burst = static_cast<int>(number(facts_.properties, "StartLimitBurst"));
        baseline_.start_limit_interval_us = parse_span(value("StartLimitIntervalUSec")).value_or(0);
        baseline_.start_timeout_us = parse_span(value("TimeoutStartUSec")).value_or(0);
        baseline_.stop_timeout_us = parse_span(value("TimeoutStopUSec")).value_or(0);
        for (const char* key :
             {"ProtectSystem", "ProtectHome", "PrivateTmp", "DynamicUser", "RootDirectory", "TemporaryFileSystem"}) {
            if (on(value(key))) baseline_.sandbox.emplace(key, value(key));
        }
        for (const std::string& line : split(value("EnvironmentFiles"), '\n')) {
            const auto end = line.rfind(" (ignore_errors=");
            if (!line.empty()) baseline_.environment_files.push_back(line.substr(0, end));
        }
        if (baseline_.state.load_state == "masked") {
            obstacle("masked", unit_ + " is masked.", "unmask it, or name another unit");
        }
        if (value("Transient") == "yes") {
            obstacle("transient", unit_ + " was made by systemd-run and is gone once it stops.",
                     "name the full command in the plan (services.NAME.command)");
        }
    }

    void find_server() {
        if (facts_.start.size() == 1) {
            baseline_.configured_argv = facts_.start[0].argv;
            baseline_.exec_path = facts_.start[0].path;
            baseline_.exec_flags = facts_.start[0].flags;
        }
        std::vector<const ProcessFact*> servers = known_servers(facts_, kind_of_);
        if (servers.empty()) {
            // An unknown program that the unit starts itself is taken at the operator's word.
            const auto launchers = launcher_words(baseline_.configured_argv);
            const Words command = Words{baseline_.configured_argv}.subspan(launchers.value_or(0));
            for (const ProcessFact& process : facts_.processes) {
                const bool main = process.pid == baseline_.state.main_pid;
                if (main && launchers && !is_holder(process.argv) && !is_holder(command) &&
                    same_command(command, process.argv)) {
                    servers.push_back(&process);
                }
            }
        }
        if (servers.size() == 1) {
            const ProcessFact& server = *servers[0];
            server_ = &server;
            baseline_.server_pid = server.pid;
            baseline_.running_argv = server.argv;
            baseline_.environment_hashes = server.environment_hashes;
            // Set by systemd anew at each start: no restore could ever bring them back.
            for (const char* name :
                 {"INVOCATION_ID", "JOURNAL_STREAM", "SYSTEMD_EXEC_PID", "LISTEN_PID", "WATCHDOG_PID", "MAINPID"}) {
                baseline_.environment_hashes.erase(name);
            }
            baseline_.server_kind = kind_of_(server.argv);
        } else if (servers.size() > 1) {
            obstacle("several-servers", unit_ + " runs " + std::to_string(servers.size()) + " servers; a restart stops all.",
                     "name the full command of the one that is meant (services.NAME.command)");
        } else if (baseline_.state.active == "active" || baseline_.state.active == "activating") {
            obstacle("no-server", "No process of " + unit_ + " is an inference server.",
                     "name the unit that runs the server itself (services.NAME.unit)");
        } else if (baseline_.state.loadable) {
            obstacle("no-server",
                     unit_ + " is not running (" + baseline_.state.active + "), so its server cannot be looked at.",
                     "start it, and begin when it answers");
        }
    }

    void look_at_command() {
        const std::vector<std::string>& argv = baseline_.configured_argv;
        std::size_t program = 0;
        baseline_.how = shape(argv, baseline_.running_argv, program, kind_of_);
        if (baseline_.state.loadable && facts_.start.size() != 1) {
            obstacle("several-commands", unit_ + " has " + std::to_string(facts_.start.size()) + " start commands.",
                     "name the full command in the plan (services.NAME.command)");
            return;
        }
        const bool compose =
            baseline_.how == "container" && std::any_of(argv.begin(), argv.end(), [](const std::string& word) {
                return word == "compose" || base_name(word).ends_with("-compose");
            });
        if (compose) {
            std::string file = "the compose file";
            for (std::size_t i = 0; i + 1 < argv.size(); ++i) {
                if (argv[i] == "-f" || argv[i] == "--file") file = argv[i + 1];
            }
            obstacle("compose",
                     unit_ + " runs docker compose: the server's arguments stand in " + file +
                         ", and a restart takes the whole stack down.",
                     "name the compose file and the service (services.NAME.compose), or a unit that runs only the server");
            return;
        }
        // A process that the unit has launched but does not stop would stand beside the one that a restart starts.
        const bool keeps_old = value("KillMode") == "process" || value("KillMode") == "none";
        const bool background = server_ != nullptr && baseline_.how != "container" && value("Type") == "oneshot";
        if (background || (server_ != nullptr && keeps_old && server_->pid != baseline_.state.main_pid)) {
            baseline_.how = "detached";
            obstacle("detached",
                     unit_ +
                         " launches the server in the background and does not stop it; a restart would start a second one "
                         "beside it.",
                     "give the server a unit of its own, or name the full command (services.NAME.command)");
            return;
        }
        const bool plain = server_ != nullptr && (baseline_.how == "direct" || baseline_.how == "wrapper") &&
                           program < argv.size() &&
                           !kind_of_({argv.begin() + static_cast<std::ptrdiff_t>(program), argv.end()}).empty() &&
                           !is_holder(Words{argv}.subspan(program));
        if (plain && !same_command(Words{argv}.subspan(program), server_->argv)) {
            obstacle(
                "pending-edit",
                unit_ +
                    " would now start another command line than the one that runs; a restart would put that into effect.",
                "restart it yourself first, or undo the edit");
        }
    }

    void look_at_files() {
        for (const std::string& path : baseline_.state.drop_ins) {
            if (is_ours(path)) {
                obstacle("leftover", "A drop-in of an earlier campaign, " + path + ", is still installed in " + unit_ + ".",
                         "restore the service with `campaignctl doctor` first");
            }
        }
        if (baseline_.state.needs_reload) {
            obstacle("pending-edit",
                     "A file of " + unit_ + " was changed and systemd has not read it yet; a restart of ours would.",
                     "run daemon-reload and restart it yourself first, or undo the edit");
        }
        if (server_ == nullptr || server_->started <= 0) return;
        for (const auto& [path, modified] : facts_.modified) {
            const bool generated = path.starts_with("/run/systemd/generator") || path.starts_with("/run/systemd/transient");
            if (generated || is_ours(path) || modified <= server_->started + 2) continue;
            obstacle("pending-edit",
                     path + " was changed after the server of " + unit_ + " started; a restart would put that into effect.",
                     "restart it yourself first, or undo the edit");
        }
    }

    void look_at_dependents() {
        for (const char* key : {"RequiredBy", "BoundBy", "ConsistsOf"}) {
            for (std::string& name : words_of(value(key))) {
                const bool known =
                    std::find(baseline_.dependents.begin(), baseline_.dependents.end(), name) != baseline_.dependents.end();
                if (name.ends_with(".service") && !known) baseline_.dependents.push_back(std::move(name));
            }
        }
        if (baseline_.dependents.empty()) return;
        std::string names;
        for (const std::string& name : baseline_.dependents) names += (names.empty() ? "" : ", ") + name;
        obstacle("dependents", "Restarting " + unit_ + " restarts " + names + " too.",
                 "choose a unit on which nothing depends, or loosen the dependency");
    }

    const std::string& unit_;
    const UnitFacts& facts_;
    const KindOf& kind_of_;
    Baseline baseline_;
    const ProcessFact* server_ = nullptr;
};

}   // namespace

Baseline judge(const std::string& unit, const UnitFacts& facts, const KindOf& kind_of) {
    return Judge{unit, facts, kind_of}.run();
}

}   // namespace campaign::systemd
