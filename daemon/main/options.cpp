#include "daemon/main/options.hpp"

#include <array>
#include <vector>

#include "base/text.hpp"

namespace campaign::daemon {

std::string help_text() {
    return R"(campaignd: runs LLM-inference profiling campaigns on production hosts

  campaignd [options]                       serve (campaignctl talks to it)
  campaignd explain --offline FILE [--json] what a plan would do, as JSON, without a daemon

options
  --state-dir DIR     journal and artifacts      (default /var/lib/campaignd)
  --socket PATH       the API's Unix socket      (default /run/campaignd/api.sock)
  --ssh-config FILE   instead of ~/.ssh/config
  --agent FILE        campaign-agent             (default: beside campaignd)
  --log-level LEVEL   trace debug info warn error
  --version, --help
)";
}

Result<Options> parse_options(std::span<const std::string> arguments) {
    static const std::vector<std::string> known{"--state-dir", "--socket", "--ssh-config", "--agent", "--log-level",
                                                "--version",   "--help",   "--offline",    "--json"};
    Options options;
    std::vector<std::string> words;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        std::string flag = arguments[i];
        std::optional<std::string> value;
        if (!flag.starts_with("--")) {
            words.push_back(flag);
            continue;
        }
        if (const std::size_t at = flag.find('='); at != std::string::npos) {
            value = flag.substr(at + 1);
            flag.resize(at);
        }
        if (flag == "--version") {
            options.what = Options::Do::version;
        } else if (flag == "--help") {
            options.what = Options::Do::help;
        } else if (flag == "--offline") {
            options.offline = true;
        } else if (flag == "--json") {
            // the answer is JSON in any case
        } else {
            const bool takes_value = flag == "--state-dir" || flag == "--socket" || flag == "--ssh-config" ||
                                     flag == "--agent" || flag == "--log-level";
            if (!takes_value) {
                const auto near = did_you_mean(flag, known);
                return Error{ErrorKind::usage, "unknown option " + printable(flag, 80), "", "",
                             near ? "did you mean " + *near + "?" : "campaignd --help"};
            }
            if (!value && i + 1 < arguments.size()) value = arguments[++i];
            if (!value || value->empty())
                return Error{ErrorKind::usage, flag + " needs a value", "", "", "campaignd --help"};
            if (flag == "--state-dir") options.state_dir = *value;
            if (flag == "--socket") options.socket = *value;
            if (flag == "--ssh-config") options.ssh_config = *value;
            if (flag == "--agent") options.agent = *value;
            if (flag == "--log-level") options.log_level = *value;
        }
    }
    static constexpr std::array<std::string_view, 5> levels{"trace", "debug", "info", "warn", "error"};
    bool level_known = false;
    for (const std::string_view level : levels) level_known = level_known || level == options.log_level;
    if (!level_known)
        return Error{ErrorKind::usage, "unknown log level " + printable(options.log_level, 40), "", "",
                     "one of trace, debug, info, warn, error"};
    if (!words.empty() && words.front() == "explain") {
        if (words.size() != 2)
            return Error{ErrorKind::usage, "explain takes one plan file", "", "", "campaignd explain --offline FILE"};
        options.what = Options::Do::explain;
        options.plan = words[1];
    } else if (!words.empty()) {
        return Error{ErrorKind::usage, "unexpected argument " + printable(words.front(), 80), "", "", "campaignd --help"};
    }
    return options;
}

}   // namespace campaign::daemon
