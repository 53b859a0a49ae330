#pragma once
// What a program wrote, without what others put before it: journald, compose, vLLM's process names, log levels.

#include <string_view>

#include "instruments/startup/stamp.hpp"

namespace campaign::startup {

struct Message {
    std::string_view text;
    std::string_view container;   ///< compose's name for who wrote it; empty without compose
    bool by_systemd = false;
    bool by_kernel = false;
    Stamp stamp;   ///< the first time on the line
};

[[nodiscard]] Message message_of(std::string_view line);

}   // namespace campaign::startup
