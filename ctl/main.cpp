// campaignctl: the operator's command.

#include <csignal>
#include <exception>
#include <variant>

#include "ctl/verbs.hpp"

int main(int argc, char** argv) {
    using namespace campaign::ctl;
    std::signal(SIGPIPE, SIG_IGN);   // a reader that leaves early ends a write, not us
    try {
        const std::vector<std::string> arguments(argv + 1, argv + argc);
        auto parsed = parse_options(arguments, look_at_terminal("auto").out.width);
        if (const Leave* leave = std::get_if<Leave>(&parsed)) {
            put(leave->out);
            put_error(leave->err);
            return code(leave->exit);
        }
        const Options options = std::get<Options>(std::move(parsed));
        Session session{options, look_at_terminal(options.colour), Client{socket_path(options.socket)}};
        return code(run(session));
    } catch (const std::exception& problem) {
        put_error(std::string{"error: campaignctl itself failed: "} + problem.what() +
                  "\n  next    please report it with the command that you typed\n");
        return code(Exit::bug);
    }
}
