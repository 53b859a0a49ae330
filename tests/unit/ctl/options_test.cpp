#include "ctl/options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace campaign::ctl {
namespace {

using testing::HasSubstr;

Options parsed(const std::vector<std::string>& words) {
    auto result = parse_options(words);
    if (const Leave* leave = std::get_if<Leave>(&result)) {
        ADD_FAILURE() << leave->err;
        return {};
    }
    return std::get<Options>(result);
}

Leave refused(const std::vector<std::string>& words) {
    auto result = parse_options(words);
    if (const Leave* leave = std::get_if<Leave>(&result)) return *leave;
    ADD_FAILURE() << "it was taken as " << std::get<Options>(result).verb;
    return {};
}

TEST(Options, EachVerbKeepsItsWords) {
    EXPECT_EQ(parsed({"status"}).verb, "status");
    EXPECT_EQ(parsed({"status", "k25", "--decision", "D2"}).decision, "D2");
    EXPECT_EQ(parsed({"plan", "check", "k25.yaml"}).verb, "plan check");
    EXPECT_EQ(parsed({"plan", "explain", "--offline", "k25.yaml"}).file, "k25.yaml");
    const Options approve = parsed({"approve", "k25", "D2", "torch-profile"});
    EXPECT_EQ(approve.campaign + approve.decision + approve.candidate, "k25D2torch-profile");
    const Options wait = parsed({"wait", "k25", "--for", "restored", "--timeout", "90s"});
    EXPECT_EQ(wait.wait_for, "restored");
    EXPECT_EQ(wait.timeout, "90s");
    EXPECT_EQ(parsed({"resume", "k25", "--as", "not-done"}).as, "not-done");
    const Options get = parsed({"artifacts", "k25", "get", "trace.json", "-o", "here"});
    EXPECT_EQ(get.action + get.what + get.output, "gettrace.jsonhere");
    EXPECT_TRUE(parsed({"logs", "k25", "-f"}).follow);
}

TEST(Options, CommonOnesStandBeforeOrBehindTheVerb) {
    EXPECT_TRUE(parsed({"--json", "status"}).json);
    EXPECT_TRUE(parsed({"status", "--json"}).json);
    EXPECT_EQ(parsed({"status", "--socket=/tmp/s"}).socket, "/tmp/s");
    EXPECT_EQ(parsed({"plan", "check", "f", "--color", "never"}).colour, "never");
}

TEST(Options, AnInstrumentGetsItsWordsUntouched) {
    const Options load = parsed({"load", "http://127.0.0.1:8000", "--concurrency", "4", "--json"});
    EXPECT_EQ(load.verb, "load");
    EXPECT_EQ(load.rest, (std::vector<std::string>{"http://127.0.0.1:8000", "--concurrency", "4", "--json"}));
}

TEST(Options, ASlipIsAnsweredWithWhatWasMeantAndNeverRun) {
    const Leave leave = refused({"statsu"});
    EXPECT_EQ(leave.exit, Exit::usage);
    EXPECT_EQ(leave.err, "error: unknown verb statsu; did you mean status?\n  next    campaignctl help\n");
    EXPECT_THAT(refused({"plan", "chek", "f"}).err, HasSubstr("unknown verb plan chek; did you mean plan check?"));
    EXPECT_THAT(refused({"status", "--jsno"}).err, HasSubstr("unknown option --jsno; did you mean --json?"));
    EXPECT_THAT(refused({"wait", "k25", "--timeuot", "3s"}).err, HasSubstr("did you mean --timeout?"));
    EXPECT_THAT(refused({"help", "watsh"}).err, HasSubstr("did you mean watch?"));
    EXPECT_THAT(refused({"zzzzzzzz"}).err, HasSubstr("unknown verb zzzzzzzz\n"));
}

TEST(Options, WrongUseIsExitTwo) {
    const std::vector<std::vector<std::string>> wrong = {{},
                                                         {"watch"},
                                                         {"approve", "k25", "D2"},
                                                         {"resume", "k25", "--as", "perhaps"},
                                                         {"wait", "k25", "--for", "ever"},
                                                         {"wait", "k25", "--timeout", "90"},
                                                         {"status", "--json=3"},
                                                         {"status", "a", "b"},
                                                         {"status", "--decision", "D2"},
                                                         {"artifacts", "k25", "get"},
                                                         {"artifacts", "k25", "take"},
                                                         {"plan"},
                                                         {"--color", "pink", "status"}};
    for (const auto& words : wrong) EXPECT_EQ(refused(words).exit, Exit::usage) << testing::PrintToString(words);
}

TEST(Options, HelpIsAnAnswer) {
    const Leave help = refused({"--help"});
    EXPECT_EQ(help.exit, Exit::as_asked);
    EXPECT_THAT(help.out, HasSubstr("cancel"));
    EXPECT_THAT(refused({"wait", "--help"}).out, HasSubstr("--timeout"));
    EXPECT_THAT(refused({"help", "cancel"}).out, HasSubstr("--yes"));
    for (const std::string& verb : verbs()) EXPECT_THAT(help.out, HasSubstr(verb));
    EXPECT_THAT(refused({"help", "plan", "explain"}).out, HasSubstr("--commands"));
    EXPECT_THAT(refused({"help", "plan", "explian"}).err, HasSubstr("did you mean plan explain?"));
    EXPECT_THAT(refused({"help", "plan"}).out, HasSubstr("plan check"));
    EXPECT_THAT(refused({"plan", "explain"}).err, HasSubstr("campaignctl help plan explain"));
}

}   // namespace
}   // namespace campaign::ctl
