// The drop-in that starts a service in another mode.

#include <algorithm>

#include "adapters/systemd/command_line.hpp"
#include "adapters/systemd/facts.hpp"
#include "base/quote.hpp"
#include "base/sha256.hpp"
#include "base/text.hpp"

namespace campaign::systemd {

namespace {

using host::Baseline;
using host::Change;
using host::Override;

constexpr std::string_view our_suffix = "-campaignd.conf";
constexpr std::uint64_t nsys_stop_us = 600'000'000;   // the report is written while the service stops
constexpr std::size_t longest_file = 1u << 20;        // a longer line makes the unit unloadable

bool has(const std::vector<std::string>& list, std::string_view word) {
    return std::find(list.begin(), list.end(), word) != list.end();
}

class Renderer {
public:
    Renderer(const std::string& unit, const Baseline& baseline, const Override& change, const KindOf& kind_of)
        : unit_{unit}, baseline_{baseline}, change_{change}, kind_of_{kind_of}, argv_{baseline.configured_argv} {}

    Result<Change> run() {
        if (!baseline_.obstacles.empty()) {
            const host::Obstacle& first = baseline_.obstacles.front();
            return refused(first.code, first.sentence, first.next);
        }
        if (argv_.empty()) return refused("no-server", unit_ + " has no start command.", "name another unit");
        if (auto folders = check_folders(); !folders) return folders.error();
        split_environment();
        const std::vector<std::string> as_found = argv_;
        if (auto removed = leave_out(); !removed) return removed.error();
        const bool restate = argv_ != as_found || !change_.arguments.empty() || !change_.prefix.empty() ||
                             !in_front_.empty() || binds_folders();
        if (restate) {
            if (auto placed = place(); !placed) return placed.error();
        }
        const std::string name = drop_in_name(baseline_.state.drop_ins);
        if (name.empty()) {
            return refused("drop-in-order", "No file name of ours sorts behind the drop-ins of " + unit_ + ".",
                           "rename the drop-in that sorts last: " + last_drop_in());
        }
        Change result;
        result.path = "/run/systemd/system/" + unit_ + ".d/" + name;
        result.content = text(restate);
        if (result.content.size() > longest_file) {
            return Error{ErrorKind::invalid, "the drop-in for " + unit_ + " would be longer than systemd reads", "", "", ""};
        }
        result.sha256 = sha256(result.content);
        result.effective_argv = argv_;
        return result;
    }

private:
    Error refused(const std::string& code, const std::string& sentence, const std::string& next) const {
        return Error{ErrorKind::refused, unit_ + " cannot be restarted in another mode", code + ": " + sentence, "", next};
    }

    /// Options that the new arguments replace: two settings of one option are never left to the server to choose from.
    Result<void> leave_out() {
        for (const std::string& option : change_.removes) {
            const auto is_it = [&](const std::string& word) {
                const std::string name = word.substr(0, word.find('='));
                return name == option || name.starts_with(option + ".");
            };
            bool any = false;
            for (std::size_t i = 0; i < argv_.size();) {
                if (!is_it(argv_[i])) {
                    ++i;
                    continue;
                }
                const bool joined = argv_[i].find('=') != std::string::npos;
                const std::size_t words = !joined && i + 1 < argv_.size() && !argv_[i + 1].starts_with("--") ? 2 : 1;
                argv_.erase(argv_.begin() + static_cast<std::ptrdiff_t>(i),
                            argv_.begin() + static_cast<std::ptrdiff_t>(i + words));
                any = true;
            }
            const bool runs_with_it = std::any_of(baseline_.running_argv.begin(), baseline_.running_argv.end(), is_it);
            if (!any && runs_with_it) {
                return refused("wrapper-fixed-args",
                               "The server of " + unit_ + " has " + option + " from a place that is not its start command.",
                               "name the full command in the plan (services.NAME.command)");
            }
        }
        return {};
    }

    std::string last_drop_in() const {
        std::string last;
        for (const std::string& path : baseline_.state.drop_ins) {
            if (base_name(path) >= base_name(last)) last = path;
        }
        return last;
    }

    bool sandboxed(const char* key) const { return baseline_.sandbox.count(key) > 0; }
    bool binds_folders() const { return baseline_.how == "container" && !change_.writable.empty(); }

    /// A folder that the service would see as another one, or not at all, holds no trace that we could fetch.
    Result<void> check_folders() const {
        for (const std::string& folder : change_.writable) {
            const auto below = [&](std::string_view top) {
                return folder == top || folder.starts_with(std::string{top} + "/");
            };
            std::string why;
            if (folder.empty() || folder.front() != '/' || folder.find('\n') != std::string::npos)
                why = "it is no absolute path";
            if (baseline_.how != "container") {
                if (sandboxed("PrivateTmp") && (below("/tmp") || below("/var/tmp")))
                    why = "the service has a /tmp of its own, emptied at every stop";
                if (sandboxed("ProtectHome") && (below("/home") || below("/root") || below("/run/user")))
                    why = "ProtectHome= hides it from the service";
                if (sandboxed("RootDirectory")) why = "the service runs in a root folder of its own";
                if (sandboxed("DynamicUser")) why = "the service runs as a user that exists only while it runs";
            }
            if (!why.empty()) {
                return refused("folder",
                               "The service of " + unit_ + " cannot use " + folder + " for its traces: " + why + ".",
                               "name another folder (services.NAME.profiler_dir)");
            }
        }
        return {};
    }

