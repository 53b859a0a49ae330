#include "adapters/local/local.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdlib>
#include <fstream>

#include "adapters/host/files.hpp"
#include "base/files.hpp"
#include "base/sha256.hpp"
#include "run_on_loop.hpp"

namespace campaign::host {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

class LocalHostTest : public testing::Test {
protected:
    LocalHostTest() {
        char pattern[] = "/tmp/campaign-local-XXXXXX";
        folder_ = ::mkdtemp(pattern);
    }
    ~LocalHostTest() override { std::filesystem::remove_all(folder_); }

    Result<Finished> run(Command command) { return run_on_loop(loop_, host_->run(std::move(command))); }
    Result<Finished> sh(const std::string& script) {
        Command command;
        command.argv = {"sh", "-c", script};
        return run(std::move(command));
    }
    std::string path(const std::string& name) const { return folder_ / name; }
    void put(const std::string& name, const std::string& content) const {
        std::ofstream{path(name), std::ios::binary} << content;
    }

    boost::asio::io_context loop_;
    SystemClock clock_;
    SystemRandom random_;
    std::filesystem::path folder_;
    std::shared_ptr<Host> host_ = local::make_local_host(loop_.get_executor(), clock_, random_, "here", true);
};

TEST_F(LocalHostTest, GivesOutputErrorsAndStatusOfACommand) {
    const auto done = sh("echo out; echo err >&2; exit 3");
    ASSERT_TRUE(done) << describe(done.error());
    EXPECT_EQ(done->exit_code, 3);
    EXPECT_EQ(done->output, "out\n");
    EXPECT_EQ(done->errors, "err\n");
}

TEST_F(LocalHostTest, PassesWordsAsTheyAre) {
    Command command;
    command.argv = {"printf", "%s|", "", "a b", "$HOME", "'\"\\", "*", "line\nfeed"};
    const auto done = run(command);
    ASSERT_TRUE(done);
    EXPECT_EQ(done->output, "|a b|$HOME|'\"\\|*|line\nfeed|");
}

TEST_F(LocalHostTest, AStatusOf255IsAResultAndNoDoubt) {
    const auto done = sh("exit 255");
    ASSERT_TRUE(done);
    EXPECT_EQ(done->exit_code, 255);
}

TEST_F(LocalHostTest, ACommandKilledBySignalHasTheShellsStatusForIt) {
    const auto done = sh("kill -9 $$");
    ASSERT_TRUE(done);
    EXPECT_EQ(done->exit_code, 137);
}

TEST_F(LocalHostTest, AnAbsentProgramIs127) {
    Command command;
    command.argv = {"no-such-program-here"};
    const auto done = run(command);
    ASSERT_TRUE(done);
    EXPECT_EQ(done->exit_code, 127);
    EXPECT_THAT(done->errors, HasSubstr("no-such-program-here"));
}

TEST_F(LocalHostTest, AWrapperThatIsKilledLeavesTheOutcomeInDoubt) {
    const auto done = sh("kill -9 $PPID; sleep 0.1");
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, ErrorKind::in_doubt);
    EXPECT_THAT(done.error().evidence, HasSubstr("SIGKILL"));
}

TEST_F(LocalHostTest, WithoutInputACommandReadsNothing) {
    const auto done = sh("wc -c");
    ASSERT_TRUE(done);
    EXPECT_THAT(done->output, HasSubstr("0"));
}

TEST_F(LocalHostTest, GivesAllOfALargeInputAndTakesItBack) {
    Command command;
    command.argv = {"cat"};
    command.input = std::string(3u << 20, 'x') + "end";
    const auto done = run(command);
    ASSERT_TRUE(done) << describe(done.error());
    EXPECT_EQ(sha256(done->output), sha256(command.input));
}

TEST_F(LocalHostTest, InputThatNobodyReadsIsNoError) {
    Command command;
    command.argv = {"true"};
    command.input = std::string(8u << 20, 'x');
    const auto done = run(command);
    ASSERT_TRUE(done) << describe(done.error());
    EXPECT_EQ(done->exit_code, 0);
}

