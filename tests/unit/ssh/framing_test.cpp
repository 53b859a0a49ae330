#include "adapters/host/framing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace campaign::host {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string nonce = "0123456789abcdef0123456789abcdef";
const std::string begin = nonce + " begin\n";

std::string end(int status) {
    return nonce + " end " + std::to_string(status) + "\n";
}

Ending ended(int status) {
    Ending ending;
    ending.host = "gpu1";
    ending.shown = "systemctl restart x";
    ending.exit_status = status;
    return ending;
}

Ending lost() {
    Ending ending;
    ending.host = "gpu1";
    ending.shown = "systemctl restart x";
    ending.after = std::chrono::seconds{12};
    ending.lost = "closed by peer";
    return ending;
}

Framed fresh(bool sudo = false, std::size_t keep = 1u << 20) {
    return Framed{nonce, sudo, keep, 1u << 16};
}

TEST(Framing, TheOutputIsWhatLiesInTheFrame) {
    Framed framed = fresh();
    framed.errors(begin + "warning\n" + nonce + " end \n");
    framed.output("motd\n" + begin + "answer\n" + end(0));
    EXPECT_TRUE(framed.complete());
    const auto done = framed.verdict(ended(0));
    ASSERT_TRUE(done);
    EXPECT_EQ(done->output, "answer\n");
    EXPECT_EQ(done->errors, "warning\n");
    EXPECT_EQ(done->exit_code, 0);
}

TEST(Framing, HoldsForEverySplitOfTheBytes) {
    std::mt19937 random{7};
    const std::string body = std::string{"a\0b\n", 4} + "\n" + nonce + " begi\n\n" + nonce.substr(0, 20) + "\n\n\n";
    const std::string stream = "noise without an end" + begin + body + end(42) + "late noise";
    for (int round = 0; round < 2000; ++round) {
        Framed framed = fresh();
        std::string_view rest = stream;
        while (!rest.empty()) {
            const std::size_t size = std::min<std::size_t>(rest.size(), 1 + random() % (round % 2 == 0 ? 3 : 60));
            framed.output(rest.substr(0, size));
            rest.remove_prefix(size);
        }
        const auto done = framed.verdict(ended(42));
        ASSERT_TRUE(done);
        ASSERT_EQ(done->output, body);
        ASSERT_EQ(done->exit_code, 42);
        ASSERT_EQ(done->output_bytes, body.size());
    }
}

TEST(Framing, ATrailerCountsEvenWhenTheLinkIsLostAfterIt) {
    Framed framed = fresh();
    framed.output(begin + "x" + end(3));
    const auto done = framed.verdict(lost());
    ASSERT_TRUE(done);
    EXPECT_EQ(done->exit_code, 3);
}

TEST(Framing, ALostLinkWithoutATrailerIsInDoubtAndSaysWhat) {
    Framed framed = fresh();
    framed.output(begin + "half an ans");
    const auto done = framed.verdict(lost());
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, ErrorKind::in_doubt);
    EXPECT_EQ(done.error().what, "link to gpu1 closed by peer during systemctl restart x after 12 s; outcome in doubt");
}

TEST(Framing, AStatusOfTheShellIsNoTrailer) {
    Framed framed = fresh();
    framed.output(begin + "half");
    const auto done = framed.verdict(ended(0));
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, ErrorKind::in_doubt);
    EXPECT_THAT(done.error().evidence, HasSubstr("ended with 0"));
}

TEST(Framing, ASignalledShellIsInDoubt) {
    Framed framed = fresh();
    framed.output(begin);
    Ending ending = ended(0);
    ending.exit_status.reset();
    ending.signal = "KILL";
    const auto done = framed.verdict(ending);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, ErrorKind::in_doubt);
    EXPECT_THAT(done.error().evidence, HasSubstr("SIGKILL"));
}

TEST(Framing, AClosedChannelWithNothingIsInDoubt) {
    Framed framed = fresh();
    Ending ending = ended(0);
    ending.exit_status.reset();
    const auto done = framed.verdict(ending);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, ErrorKind::in_doubt);
}

TEST(Framing, AnAccountWithoutAShellNeverStartedTheCommand) {
    Framed framed = fresh();
    framed.output("This account is currently not available.\n");
    const auto done = framed.verdict(ended(1));
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, ErrorKind::refused);
    EXPECT_THAT(done.error().evidence, HasSubstr("not available"));
}

