#include "adapters/ssh/config.hpp"

#include <charconv>

#include "base/text.hpp"

namespace campaign::ssh {

namespace {

constexpr std::size_t most_files = 64;

Error refused_setting(const SshTarget& target, std::string_view line, std::string why, std::string next) {
    return Error{ErrorKind::unavailable, "the ssh configuration of " + target.alias + " asks for what is not supported",
                 std::move(why), printable(line, 300), std::move(next)};
}

std::optional<int> number(std::string_view text, int most) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < 1 || value > most) return std::nullopt;
    return value;
}

/// ~/ and the tokens that ssh_config(5) names for file options, as far as we know them; else nothing.
std::optional<std::string> expanded(std::string_view text, const HostConfig& config, const SshTarget& target,
                                    const ConfigEnvironment& environment) {
    std::string path;
    if (text.starts_with("~/")) {
        path = environment.home;
        text.remove_prefix(1);
    }
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            path += text[i];
            continue;
        }
        if (++i == text.size()) return std::nullopt;
        switch (text[i]) {
            case '%': path += '%'; break;
            case 'd': path += environment.home; break;
            case 'h': path += config.hostname; break;
            case 'n': path += target.alias; break;
            case 'p': path += std::to_string(config.port); break;
            case 'r': path += config.user; break;
            default: return std::nullopt;
        }
    }
    return path;
}

bool is_option(const std::string& word) {
    return word.empty() || word.front() == '-' || word.find('\0') != std::string::npos;
}

}   // namespace

Result<std::vector<std::string>> config_question(const SshTarget& target) {
    std::vector<std::string> argv{"ssh", "-G"};
    const auto add = [&](const char* option, const std::string& value) {
        argv.emplace_back(option);
        argv.push_back(value);
    };
    for (const auto* word : {&target.user, &target.jump, &target.config_file}) {
        if (*word && is_option(**word)) {
            return Error{ErrorKind::usage, "host " + target.name + ": not a name: " + printable(**word, 100), "", "", ""};
        }
    }
    if (is_option(target.alias)) {
        return Error{ErrorKind::usage, "host " + target.name + ": not an ssh alias: " + printable(target.alias, 100), "", "",
                     ""};
    }
    if (target.config_file) add("-F", *target.config_file);
    if (target.user) add("-l", *target.user);
    if (target.port) add("-p", std::to_string(*target.port));
    if (target.jump) add("-J", *target.jump);
    argv.emplace_back("--");
    argv.push_back(target.alias);
    return argv;
}

Result<HostConfig> parse_config(std::string_view text, const SshTarget& target, const ConfigEnvironment& environment) {
    HostConfig config;
    std::vector<std::string> identities;
    std::vector<std::string> user_files;
    std::vector<std::string> system_files;
    std::string agent = "SSH_AUTH_SOCK";
    for (const std::string& line : split(text, '\n')) {
        const std::string_view whole = trim(line);
        const std::size_t blank = whole.find(' ');
        if (blank == std::string_view::npos) continue;
        const std::string_view key = whole.substr(0, blank);
        const std::string value{trim(whole.substr(blank))};
        if (key == "hostname") config.hostname = value;
        if (key == "user") config.user = value;
        if (key == "port") config.port = number(value, 65535).value_or(0);
        if (key == "identityfile" && value != "none" && identities.size() < most_files) identities.push_back(value);
        if (key == "userknownhostsfile" && value != "none") user_files = split(value, ' ');
        if (key == "globalknownhostsfile" && value != "none") system_files = split(value, ' ');
        if (key == "hostkeyalias") config.host_key_name = value;
        if (key == "identityagent") agent = value;
        if (key == "identitiesonly") config.identities_only = value == "yes" || value == "true";
        if (key == "connecttimeout") config.connect_timeout_s = number(value, 600).value_or(10);
        if (key == "addressfamily" && value == "inet") config.family = 4;
        if (key == "addressfamily" && value == "inet6") config.family = 6;
        if (key == "proxyjump" && value != "none") config.jumps = split(value, ',');
        if (key == "proxycommand" && value != "none") {
            return refused_setting(target, whole, "a proxy command is a program that we would have to run",
                                   "use ProxyJump, or give an address that is reached directly");
        }
        if (key == "certificatefile" && value != "none") {
            return refused_setting(target, whole, "user certificates are not supported", "give a plain key by IdentityFile");
        }
        if (key == "pkcs11provider" && value != "none") {
            return refused_setting(target, whole, "PKCS#11 tokens are not supported",
                                   "load the key into an agent, or give a plain key by IdentityFile");
        }
    }
    if (config.hostname.empty() || config.port == 0 || config.user.empty()) {
        return Error{ErrorKind::protocol, "ssh -G " + target.alias + " gave no host name, port or user", "",
                     printable(text, 300), "try it in a terminal"};
    }
    if (target.key_file) identities = {*target.key_file};
    for (const std::string& identity : identities) {
        if (auto path = expanded(identity, config, target, environment)) config.identity_files.push_back(std::move(*path));
    }
    if (target.known_hosts) {
        user_files = {*target.known_hosts};
        system_files.clear();
    }
    for (const auto* files : {&user_files, &system_files}) {
        for (const std::string& file : *files) {
            auto path = expanded(file, config, target, environment);
            if (path && !path->empty() && config.known_hosts.size() < most_files)
                config.known_hosts.push_back(std::move(*path));
        }
    }
    if (agent == "SSH_AUTH_SOCK" || agent == "$SSH_AUTH_SOCK") {
        if (!environment.agent.empty()) config.agent = environment.agent;
    } else if (agent != "none") {
        config.agent = expanded(agent, config, target, environment);
    }
    if (target.key_file || config.identities_only) config.agent.reset();
    return config;
}

Result<SshTarget> jump_target(const SshTarget& for_host, const std::string& jump) {
    SshTarget target;
    target.config_file = for_host.config_file;
    target.known_hosts = for_host.known_hosts;
    std::string_view rest = trim(jump);
    if (rest.starts_with("ssh://")) rest.remove_prefix(6);
    if (const std::size_t at = rest.rfind('@'); at != std::string_view::npos) {
        target.user = std::string{rest.substr(0, at)};
        rest.remove_prefix(at + 1);
    }
    if (rest.starts_with('[')) {
        const std::size_t close = rest.find(']');
        if (close == std::string_view::npos) rest = {};
        target.alias = std::string{rest.substr(rest.empty() ? 0 : 1, close - 1)};
        rest.remove_prefix(rest.empty() ? 0 : close + 1);
        if (rest.starts_with(':')) rest.remove_prefix(1);
        if (!rest.empty()) target.port = number(rest, 65535).value_or(-1);
    } else {
        const std::size_t colon = rest.rfind(':');
        const bool with_port = colon != std::string_view::npos && rest.find(':') == colon;
        target.alias = std::string{with_port ? rest.substr(0, colon) : rest};
        if (with_port) target.port = number(rest.substr(colon + 1), 65535).value_or(-1);
    }
    if (target.alias.empty() || target.port == -1) {
        return Error{ErrorKind::usage, "host " + for_host.name + ": not a jump host: " + printable(jump, 100), "", "",
                     "write it as [user@]host[:port]"};
    }
    target.name = target.alias;
    return target;
}

}   // namespace campaign::ssh