TEST_F(LocalHostTest, KeepsHeadAndTailOfHugeOutputAndCountsTheRest) {
    Command command;
    command.argv = {"sh", "-c", "echo first; head -c 50000000 /dev/zero; echo last"};
    command.keep_output = 1000;
    const auto done = run(command);
    ASSERT_TRUE(done);
    EXPECT_EQ(done->output_bytes, 50'000'011u);
    EXPECT_EQ(done->output.size(), 1000u);
    EXPECT_TRUE(done->output.starts_with("first\n"));
    EXPECT_TRUE(done->output.ends_with("last\n"));
}

TEST_F(LocalHostTest, DoesNotWaitForABackgroundChildThatKeepsTheOutputOpen) {
    Command command;
    command.argv = {"sh", "-c", "sleep 60 & echo started $!"};
    const auto done = run(command);
    ASSERT_TRUE(done);
    EXPECT_TRUE(done->output.starts_with("started "));
    ::kill(std::stoi(done->output.substr(8)), SIGTERM);
}

TEST_F(LocalHostTest, AnExpiredDeadlineIsInDoubtAndTheCommandGoesOn) {
    Command command;
    command.argv = {"sh", "-c", "sleep 0.4; : >\"$1\"", "sh", path("marker")};
    command.deadline = 50ms;
    const auto done = run(command);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, ErrorKind::in_doubt);
    EXPECT_THAT(done.error().what, HasSubstr("outcome in doubt"));
    const auto seen = sh("until [ -e '" + path("marker") + "' ]; do sleep 0.05; done; echo there");
    ASSERT_TRUE(seen);
    EXPECT_EQ(seen->output, "there\n");
}

TEST_F(LocalHostTest, ACancelledWaitThrowsAndLeavesTheCommandRunning) {
    boost::asio::cancellation_signal stop;
    bool aborted = false;
    Command command;
    command.argv = {"sh", "-c", "sleep 0.4; : >\"$1\"", "sh", path("marker")};
    boost::asio::co_spawn(
        loop_, host_->run(command),
        boost::asio::bind_cancellation_slot(stop.slot(), [&](std::exception_ptr thrown, const Result<Finished>&) {
            try {
                if (thrown) std::rethrow_exception(thrown);
            } catch (const boost::system::system_error& error) {
                aborted = error.code() == boost::asio::error::operation_aborted;
            }
        }));
    boost::asio::steady_timer timer{loop_, 100ms};
    timer.async_wait([&](auto) { stop.emit(boost::asio::cancellation_type::terminal); });
    loop_.run();
    EXPECT_TRUE(aborted);
    const auto seen = sh("until [ -e '" + path("marker") + "' ]; do sleep 0.05; done; echo there");
    ASSERT_TRUE(seen);
}

TEST_F(LocalHostTest, NoDescriptorOfOursReachesACommand) {
    const auto done = sh("ls /proc/self/fd");
    ASSERT_TRUE(done);
    EXPECT_EQ(done->output, "0\n1\n2\n3\n");   // 3 is ls reading the folder
}

TEST_F(LocalHostTest, ACommandHasAProcessGroupOfItsOwn) {
    const auto done = sh("ps -o pgid= -p $$");
    ASSERT_TRUE(done);
    EXPECT_NE(std::stoi(done->output), ::getpgrp());
}

TEST_F(LocalHostTest, FollowsLinesUntilToldToStopAndEndsTheFollower) {
    Command command;
    command.argv = {"sh", "-c", "echo $$; i=0; while :; do i=$((i+1)); echo line $i; sleep 0.02; done"};
    std::vector<std::string> lines;
    const OnLine on_line = [&](std::string_view line) {
        lines.emplace_back(line);
        return lines.size() < 4;
    };
    const auto enough = run_on_loop(loop_, host_->follow(command, on_line));
    ASSERT_TRUE(enough) << describe(enough.error());
    EXPECT_TRUE(*enough);
    const std::string pid = lines.front();
    lines.erase(lines.begin());
    EXPECT_THAT(lines, ElementsAre("line 1", "line 2", "line 3"));
    const auto gone = sh("while kill -0 " + pid + " 2>/dev/null; do sleep 0.02; done; echo gone");
    ASSERT_TRUE(gone);
    EXPECT_EQ(gone->output, "gone\n");
}

