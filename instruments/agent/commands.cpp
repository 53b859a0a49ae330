#include "instruments/agent/commands.hpp"

#include <ostream>

#include "instruments/agent/each_command.hpp"

namespace campaign::agent {
namespace {

constexpr std::string_view help =
    "campaign-agent load SPEC.json RESULT.json         measure a server under load\n"
    "campaign-agent load URL --model NAME [OPTION...]  the same by options: campaign-agent load --help\n"
    "campaign-agent analyze --out RESULT.json FILE...  where a decode step goes, from the traces of all ranks\n"
    "campaign-agent check FILE...                      is a trace whole?\n"
    "campaign-agent startup [--json] [--now T] [--year Y] [--follow] FILE\n"
    "                                                  what a server's start-up log says (-: standard input)\n"
    "campaign-agent micro shapes|reconcile ...         a step's operations and its latency budget: micro --help\n"
    "campaign-agent version\n";

}   // namespace

int wrong_usage(std::ostream& err, const std::string& why) {
    err << "campaign-agent: " << why << '\n' << help;
    return usage;
}

int run(Words arguments, std::ostream& out, std::ostream& err, const std::atomic<bool>& stop) {
    if (arguments.empty()) return wrong_usage(err, "no command");
    const std::string& command = arguments.front();
    const Words words = arguments.subspan(1);
    if (command == "load") return load_command(words, out, err, stop);
    if (command == "analyze") return analyze_command(words, out, err);
    if (command == "check") return check_command(words, out, err);
    if (command == "startup") return startup_command(words, out, err);
    if (command == "micro") return micro_command(words, out, err);
    if (command == "version" || command == "--version") {
        out << "campaign-agent " CAMPAIGN_VERSION "\n";
        return as_asked;
    }
    if (command == "help" || command == "--help" || command == "-h") {
        out << help;
        return as_asked;
    }
    return wrong_usage(err, "no command is called " + command);
}

int run(Words arguments, std::ostream& out, std::ostream& err) {
    const std::atomic<bool> never{false};
    return run(arguments, out, err, never);
}

}   // namespace campaign::agent
