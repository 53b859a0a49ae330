#pragma once
// Every command, once: the parser, help, man page and completion are all made from this table. Pure data.

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ctl/exit_code.hpp"
#include "ctl/options.hpp"

namespace campaign::ctl {

/// What a value is, for completion.
enum class Takes { nothing, text, campaign, decision, candidate, artifact, file, word, verb, duration };

struct Argument {
    std::string_view name;    ///< "NAME" for a positional one; "--yes" or "-o,--output" for an option
    std::string_view value;   ///< what an option's value is called in help; "" for flags and positional ones
    std::string_view text;
    std::variant<bool Options::*, std::string Options::*> into;
    Takes takes = Takes::text;
    bool required = false;
    std::vector<std::string_view> words{};   ///< the only values that are taken, when there are any

    [[nodiscard]] bool is_option() const { return name.starts_with('-'); }
};

struct Example {
    std::string_view command;
    std::string_view meaning;
};

enum class Group { look, steer, results, plans, instruments, other };

struct Command {
    std::string_view path;   ///< "status", "plan check"
    Group group;
    std::string_view summary;   ///< one line, no full stop
    std::string_view more;      ///< a paragraph, or ""
    std::vector<Argument> arguments;
    std::vector<Example> examples;
    bool instrument = false;   ///< its words are for campaign-agent to judge
};

/// In the order in which help shows them.
[[nodiscard]] std::span<const Command> commands();
/// Options that every command takes.
[[nodiscard]] std::span<const Argument> common_arguments();
[[nodiscard]] const Command* find_command(std::string_view path);
[[nodiscard]] std::string_view group_title(Group group);

struct ExitMeaning {
    Exit exit;
    std::string_view meaning;
};
[[nodiscard]] std::span<const ExitMeaning> exit_meanings();

}   // namespace campaign::ctl
