#include "adapters/host/stream_host.hpp"

#include <utility>

#include "base/quote.hpp"
#include "base/text.hpp"

namespace campaign::host {

namespace {

constexpr std::size_t input_piece = 64u << 10;

/// A script is shown by its operands: its text stands in the source.
std::string short_form(const Command& command, bool root) {
    std::vector<std::string> words;
    if (root) words = {"sudo", "-n", "--"};
    words.insert(words.end(), command.argv.begin(), command.argv.end());
    return printable(shell_command(words), 200);
}

}   // namespace

StreamHost::StreamHost(std::string name, bool sudo, Clock& clock, Random& random)
    : clock_{clock}, random_{random}, name_{std::move(name)}, sudo_{sudo} {}

std::string StreamHost::shown(const Command& command) const {
    std::vector<std::string> words;
    if (command.as_root && sudo_) words = {"sudo", "-n", "--"};
    words.insert(words.end(), command.argv.begin(), command.argv.end());
    return shell_command(words);
}

Result<std::unique_ptr<Exchange>> StreamHost::prepare(const Command& command, Sink sink) const {
    const bool root = command.as_root && sudo_;
    const std::string nonce = random_.hex(16);
    Result<std::vector<std::string>> argv = framed_argv(command.argv, nonce, !command.input.empty(), root);
    if (!argv) return argv.error();
    if (shell_command(*argv).size() > longest_command_line) {
        return Error{ErrorKind::usage, "a command line of more than 120,000 bytes", "a login shell takes no longer one",
                     short_form(command, root), "give the data on standard input"};
    }
    auto exchange =
        std::make_unique<Exchange>(Exchange{std::move(*argv),
                                            short_form(command, root),
                                            !command.input.empty(),
                                            {},
                                            Framed{nonce, root, command.keep_output, command.keep_errors, std::move(sink)},
                                            command.deadline,
                                            false,
                                            false});
    exchange->next_input = [input = command.input, at = std::size_t{0}]() mutable -> Result<std::string> {
        std::string next = input.substr(at, input_piece);
        at += next.size();
        return next;
    };
    return exchange;
}

Async<Result<Finished>> StreamHost::perform(const Command& command, Sink sink, bool endless) {
    Result<std::unique_ptr<Exchange>> prepared = prepare(command, std::move(sink));
    if (!prepared) co_return prepared.error();
    Exchange& ready = **prepared;
    ready.endless = endless;
    Result<Finished> finished = co_await exchange(ready);
    co_return finished;
}

Async<Result<Finished>> StreamHost::run(Command command) {
    Sink keep_all;
    Result<Finished> finished = co_await perform(command, keep_all, false);
    co_return finished;
}

Async<Result<bool>> StreamHost::follow(Command command, OnLine on_line) {
    Lines lines;
    bool enough = false;
    Sink sink = [&](std::string_view bytes) {
        enough = !lines.feed(bytes, on_line);
        return !enough;
    };
    const Result<Finished> finished = co_await perform(command, sink, true);
    if (enough) co_return true;
    if (!finished) co_return finished.error();
    co_return false;
}

}   // namespace campaign::host
