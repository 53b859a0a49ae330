// Runs one command. SIGTERM and SIGINT end a load run with what it has; a second one ends the process.

#include <csignal>
#include <exception>
#include <iostream>
#include <vector>

#include "instruments/agent/commands.hpp"

namespace {

std::atomic<bool> stop{false};
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void on_stop(int) {
    stop = true;
}

}   // namespace

int main(int count, char** words) {
    const std::vector<std::string> arguments(words + 1, words + count);
    if (!arguments.empty() && arguments.front() == "load") {   // the others hold nothing that must not be lost
        struct sigaction action {};
        action.sa_handler = on_stop;
        action.sa_flags = SA_RESETHAND;
        ::sigaction(SIGTERM, &action, nullptr);
        ::sigaction(SIGINT, &action, nullptr);
    }
    std::signal(SIGPIPE, SIG_IGN);   // who reads the progress may be gone; the result still counts
    try {
        return campaign::agent::run(arguments, std::cout, std::cerr, stop);
    } catch (const std::exception& error) {
        std::cerr << "campaign-agent: " << error.what() << '\n';
        return campaign::agent::failed;
    }
}
