#include "ctl/options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "base/text.hpp"

namespace campaign::ctl {
namespace {

constexpr const char* intro = R"(campaignctl: runs and watches profiling campaigns through campaignd.

NAME is a campaign's name or the beginning of one. Answers go to stdout, everything else to stderr.
Exit codes: 0 as asked, 1 bug, 2 usage, 3 failed (production verified), 4 a person is needed, 5 cancelled
(production verified), 6 production not as found, 7 time-out, 8 not found, 9 not allowed, 10 no daemon,
11 plan refused, 130 detached.)";

/// The commands with their options. Built for each parse: it costs a tenth of a millisecond.
class Grammar {
public:
    explicit Grammar(Options& options) : app_{intro, "campaignctl"}, options_{options} {
        app_.require_subcommand(1);
        app_.fallthrough();
        app_.set_help_flag("-h,--help", "this text, or a verb's own");
        app_.add_option("--socket", options.socket, "the daemon's socket (else CAMPAIGND_SOCKET, /run/campaignd/api.sock)");
        app_.add_flag("--json", options.json, "one JSON object with its schema; watch and logs: one a line");
        app_.add_option("--color,--colour", options.colour, "auto, always or never")
            ->check(CLI::IsMember({"auto", "always", "never"}));

        CLI::App& submit = verb("submit", "give the daemon a plan");
        submit.add_option("FILE", options.file, "the plan")->required();
        CLI::App& status = verb("status", "what runs, what it waits for, what is needed from you");
        status.add_option("NAME", options.campaign, "one campaign");
        status.add_option("--decision", options.decision, "one decision with its rejected alternatives");
        CLI::App& watch = verb("watch", "follow a campaign; q leaves, the campaign goes on");
        name(watch);
        CLI::App& wait = verb("wait", "return when the campaign ends, with its exit code");
        name(wait);
        wait.add_option("--for", options.wait_for, "done, restored or decision")
            ->check(CLI::IsMember({"done", "restored", "decision"}));
        wait.add_option("--timeout", options.timeout, "give up after this, as 90s, 30m, 2h (exit 7)");
        CLI::App& logs = verb("logs", "every event, one a line");
        name(logs);
        logs.add_flag("-f,--follow", options.follow, "go on as events happen");
        CLI::App& approve = verb("approve", "allow a candidate of a decision");
        name(approve);
        approve.add_option("DECISION", options.decision, "its label, as D2")->required();
        approve.add_option("CANDIDATE", options.candidate, "the method")->required();
        CLI::App& cancel = verb("cancel", "end a campaign and restore production");
        name(cancel);
        yes(cancel);
        CLI::App& resume = verb("resume", "look again at what is in doubt, or say how it is");
        name(resume);
        resume.add_option("--as", options.as, "done or not-done")->check(CLI::IsMember({"done", "not-done"}));
        yes(resume);
        CLI::App& restore = verb("restore", "bring production back as it was found");
        name(restore);
        yes(restore);
        CLI::App& artifacts = verb("artifacts", "list what was gathered, or get one");
        name(artifacts);
        artifacts.add_option("ACTION", options.action, "get")->check(CLI::IsMember({"get"}));
        artifacts.add_option("WHAT", options.what, "its SHA-256, the beginning of it, or its name");
        output(artifacts);
        CLI::App& report = verb("report", "the results document");
        name(report);
        output(report);

        CLI::App& plan = verb("plan", "check, explain, or the schema of plans");
        plan.require_subcommand(1);
        CLI::App& check = part(plan, "check", "every error of a plan, with line and column");
        check.add_option("FILE", options.file, "the plan")->required();
        CLI::App& explain = part(plan, "explain", "what would run where, and what it costs; changes nothing");
        explain.add_option("FILE", options.file, "the plan")->required();
        explain.add_flag("--offline", options.offline, "do not touch the hosts");
        explain.add_flag("--commands", options.commands, "every command and drop-in as it would be written");
        CLI::App& schema = part(plan, "schema", "the JSON Schema of plans");
        schema.add_option("FILE", options.file, "where to write it (stdout)");

        CLI::App& code = verb("explain", "what an error code means");
        code.add_option("CODE", options.file, "as P012")->required();
        instrument("load", "generate load and measure, without the daemon");
        instrument("analyze", "where the time goes in trace files");
        instrument("startup", "read a server's log");
        instrument("check", "whether trace files are whole");
        verb("version", "of campaignctl, and of the daemon if there is one");
        CLI::App& help = verb("help", "this text, or a verb's own");
        help.add_option("VERB", options.what, "a verb");
    }

