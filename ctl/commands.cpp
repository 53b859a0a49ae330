#include "ctl/commands.hpp"

#include <algorithm>
#include <array>

namespace campaign::ctl {
namespace {

const Argument one_campaign{.name = "NAME",
                            .value = "",
                            .text = "the campaign's name, or the beginning of one",
                            .into = &Options::campaign,
                            .takes = Takes::campaign,
                            .required = true};
const Argument one_plan{
    .name = "FILE", .value = "", .text = "the plan", .into = &Options::file, .takes = Takes::file, .required = true};
const Argument confirms{.name = "--yes",
                        .value = "NAME",
                        .text = "confirms without a terminal: the campaign's whole name",
                        .into = &Options::yes,
                        .takes = Takes::campaign};
const Argument to_file{.name = "-o,--output",
                       .value = "FILE",
                       .text = "the file to write (- is stdout)",
                       .into = &Options::output,
                       .takes = Takes::file};

std::vector<Command> make_table() {
    std::vector<Command> table;
    table.push_back(
        {"status",
         Group::look,
         "what runs, what it waits for, what is needed from you",
         "Without NAME all campaigns, and first of all how production stands on each host. With NAME one campaign: "
         "its phases and steps, what it waits for and until when, what was decided, what you can do.",
         {{.name = "NAME", .value = "", .text = "one campaign", .into = &Options::campaign, .takes = Takes::campaign},
          {.name = "--decision",
           .value = "LABEL",
           .text = "one decision with its rejected alternatives",
           .into = &Options::decision,
           .takes = Takes::decision}},
         {{"campaignctl status", "everything on one screen"},
          {"campaignctl status k25", "one campaign"},
          {"campaignctl status k25 --decision D2", "why a method was chosen, and what it cannot show"},
          {"campaignctl status --json | jq .needs", "what is needed from a person, for a script"}}});
    table.push_back({"watch",
                     Group::look,
                     "follow a campaign; q leaves, the campaign goes on",
                     "Redraws only its own lines. On anything but a terminal it prints a line for each change.",
                     {one_campaign},
                     {{"campaignctl watch k25", ""}}});
    table.push_back(
        {"logs",
         Group::look,
         "every event, one a line",
         "",
         {one_campaign,
          {.name = "-f,--follow",
           .value = "",
           .text = "go on as events happen",
           .into = &Options::follow,
           .takes = Takes::nothing}},
         {{"campaignctl logs k25", "all so far"}, {"campaignctl logs -f k25 --json", "and what comes, as JSON"}}});
    table.push_back({"wait",
                     Group::look,
                     "return when the campaign ends, with its exit code",
                     "Any end of the campaign ends the wait, and so does a campaign that only a person can move on.",
                     {one_campaign,
                      {.name = "--for",
                       .value = "WHAT",
                       .text = "done, restored or decision",
                       .into = &Options::wait_for,
                       .takes = Takes::word,
                       .words = {"done", "restored", "decision"}},
                      {.name = "--timeout",
                       .value = "SPAN",
                       .text = "give up after this, as 90s, 30m, 2h (exit 7)",
                       .into = &Options::timeout,
                       .takes = Takes::duration}},
                     {{"campaignctl wait k25 && campaignctl report k25", "the report as soon as there is all of it"},
                      {"campaignctl wait k25 --for restored --timeout 2h", "until production is back and verified"}}});
    table.push_back({"submit",
                     Group::steer,
                     "give the daemon a plan",
                     "The campaign begins at once, or when its hosts are free. The whole plan is checked first.",
                     {one_plan},
                     {{"campaignctl submit k25.yaml", ""}}});
    table.push_back({"approve",
                     Group::steer,
                     "allow a candidate of a decision",
                     "The approval holds for this decision and for the downtime that was shown with it.",
                     {one_campaign,
                      {.name = "DECISION",
                       .value = "",
                       .text = "its label, as D2",
                       .into = &Options::decision,
                       .takes = Takes::decision,
                       .required = true},
                      {.name = "CANDIDATE",
                       .value = "",
                       .text = "the method",
                       .into = &Options::candidate,
                       .takes = Takes::candidate,
                       .required = true}},
                     {{"campaignctl approve k25 D2 torch-profile", ""}}});
    table.push_back(
        {"resume",
         Group::steer,
         "look again at what is in doubt, or say how it is",
         "Nothing is sent twice on a guess: without --as the host is only asked again. --as shows what it means "
         "and asks for the campaign's name.",
         {one_campaign,
          {.name = "--as",
           .value = "ANSWER",
           .text = "done: it was carried out; not-done: it was not, send it once more",
           .into = &Options::as,
           .takes = Takes::word,
           .words = {"done", "not-done"}},
          confirms},
         {{"campaignctl resume k25", "look again now"}, {"campaignctl resume k25 --as done", "you know that it happened"}}});
    table.push_back({"cancel",
                     Group::steer,
                     "end a campaign and restore production",
                     "Shows what that costs now, and asks for the name. What was gathered is kept.",
                     {one_campaign, confirms},
                     {{"campaignctl cancel k25", ""}, {"campaignctl cancel k25 --yes=k25", "from a script"}}});
    table.push_back({"restore",
                     Group::steer,
                     "bring production back as it was found",
                     "",
                     {one_campaign, confirms},
                     {{"campaignctl restore k25", ""}}});
    table.push_back({"report",
                     Group::results,
                     "the results document",
                     "Each number in it names the step, the command, the artifact and the SHA-256 that it came from.",
                     {one_campaign, to_file},
                     {{"campaignctl report k25", "Markdown to stdout, also while it runs"}}});
    table.push_back(
        {"artifacts",
         Group::results,
         "list what was gathered, or get one",
         "What is fetched is checked against its SHA-256 before it gets its name.",
         {one_campaign,
          {.name = "ACTION", .value = "", .text = "get", .into = &Options::action, .takes = Takes::word, .words = {"get"}},
          {.name = "WHAT",
           .value = "",
           .text = "its SHA-256, the beginning of it, or its name",
           .into = &Options::what,
           .takes = Takes::artifact},
          to_file},
         {{"campaignctl artifacts k25", ""}, {"campaignctl artifacts k25 get sweep.json -o -", "to stdout"}}});
    table.push_back({"plan check",
                     Group::plans,
                     "every error of a plan, with line and column",
                     "",
                     {one_plan},
                     {{"campaignctl plan check k25.yaml", ""}}});
    table.push_back({"plan explain",
                     Group::plans,
                     "what would run where, and what it costs; changes nothing",
                     "",
                     {one_plan,
                      {.name = "--offline",
                       .value = "",
                       .text = "do not touch the hosts",
                       .into = &Options::offline,
                       .takes = Takes::nothing},
                      {.name = "--commands",
                       .value = "",
                       .text = "every command and drop-in as it would be written",
                       .into = &Options::commands,
                       .takes = Takes::nothing}},
                     {{"campaignctl plan explain k25.yaml", "with facts read from the hosts"},
                      {"campaignctl plan explain --offline --commands k25.yaml", "without touching them"}}});
    table.push_back(
        {"plan schema",
         Group::plans,
         "the JSON Schema of plans",
         "An editor with yaml-language-server checks a plan that begins with the line "
         "# yaml-language-server: $schema=./plan.schema.json",
         {{.name = "FILE", .value = "", .text = "where to write it (stdout)", .into = &Options::file, .takes = Takes::file}},
         {{"campaignctl plan schema plan.schema.json", ""}}});
    table.push_back({"explain",
                     Group::plans,
                     "what an error code means",
                     "",
                     {{.name = "CODE", .value = "", .text = "as P012", .into = &Options::file, .required = true}},
                     {{"campaignctl explain P012", ""}}});
    table.push_back(
        {"adapt",
         Group::plans,
         "how a unit's server would be given its profiler",
         "Decides from files, without a host: DIR holds show.txt (systemctl show UNIT), bus.json (ExecStartEx by busctl "
         "--json=short), proc.json (pid, ppid, argv, env of the unit's processes) and ask.json (want: torch or nsys, "
         "server_version, plan).",
         {{.name = "--from",
           .value = "DIR",
           .text = "the folder with what was seen of the unit",
           .into = &Options::file,
           .takes = Takes::file,
           .required = true}},
         {{"campaignctl adapt --from seen/", "the drop-in, or why there can be none"}}});
    table.push_back({"load",
                     Group::instruments,
                     "generate load and measure, without the daemon",
                     "",
                     {},
                     {{"campaignctl load http://h:8000 --model m", "a table for people"},
                      {"campaignctl load --help", "its own options"}},
                     true});
    table.push_back({"analyze",
                     Group::instruments,
                     "where the time goes in trace files",
                     "",
                     {},
                     {{"campaignctl analyze trace.json.gz", ""}},
                     true});
    table.push_back(
        {"startup", Group::instruments, "read a server's log", "", {}, {{"campaignctl startup server.log", ""}}, true});
    table.push_back({"check",
                     Group::instruments,
                     "whether trace files are whole",
                     "",
                     {},
                     {{"campaignctl check trace.json.gz", ""}},
                     true});
    table.push_back(
        {"micro",
         Group::instruments,
         "a step's operations from config.json, and its latency budget",
         "",
         {},
         {{"campaignctl micro shapes --tp 8 --gpu H200 CONFIG_DIR", ""}, {"campaignctl micro reconcile budget.json", ""}},
         true});
    table.push_back({"completion",
                     Group::other,
                     "the completion script of a shell",
                     "The package installs it. Campaigns, decisions and artifacts are asked of the daemon as you type.",
                     {{.name = "SHELL",
                       .value = "",
                       .text = "bash, zsh or fish",
                       .into = &Options::what,
                       .takes = Takes::word,
                       .required = true,
                       .words = {"bash", "zsh", "fish"}}},
                     {{"source <(campaignctl completion bash)", "for this shell"}}});
    table.push_back({"version",
                     Group::other,
                     "of campaignctl, and of the daemon if there is one",
                     "",
                     {},
                     {{"campaignctl version", ""}}});
    table.push_back({"help",
                     Group::other,
                     "this text, or a command's own",
                     "",
                     {{.name = "VERB", .value = "", .text = "a command", .into = &Options::what, .takes = Takes::verb},
                      {.name = "PART",
                       .value = "",
                       .text = "the second word of one, as check of plan",
                       .into = &Options::action,
                       .takes = Takes::verb},
                      {.name = "--man",
                       .value = "",
                       .text = "the whole manual as a man page (roff)",
                       .into = &Options::man,
                       .takes = Takes::nothing}},
                     {{"campaignctl help wait", ""}, {"campaignctl help --man > campaignctl.1", ""}}});
    return table;
}

}   // namespace

std::span<const Command> commands() {
    static const std::vector<Command> table = make_table();
    return table;
}

std::span<const Argument> common_arguments() {
    static const std::array<Argument, 3> table{
        Argument{.name = "--socket",
                 .value = "PATH",
                 .text = "the daemon's socket (else CAMPAIGND_SOCKET, else /run/campaignd/api.sock)",
                 .into = &Options::socket,
                 .takes = Takes::file},
        Argument{.name = "--json",
                 .value = "",
                 .text = "one JSON object with its schema; watch and logs: one a line",
                 .into = &Options::json,
                 .takes = Takes::nothing},
        Argument{.name = "--color,--colour",
                 .value = "WHEN",
                 .text = "auto, always or never; auto is off with NO_COLOR and where the output is no terminal",
                 .into = &Options::colour,
                 .takes = Takes::word,
                 .words = {"auto", "always", "never"}}};
    return table;
}

const Command* find_command(std::string_view path) {
    const auto table = commands();
    const auto found = std::find_if(table.begin(), table.end(), [path](const Command& one) { return one.path == path; });
    return found == table.end() ? nullptr : &*found;
}

std::string_view group_title(Group group) {
    switch (group) {
        case Group::look: return "Look";
        case Group::steer: return "Steer";
        case Group::results: return "Results";
        case Group::plans: return "Plans";
        case Group::instruments: return "Instruments, without the daemon";
        case Group::other: return "Other";
    }
    return "";
}

std::span<const ExitMeaning> exit_meanings() {
    static constexpr std::array<ExitMeaning, 13> table{{
        {Exit::as_asked, "as asked; never covers a failure"},
        {Exit::bug, "campaignctl or campaignd went wrong"},
        {Exit::usage, "wrong use, or a confirmation that was not given"},
        {Exit::failed, "the campaign failed; production is verified as found"},
        {Exit::person_needed, "a person is needed"},
        {Exit::cancelled, "cancelled; production is verified as found"},
        {Exit::not_as_found, "production is NOT as it was found (goes before 3 to 5)"},
        {Exit::timed_out, "time-out"},
        {Exit::not_found, "no such campaign, artifact or file"},
        {Exit::refused, "a role or a policy does not allow it"},
        {Exit::no_daemon, "no daemon answers"},
        {Exit::plan_refused, "the plan is refused"},
        {Exit::detached, "left; the campaign goes on"},
    }};
    return table;
}

}   // namespace campaign::ctl