TEST_F(LocalHostTest, AFollowerThatEndsByItselfSaysSo) {
    Command command;
    command.argv = {"printf", "a\nb\n"};
    std::vector<std::string> lines;
    const OnLine on_line = [&](std::string_view line) {
        lines.emplace_back(line);
        return true;
    };
    const auto enough = run_on_loop(loop_, host_->follow(command, on_line));
    ASSERT_TRUE(enough);
    EXPECT_FALSE(*enough);
    EXPECT_THAT(lines, ElementsAre("a", "b"));
}

TEST_F(LocalHostTest, FetchesAFileWithItsHashAndLeavesNoPart) {
    const std::string content(3'000'000, 'k');
    put("from", content);
    std::uint64_t reported = 0;
    const OnBytes progress = [&](std::uint64_t done, std::uint64_t) { reported = done; };
    const auto fetched = run_on_loop(loop_, host_->fetch(path("from"), path("to"), progress));
    ASSERT_TRUE(fetched) << describe(fetched.error());
    EXPECT_EQ(fetched->bytes, content.size());
    EXPECT_EQ(reported, content.size());
    EXPECT_EQ(fetched->sha256, sha256(content));
    EXPECT_EQ(sha256_file(path("to")).value(), sha256(content));
    EXPECT_FALSE(std::filesystem::exists(path("to.part")));
}

TEST_F(LocalHostTest, AFetchGoesOnBehindAProvenPrefix) {
    const std::string content = std::string(2'000'000, 'a') + std::string(1'000'000, 'b');
    put("from", content);
    put("to.part", content.substr(0, 2'500'000));
    std::uint64_t first = 0;
    const OnBytes progress = [&](std::uint64_t done, std::uint64_t) { first = first == 0 ? done : first; };
    const auto fetched = run_on_loop(loop_, host_->fetch(path("from"), path("to"), progress));
    ASSERT_TRUE(fetched) << describe(fetched.error());
    EXPECT_GT(first, 2'500'000u);
    EXPECT_EQ(sha256_file(path("to")).value(), sha256(content));
}

TEST_F(LocalHostTest, AFetchStartsOverWhenThePrefixIsAnother) {
    const std::string content(1'000'000, 'a');
    put("from", content);
    put("to.part", std::string(900'000, 'z'));
    const auto fetched = run_on_loop(loop_, host_->fetch(path("from"), path("to"), nullptr));
    ASSERT_TRUE(fetched) << describe(fetched.error());
    EXPECT_EQ(sha256_file(path("to")).value(), sha256(content));
}

TEST_F(LocalHostTest, FetchingAnEmptyFileWorks) {
    put("from", "");
    const auto fetched = run_on_loop(loop_, host_->fetch(path("from"), path("to"), nullptr));
    ASSERT_TRUE(fetched) << describe(fetched.error());
    EXPECT_EQ(fetched->bytes, 0u);
    EXPECT_TRUE(std::filesystem::exists(path("to")));
}

TEST_F(LocalHostTest, FetchingAnAbsentFileIsNotFound) {
    const auto fetched = run_on_loop(loop_, host_->fetch(path("none"), path("to"), nullptr));
    ASSERT_FALSE(fetched);
    EXPECT_EQ(fetched.error().kind, ErrorKind::not_found);
}

TEST_F(LocalHostTest, SendsAFileWithItsModeAndThenLeavesItAlone) {
    put("from", std::string(1'000'000, 's'));
    const auto sent = run_on_loop(loop_, host_->send(path("from"), path("sub/to"), 0755, false));
    ASSERT_TRUE(sent) << describe(sent.error());
    struct stat before {};
    ASSERT_EQ(::stat(path("sub/to").c_str(), &before), 0);
    EXPECT_EQ(before.st_mode & 07777u, 0755u);
    const auto again = run_on_loop(loop_, host_->send(path("from"), path("sub/to"), 0755, false));
    ASSERT_TRUE(again);
    EXPECT_EQ(again->sha256, sent->sha256);
    struct stat after {};
    ASSERT_EQ(::stat(path("sub/to").c_str(), &after), 0);
    EXPECT_EQ(after.st_ino, before.st_ino);
}

TEST_F(LocalHostTest, WritesReadsAndRemovesASmallFileByItsHash) {
    const std::string name = path("unit.d/zz.conf");
    const auto written = run_on_loop(loop_, write_file(*host_, name, "[Service]\n", 0644, false));
    ASSERT_TRUE(written) << describe(written.error());
    EXPECT_EQ(written->sha256, sha256("[Service]\n"));
    EXPECT_EQ(run_on_loop(loop_, read_file(*host_, name, false)).value(), "[Service]\n");

    const auto other = run_on_loop(loop_, remove_file(*host_, name, sha256("else"), false));
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().kind, ErrorKind::conflict);
    EXPECT_TRUE(std::filesystem::exists(name));
    EXPECT_TRUE(run_on_loop(loop_, remove_file(*host_, name, written->sha256, false)).value());
    EXPECT_FALSE(run_on_loop(loop_, remove_file(*host_, name, written->sha256, false)).value());
    ASSERT_TRUE(run_on_loop(loop_, remove_empty_dir(*host_, path("unit.d"), false)));
    EXPECT_FALSE(std::filesystem::exists(path("unit.d")));
}

TEST_F(LocalHostTest, AnEmptyFileIsWrittenToo) {
    const auto written = run_on_loop(loop_, write_file(*host_, path("empty"), "", 0600, false));
    ASSERT_TRUE(written) << describe(written.error());
    EXPECT_EQ(std::filesystem::file_size(path("empty")), 0u);
}

TEST_F(LocalHostTest, AFolderThatIsNotEmptyIsLeft) {
    put("mine", "x");
    ASSERT_TRUE(run_on_loop(loop_, remove_empty_dir(*host_, folder_.string(), false)));
    EXPECT_TRUE(std::filesystem::exists(path("mine")));
}

TEST_F(LocalHostTest, ReadingSaysNotFoundAndTooLarge) {
    const auto none = run_on_loop(loop_, read_file(*host_, path("none"), false));
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().kind, ErrorKind::not_found);
    put("large", std::string((1u << 20) + 1, 'x'));
    const auto large = run_on_loop(loop_, read_file(*host_, path("large"), false));
    ASSERT_FALSE(large);
    EXPECT_EQ(large.error().kind, ErrorKind::invalid);
}