    /// A file of EnvironmentFile= beats Environment= wherever they stand: a name that is set already goes in front of the
    /// command with env(1) when there is such a file.
    void split_environment() {
        const auto env =
            std::find_if(argv_.begin(), argv_.end(), [](const std::string& w) { return base_name(w) == "env"; });
        const bool own_env = baseline_.how == "wrapper" && env != argv_.end();
        for (const auto& [name, value] : change_.environment) {
            const bool from_file = !baseline_.environment_files.empty() && baseline_.environment_hashes.count(name) > 0;
            const bool set_by_command =
                own_env && std::any_of(env, argv_.end(), [&](const std::string& w) { return w.starts_with(name + "="); });
            if (baseline_.how == "container" || from_file || set_by_command) {
                in_front_.emplace_back(name + "=" + value);
            } else {
                in_file_.emplace_back(name + "=" + value);
            }
        }
    }

    std::vector<std::string> ours(const std::vector<std::string>& words) const {
        if (has(baseline_.exec_flags, "no-env-expand")) return words;
        std::vector<std::string> literal;
        for (const std::string& word : words) literal.push_back(literal_dollars(word));
        return literal;
    }

    std::vector<std::string> with_env(std::vector<std::string> prefix) const {
        if (in_front_.empty()) return prefix;
        std::vector<std::string> words{"/usr/bin/env"};
        words.insert(words.end(), in_front_.begin(), in_front_.end());
        words.insert(words.end(), prefix.begin(), prefix.end());
        return words;
    }

    Result<void> place() {
        const auto launchers = launcher_words(argv_);
        if (baseline_.how == "container") return place_in_container();
        if (!launchers) return wrapper_refusal();
        const auto program = static_cast<std::ptrdiff_t>(*launchers);
        const std::vector<std::string> command{argv_.begin() + program, argv_.end()};
        if (baseline_.how == "shell") return place_in_shell(*launchers);
        if (!change_.arguments.empty() && !takes_arguments(command)) return wrapper_refusal();
        const std::vector<std::string> front = ours(with_env(change_.prefix));
        argv_.insert(argv_.begin() + program, front.begin(), front.end());
        append(ours(change_.arguments));
        return {};
    }

    void append(const std::vector<std::string>& words) { argv_.insert(argv_.end(), words.begin(), words.end()); }

    /// The server itself; or a wrapper whose own arguments are seen, in their order, in the server's command line. One word
    /// alone proves nothing: a script may well pass on "$1" and stop there.
    bool takes_arguments(const std::vector<std::string>& command) const {
        if (!is_holder(command) && (!kind_of_(command).empty() || same_command(command, baseline_.running_argv)))
            return true;
        if (command.size() < 3) return false;
        return passed_on(Words{command}.subspan(1), baseline_.running_argv);
    }

    Result<void> wrapper_refusal() const {
        return refused("wrapper-fixed-args",
                       unit_ + " starts the server through " + baseline_.exec_path +
                           ", which builds the command line itself; the setting is taken only as an argument.",
                       "name the full command in the plan (services.NAME.command), or end the script in \"$@\"");
    }

    Result<void> place_in_shell(std::size_t program) {
        const Words command = Words{argv_}.subspan(program);
        const auto index = shell_string_index(command);
        const std::string unclear = index ? "" : "no string after -c";
        std::string obstacle = unclear;
        std::optional<ShellString> read;
        if (index) read = read_shell_string(command[*index], obstacle);
        if (read) {
            const auto launchers = launcher_words(read->server_words);
            const Words words = Words{read->server_words}.subspan(launchers.value_or(0));
            const bool server =
                launchers && !is_holder(words) &&
                (!kind_of_({words.begin(), words.end()}).empty() || same_command(words, baseline_.running_argv));
            const bool wrapper = launchers && words.size() >= 3 && passed_on(words.subspan(1), baseline_.running_argv);
            if (!server && !wrapper) {
                read.reset();
                obstacle = "its last command is not the server";
            }
        }
        if (!read) {
            return refused("shell-string-complex",
                           "The server of " + unit_ + " is started inside a shell string that cannot be continued: " +
                               printable(obstacle, 100) + ".",
                           "name the full command in the plan (services.NAME.command)");
        }
        // Quoted for the shell, and every '$' doubled for systemd, which expands the string first.
        std::string& text = argv_[program + *index];
        const std::vector<std::string> front = with_env(change_.prefix);
        const std::string tail = change_.arguments.empty() ? "" : " " + shell_command(change_.arguments);
        const std::string head = front.empty() ? "" : shell_command(front) + " ";
        const bool expands = !has(baseline_.exec_flags, "no-env-expand");
        text.insert(read->end_at, expands ? literal_dollars(tail) : tail);
        text.insert(read->server_at, expands ? literal_dollars(head) : head);
        return {};
    }

