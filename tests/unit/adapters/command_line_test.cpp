#include "adapters/systemd/command_line.hpp"

#include <gtest/gtest.h>

namespace campaign::systemd {
namespace {

using List = std::vector<std::string>;

TEST(LauncherWords, EndWhereTheNextProgramBegins) {
    EXPECT_EQ(launcher_words(List{"/opt/vllm", "serve"}), 0u);
    EXPECT_EQ(launcher_words(List{"/usr/bin/env", "-u", "B", "A=1", "x"}), 4u);
    EXPECT_EQ(launcher_words(List{"taskset", "-c", "0,1", "numactl", "--cpunodebind=0", "--membind", "0", "--", "x"}), 8u);
    EXPECT_EQ(launcher_words(List{"nice", "-n10", "x"}), 2u);
    EXPECT_EQ(launcher_words(List{"nice", "-n", "10", "x"}), 3u);
    EXPECT_EQ(launcher_words(List{"numactl", "--what", "x"}), std::nullopt);
    EXPECT_EQ(launcher_words(List{"env"}), std::nullopt);
}

TEST(SameCommand, SeesThroughInterpretersAndVariables) {
    EXPECT_TRUE(same_command(List{"/opt/bin/vllm", "serve", "m"}, List{"/opt/bin/python3", "/opt/bin/vllm", "serve", "m"}));
    EXPECT_TRUE(same_command(List{"vllm", "serve"}, List{"/opt/bin/vllm", "serve"}));
    EXPECT_TRUE(same_command(List{"x", "$ARGS", "--end"}, List{"x", "a", "b", "--end"}));
    EXPECT_TRUE(same_command(List{"x", "$ARGS"}, List{"x"}));
    EXPECT_FALSE(same_command(List{"x", "a"}, List{"x", "a", "b"}));
    EXPECT_FALSE(same_command(List{"x", "--port=1"}, List{"x", "--port=2"}));
    EXPECT_FALSE(same_command(List{}, List{"x"}));
}

TEST(PassedOn, WantsTheArgumentsTogetherAndInOrder) {
    const List running{"python3", "vllm", "serve", "m", "--port", "8000", "--fixed"};
    EXPECT_TRUE(passed_on(List{"m", "--port", "8000"}, running));
    EXPECT_FALSE(passed_on(List{"m", "8000", "--port"}, running));
    EXPECT_FALSE(passed_on(List{"m", "8000"}, running));
    EXPECT_FALSE(passed_on(List{}, running));
}

TEST(ShellStringIndex, FindsTheStringBehindC) {
    EXPECT_EQ(shell_string_index(List{"bash", "-c", "x"}), 2u);
    EXPECT_EQ(shell_string_index(List{"/bin/bash", "-lc", "x", "name"}), 2u);
    EXPECT_EQ(shell_string_index(List{"bash", "-o", "pipefail", "-c", "x"}), 4u);
    EXPECT_EQ(shell_string_index(List{"bash", "script.sh", "-c"}), std::nullopt);
    EXPECT_EQ(shell_string_index(List{"vllm", "-c", "x"}), std::nullopt);
}

struct ShellCase {
    const char* text;
    const char* before_server;
    List words;
};

TEST(ShellString, EndsWithTheServerWhereMoreMayBeAppended) {
    const std::vector<ShellCase> cases = {
        {"vllm serve m", "", {"vllm", "serve", "m"}},
        {"exec vllm serve m", "exec ", {"vllm", "serve", "m"}},
        {"source /a && exec vllm serve 'a b' --x $$(( 64 * 2 ))  ",
         "source /a && exec ",
         {"vllm", "serve", "a b", "--x", "$"}},
        {"cd /x; A=1 B='2 3' exec vllm serve m", "cd /x; A=1 B='2 3' exec ", {"vllm", "serve", "m"}},
        {"echo hi | cat && vllm serve \"$$M\"", "echo hi | cat && ", {"vllm", "serve", "$M"}},
        {"vllm serve $(cat \"/m\") --n $(nproc)", "", {"vllm", "serve", "$", "--n", "$"}},
    };
    for (const ShellCase& one : cases) {
        std::string obstacle;
        const auto read = read_shell_string(one.text, obstacle);
        ASSERT_TRUE(read) << one.text << ": " << obstacle;
        EXPECT_EQ(read->server_words, one.words) << one.text;
        EXPECT_EQ(std::string_view(one.text).substr(0, read->server_at), one.before_server);
        EXPECT_LE(read->end_at, std::string_view(one.text).size());
        EXPECT_NE(one.text[read->end_at - 1], ' ');
    }
}

TEST(ShellString, RefusesWhatGoesOnAfterTheServer) {
    for (const char* text : {"vllm serve m | tee /log", "vllm serve m > /log", "vllm serve m 2>&1", "vllm serve m & wait",
                             "vllm serve m &", "vllm serve m || true", "while true; do vllm serve m; done", "vllm serve m;",
                             "(vllm serve m)", "vllm serve m # note", "vllm serve 'm", "vllm serve \"m", "vllm serve m \\",
                             "{ vllm serve m; }", "", "   ", "if x; then vllm serve m; fi", "vllm serve $(cat /m"}) {
        std::string obstacle;
        EXPECT_FALSE(read_shell_string(text, obstacle)) << text;
        EXPECT_FALSE(obstacle.empty()) << text;
    }
}

TEST(ImageIndex, KnowsWhichOptionsTakeAValue) {
    std::string unknown;
    EXPECT_EQ(image_index(List{"docker", "run", "--rm", "--gpus", "all", "-p", "1:1", "image", "--rm"}, unknown), 7u);
    EXPECT_EQ(image_index(List{"docker", "run", "-it", "--ipc=host", "-p8000:8000", "image"}, unknown), 5u);
    EXPECT_EQ(image_index(List{"docker", "container", "run", "-d", "image"}, unknown), 4u);
    EXPECT_EQ(image_index(List{"podman", "run", "-dv", "/a:/b", "image"}, unknown), 4u);
    EXPECT_EQ(image_index(List{"docker", "run", "--new-thing", "x", "image"}, unknown), std::nullopt);
    EXPECT_EQ(unknown, "--new-thing");
    EXPECT_EQ(image_index(List{"docker", "start", "-a", "vllm"}, unknown), std::nullopt);
    EXPECT_EQ(image_index(List{"docker", "run", "--rm"}, unknown), std::nullopt);
}

}   // namespace
}   // namespace campaign::systemd
