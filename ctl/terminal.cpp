#include "ctl/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

namespace campaign::ctl {
namespace {

Style style_of(int fd, bool tty, const std::string& choice) {
    Style style;
    winsize size{};
    if (tty && ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40) style.width = size.ws_col;
    const char* no_colour = std::getenv("NO_COLOR");
    const char* term = std::getenv("TERM");
    const bool wanted =
        tty && (no_colour == nullptr || *no_colour == '\0') && term != nullptr && std::string_view{term} != "dumb";
    style.colour = choice == "always" || (choice == "auto" && wanted);
    return style;
}

bool write_all(int fd, std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = ::write(fd, text.data(), text.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return false;
        text.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
}

}   // namespace

Terminal look_at_terminal(const std::string& choice) {
    Terminal terminal;
    terminal.in_is_tty = ::isatty(STDIN_FILENO) == 1;
    terminal.out_is_tty = ::isatty(STDOUT_FILENO) == 1;
    terminal.err_is_tty = ::isatty(STDERR_FILENO) == 1;
    terminal.out = style_of(STDOUT_FILENO, terminal.out_is_tty, choice);
    terminal.err = style_of(STDERR_FILENO, terminal.err_is_tty, choice);
    return terminal;
}

bool put(const std::string& text) {
    return write_all(STDOUT_FILENO, text);
}

void put_error(const std::string& text) {
    write_all(STDERR_FILENO, text);
}

}   // namespace campaign::ctl