    CLI::App& app() { return app_; }

private:
    CLI::App& verb(const std::string& word, const std::string& text) {
        CLI::App* made = app_.add_subcommand(word, text);
        made->fallthrough();
        made->set_help_flag("-h,--help", "this text");
        return *made;
    }
    CLI::App& part(CLI::App& parent, const std::string& word, const std::string& text) {
        CLI::App* made = parent.add_subcommand(word, text);
        made->fallthrough();
        made->set_help_flag("-h,--help", "this text");
        return *made;
    }
    void instrument(const std::string& word, const std::string& text) {
        CLI::App& made = verb(word, text);
        made.prefix_command();
        made.set_help_flag();
    }
    void name(CLI::App& to) { to.add_option("NAME", options_.campaign, "the campaign")->required(); }
    void yes(CLI::App& to) {
        to.add_option("--yes", options_.yes, "confirms without a terminal: the campaign's whole name");
    }
    void output(CLI::App& to) { to.add_option("-o,--output", options_.output, "the file to write (- is stdout)"); }

    CLI::App app_;
    Options& options_;
};

bool is_instrument(const std::string& verb) {
    return verb == "load" || verb == "analyze" || verb == "startup" || verb == "check";
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

std::string help_of(const CLI::App& root, const CLI::App& app) {
    std::string path = app.get_name();
    for (const CLI::App* up = app.get_parent(); up != nullptr && up != &root; up = up->get_parent())
        path = up->get_name() + " " + path;
    return &app == &root ? root.help() : app.help("campaignctl " + path);
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

std::variant<Options, Leave> parse_options(const std::vector<std::string>& arguments) {
    Options options;
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
        return Leave{Exit::as_asked, help_of(app, *chosen_verb(app)), ""};
    } catch (const CLI::ParseError& problem) {
        if (arguments.empty()) return Leave{Exit::usage, "", app.help()};
        const std::string unknown = unknown_word(app, arguments);
        if (!unknown.empty()) return usage(unknown);
        const CLI::App* verb = chosen_verb(app);
        const std::string hint = verb == &app ? "campaignctl help" : "campaignctl help " + verb->get_name();
        std::string text = problem.what();
        std::replace(text.begin(), text.end(), '\n', ' ');
        return usage(printable(text, 400), hint);
    }
    const CLI::App* verb = chosen_verb(app);
    options.verb = verb->get_parent() == &app ? verb->get_name() : verb->get_parent()->get_name() + " " + verb->get_name();
    if (is_instrument(options.verb))
        return usage(options.verb + " must be the first word", "campaignctl " + options.verb + " --help");
    if (const std::string odd = flag_with_value(app, *verb, arguments); !odd.empty()) return usage(odd);
    if (options.verb == "help") {
        if (options.what.empty()) return Leave{Exit::as_asked, app.help(), ""};
        const std::vector<std::string> known = names_of(app);
        if (!contains(known, options.what)) {
            const auto meant = did_you_mean(options.what, known);
            return usage("unknown verb " + printable(options.what, 100) + (meant ? "; did you mean " + *meant + "?" : ""));
        }
        return Leave{Exit::as_asked, help_of(app, *app.get_subcommand(options.what)), ""};
    }
    if (options.verb == "artifacts" && options.action == "get" && options.what.empty())
        return usage("artifacts get needs a SHA-256 or a name", "campaignctl artifacts " + printable(options.campaign, 100));
    if (!options.timeout.empty() && !parse_duration(options.timeout))
        return usage("--timeout needs a duration with its unit, as 90s, 30m or 2h, not " + printable(options.timeout, 60));
    if (!options.decision.empty() && options.campaign.empty()) return usage("--decision needs the campaign's name");
    return options;
}

}   // namespace campaign::ctl
