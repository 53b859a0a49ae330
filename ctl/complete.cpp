#include "ctl/complete.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace campaign::ctl {
namespace {

std::vector<std::string> names_of(const Argument& argument) {
    return argument.is_option() ? split(argument.name, ',') : std::vector<std::string>{};
}

const Argument* option_called(const Command* command, std::string_view word) {
    const auto has = [word](const Argument& argument) {
        const std::vector<std::string> names = names_of(argument);
        return std::find(names.begin(), names.end(), word) != names.end();
    };
    if (command != nullptr) {
        const auto found = std::find_if(command->arguments.begin(), command->arguments.end(), has);
        if (found != command->arguments.end()) return &*found;
    }
    const auto common = common_arguments();
    const auto found = std::find_if(common.begin(), common.end(), has);
    return found != common.end() ? &*found : nullptr;
}

/// The first words of all commands, or the second ones of `first`.
std::vector<std::string> verbs_after(std::string_view first) {
    std::vector<std::string> words;
    for (const Command& command : commands()) {
        const std::size_t blank = command.path.find(' ');
        std::string word;
        if (first.empty()) {
            word = std::string{command.path.substr(0, blank)};
        } else if (blank != std::string_view::npos && command.path.substr(0, blank) == first) {
            word = std::string{command.path.substr(blank + 1)};
        }
        if (!word.empty() && std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
    }
    return words;
}

/// What was understood of the words before the cursor.
struct Place {
    const Command* command = nullptr;
    std::string first;                   // "plan" while its second word is missing
    std::vector<std::string> operands;   // without options and verbs
    const Argument* awaited = nullptr;   // an option whose value comes next
};

Place read(const std::vector<std::string>& typed) {
    Place place;
    for (std::size_t i = 0; i + 1 < typed.size(); ++i) {
        const std::string& word = typed[i];
        if (place.awaited != nullptr) {
            place.awaited = nullptr;
            continue;
        }
        if (word.starts_with('-') && word.size() > 1) {
            const Argument* option = option_called(place.command, word);
            if (option != nullptr && option->takes != Takes::nothing) place.awaited = option;
            continue;
        }
        if (place.command == nullptr) {
            place.command = find_command(place.first.empty() ? word : place.first + " " + word);
            if (place.command == nullptr && place.first.empty()) place.first = word;
            continue;
        }
        place.operands.push_back(word);
    }
    return place;
}

void add_values(Completion& result, const Argument& argument, const Place& place, const Names& names) {
    for (const std::string_view word : argument.words) result.words.emplace_back(word);
    switch (argument.takes) {
        case Takes::file: result.files = true; break;
        case Takes::verb: result.words = verbs_after(place.operands.empty() ? "" : place.operands.front()); break;
        case Takes::campaign:
        case Takes::decision:
        case Takes::candidate:
        case Takes::artifact: {
            const std::string campaign = place.operands.empty() ? "" : place.operands.front();
            const std::string decision = place.operands.size() < 2 ? "" : place.operands[1];
            for (std::string& name : names(argument.takes, campaign, decision)) result.words.push_back(std::move(name));
            break;
        }
        default: break;
    }
}

void keep_beginnings(std::vector<std::string>& words, std::string_view begun) {
    std::erase_if(words, [begun](const std::string& word) { return !std::string_view{word}.starts_with(begun); });
}

std::string verb_list() {
    std::string list;
    for (const std::string& verb : verbs_after("")) list += (list.empty() ? "" : " ") + verb;
    return list;
}

}   // namespace

Completion complete(const std::vector<std::string>& typed, const Names& names) {
    Completion result;
    if (typed.empty()) return result;
    const std::string& begun = typed.back();
    const Place place = read(typed);
    if (place.awaited != nullptr) {
        add_values(result, *place.awaited, place, names);
    } else if (place.command != nullptr && place.command->instrument) {
        result.files = true;
    } else if (begun.starts_with('-')) {
        const std::size_t equals = begun.find('=');
        if (equals != std::string::npos) {   // "--for=": the words then hold the option too
            const std::string flag = begun.substr(0, equals);
            const Argument* option = option_called(place.command, flag);
            if (option == nullptr) return result;
            add_values(result, *option, place, names);
            for (std::string& word : result.words) word.insert(0, flag + "=");
        } else {
            const auto add = [&result](const Argument& argument) {
                for (std::string& name : names_of(argument)) result.words.push_back(std::move(name));
            };
            if (place.command != nullptr)
                std::for_each(place.command->arguments.begin(), place.command->arguments.end(), add);
            const auto common = common_arguments();
            std::for_each(common.begin(), common.end(), add);
            result.words.emplace_back("--help");
        }
    } else if (place.command == nullptr) {
        result.words = verbs_after(place.first);
    } else {
        std::size_t ordinal = 0;
        for (const Argument& argument : place.command->arguments) {
            if (argument.is_option() || ordinal++ != place.operands.size()) continue;
            add_values(result, argument, place, names);
        }
    }
    keep_beginnings(result.words, begun);
    return result;
}

std::string completion_script(std::string_view shell) {
    const std::string ask = std::string{complete_verb};
    if (shell == "bash") {
        return "# bash completion of campaignctl, made by `campaignctl completion bash`\n"
               "_campaignctl() {\n"
               "    local word line\n"
               "    word=${COMP_WORDS[COMP_CWORD]}\n"
               "    COMPREPLY=()\n"
               "    if [ \"$COMP_CWORD\" -eq 1 ] && [ \"${word#-}\" = \"$word\" ]; then\n"
               "        while IFS= read -r line; do COMPREPLY+=(\"$line\"); done < <(compgen -W '" +
               verb_list() +
               "' -- \"$word\")\n"
               "        return\n"
               "    fi\n"
               "    while IFS= read -r line; do\n"
               "        if [ \"$line\" = :files ]; then\n"
               "            compopt -o filenames 2>/dev/null\n"
               "            while IFS= read -r line; do COMPREPLY+=(\"$line\"); done < <(compgen -f -- \"$word\")\n"
               "            return\n"
               "        fi\n"
               "        COMPREPLY+=(\"$line\")\n"
               "    done < <(\"${COMP_WORDS[0]}\" " +
               ask +
               " \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
               "}\n"
               "complete -F _campaignctl campaignctl\n";
    }
    std::string described;
    for (const Command& command : commands()) {
        const std::size_t blank = command.path.find(' ');
        const std::string word{command.path.substr(0, blank)};
        const std::string text =
            blank == std::string_view::npos ? std::string{command.summary} : "check, explain, or the schema";
        if (described.find("'" + word + ":") != std::string::npos || described.find("-a " + word + " ") != std::string::npos)
            continue;
        std::string safe;   // single quotes would end the word
        for (const char c : text) safe += c == '\'' ? std::string{"'\\''"} : std::string(1, c);
        if (shell == "zsh") {
            described += "        '" + word + ":" + safe + "'\n";
        } else {
            described += "complete -c campaignctl -n __fish_use_subcommand -a " + word + " -d '";
            for (const char c : text) described += c == '\'' ? std::string{"\\'"} : std::string(1, c);
            described += "'\n";
        }
    }
    if (shell == "zsh") {
        return "#compdef campaignctl\n"
               "# zsh completion of campaignctl, made by `campaignctl completion zsh`\n"
               "_campaignctl() {\n"
               "    local -a verbs answers\n"
               "    verbs=(\n" +
               described +
               "    )\n"
               "    if (( CURRENT == 2 )) && [[ ${words[2]} != -* ]]; then\n"
               "        _describe -t commands command verbs\n"
               "        return\n"
               "    fi\n"
               "    answers=(${(f)\"$(${words[1]} " +
               ask +
               " \"${(@)words[2,CURRENT]}\" 2>/dev/null)\"})\n"
               "    if (( ${answers[(I):files]} )); then\n"
               "        _files\n"
               "    else\n"
               "        compadd -a answers\n"
               "    fi\n"
               "}\n"
               "if [ \"$funcstack[1]\" = _campaignctl ]; then\n"
               "    _campaignctl \"$@\"\n"
               "else\n"
               "    compdef _campaignctl campaignctl\n"
               "fi\n";
    }
    if (shell == "fish") {
        return "# fish completion of campaignctl, made by `campaignctl completion fish`\n"
               "function __campaignctl_answers\n"
               "    set -l typed (commandline -opc) (commandline -ct)\n"
               "    for answer in (campaignctl " +
               ask +
               " $typed[2..-1] 2>/dev/null)\n"
               "        if test \"$answer\" = :files\n"
               "            __fish_complete_path (commandline -ct)\n"
               "        else\n"
               "            echo $answer\n"
               "        end\n"
               "    end\n"
               "end\n"
               "complete -c campaignctl -f\n" +
               described + "complete -c campaignctl -n 'not __fish_use_subcommand' -a '(__campaignctl_answers)'\n";
    }
    return "";
}

}   // namespace campaign::ctl
