#include "ctl/manual.hpp"

#include <algorithm>

#include "ctl/layout.hpp"

namespace campaign::ctl {
namespace {

constexpr std::size_t column = 22;
constexpr std::string_view intro =
    "NAME is a campaign's name or the beginning of one. Answers go to stdout, everything else to stderr. Times are UTC.";

/// A term in its column, its meaning beside it, or below where the term is too long.
void entry(Sheet& sheet, const std::string& term, std::string_view meaning) {
    const std::string head = "  " + term;
    if (head.size() + 2 > column) {
        sheet.line(head);
        if (!meaning.empty()) sheet.hang(std::string(column, ' '), column, meaning);
    } else if (meaning.empty()) {
        sheet.line(head);
    } else {
        sheet.hang(pad(head, column), column, meaning);
    }
}

/// "-o, --output FILE"
std::string term_of(const Argument& argument) {
    std::string term;
    for (const char c : argument.name) {
        term += c;
        if (c == ',') term += ' ';
    }
    if (!argument.value.empty()) term += " " + std::string{argument.value};
    return term;
}

std::string_view last_name(const Argument& argument) {
    const std::size_t comma = argument.name.find(',');
    return argument.is_option() && comma != std::string_view::npos ? argument.name.substr(comma + 1) : argument.name;
}

void examples(Sheet& sheet, const Command& command) {
    if (command.examples.empty()) return;
    sheet.line("");
    sheet.line("Examples");
    for (const Example& example : command.examples) {
        sheet.line("  " + std::string{example.command});
        if (!example.meaning.empty()) sheet.hang("      ", 6, example.meaning);
    }
}

void common(Sheet& sheet) {
    sheet.line("");
    sheet.line("Everywhere");
    for (const Argument& argument : common_arguments()) entry(sheet, term_of(argument), argument.text);
    entry(sheet, "-h, --help", "help of the command");
}

/// Text that roff takes as it is: no macro at the beginning of a line, no escapes, real minus signs.
std::string roff(std::string_view text) {
    std::string out;
    if (text.starts_with('.') || text.starts_with('\'')) out += "\\&";
    for (const char c : text) {
        if (c == '\\') {
            out += "\\e";
        } else if (c == '-') {
            out += "\\-";
        } else {
            out += c;
        }
    }
    return out;
}

/// A sentence in lines that people who read the source can read too.
std::string roff_text(std::string_view text) {
    std::string out;
    for (const std::string& line : wrap(text, 70)) out += roff(line) + "\n";
    return out;
}

}   // namespace

std::string usage_line(const Command& command) {
    std::string line = "campaignctl " + std::string{command.path};
    if (command.instrument) return line + " ...";
    for (const Argument& argument : command.arguments) {
        if (!argument.is_option()) continue;
        line += " [" + std::string{last_name(argument)};
        if (!argument.value.empty()) line += " " + std::string{argument.value};
        line += "]";
    }
    for (const Argument& argument : command.arguments) {
        if (argument.is_option()) continue;
        line += argument.required ? " " + std::string{argument.name} : " [" + std::string{argument.name} + "]";
    }
    return line;
}

std::string help_text(std::size_t width) {
    Sheet sheet{Style{width, false}};
    sheet.hang("", 0, "campaignctl: runs and watches profiling campaigns through campaignd");
    sheet.line("");
    sheet.hang("", 0, intro);
    Group group{};
    bool first = true;
    for (const Command& command : commands()) {
        if (first || command.group != group) {
            sheet.line("");
            sheet.line(std::string{group_title(command.group)});
        }
        first = false;
        group = command.group;
        entry(sheet, std::string{command.path}, command.summary);
    }
    common(sheet);
    sheet.line("");
    sheet.line("Exit codes");
    for (const ExitMeaning& one : exit_meanings()) entry(sheet, std::to_string(code(one.exit)), one.meaning);
    sheet.line("");
    sheet.hang("", 0, "campaignctl help COMMAND tells more, with examples; man campaignctl has it all.");
    return sheet.text();
}

std::string help_text(const Command& command, std::size_t width) {
    Sheet sheet{Style{width, false}};
    sheet.hang("", 0, std::string{command.path} + ": " + std::string{command.summary});
    sheet.line("");
    sheet.hang("  ", 2, usage_line(command));
    if (!command.more.empty()) {
        sheet.line("");
        sheet.hang("", 0, command.more);
    }
    if (command.instrument) {
        sheet.line("");
        sheet.hang("", 0, "campaignctl " + std::string{command.path} + " --help lists its options.");
    }
    if (!command.arguments.empty()) sheet.line("");
    for (const Argument& argument : command.arguments) entry(sheet, term_of(argument), argument.text);
    examples(sheet, command);
    if (!command.instrument) common(sheet);
    return sheet.text();
}

std::string help_of_parts(std::string_view word, std::size_t width) {
    Sheet sheet{Style{width, false}};
    sheet.line("campaignctl " + std::string{word} + " ...");
    sheet.line("");
    for (const Command& command : commands()) {
        if (command.path.starts_with(std::string{word} + " ")) entry(sheet, std::string{command.path}, command.summary);
    }
    common(sheet);
    return sheet.text();
}

std::string man_page(std::string_view version, std::string_view date) {
    std::string out = ".TH CAMPAIGNCTL 1 " + std::string{date} + " \"campaignd " + roff(version) + "\" \"User Commands\"\n";
    out += ".SH NAME\ncampaignctl \\- run and watch profiling campaigns through campaignd\n";
    out += ".SH SYNOPSIS\n.B campaignctl\n.I command\n.RI [ option ...]\n.RI [ argument ...]\n";
    out += ".SH DESCRIPTION\n" + roff_text(intro);
    out += ".SH COMMANDS\n";
    for (const Command& command : commands()) {
        out += ".SS \"" + roff(command.path) + "\"\n.B " + roff(usage_line(command)) + "\n.PP\n";
        std::string summary{command.summary};
        summary[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(summary[0])));
        out += roff_text(summary + ".");
        if (!command.more.empty()) out += roff_text(command.more);
        for (const Argument& argument : command.arguments)
            out += ".TP\n.B " + roff(term_of(argument)) + "\n" + roff_text(argument.text);
        if (command.examples.empty()) continue;
        for (const Example& example : command.examples) {
            out += ".PP\n.RS\n.EX\n" + roff(example.command) + "\n.EE\n.RE\n";
            if (!example.meaning.empty()) out += ".RS\n" + roff_text(example.meaning) + ".RE\n";
        }
    }
    out += ".SH OPTIONS\nThese stand before or behind the command.\n";
    for (const Argument& argument : common_arguments())
        out += ".TP\n.B " + roff(term_of(argument)) + "\n" + roff_text(argument.text);
    out += ".SH EXIT STATUS\n";
    for (const ExitMeaning& one : exit_meanings())
        out += ".TP\n.B " + std::to_string(code(one.exit)) + "\n" + roff_text(one.meaning);
    out += ".SH ENVIRONMENT\n.TP\n.B CAMPAIGND_SOCKET\nThe daemon's socket.\n";
    out += ".TP\n.B NO_COLOR\nWhen set and not empty, nothing is coloured unless \\-\\-color=always says so.\n";
    out += ".SH FILES\n.TP\n.I /run/campaignd/api.sock\nThe daemon's socket.\n";
    out += ".SH SEE ALSO\n.BR systemctl (1),\n.BR journalctl (1)\n";
    return out;
}

}   // namespace campaign::ctl
