#include "adapters/systemd/command_line.hpp"

#include <algorithm>
#include <array>

namespace campaign::systemd {

namespace {

template <std::size_t N>
bool one_of(std::string_view word, const std::array<std::string_view, N>& list) {
    return std::find(list.begin(), list.end(), word) != list.end();
}

bool is_assignment(std::string_view word) {
    const auto equals = word.find('=');
    if (equals == std::string_view::npos || equals == 0) return false;
    return std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    });
}

bool is_shell(std::string_view program) {
    return one_of(base_name(program), std::array<std::string_view, 5>{"sh", "bash", "dash", "zsh", "ksh"});
}

bool has_variable(std::string_view word) {
    return word.find('$') != std::string_view::npos;
}

/// Options of a launcher: which take a value as the next word, and how many plain words come before the command.
struct Launcher {
    std::string_view name;
    std::string_view with_value;   ///< blank-separated
    std::string_view without;
    std::size_t plain = 0;
};

constexpr std::array<Launcher, 8> launchers{{
    {"env", " -u --unset -C --chdir ", " -i - --ignore-environment ", 0},
    {"numactl", " -m --membind -N --cpunodebind -C --physcpubind -i --interleave -p --preferred -w --weighted-interleave ",
     " -l --localalloc -a --all ", 0},
    {"taskset", "", " -a --all-tasks -c --cpu-list ", 1},
    {"nice", " -n --adjustment ", "", 0},
    {"ionice", " -c --class -n --classdata ", " -t --ignore ", 0},
    {"chrt", " -T -P -D ", " -b --batch -f --fifo -i --idle -o --other -r --rr -R --reset-on-fork ", 1},
    {"stdbuf", " -i --input -o --output -e --error ", "", 0},
    {"setpriv", " --reuid --regid --groups --inh-caps --ambient-caps --bounding-set --securebits --pdeathsig ",
     " --clear-groups --keep-groups --init-groups --no-new-privs --nnp --reset-env ", 0},
}};

bool listed(std::string_view list, std::string_view word) {
    return list.find(" " + std::string{word} + " ") != std::string_view::npos;
}

/// Words of one launcher at argv[0] with its options; nullopt for an option that is not known.
std::optional<std::size_t> one_launcher(const Launcher& launcher, Words argv) {
    std::size_t i = 1;
    for (; i < argv.size() && argv[i].size() > 1 && argv[i].front() == '-'; ++i) {
        const std::string& word = argv[i];
        if (word == "--") {
            ++i;
            break;
        }
        const std::string name = word.substr(0, word.find('='));
        const bool joined = name.size() < word.size();
        if (listed(launcher.without, name)) continue;
        if (listed(launcher.with_value, name)) {
            if (!joined) ++i;
            continue;
        }
        // A short option with its value in the same word: -n10, -C0-7, -oL.
        if (word.size() > 2 && word[1] != '-' && listed(launcher.with_value, word.substr(0, 2))) continue;
        return std::nullopt;
    }
    if (launcher.name == "env") {
        while (i < argv.size() && is_assignment(argv[i])) ++i;
    }
    i += launcher.plain;
    if (i >= argv.size()) return std::nullopt;
    return i;
}

}   // namespace

