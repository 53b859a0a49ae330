#include "adapters/process/facts.hpp"

#include <algorithm>
#include <charconv>

#include "base/sha256.hpp"
#include "base/text.hpp"

namespace campaign::process {

namespace {

std::uint64_t to_number(std::string_view text) {
    std::uint64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

std::optional<std::uint64_t> whole_number(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

std::string escape(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '\\')
            out += "\\\\";
        else if (c == '\n')
            out += "\\n";
        else
            out += c;
    }
    return out;
}

std::string unescape(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '\\' || i + 1 == text.size()) {
            out += text[i];
            continue;
        }
        ++i;
        out += text[i] == 'n' ? '\n' : text[i];
    }
    return out;
}

}   // namespace

Result<ProcessFacts> parse_facts(std::string_view output) {
    ProcessFacts facts;
    bool whole = false;
    double uptime_start = 0;
    for (const std::string& line : split(output, '\n')) {
        const auto blank = line.find(' ');
        if (blank == std::string::npos) continue;
        const std::string key = line.substr(0, blank);
        const std::string rest = line.substr(blank + 1);
        if (key == "boot") facts.boot_id = trim(rest);
        if (key == "pid") facts.pid = static_cast<int>(to_number(rest));
        if (key == "start") facts.start_ticks = to_number(rest);
        if (key == "ticks") uptime_start = static_cast<double>(std::max<std::uint64_t>(1, to_number(rest)));
        if (key == "user") facts.user = rest;
        if (key == "override") facts.overridden = rest == "yes";
        if (key == "arg") facts.argv.push_back(unescape(rest));
        if (key == "env" && rest.size() > 65) facts.environment_hashes.emplace(rest.substr(65), rest.substr(0, 64));
        if (key == "end") whole = true;
    }
    // These belong to the session that started the process, not to the service.
    std::erase_if(facts.environment_hashes, [](const auto& entry) {
        const std::string& name = entry.first;
        return name.starts_with("SSH_") || name.starts_with("SUDO_") || name == "XDG_SESSION_ID" || name == "SHLVL" ||
               name == "_" || name == "PWD" || name == "OLDPWD";
    });
    if (!whole || facts.boot_id.size() != 36) {
        return Error{ErrorKind::protocol, "the host's answer about the process cannot be read", "", printable(output, 300),
                     ""};
    }
    if (facts.pid > 0 && uptime_start > 0) {
        facts.age_us = static_cast<std::uint64_t>(static_cast<double>(facts.start_ticks) / uptime_start * 1e6);
    }
    return facts;
}

std::string identity(const ProcessFacts& facts) {
    return facts.boot_id + ":" + std::to_string(facts.pid) + ":" + std::to_string(facts.start_ticks);
}

host::ServiceState state_of(const ProcessFacts& facts, const std::string& override_path) {
    host::ServiceState state;
    state.boot_id = facts.boot_id;
    state.exists = true;   // the plan says so; whether it runs is another matter
    state.loadable = true;
    state.load_state = "loaded";
    state.active = facts.pid > 0 ? "active" : "inactive";
    state.sub = facts.pid > 0 ? "running" : "dead";
    if (facts.pid > 0) {
        state.invocation = identity(facts);
        state.main_pid = facts.pid;
        state.entered_active_us = facts.age_us;
    }
    if (facts.overridden) state.drop_ins.push_back(override_path);
    return state;
}

host::Change render_override(const ProcessSpec& spec, const host::Override& change) {
    const auto removed = [&](const std::string& word) {
        const std::string name = word.substr(0, word.find('='));
        return std::any_of(change.removes.begin(), change.removes.end(),
                           [&](const std::string& option) { return name == option || name.starts_with(option + "."); });
    };
    host::Change result;
    result.effective_argv = change.prefix;
    for (std::size_t i = 0; i < spec.command.size(); ++i) {
        if (!removed(spec.command[i])) {
            result.effective_argv.push_back(spec.command[i]);
            continue;
        }
        const bool joined = spec.command[i].find('=') != std::string::npos;
        if (!joined && i + 1 < spec.command.size() && !spec.command[i + 1].starts_with("--")) ++i;
    }
    result.effective_argv.insert(result.effective_argv.end(), change.arguments.begin(), change.arguments.end());
    for (const std::string& line : split(change.marker, '\n')) {
        if (!line.empty()) result.content += "# " + printable(line) + "\n";
    }
    for (const std::string& word : result.effective_argv) result.content += "arg " + escape(word) + "\n";
    std::map<std::string, std::string> environment = spec.environment;
    for (const auto& [name, value] : change.environment) environment[name] = value;
    for (const auto& [name, value] : environment) result.content += "env " + escape(name + "=" + value) + "\n";
    result.path = spec.state_dir + "/" + spec.name + ".override";
    result.sha256 = sha256(result.content);
    return result;
}

Result<Start> parse_override(std::string_view content) {
    Start start;
    for (const std::string& line : split(content, '\n')) {
        if (line.empty() || line.front() == '#') continue;
        if (line.starts_with("arg ")) {
            start.command.push_back(unescape(std::string_view{line}.substr(4)));
        } else if (const auto equals = line.find('=');
                   line.starts_with("env ") && equals != std::string::npos && equals > 4) {
            start.environment.emplace(line.substr(4, equals - 4), unescape(std::string_view{line}.substr(equals + 1)));
        } else {
            return Error{ErrorKind::invalid, "the override file holds a line that is none of ours", "", printable(line, 200),
                         ""};
        }
    }
    if (start.command.empty()) return Error{ErrorKind::invalid, "the override file names no command", "", "", ""};
    return start;
}

std::string to_text(const LogPosition& position) {
    return position.device + ":" + position.inode + ":" + std::to_string(position.offset) + ":" + position.head_hash + "/" +
           std::to_string(position.head_bytes);
}

std::optional<LogPosition> parse_position(std::string_view text) {
    const std::vector<std::string> parts = split(text, ':');
    if (parts.size() != 4) return std::nullopt;
    const auto slash = parts[3].find('/');
    if (slash == std::string::npos) return std::nullopt;
    const auto offset = whole_number(parts[2]);
    const auto bytes = whole_number(std::string_view{parts[3]}.substr(slash + 1));
    if (!offset || !bytes || *bytes > 64 || !whole_number(parts[0]) || !whole_number(parts[1])) return std::nullopt;
    return LogPosition{parts[0], parts[1], *offset, parts[3].substr(0, slash), *bytes};
}

}   // namespace campaign::process