TEST_F(LocalHostTest, WritingIntoAReadOnlyTreeIsRefusedAndLeavesNothing) {
    const auto written = run_on_loop(loop_, write_file(*host_, "/proc/none/file", "x", 0644, false));
    ASSERT_FALSE(written);
    EXPECT_THAT(written.error().what, HasSubstr("/proc/none/file"));
}

TEST_F(LocalHostTest, ListsFilesAndKnowsWhichAreStillBeingWritten) {
    put("rank 0.json", "done");
    put("rank1.json", "");
    std::ofstream writer{path("rank1.json"), std::ios::app};
    std::ifstream reader{path("rank 0.json")};
    std::filesystem::create_directory(path("sub"));
    const auto files = run_on_loop(loop_, list_files(*host_, folder_.string(), false));
    ASSERT_TRUE(files) << describe(files.error());
    ASSERT_EQ(files->size(), 2u);
    EXPECT_EQ((*files)[0].path, path("rank 0.json"));
    EXPECT_EQ((*files)[0].size, 4u);
    EXPECT_FALSE((*files)[0].open_for_writing);
    EXPECT_EQ((*files)[1].path, path("rank1.json"));
    EXPECT_TRUE((*files)[1].open_for_writing);
    EXPECT_GT((*files)[1].modified, 1.6e9);
}

TEST_F(LocalHostTest, AnAbsentFolderIsAnEmptyList) {
    const auto files = run_on_loop(loop_, list_files(*host_, path("none"), false));
    ASSERT_TRUE(files) << describe(files.error());
    EXPECT_TRUE(files->empty());
}

TEST_F(LocalHostTest, RelativePathsAreRefused) {
    const auto read = run_on_loop(loop_, read_file(*host_, "relative", false));
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().kind, ErrorKind::usage);
}

TEST_F(LocalHostTest, ShowsTheCommandAsOneCouldTypeIt) {
    Command command;
    command.argv = {"systemctl", "restart", "a b.service"};
    command.as_root = true;
    EXPECT_EQ(host_->shown(command), "sudo -n -- systemctl restart 'a b.service'");
}

TEST_F(LocalHostTest, IsReachedDirectly) {
    const auto reach = run_on_loop(loop_, host_->reach("127.0.0.1", 8000));
    ASSERT_TRUE(reach);
    EXPECT_FALSE(reach->tunnelled);
    EXPECT_FALSE(reach->unix_socket);
}

}   // namespace
}   // namespace campaign::host
