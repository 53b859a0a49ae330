#pragma once
// What a destructive verb costs, said before it is done, and who may say yes to it. Pure.

#include <boost/json.hpp>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "ctl/layout.hpp"

namespace campaign::ctl {

/// What cancel, restore or resume --as would do to this campaign now, in sentences.
[[nodiscard]] std::string cost_of(const std::string& verb, const std::string& as, const boost::json::value& campaign);

/// The prompt's end: "Type k25 to cancel: ".
[[nodiscard]] std::string question(const std::string& verb, const std::string& name);

/// Without a terminal: nothing where --yes=NAME gives the whole name, else why it is refused (usage).
[[nodiscard]] std::optional<Error> without_terminal(const std::string& verb, const std::string& name,
                                                    const std::string& yes);

/// What was typed, line end and all, against the name.
[[nodiscard]] bool typed_right(std::string_view typed, std::string_view name);

}   // namespace campaign::ctl
