// One table of commands: help, man page and completion must all hold all of it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "ctl/complete.hpp"
#include "ctl/manual.hpp"

namespace campaign::ctl {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::size_t widest(const std::string& text) {
    std::size_t most = 0;
    for (const std::string& line : split(text, '\n')) most = std::max(most, line.size());
    return most;
}

/// What the daemon would say: one campaign with one decision.
std::vector<std::string> some_names(Takes takes, const std::string& campaign, const std::string& decision) {
    if (takes == Takes::campaign) return {"k25", "k24", "glm5"};
    if (campaign != "k25") return {};
    if (takes == Takes::decision) return {"D1", "D2"};
    if (takes == Takes::candidate && decision == "D2") return {"torch-profile", "nsys"};
    if (takes == Takes::artifact) return {"sweep.json"};
    return {};
}

std::vector<std::string> completed(const std::vector<std::string>& typed) {
    return complete(typed, some_names).words;
}

TEST(Commands, EachIsParsedAsTheTableSaysAndHasAnExample) {
    std::set<std::string_view> paths;
    for (const Command& command : commands()) {
        EXPECT_TRUE(paths.insert(command.path).second) << command.path << " stands twice";
        EXPECT_FALSE(command.summary.empty()) << command.path;
        EXPECT_FALSE(command.summary.ends_with('.')) << command.path;
        ASSERT_FALSE(command.examples.empty()) << command.path;
        if (command.instrument) continue;
        for (const Example& example : command.examples) {
            std::vector<std::string> words;
            for (std::string& word : split(example.command, ' ')) {
                if (word == "|" || word == "&&" || word == ">") break;
                words.push_back(std::move(word));
            }
            if (words.front() != "campaignctl") continue;   // source <(campaignctl ...)
            words.erase(words.begin());
            const auto parsed = parse_options(words);
            const Leave* leave = std::get_if<Leave>(&parsed);
            EXPECT_TRUE(leave == nullptr || leave->exit == Exit::as_asked) << example.command << ": " << leave->err;
        }
    }
}

TEST(Commands, HelpOfOneShowsUseAndExamples) {
    EXPECT_EQ(help_text(*find_command("resume"), 80),
              "resume: look again at what is in doubt, or say how it is\n"
              "\n"
              "  campaignctl resume [--as ANSWER] [--yes NAME] NAME\n"
              "\n"
              "Nothing is sent twice on a guess: without --as the host is only asked again.\n"
              "--as shows what it means and asks for the campaign's name.\n"
              "\n"
              "  NAME                the campaign's name, or the beginning of one\n"
              "  --as ANSWER         done: it was carried out; not-done: it was not, send it\n"
              "                      once more\n"
              "  --yes NAME          confirms without a terminal: the campaign's whole name\n"
              "\n"
              "Examples\n"
              "  campaignctl resume k25\n"
              "      look again now\n"
              "  campaignctl resume k25 --as done\n"
              "      you know that it happened\n"
              "\n"
              "Everywhere\n"
              "  --socket PATH       the daemon's socket (else CAMPAIGND_SOCKET, else\n"
              "                      /run/campaignd/api.sock)\n"
              "  --json              one JSON object with its schema; watch and logs: one a\n"
              "                      line\n"
              "  --color, --colour WHEN\n"
              "                      auto, always or never; auto is off with NO_COLOR and where\n"
              "                      the output is no terminal\n"
              "  -h, --help          help of the command\n");
}

TEST(Commands, HelpFitsNarrowAndWideTerminals) {
    for (const std::size_t width : {60UL, 80UL, 120UL}) {
        EXPECT_LE(widest(help_text(width)), width);
        for (const Command& command : commands()) EXPECT_LE(widest(help_text(command, width)), width) << command.path;
    }
}

TEST(Commands, EveryExitCodeHasAMeaning) {
    const std::string help = help_text(80);
    for (const int one : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 130})
        EXPECT_THAT(help, HasSubstr("\n  " + std::to_string(one) + " ")) << one;
}