TEST(Framing, AnExpiredDeadlineIsInDoubt) {
    Framed framed = fresh();
    framed.output(begin);
    Ending ending = lost();
    ending.lost.clear();
    ending.deadline = true;
    const auto done = framed.verdict(ending);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, ErrorKind::in_doubt);
    EXPECT_THAT(done.error().what, HasSubstr("did not finish in time"));
}

TEST(Framing, AMissingSudoRightIsRefusedWithSudosWords) {
    Framed framed = fresh(true);
    framed.output(begin + end(1));
    framed.errors("sudo: a password is required\n" + nonce + " end \n");
    const auto done = framed.verdict(ended(1));
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, ErrorKind::refused);
    EXPECT_THAT(done.error().evidence, HasSubstr("a password is required"));
}

TEST(Framing, ACommandThatFailsAsRootIsNoMissingRight) {
    Framed framed = fresh(true);
    framed.output(begin + end(1));
    framed.errors("sudo: unable to resolve host gpu1\n" + begin + "no such unit\n" + nonce + " end \n");
    const auto done = framed.verdict(ended(1));
    ASSERT_TRUE(done);
    EXPECT_EQ(done->exit_code, 1);
    EXPECT_EQ(done->errors, "no such unit\n");
}

TEST(Framing, AnotherCommandsTrailerIsOutput) {
    Framed framed = fresh();
    const std::string other = "\nfedcba9876543210fedcba9876543210 end 0\n";
    framed.output(begin + other + end(5));
    const auto done = framed.verdict(ended(5));
    ASSERT_TRUE(done);
    EXPECT_EQ(done->output, other);
    EXPECT_EQ(done->exit_code, 5);
}

TEST(Framing, KeepsHeadAndTailWithinItsBounds) {
    for (const std::size_t limit : {0u, 1u, 7u, 100u}) {
        for (const std::size_t size : {1u, 3u, 64u, 1000u}) {
            Kept kept{limit};
            std::string all;
            for (std::size_t at = 0; at < 3000; at += size) {
                const std::string piece(size, static_cast<char>('a' + at % 26));
                all += piece;
                kept.add(piece);
            }
            const std::size_t half = limit / 2;
            EXPECT_EQ(kept.text(), all.substr(0, limit - half) + all.substr(all.size() - half));
            EXPECT_EQ(kept.bytes(), all.size());
        }
    }
}

TEST(Framing, AFollowersLineIsHandedOnAtOnce) {
    std::string got;
    Framed framed{nonce, false, 0, 0, [&](std::string_view bytes) {
                      got += bytes;
                      return true;
                  }};
    framed.output(begin + "line one\n");
    EXPECT_EQ(got, "line one\n");
}

TEST(Framing, ASinkThatHasEnoughIsNotToldMore) {
    int told = 0;
    Framed framed{nonce, false, 0, 0, [&](std::string_view) {
                      ++told;
                      return false;
                  }};
    framed.output(begin + "one");
    framed.output("two");
    EXPECT_TRUE(framed.stopped());
    EXPECT_EQ(told, 1);
}

TEST(Framing, RefusesWordsThatCannotBeWords) {
    const std::vector<std::vector<std::string>> wrong = {{}, {""}, {"-c"}, {"echo", std::string{"a\0b", 3}}};
    for (const auto& argv : wrong) {
        const auto framed = framed_argv(argv, nonce, false, false);
        ASSERT_FALSE(framed);
        EXPECT_EQ(framed.error().kind, ErrorKind::usage);
    }
}

TEST(Framing, LinesComeWholeAndLongOnesAreCut) {
    Lines lines{4};
    std::vector<std::string> got;
    const OnLine keep = [&](std::string_view line) {
        got.emplace_back(line);
        return true;
    };
    EXPECT_TRUE(lines.feed("ab", keep));
    EXPECT_TRUE(lines.feed("c\nlonger than that", keep));
    EXPECT_TRUE(lines.feed(" still\n\nend", keep));
    EXPECT_THAT(got, ElementsAre("abc", "long", ""));
}

}   // namespace
}   // namespace campaign::host
