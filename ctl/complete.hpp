#pragma once
// Completion: what may stand where the cursor is, and the scripts that ask for it.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/commands.hpp"

namespace campaign::ctl {

/// Names that only the daemon knows; `campaign` is the one typed before, "" if none. Nothing where no daemon answers.
using Names = std::function<std::vector<std::string>(Takes takes, const std::string& campaign, const std::string& decision)>;

struct Completion {
    std::vector<std::string> words;   ///< all begin with what was typed of the last word
    bool files = false;               ///< the shell's own file names
};

/// `typed`: the words after "campaignctl" up to the cursor; the last one (it may be "") is completed.
[[nodiscard]] Completion complete(const std::vector<std::string>& typed, const Names& names);

/// The script for bash, zsh or fish; "" for another shell.
[[nodiscard]] std::string completion_script(std::string_view shell);

/// The hidden verb that the scripts call: it prints one candidate a line, ":files" for file names.
inline constexpr std::string_view complete_verb = "__complete";

}   // namespace campaign::ctl
