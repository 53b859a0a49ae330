#include "ctl/options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "base/text.hpp"
#include "ctl/commands.hpp"
#include "ctl/complete.hpp"
#include "ctl/manual.hpp"

namespace campaign::ctl {
namespace {

/// The parser of the table's commands. Built for each parse: it costs a tenth of a millisecond.
class Grammar {
public:
    explicit Grammar(Options& options) : app_{"", "campaignctl"}, options_{options} {
        app_.require_subcommand(1);
        app_.fallthrough();
        app_.set_help_flag("-h,--help", "");
        for (const Argument& argument : common_arguments()) add(app_, argument);
        for (const Command& command : commands()) {
            const std::vector<std::string> words = split(command.path, ' ');
            CLI::App* at = &app_;
            for (std::size_t i = 0; i < words.size(); ++i) {
                CLI::App* known = part_called(*at, words[i]);
                if (known == nullptr) {
                    known = at->add_subcommand(words[i], "");
                    known->fallthrough();
                    known->set_help_flag("-h,--help", "");
                    if (i + 1 < words.size()) known->require_subcommand(1);
                }
                at = known;
            }
            if (command.instrument) {
                at->prefix_command();
                at->set_help_flag();
            }
            for (const Argument& argument : command.arguments) add(*at, argument);
        }
    }

    CLI::App& app() { return app_; }

private:
    static CLI::App* part_called(CLI::App& parent, const std::string& word) {
        for (CLI::App* part : parent.get_subcommands([](CLI::App*) { return true; })) {
            if (part->get_name() == word) return part;
        }
        return nullptr;
    }
    void add(CLI::App& to, const Argument& argument) {
        const std::string name{argument.name};
        if (const auto* flag = std::get_if<bool Options::*>(&argument.into)) {
            to.add_flag(name, options_.*(*flag));
            return;
        }
        CLI::Option* option = to.add_option(name, options_.*std::get<std::string Options::*>(argument.into));
        option->required(argument.required);
        if (!argument.words.empty())
            option->check(CLI::IsMember(std::vector<std::string>(argument.words.begin(), argument.words.end())));
    }

    CLI::App app_;
    Options& options_;
};

bool is_instrument(const std::string& verb) {
    const Command* command = find_command(verb);
    return command != nullptr && command->instrument;
}

std::vector<std::string> names_of(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::App* part : app.get_subcommands({})) names.push_back(part->get_name());
    return names;
}

std::vector<std::string> flags_of(const CLI::App& app) {
    std::vector<std::string> flags;
    for (const CLI::Option* option : app.get_options()) {
        for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
        for (const std::string& name : option->get_snames()) flags.push_back("-" + name);
    }
    return flags;
}

bool contains(const std::vector<std::string>& words, const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

const CLI::Option* find_option(const CLI::App& app, const std::string& flag) {
    return app.get_option_no_throw(flag);
}

/// Walks what was typed to find the first word that no verb or flag explains, and what it may have been meant to be.
std::string unknown_word(const CLI::App& root, const std::vector<std::string>& arguments) {
    const CLI::App* at = &root;
    std::vector<std::string> flags = flags_of(root);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string& word = arguments[i];
        if (word == "--") break;
        if (word.size() > 1 && word[0] == '-') {
            const std::string flag = word.substr(0, word.find('='));
            if (contains(flags, flag) || (word[1] != '-' && contains(flags, word.substr(0, 2)))) {
                const CLI::Option* option = find_option(*at, flag);
                if (option == nullptr) option = find_option(root, flag);
                const bool takes_value = option != nullptr && option->get_items_expected_max() > 0;
                if (takes_value && flag == word) ++i;
                continue;
            }
            std::string text = "unknown option " + printable(flag, 100);
            if (const auto meant = did_you_mean(flag, flags)) text += "; did you mean " + *meant + "?";
            return text;
        }
        const std::vector<std::string> parts = names_of(*at);
        if (parts.empty()) continue;
        if (!contains(parts, word)) {
            const std::string place = at == &root ? "" : at->get_name() + " ";
            std::string text = "unknown verb " + place + printable(word, 100);
            if (const auto meant = did_you_mean(word, parts)) text += "; did you mean " + place + *meant + "?";
            return text;
        }
        at = at->get_subcommand(word);
        for (std::string& flag : flags_of(*at)) flags.push_back(std::move(flag));
    }
    return "";
}

/// CLI11 takes "--json=3" for a flag that has no value.
std::string flag_with_value(const CLI::App& root, const CLI::App& chosen, const std::vector<std::string>& arguments) {
    for (const std::string& word : arguments) {
        const std::size_t equals = word.find('=');
        if (word == "--") break;
        if (!word.starts_with("--") || equals == std::string::npos) continue;
        const std::string flag = word.substr(0, equals);
        const CLI::Option* option = find_option(chosen, flag);
        if (option == nullptr) option = find_option(root, flag);
        if (option != nullptr && option->get_items_expected_max() == 0) return flag + " takes no value";
    }
    return "";
}

const CLI::App* chosen_verb(const CLI::App& root) {
    const CLI::App* at = &root;
    while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
    return at;
}

/// "plan check" of the parser that was chosen; "" for the root.
std::string path_of(const CLI::App& root, const CLI::App& app) {
    if (&app == &root) return "";
    std::string path = app.get_name();
    for (const CLI::App* up = app.get_parent(); up != nullptr && up != &root; up = up->get_parent())
        path = up->get_name() + " " + path;
    return path;
}

std::string help_of(const std::string& path, std::size_t width) {
    if (path.empty()) return help_text(width);
    const Command* command = find_command(path);
    return command != nullptr ? help_text(*command, width) : help_of_parts(path, width);
}

Leave usage(std::string text, const std::string& hint = "campaignctl help") {
    return Leave{Exit::usage, "", "error: " + std::move(text) + "\n  next    " + hint + "\n"};
}

}   // namespace

