#include "base/quote.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <memory>
#include <random>

using namespace campaign;

namespace {

/// What a real sh makes of the quoted words: each printed with a NUL behind it.
std::string through_sh(const std::vector<std::string>& words) {
    const std::vector<std::string> printf_words{"printf", "%s\\0"};
    std::string line = shell_command(printf_words);
    for (const std::string& word : words) line += " " + shell_quote(word);
    std::string out;
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe{::popen(line.c_str(), "r"), ::pclose};
    std::array<char, 4096> buffer{};
    for (std::size_t got = 0; (got = std::fread(buffer.data(), 1, buffer.size(), pipe.get())) != 0;)
        out.append(buffer.data(), got);
    return out;
}

}   // namespace

TEST(ShellQuote, LeavesPlainWordsReadable) {
    EXPECT_EQ(shell_quote("--profiler-config.profiler=torch"), "--profiler-config.profiler=torch");
    EXPECT_EQ(shell_quote("/usr/bin/vllm"), "/usr/bin/vllm");
}

TEST(ShellQuote, KeepsAnEmptyWordAsAWord) {
    EXPECT_EQ(shell_quote(""), "''");
}

TEST(ShellQuote, HostileWordsComeBackFromARealShellUnchanged) {
    const std::vector<std::string> hostile{"a b",   "'",   "''",    "\"",       "$(id)", "`id`", "$HOME", "\\", "\n",
                                           "a\nb",  ";id", "&",     "|",        "*",     "~",    "-n",    "!",  "#",
                                           "{a,b}", "\t",  "a'b'c", "\x80\xff", "=x",    "%s",   "\\n"};
    std::string expected;
    for (const std::string& word : hostile) expected += word + '\0';
    EXPECT_EQ(through_sh(hostile), expected);
}

TEST(ShellQuote, RandomBytesComeBackFromARealShellUnchanged) {
    std::mt19937 random{7};
    for (int round = 0; round < 40; ++round) {
        std::vector<std::string> words;
        std::string expected;
        for (int n = 0; n < 30; ++n) {
            std::string word;
            const auto length = random() % 20;
            for (std::uint_fast32_t i = 0; i < length; ++i) word += static_cast<char>(1 + static_cast<int>(random() % 255));
            expected += word + '\0';
            words.push_back(word);
        }
        ASSERT_EQ(through_sh(words), expected) << "round " << round;
    }
}

TEST(ShellQuote, AWordWithNulCannotBeAnArgument) {
    EXPECT_EQ(shell_quote(std::string_view{"a\0b", 3}), "''");
}
