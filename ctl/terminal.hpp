#pragma once
// What the program's streams are.

#include <string>

#include "base/error.hpp"
#include "ctl/layout.hpp"

namespace campaign::ctl {

struct Terminal {
    Style out;
    Style err;
    bool in_is_tty = false;
    bool out_is_tty = false;
    bool err_is_tty = false;
};

/// `choice`: auto, always or never. In auto colour is for a terminal only, and not with NO_COLOR or TERM=dumb. Width: the
/// terminal's, else 80.
[[nodiscard]] Terminal look_at_terminal(const std::string& choice);

/// All of it to stdout; false when it could not be written (a full disk, a closed pipe).
bool put(const std::string& text);
void put_error(const std::string& text);

}   // namespace campaign::ctl