    Result<void> place_in_container() {
        const auto launchers = launcher_words(argv_);
        const std::size_t program = launchers.value_or(0);
        const Words command = Words{argv_}.subspan(program);
        if (!change_.prefix.empty()) {
            return refused("container",
                           unit_ + " runs the server in a container; a program around it would have to be inside the image.",
                           "choose a method that needs no wrapper");
        }
        std::string unknown;
        const auto image = image_index(command, unknown);
        if (!image) {
            const bool starts =
                command.size() > 1 && (command[1] == "start" || (command.size() > 2 && command[2] == "start"));
            if (starts) {
                return refused("container-created-elsewhere",
                               unit_ + " only starts an existing container; its arguments were fixed at creation.",
                               "name the full command in the plan (services.NAME.command)");
            }
            return refused("container-options-unknown",
                           "Cannot tell where the image stands in the container command of " + unit_ + " (option " +
                               printable(unknown, 60) + ").",
                           "name the full command in the plan (services.NAME.command)");
        }
        std::vector<std::string> options;
        for (const std::string& folder : change_.writable) {
            options.emplace_back("-v");
            options.push_back(folder + ":" + folder);
        }
        for (const std::string& assignment : in_front_) {
            options.emplace_back("-e");
            options.push_back(assignment);
        }
        options = ours(options);
        argv_.insert(argv_.begin() + static_cast<std::ptrdiff_t>(program + *image), options.begin(), options.end());
        append(ours(change_.arguments));
        return {};
    }

    std::string text(bool restate) const {
        std::string out;
        for (const std::string& line : split(change_.marker, '\n')) {
            if (!line.empty()) out += "# " + printable(line) + "\n";
        }
        out += "[Service]\n";
        const bool closed = sandboxed("ProtectSystem") || sandboxed("ProtectHome") || sandboxed("TemporaryFileSystem");
        if (closed && baseline_.how != "container") {
            for (const std::string& folder : change_.writable) out += "ReadWritePaths=" + quote_word(folder) + "\n";
        }
        for (const std::string& assignment : in_file_) out += "Environment=" + quote_word(assignment) + "\n";
        if (!change_.prefix.empty()) {
            out += "KillMode=mixed\n";
            if (baseline_.stop_timeout_us < nsys_stop_us)
                out += "TimeoutStopSec=" + std::to_string(nsys_stop_us / 1'000'000) + "\n";
            if (baseline_.unit_type.starts_with("notify")) out += "NotifyAccess=all\n";
        }
        if (restate) {
            std::string path = baseline_.exec_path;
            const bool own_argv0 = !baseline_.configured_argv.empty() && baseline_.configured_argv[0] != path;
            const bool new_program = argv_[0] != baseline_.configured_argv[0];
            out += "ExecStart=\nExecStart=" + exec_prefix(baseline_.exec_flags, own_argv0 && !new_program);
            if (own_argv0 && !new_program) out += quote_word(path) + " ";
            out += quote_words(argv_) + "\n";
        }
        return out;
    }

    const std::string& unit_;
    const Baseline& baseline_;
    const Override& change_;
    const KindOf& kind_of_;
    std::vector<std::string> argv_;
    std::vector<std::string> in_front_;   // NAME=value for env(1) or -e
    std::vector<std::string> in_file_;    // NAME=value for Environment=
};

}   // namespace

bool is_ours(std::string_view path) {
    const std::string_view name = base_name(path);
    if (!path.starts_with("/run/systemd/system/") || !name.ends_with(our_suffix)) return false;
    const std::string_view front = name.substr(0, name.size() - our_suffix.size());
    return front.size() >= 2 && front.find_first_not_of('z') == std::string_view::npos;
}

std::string drop_in_name(const std::vector<std::string>& drop_ins) {
    std::string front = "zz";
    const auto behind_all = [&] {
        return std::all_of(drop_ins.begin(), drop_ins.end(), [&](const std::string& path) {
            return is_ours(path) || base_name(path) < front + std::string{our_suffix};
        });
    };
    while (!behind_all()) {
        front += 'z';
        if (front.size() > 64) return {};
    }
    return front + std::string{our_suffix};
}

Result<Change> render_drop_in(const std::string& unit, const Baseline& baseline, const Override& change,
                              const KindOf& kind_of) {
    return Renderer{unit, baseline, change, kind_of}.run();
}

}   // namespace campaign::systemd