std::vector<std::string> verbs() {
    Options ignored;
    Grammar grammar{ignored};
    return names_of(grammar.app());
}

std::variant<Options, Leave> parse_options(const std::vector<std::string>& arguments, std::size_t width) {
    Options options;
    if (!arguments.empty() && arguments.front() == complete_verb) {
        options.verb = arguments.front();
        options.rest.assign(arguments.begin() + 1, arguments.end());
        return options;
    }
    if (!arguments.empty() && is_instrument(arguments.front())) {   // its words are for the instrument to judge
        options.verb = arguments.front();
        options.rest.assign(arguments.begin() + 1, arguments.end());
        return options;
    }
    Grammar grammar{options};
    CLI::App& app = grammar.app();
    std::vector<std::string> reversed{arguments.rbegin(), arguments.rend()};   // as CLI11 wants them
    try {
        app.parse(std::move(reversed));
    } catch (const CLI::CallForHelp&) {
        return Leave{Exit::as_asked, help_of(path_of(app, *chosen_verb(app)), width), ""};
    } catch (const CLI::ParseError& problem) {
        if (arguments.empty()) return Leave{Exit::usage, "", help_text(width)};
        const std::string unknown = unknown_word(app, arguments);
        if (!unknown.empty()) return usage(unknown);
        const CLI::App* verb = chosen_verb(app);
        const std::string hint = verb == &app ? "campaignctl help" : "campaignctl help " + path_of(app, *verb);
        std::string text = problem.what();
        std::replace(text.begin(), text.end(), '\n', ' ');
        return usage(printable(text, 400), hint);
    }
    const CLI::App* verb = chosen_verb(app);
    options.verb = path_of(app, *verb);
    if (is_instrument(options.verb))
        return usage(options.verb + " must be the first word", "campaignctl " + options.verb + " --help");
    if (const std::string odd = flag_with_value(app, *verb, arguments); !odd.empty()) return usage(odd);
    if (options.verb == "help") {
        if (options.man) return Leave{Exit::as_asked, man_page(CAMPAIGN_VERSION, CAMPAIGN_DATE), ""};
        if (options.what.empty()) return Leave{Exit::as_asked, help_text(width), ""};
        const std::vector<std::string> known = names_of(app);
        if (!contains(known, options.what)) {
            const auto meant = did_you_mean(options.what, known);
            return usage("unknown verb " + printable(options.what, 100) + (meant ? "; did you mean " + *meant + "?" : ""));
        }
        const std::string path = options.what + (options.action.empty() ? "" : " " + options.action);
        if (!options.action.empty() && find_command(path) == nullptr) {
            const auto meant = did_you_mean(options.action, names_of(*app.get_subcommand(options.what)));
            return usage("unknown verb " + printable(path, 200) +
                             (meant ? "; did you mean " + options.what + " " + *meant + "?" : ""),
                         "campaignctl help " + options.what);
        }
        return Leave{Exit::as_asked, help_of(path, width), ""};
    }
    if (options.verb == "completion") return Leave{Exit::as_asked, completion_script(options.what), ""};
    if (options.verb == "artifacts" && options.action == "get" && options.what.empty())
        return usage("artifacts get needs a SHA-256 or a name", "campaignctl artifacts " + printable(options.campaign, 100));
    if (!options.timeout.empty() && !parse_duration(options.timeout))
        return usage("--timeout needs a duration with its unit, as 90s, 30m or 2h, not " + printable(options.timeout, 60));
    if (!options.decision.empty() && options.campaign.empty()) return usage("--decision needs the campaign's name");
    return options;
}

}   // namespace campaign::ctl