std::string_view base_name(std::string_view path) {
    const auto slash = path.rfind('/');
    return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

bool is_title(Words argv) {
    return argv.empty() || (argv.size() == 1 && argv[0].find("::") != std::string::npos);
}

bool is_holder(Words argv) {
    if (argv.empty()) return true;
    constexpr std::array<std::string_view, 24> holders{"docker",    "podman",      "conmon",  "containerd-shim-runc-v2",
                                                       "nerdctl",   "nsys",        "uv",      "conda",
                                                       "mamba",     "micromamba",  "timeout", "sudo",
                                                       "su",        "runuser",     "tee",     "nohup",
                                                       "script",    "supervisord", "tini",    "dumb-init",
                                                       "s6-svscan", "ncu",         "strace",  "perf"};
    const std::string_view program = base_name(argv[0]);
    if (one_of(program, holders)) return true;
    return is_shell(argv[0]) || (program == "env" || program == "numactl" || program == "taskset" || program == "nice");
}

std::optional<std::size_t> launcher_words(Words argv) {
    std::size_t done = 0;
    while (done < argv.size()) {
        const std::string_view program = base_name(argv[done]);
        const auto launcher =
            std::find_if(launchers.begin(), launchers.end(), [&](const Launcher& l) { return l.name == program; });
        if (launcher == launchers.end()) return done;
        const auto words = one_launcher(*launcher, argv.subspan(done));
        if (!words) return std::nullopt;
        done += *words;
    }
    return done;
}

namespace {

/// Matches the configured words against running ones, a word with '$' standing for any number of words.
bool matches(Words configured, Words running) {
    if (configured.empty()) return running.empty();
    if (has_variable(configured[0])) {
        for (std::size_t skip = 0; skip <= running.size(); ++skip) {
            if (matches(configured.subspan(1), running.subspan(skip))) return true;
        }
        return false;
    }
    return !running.empty() && configured[0] == running[0] && matches(configured.subspan(1), running.subspan(1));
}

bool bounded(Words configured) {
    return std::count_if(configured.begin(), configured.end(), [](const std::string& w) { return has_variable(w); }) <= 6;
}

}   // namespace

bool same_command(Words configured, Words running) {
    if (configured.empty() || running.empty() || !bounded(configured)) return false;
    // With an interpreter, with an interpreter and one option for it (python3 -u), or without.
    for (std::size_t front = 0; front <= 2 && front < running.size(); ++front) {
        const bool program = running[front] == configured[0] || base_name(running[front]) == base_name(configured[0]);
        if (program && matches(configured.subspan(1), running.subspan(front + 1))) return true;
    }
    return false;
}

bool passed_on(Words arguments, Words running) {
    if (arguments.empty() || !bounded(arguments)) return false;
    for (std::size_t from = 0; from < running.size(); ++from) {
        for (std::size_t to = running.size(); to > from; --to) {
            if (matches(arguments, running.subspan(from, to - from))) return true;
        }
    }
    return false;
}

std::optional<std::size_t> shell_string_index(Words argv) {
    if (argv.size() < 3 || !is_shell(argv[0])) return std::nullopt;
    for (std::size_t i = 1; i + 1 < argv.size(); ++i) {
        const std::string& word = argv[i];
        if (word.size() < 2 || (word[0] != '-' && word[0] != '+')) return std::nullopt;
        if (word[0] == '-' && word[1] != '-' && word.find('c') != std::string::npos) return i + 1;
        if (word == "-o" || word == "+o" || word == "-O") ++i;   // with a value
    }
    return std::nullopt;
}

namespace {

/// Scans a shell string just far enough: words with their offsets, and the operators between them.
class ShellScanner {
public:
    explicit ShellScanner(std::string_view text) : text_{text} {}

    struct Token {
        std::size_t at = 0;
        std::size_t end = 0;
        std::string text;   ///< quotes removed; an operator's own characters
        bool is_operator = false;
    };

    /// nullopt: quotes or parentheses do not balance, a here-document, a comment.
    std::optional<std::vector<Token>> tokens() {
        std::vector<Token> found;
        while (true) {
            while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
            if (at_ == text_.size()) return found;
            if (text_[at_] == '#') return std::nullopt;
            Token token;
            token.at = at_;
            if (std::string_view{"|&;<>()\n"}.find(text_[at_]) != std::string_view::npos) {
                token.is_operator = true;
                const char first = text_[at_];
                token.text = first;
                ++at_;
                if (at_ < text_.size() && text_[at_] == first && first != '\n') token.text += text_[at_++];
            } else if (!word(token.text)) {
                return std::nullopt;
            }
            token.end = at_;
            found.push_back(std::move(token));
        }
    }

private:
    bool word(std::string& out) {
        while (at_ < text_.size()) {
            const char c = text_[at_];
            if (std::string_view{" \t\n|&;<>()"}.find(c) != std::string_view::npos) return true;
            if (c == '\\') {
                if (at_ + 1 == text_.size()) return false;   // it would swallow what we append
                if (text_[at_ + 1] != '\n') out += text_[at_ + 1];
                at_ += 2;
            } else if (c == '\'') {
                const auto close = text_.find('\'', at_ + 1);
                if (close == std::string_view::npos) return false;
                out += text_.substr(at_ + 1, close - at_ - 1);
                at_ = close + 1;
            } else if (c == '"') {
                if (!double_quoted(out)) return false;
            } else if (c == '`') {
                const auto close = text_.find('`', at_ + 1);
                if (close == std::string_view::npos) return false;
                out += '$';   // its value is not known: as a variable
                at_ = close + 1;
            } else if (c == '$') {
                if (!dollar(out)) return false;
            } else {
                out += c;
                ++at_;
            }
        }
        return true;
    }

    bool double_quoted(std::string& out) {
        for (++at_; at_ < text_.size();) {
            const char c = text_[at_];
            if (c == '"') {
                ++at_;
                return true;
            }
            if (c == '\\' && at_ + 1 < text_.size()) {
                out += text_[at_ + 1];
                at_ += 2;
            } else if (c == '$') {
                if (!dollar(out)) return false;
            } else {
                out += c;
                ++at_;
            }
        }
        return false;
    }

    /// '$' or systemd's "$$", then a name, "{...}" or "(...)".
    bool dollar(std::string& out) {
        out += '$';
        ++at_;
        if (at_ < text_.size() && text_[at_] == '$') ++at_;
        if (at_ == text_.size()) return true;
        const char open = text_[at_];
        if (open != '(' && open != '{') return true;
        const char close = open == '(' ? ')' : '}';
        int depth = 0;
        for (; at_ < text_.size(); ++at_) {
            if (text_[at_] == open) ++depth;
            if (text_[at_] == close && --depth == 0) {
                ++at_;
                return true;
            }
        }
        return false;
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

}   // namespace

std::optional<ShellString> read_shell_string(std::string_view text, std::string& obstacle) {
    const auto tokens = ShellScanner{text}.tokens();
    if (!tokens) {
        obstacle = "its quotes, or a comment in it, cannot be followed";
        return std::nullopt;
    }
    constexpr std::array<std::string_view, 13> keywords{"if",    "then", "else", "elif", "fi", "for",     "while",
                                                        "until", "do",   "done", "case", "{",  "function"};
    std::size_t from = 0;
    for (std::size_t i = 0; i < tokens->size(); ++i) {
        const auto& token = (*tokens)[i];
        if (token.is_operator && (token.text == "&&" || token.text == ";" || token.text == "\n")) from = i + 1;
        const bool command_place = i == 0 || (*tokens)[i - 1].is_operator;
        if (!token.is_operator && command_place && one_of(std::string_view{token.text}, keywords)) {
            obstacle = "'" + token.text + "'";
            return std::nullopt;
        }
    }
    // A ';' or a line end after the last command is harmless only when it is the very last; keep it simple: refuse.
    if (from == tokens->size()) {
        obstacle = tokens->empty() ? "it is empty" : "'" + (*tokens)[from - 1].text + "' at its end";
        return std::nullopt;
    }
    ShellString result;
    std::size_t first = from;
    while (first + 1 < tokens->size() && !(*tokens)[first].is_operator &&
           ((*tokens)[first].text == "exec" || is_assignment((*tokens)[first].text))) {
        ++first;
    }
    for (std::size_t i = from; i < tokens->size(); ++i) {
        if ((*tokens)[i].is_operator) {
            obstacle = "'" + (*tokens)[i].text + "'";
            return std::nullopt;
        }
        if (i >= first) result.server_words.push_back((*tokens)[i].text);
    }
    result.server_at = (*tokens)[first].at;
    result.end_at = tokens->back().end;
    return result;
}

std::optional<std::size_t> image_index(Words argv, std::string& unknown) {
    constexpr std::string_view with_value =
        " -a --attach --add-host --annotation --arch --authfile --blkio-weight --blkio-weight-device --cap-add --cap-drop "
        "--cgroup-parent --cgroup-conf --cidfile --conmon-pidfile --cpu-count --cpu-percent --cpu-period --cpu-quota "
        "--cpu-rt-period "
        "--cpu-rt-runtime -c --cpu-shares --cpus --cpuset-cpus --cpuset-mems --decryption-key --detach-keys --device "
        "--device-cgroup-rule --device-read-bps --device-read-iops --device-write-bps --device-write-iops --dns "
        "--dns-option "
        "--dns-opt --dns-search --domainname --entrypoint -e --env --env-file --expose --gidmap --gpus --group-add "
        "--group-entry --health-cmd --health-interval --health-on-failure --health-retries --health-start-interval "
        "--health-start-period --health-timeout -h --hostname --hostuser --ip --ip6 --isolation --kernel-memory -l --label "
        "--label-file --link --link-local-ip --log-driver --log-opt --mac-address -m --memory --memory-reservation "
        "--memory-swap --memory-swappiness --mount --name --network --net --network-alias --oom-score-adj --os "
        "--passwd-entry "
        "--personality --pid --pidfile --pids-limit --platform --pod --pod-id-file --preserve-fd -p --publish --pull "
        "--requires --restart --runtime "
        "--sdnotify --seccomp-policy --secret --security-opt --shm-size --shm-size-systemd --stop-signal --stop-timeout "
        "--storage-opt --subgidname "
        "--subuidname --sysctl --systemd --timeout --tmpfs --tz --uidmap --ulimit --umask --unsetenv -u --user --userns "
        "--uts -v --volume "
        "--volume-driver --volumes-from --variant -w --workdir --ipc --cgroupns --cgroups --image-volume --retry "
        "--retry-delay ";
    constexpr std::string_view without =
        " -d --detach --disable-content-trust --env-host --help --http-proxy --init -i --interactive --no-healthcheck "
        "--no-hostname "
        "--no-hosts --oom-kill-disable --passwd --privileged -P --publish-all -q --quiet --read-only --read-only-tmpfs "
        "--replace --rm --rmi --rootfs --sig-proxy --tls-verify -t --tty --unsetenv-all --use-api-socket ";
    std::size_t i = 1;
    if (i < argv.size() && argv[i] == "container") ++i;
    if (i >= argv.size() || argv[i] != "run") {
        unknown = i < argv.size() ? argv[i] : "nothing";
        return std::nullopt;
    }
    for (++i; i < argv.size(); ++i) {
        const std::string& word = argv[i];
        if (word == "--") return i + 1 < argv.size() ? std::optional{i + 1} : std::nullopt;
        if (word.size() < 2 || word.front() != '-') return i;
        const std::string name = word.substr(0, word.find('='));
        if (name.size() < word.size() && word.starts_with("--")) {
            if (listed(with_value, name) || listed(without, name)) continue;
        } else if (listed(with_value, word)) {
            ++i;
            continue;
        } else if (listed(without, word)) {
            continue;
        } else if (word[1] != '-') {
            // Short options together: flags first (-it), the last may take a value, joined (-p8000:8000) or as the next
            // word.
            bool known = true;
            for (std::size_t k = 1; k < word.size() && known; ++k) {
                const std::string option{'-', word[k]};
                if (listed(without, option)) continue;
                known = listed(with_value, option);
                if (known && k + 1 == word.size()) ++i;
                if (known) break;
            }
            if (known) continue;
        }
        unknown = word;
        return std::nullopt;
    }
    unknown = "nothing after the options";
    return std::nullopt;
}

}   // namespace campaign::systemd