TEST(Commands, TheManPageHoldsAllOfThem) {
    const std::string page = man_page("0.3.0", "2026-12-01");
    EXPECT_THAT(page, testing::StartsWith(".TH CAMPAIGNCTL 1 2026-12-01 \"campaignd 0.3.0\" \"User Commands\"\n.SH NAME\n"));
    for (const Command& command : commands()) EXPECT_THAT(page, HasSubstr(".SS \"" + std::string{command.path} + "\"\n"));
    EXPECT_THAT(page, HasSubstr(".B \\-\\-yes NAME\n"));
    for (const std::string& line : split(page, '\n')) {   // no text of ours becomes a macro
        if (line.starts_with('.')) {
            EXPECT_THAT((std::vector<std::string>{".TH", ".SH", ".SS", ".B", ".BR", ".I", ".RI", ".TP", ".PP", ".RS", ".RE",
                                                  ".EX", ".EE"}),
                        Contains(split(line, ' ').front()))
                << line;
        }
        EXPECT_FALSE(line.starts_with('\'')) << line;
    }
}

TEST(Completion, KnowsVerbsOptionsAndTheirWords) {
    EXPECT_THAT(completed({"st"}), ElementsAre("status", "startup"));
    EXPECT_THAT(completed({"plan", ""}), ElementsAre("check", "explain", "schema"));
    EXPECT_THAT(completed({"wait", "k25", "--f"}), ElementsAre("--for"));
    EXPECT_THAT(completed({"wait", "--for", ""}), ElementsAre("done", "restored", "decision"));
    EXPECT_THAT(completed({"wait", "--for=d"}), ElementsAre("--for=done", "--for=decision"));
    EXPECT_THAT(completed({"completion", ""}), ElementsAre("bash", "zsh", "fish"));
    EXPECT_THAT(completed({"status", "--c"}), ElementsAre("--color", "--colour"));
    EXPECT_THAT(completed({"help", "plan", "e"}), ElementsAre("explain"));
    EXPECT_THAT(completed({"nonsense", ""}), IsEmpty());
}

TEST(Completion, AsksTheDaemonForNames) {
    EXPECT_THAT(completed({"watch", "k"}), ElementsAre("k25", "k24"));
    EXPECT_THAT(completed({"--json", "status", "g"}), ElementsAre("glm5"));
    EXPECT_THAT(completed({"status", "k25", "--decision", ""}), ElementsAre("D1", "D2"));
    EXPECT_THAT(completed({"approve", "k25", "D2", ""}), ElementsAre("torch-profile", "nsys"));
    EXPECT_THAT(completed({"artifacts", "k25", "get", "s"}), ElementsAre("sweep.json"));
    EXPECT_THAT(completed({"cancel", "k25", "--yes="}), ElementsAre("--yes=k25", "--yes=k24", "--yes=glm5"));
}

TEST(Completion, LeavesFilesToTheShell) {
    EXPECT_TRUE(complete({"submit", ""}, some_names).files);
    EXPECT_TRUE(complete({"report", "k25", "-o", ""}, some_names).files);
    EXPECT_TRUE(complete({"analyze", ""}, some_names).files);
    EXPECT_FALSE(complete({"watch", ""}, some_names).files);
}

TEST(Completion, EachShellsScriptHoldsEveryVerb) {
    for (const char* shell : {"bash", "zsh", "fish"}) {
        const std::string script = completion_script(shell);
        for (const std::string& verb : verbs()) EXPECT_THAT(script, HasSubstr(verb)) << shell;
        EXPECT_THAT(script, HasSubstr(std::string{complete_verb}));
    }
    EXPECT_EQ(completion_script("tcsh"), "");
    EXPECT_THAT(verbs(), Not(Contains(std::string{complete_verb})));
}

}   // namespace
}   // namespace campaign::ctl
