// The ssh transport against real hosts: their own systemd and sshd, and a line that can be cut.
// Environment: TESTHOST (testhost.sh), TESTHOST_SSH_CONFIG, TESTHOST_HOSTS ("alpha beta"). Runs inside the hosts' network.

#include "adapters/ssh/ssh.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <cstdlib>
#include <fstream>

#include "adapters/host/files.hpp"
#include "base/files.hpp"
#include "base/sha256.hpp"
#include "base/text.hpp"

namespace campaign::ssh {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using host::Command;
using host::Finished;
using testing::HasSubstr;

std::string from_environment(const char* name) {
    const char* value = std::getenv(name);
    if (value == nullptr) throw std::runtime_error(std::string{name} + " is not set: run this by tests/hosts/in_lab.sh");
    return value;
}

/// What the script printed; it must succeed.
std::string shell(const std::string& script) {
    FILE* pipe = ::popen(("exec 2>&1; " + script).c_str(), "r");
    std::string text;
    char piece[4096];
    for (std::size_t got = 0; (got = std::fread(piece, 1, sizeof piece, pipe)) > 0;) text.append(piece, got);
    const int status = ::pclose(pipe);
    if (status != 0) throw std::runtime_error(script + ": " + text);
    return std::string{trim(text)};
}

class SshHostTest : public testing::Test {
protected:
    SshHostTest() {
        char pattern[] = "/tmp/campaign-ssh-XXXXXX";
        folder_ = ::mkdtemp(pattern);
        const std::vector<std::string> hosts = split(from_environment("TESTHOST_HOSTS"), ' ');
        first_ = hosts.at(0);
        second_ = hosts.at(1);
        host_ = make(target());
        shell(testhost() + " heal " + first_);
    }
    ~SshHostTest() override {
        shell(testhost() + " heal " + first_);
        std::filesystem::remove_all(folder_);
    }

    static std::string testhost() { return from_environment("TESTHOST"); }
    std::string on_host(const std::string& script) const {
        return shell(testhost() + " exec " + first_ + " -- sh -c '" + script + "'");
    }
    SshTarget target() const {
        SshTarget result;
        result.name = "gpu-" + first_;
        result.alias = first_;
        result.config_file = from_environment("TESTHOST_SSH_CONFIG");
        result.sudo = true;
        return result;
    }
    std::shared_ptr<host::Host> make(SshTarget wanted) {
        return make_ssh_host(loop_.get_executor(), clock_, random_, std::move(wanted));
    }
    std::string path(const std::string& name) const { return folder_ / name; }

    template <class T>
    T await(Async<T> work) {
        std::optional<T> result;
        std::exception_ptr thrown;
        asio::co_spawn(loop_, std::move(work), [&](std::exception_ptr error, T value) {
            thrown = error;
            result.emplace(std::move(value));
            loop_.stop();
        });
        loop_.restart();
        loop_.run();
        if (thrown) std::rethrow_exception(thrown);
        return std::move(*result);
    }
    Result<Finished> run(host::Host& host, std::vector<std::string> argv) {
        Command command;
        command.argv = std::move(argv);
        return await(host.run(std::move(command)));
    }
    Result<Finished> sh(const std::string& script) { return run(*host_, {"sh", "-c", script}); }
    void later(std::chrono::milliseconds when, std::function<void()> action) {
        const auto timer = std::make_shared<asio::steady_timer>(loop_, when);
        timer->async_wait([timer, action = std::move(action)](auto) { action(); });
    }

    asio::io_context loop_;
    SystemClock clock_;
    SystemRandom random_;
    std::filesystem::path folder_;
    std::string first_;
    std::string second_;
    std::shared_ptr<host::Host> host_;
};

TEST_F(SshHostTest, RunsACommandAndGivesAllOfIt) {
    Command command;
    command.argv = {"sh", "-c", "cat; echo err >&2; printf '%s|' \"$@\"; exit 7", "sh", "a b", "$HOME '\"", ""};
    command.input = std::string(5u << 20, 'i') + "\n";
    command.keep_output = 16u << 20;
    const auto done = await(host_->run(command));
    ASSERT_TRUE(done) << describe(done.error());
    EXPECT_EQ(done->exit_code, 7);
    EXPECT_EQ(done->output.size(), command.input.size() + 14);
    EXPECT_TRUE(done->output.ends_with("\na b|$HOME '\"||"));
    EXPECT_EQ(done->errors, "err\n");
}

TEST_F(SshHostTest, SixtyCommandsAtOnceAllEndWithTheirOwnAnswer) {
    int ended = 0;
    std::vector<std::string> wrong;
    for (int i = 0; i < 60; ++i) {
        Command command;
        const std::string number = std::to_string(i);
        command.argv = {"sh", "-c", "head -c $(($1 * 1000)) /dev/zero | wc -c; exit $1", "sh", number};
        asio::co_spawn(loop_, host_->run(command), [&, i](std::exception_ptr thrown, const Result<Finished>& done) {
            if (thrown || !done) {
                wrong.push_back(thrown ? "thrown" : describe(done.error()));
            } else if (done->exit_code != i || trim(done->output) != std::to_string(i * 1000)) {
                wrong.push_back(std::to_string(i) + ": " + done->output);
            }
            if (++ended == 60) loop_.stop();
        });
    }
    loop_.run();
    EXPECT_EQ(ended, 60);
    EXPECT_TRUE(wrong.empty()) << wrong.front();
    const auto connections = sh("ss -Htn state established '( sport = :22 )' | wc -l");
    ASSERT_TRUE(connections);
    EXPECT_EQ(trim(connections->output), "1");
}

TEST_F(SshHostTest, ASmallMaxSessionsIsLearntAndNoCommandIsLost) {
    // Restarted, not reloaded: systemctl answers when sshd listens again, while after a reload's SIGHUP it may still be
    // about to close its socket, and the first connection is refused. The start limit is cleared, so that the test may run
    // again and again.
    on_host("echo MaxSessions 3 > /etc/ssh/sshd_config.d/00-few.conf && systemctl reset-failed ssh; systemctl restart ssh");
    int ended = 0;
    std::vector<std::string> wrong;
    for (int i = 0; i < 15; ++i) {
        Command command;
        command.argv = {"sh", "-c", "sleep 0.2; echo done"};
        asio::co_spawn(loop_, host_->run(command), [&](std::exception_ptr thrown, const Result<Finished>& done) {
            if (thrown || !done || done->output != "done\n") wrong.push_back(done ? done->output : describe(done.error()));
            if (++ended == 15) loop_.stop();
        });
    }
    loop_.run();
    on_host("rm /etc/ssh/sshd_config.d/00-few.conf && systemctl reset-failed ssh; systemctl restart ssh");
    EXPECT_EQ(ended, 15);
    EXPECT_TRUE(wrong.empty()) << wrong.front();
}

TEST_F(SshHostTest, ACutOfTwoSecondsDoesNoHarmToACommand) {
    ASSERT_TRUE(sh("true"));
    later(100ms, [this] { shell(testhost() + " cut " + first_); });
    later(2100ms, [this] { shell(testhost() + " heal " + first_); });
    const auto done = sh("for i in 1 2 3 4 5 6; do echo $i; sleep 0.4; done; exit 9");
    ASSERT_TRUE(done) << describe(done.error());
    EXPECT_EQ(done->output, "1\n2\n3\n4\n5\n6\n");
    EXPECT_EQ(done->exit_code, 9);
}

TEST_F(SshHostTest, AKilledSshdSessionLeavesTheOutcomeInDoubtAndTheNextCommandConnectsAnew) {
    // $PPID of the login shell is the connection's own sshd.
    const auto done =
        sh("p=$PPID; while [ \"$(cat /proc/$p/comm)\" != sshd ]; do p=$(sed \"s/.*) . //;s/ .*//\" /proc/$p/stat); done; "
           "(sleep 0.5; : > /root/went-on) & kill -9 $p; sleep 30");
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, ErrorKind::in_doubt) << describe(done.error());
    EXPECT_THAT(done.error().what, HasSubstr("link to gpu-" + first_ + " closed by peer during sh -c"));
    EXPECT_THAT(done.error().what, HasSubstr("outcome in doubt"));
    const auto after = sh("until [ -e /root/went-on ]; do sleep 0.1; done; rm /root/went-on; echo found");
    ASSERT_TRUE(after) << describe(after.error());
    EXPECT_EQ(after->output, "found\n");
}

TEST_F(SshHostTest, AFrozenHostIsInDoubtAtTheLatestWhenItsLinkIsFoundDead) {
    ASSERT_TRUE(sh("true"));
    later(100ms, [this] { shell(testhost() + " freeze " + first_); });
    const auto done = sh("sleep 60");
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, ErrorKind::in_doubt);
    EXPECT_THAT(done.error().what, HasSubstr("no answer for 15 s"));
}

TEST_F(SshHostTest, AnExpiredDeadlineIsInDoubtAndTheConnectionGoesOn) {
    Command command;
    command.argv = {"sleep", "30"};
    command.deadline = 300ms;
    const auto done = await(host_->run(command));
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, ErrorKind::in_doubt);
    EXPECT_THAT(done.error().what, HasSubstr("did not finish in time: sleep 30"));
    const auto next = sh("echo here");
    ASSERT_TRUE(next);
    EXPECT_EQ(next->output, "here\n");
}

TEST_F(SshHostTest, ACancelledCommandThrowsAndTheConnectionGoesOn) {
    asio::cancellation_signal stop;
    bool aborted = false;
    Command command;
    command.argv = {"sleep", "30"};
    asio::co_spawn(loop_, host_->run(command),
                   asio::bind_cancellation_slot(stop.slot(), [&](std::exception_ptr thrown, const Result<Finished>&) {
                       try {
                           if (thrown) std::rethrow_exception(thrown);
                       } catch (const boost::system::system_error& error) {
                           aborted = error.code() == asio::error::operation_aborted;
                       }
                       loop_.stop();
                   }));
    later(700ms, [&] { stop.emit(asio::cancellation_type::terminal); });
    loop_.run();
    EXPECT_TRUE(aborted);
    EXPECT_TRUE(sh("true"));
}

TEST_F(SshHostTest, ACancelDuringEveryPhaseOfConnectingLeavesAHostThatWorks) {
    for (int ms = 0; ms < 120; ms += 4) {
        const auto fresh = make(target());
        asio::cancellation_signal stop;
        Command command;
        command.argv = {"true"};
        bool ended = false;
        asio::co_spawn(loop_, fresh->run(command),
                       asio::bind_cancellation_slot(stop.slot(), [&](std::exception_ptr, const Result<Finished>&) {
                           ended = true;
                           loop_.stop();
                       }));
        later(std::chrono::milliseconds{ms}, [&] { stop.emit(asio::cancellation_type::terminal); });
        loop_.restart();
        loop_.run();
        EXPECT_TRUE(ended);
        EXPECT_TRUE(run(*fresh, {"true"}));
    }
}

TEST_F(SshHostTest, AnUnknownHostKeyIsRefusedWithItsFingerprint) {
    SshTarget wanted = target();
    wanted.known_hosts = path("empty");
    const auto done = run(*make(wanted), {"true"});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, ErrorKind::identity);
    EXPECT_THAT(done.error().what, HasSubstr("is not known"));
    EXPECT_THAT(done.error().evidence, HasSubstr("SHA256:"));
    EXPECT_THAT(done.error().evidence, HasSubstr(path("empty")));
    EXPECT_THAT(done.error().next, HasSubstr("ssh-keyscan"));
}

TEST_F(SshHostTest, KnownHostsLinesMeanWhatSshdSaysTheyMean) {
    const std::string known =
        from_environment("TESTHOST_SSH_CONFIG").substr(0, from_environment("TESTHOST_SSH_CONFIG").rfind('/'));
    const std::string line = shell("grep '^" + first_ + ",' " + known + "/known_hosts");
    const std::string names = line.substr(0, line.find(' '));
    const std::string address = names.substr(names.find(',') + 1);
    const std::string key = line.substr(line.find(' '));
    const std::string other =
        shell("ssh-keygen -q -t ed25519 -N '' -f " + path("other") + " && cut -d' ' -f1,2 " + path("other.pub"));
    const std::string plain = address + key + "\n";
    struct Case {
        std::string text;
        std::string says;   // "": it is trusted
    };
    const std::vector<Case> cases = {
        {plain, ""},
        {"10.77.*" + key + "\n", ""},
        {address + " " + other + "\n" + plain, ""},
        {address + " " + other + "\n", "HAS CHANGED"},
        {address + " ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQC7\n", "another kind"},
        {"!" + address + ",10.77.*" + key + "\n", "not known"},
        {"@revoked " + address + key + "\n" + plain, "REVOKED"},
        {"@cert-authority " + address + " " + other + "\n" + plain, "certificates are not supported"},
        {"# nothing\n", "not known"},
    };
    for (const Case& one : cases) {
        std::ofstream{path("known")} << one.text;
        SshTarget wanted = target();
        wanted.known_hosts = path("known");
        const auto done = run(*make(wanted), {"true"});
        if (one.says.empty()) {
            EXPECT_TRUE(done) << one.text << describe(done.error());
        } else {
            ASSERT_FALSE(done) << one.text;
            EXPECT_EQ(done.error().kind, ErrorKind::identity) << one.text;
            EXPECT_THAT(done.error().what, HasSubstr(one.says)) << one.text;
        }
    }
    std::ofstream{path("known")} << plain;
    shell("ssh-keygen -q -H -f " + path("known"));
    SshTarget wanted = target();
    wanted.known_hosts = path("known");
    const auto hashed = run(*make(wanted), {"true"});
    EXPECT_TRUE(hashed) << describe(hashed.error());
}

TEST_F(SshHostTest, ARefusedKeyNamesTheUserTheKeyAndWhatTheServerAllows) {
    shell("ssh-keygen -q -t ed25519 -N '' -f " + path("stranger"));
    SshTarget wanted = target();
    wanted.key_file = path("stranger");
    const auto done = run(*make(wanted), {"true"});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, ErrorKind::refused);
    EXPECT_THAT(done.error().what, HasSubstr("refused key SHA256:"));
    EXPECT_THAT(done.error().what, HasSubstr("for user root"));
    EXPECT_THAT(done.error().what, HasSubstr("publickey"));
}

TEST_F(SshHostTest, AKeyWithAPassphraseIsNamedAsTheCause) {
    shell("ssh-keygen -q -t ed25519 -N secretword -f " + path("locked"));
    SshTarget wanted = target();
    wanted.key_file = path("locked");
    const auto done = run(*make(wanted), {"true"});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, ErrorKind::refused);
    EXPECT_THAT(describe(done.error()), HasSubstr("passphrase"));
}

TEST_F(SshHostTest, LogsInByAnAgent) {
    const std::string config = from_environment("TESTHOST_SSH_CONFIG");
    const std::string key = config.substr(0, config.rfind('/')) + "/id_ed25519";
    const std::string agent = shell("ssh-agent -a " + path("agent") + " | sed -n 's/.*SSH_AGENT_PID=\\([0-9]*\\).*/\\1/p'");
    shell("SSH_AUTH_SOCK=" + path("agent") + " ssh-add -q " + key);
    std::ofstream{path("config")} << "Host viaagent\n HostName " << shell(testhost() + " addr " + first_)
                                  << "\n User root\n IdentityFile /none\n IdentityAgent " << path("agent") << "\n";
    SshTarget wanted = target();
    wanted.alias = "viaagent";
    wanted.config_file = path("config");
    wanted.known_hosts = config.substr(0, config.rfind('/')) + "/known_hosts";
    const auto done = run(*make(wanted), {"true"});
    shell("kill " + agent);
    EXPECT_TRUE(done) << describe(done.error());
}

TEST_F(SshHostTest, AnAgentThatNeverAnswersDoesNotStopTheLoop) {
    const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    asio::local::stream_protocol::endpoint endpoint{path("mute")};
    ASSERT_EQ(::bind(listener, endpoint.data(), static_cast<socklen_t>(endpoint.size())), 0);
    ASSERT_EQ(::listen(listener, 4), 0);
    std::ofstream{path("config")} << "Host mute\n HostName " << shell(testhost() + " addr " + first_)
                                  << "\n User root\n IdentityFile /none\n IdentityAgent " << path("mute") << "\n";
    const std::string config = from_environment("TESTHOST_SSH_CONFIG");
    SshTarget wanted = target();
    wanted.alias = "mute";
    wanted.config_file = path("config");
    wanted.known_hosts = config.substr(0, config.rfind('/')) + "/known_hosts";
    const auto done = run(*make(wanted), {"true"});
    ::close(listener);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, ErrorKind::refused);
    EXPECT_THAT(done.error().evidence, HasSubstr("no answer"));
}

TEST_F(SshHostTest, NoDescriptorIsLeftBehindByConnections) {
    const auto open_now = [] {
        return std::distance(std::filesystem::directory_iterator{"/proc/self/fd"}, std::filesystem::directory_iterator{});
    };
    ASSERT_TRUE(sh("true"));
    host_->disconnect();
    const auto before = open_now();
    SshTarget refused = target();
    refused.known_hosts = path("empty");
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(sh("true"));
        host_->disconnect();
        EXPECT_FALSE(run(*make(refused), {"true"}));
    }
    EXPECT_EQ(open_now(), before);
}

TEST_F(SshHostTest, AHostThatIsNotThereIsUnreachable) {
    std::ofstream{path("config")} << "Host nobody\n HostName 127.0.0.1\n Port 9\n User root\n";
    SshTarget wanted = target();
    wanted.alias = "nobody";
    wanted.config_file = path("config");
    const auto done = run(*make(wanted), {"true"});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, ErrorKind::unreachable);
    EXPECT_THAT(done.error().why, HasSubstr("refused"));
}

TEST_F(SshHostTest, FollowsTheJournalFromACursorAndEndsTheFollower) {
    const auto cursor = sh("journalctl -n0 --show-cursor | sed -n 's/^-- cursor: //p'");
    ASSERT_TRUE(cursor);
    later(500ms, [this] { on_host("for i in 1 2 3 4 5; do echo line $i | systemd-cat -t followed; done"); });
    Command command;
    command.argv = {"journalctl", "-f", "--no-tail", "-o", "cat", "--after-cursor", std::string{trim(cursor->output)}};
    std::vector<std::string> lines;
    const host::OnLine on_line = [&](std::string_view text) {
        if (text.starts_with("line ")) lines.emplace_back(text);
        return lines.size() < 5;
    };
    const auto enough = await(host_->follow(command, on_line));
    ASSERT_TRUE(enough) << describe(enough.error());
    EXPECT_TRUE(*enough);
    EXPECT_THAT(lines, testing::ElementsAre("line 1", "line 2", "line 3", "line 4", "line 5"));
    const auto gone = sh("while pgrep -f 'journalctl -f --no-tai[l]' >/dev/null; do sleep 0.1; done; echo gone");
    ASSERT_TRUE(gone) << describe(gone.error());
    EXPECT_EQ(gone->output, "gone\n");
}

TEST_F(SshHostTest, AFetchWhoseConnectionIsKilledGoesOnWhereItWas) {
    ASSERT_TRUE(sh("head -c 50000000 /dev/urandom > /root/big"));
    const std::string there = on_host("sha256sum < /root/big").substr(0, 64);
    shell(testhost() + " slow " + first_ + " 80000");
    std::vector<std::uint64_t> seen;
    bool killed = false;
    const host::OnBytes progress = [&](std::uint64_t done, std::uint64_t total) {
        EXPECT_EQ(total, 50'000'000u);
        seen.push_back(done);
        if (!killed && done > 20'000'000) {
            killed = true;
            host_->disconnect();
        }
    };
    const auto fetched = await(host_->fetch("/root/big", path("big"), progress));
    ASSERT_TRUE(fetched) << describe(fetched.error());
    EXPECT_TRUE(killed);
    EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
    EXPECT_EQ(fetched->sha256, there);
    EXPECT_EQ(sha256_file(path("big")).value(), there);
    EXPECT_FALSE(std::filesystem::exists(path("big.part")));
}

TEST_F(SshHostTest, AFetchOverACutLineIsWhole) {
    ASSERT_TRUE(sh("head -c 50000000 /dev/urandom > /root/big"));
    bool cut = false;
    const host::OnBytes progress = [&](std::uint64_t done, std::uint64_t) {
        if (!cut && done > 10'000'000) {
            cut = true;
            shell(testhost() + " cut " + first_);
            later(2000ms, [this] { shell(testhost() + " heal " + first_); });
        }
    };
    const auto fetched = await(host_->fetch("/root/big", path("big"), progress));
    ASSERT_TRUE(fetched) << describe(fetched.error());
    EXPECT_TRUE(cut);
    EXPECT_EQ(fetched->sha256, on_host("sha256sum < /root/big").substr(0, 64));
}

TEST_F(SshHostTest, SendsAFileAndWritesASmallOne) {
    std::ofstream{path("agent"), std::ios::binary} << std::string(20'000'000, 'p');
    const auto sent = await(host_->send(path("agent"), "/opt/campaign/agent", 0755, true));
    ASSERT_TRUE(sent) << describe(sent.error());
    EXPECT_EQ(on_host("stat -c %a /opt/campaign/agent; sha256sum < /opt/campaign/agent; ls /opt/campaign"),
              "755\n" + sent->sha256 + "  -\nagent");
    const auto written = await(host::write_file(*host_, "/run/systemd/system/x.service.d/zz.conf", "[Unit]\n", 0644, true));
    ASSERT_TRUE(written) << describe(written.error());
    EXPECT_TRUE(await(host::remove_file(*host_, "/run/systemd/system/x.service.d/zz.conf", written->sha256, true)).value());
    EXPECT_TRUE(await(host::remove_empty_dir(*host_, "/run/systemd/system/x.service.d", true)));
}

TEST_F(SshHostTest, AFullDiskOverThereIsSaidAndLeavesNoPart) {
    on_host(
        "mkdir -p /mnt/small && mount -t tmpfs -o size=64k none /mnt/small && head -c 60000 /dev/zero > /mnt/small/fill");
    const auto written = await(host::write_file(*host_, "/mnt/small/a.conf", std::string(40'000, 'x'), 0644, true));
    const std::string left = on_host("ls /mnt/small; umount /mnt/small");
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().kind, ErrorKind::disk_full) << describe(written.error());
    EXPECT_EQ(left, "fill");
}

TEST_F(SshHostTest, KnowsWhichFilesAreStillOpenForWriting) {
    on_host("rm -rf /var/tmp/traces; mkdir /var/tmp/traces; echo a > /var/tmp/traces/done");
    on_host(
        "systemd-run -q --unit writer sh -c \"exec sleep 60 > /var/tmp/traces/growing\"; until [ -e /var/tmp/traces/growing "
        "]; do sleep 0.1; done");
    const auto files = await(host::list_files(*host_, "/var/tmp/traces", true));
    on_host("systemctl stop writer");
    ASSERT_TRUE(files) << describe(files.error());
    ASSERT_EQ(files->size(), 2u);
    EXPECT_FALSE((*files)[0].open_for_writing);
    EXPECT_TRUE((*files)[1].open_for_writing);
}

/// One request over a unix socket: everything that comes back until the other side ends.
Async<std::string> ask(std::string socket_path, std::string request) {
    asio::local::stream_protocol::socket socket{co_await asio::this_coro::executor};
    const asio::local::stream_protocol::endpoint endpoint{socket_path};
    co_await socket.async_connect(endpoint, asio::use_awaitable);
    co_await asio::async_write(socket, asio::buffer(request), asio::use_awaitable);
    std::string answer;
    boost::system::error_code end;
    co_await asio::async_read(socket, asio::dynamic_buffer(answer), asio::redirect_error(asio::use_awaitable, end));
    co_return answer;
}

TEST_F(SshHostTest, ReachesAServerThatListensOnTheRemoteLoopbackOnly) {
    on_host(
        "mkdir -p /var/tmp/www && head -c 3000000 /dev/zero > /var/tmp/www/file && systemctl reset-failed web 2>/dev/null; "
        "systemd-run -q --unit web --working-directory=/var/tmp/www python3 -m http.server --bind 127.0.0.1 8123; "
        "until curl -so /dev/null 127.0.0.1:8123/; do sleep 0.1; done");
    const auto reach = await(host_->reach("127.0.0.1", 8123));
    ASSERT_TRUE(reach) << describe(reach.error());
    EXPECT_TRUE(reach->tunnelled);
    ASSERT_TRUE(reach->unix_socket);
    struct stat folder {};
    ASSERT_EQ(::stat(std::filesystem::path{*reach->unix_socket}.parent_path().c_str(), &folder), 0);
    EXPECT_EQ(folder.st_mode & 0777u, 0700u);
    for (int i = 0; i < 20; ++i) {
        const std::string answer = await(ask(*reach->unix_socket, "GET /file HTTP/1.0\r\n\r\n"));
        const std::size_t body = answer.find("\r\n\r\n");
        ASSERT_NE(body, std::string::npos);
        ASSERT_EQ(answer.size() - body - 4, 3'000'000u);
    }
    on_host("systemctl stop web");
    EXPECT_EQ(await(ask(*reach->unix_socket, "GET / HTTP/1.0\r\n\r\n")), "");
    const std::filesystem::path left = std::filesystem::path{*reach->unix_socket}.parent_path();
    host_.reset();
    EXPECT_FALSE(std::filesystem::exists(left));
}

TEST_F(SshHostTest, GoesThroughAJumpHost) {
    // The hosts do not see each other, so the second sshd is the bastion's own, at its loopback.
    const std::string config = from_environment("TESTHOST_SSH_CONFIG");
    const std::string known = config.substr(0, config.rfind('/')) + "/known_hosts";
    const std::string line = shell("grep '^" + first_ + ",' " + known);
    std::ofstream{path("known")} << line << "\n127.0.0.1" << line.substr(line.find(' ')) << "\n";
    std::ofstream{path("config")} << "Include " << config << "\nHost inner\n HostName 127.0.0.1\n ProxyJump " << first_
                                  << "\n";
    SshTarget wanted = target();
    wanted.name = "inner";
    wanted.alias = "inner";
    wanted.config_file = path("config");
    wanted.known_hosts = path("known");
    const auto inner = make(wanted);
    const auto done = run(*inner, {"sh", "-c", "echo ${SSH_CONNECTION%% *}"});
    ASSERT_TRUE(done) << describe(done.error());
    EXPECT_EQ(done->output, "127.0.0.1\n");
    const auto large = run(*inner, {"head", "-c", "3000000", "/dev/zero"});
    ASSERT_TRUE(large) << describe(large.error());
    EXPECT_EQ(large->output_bytes, 3'000'000u);
}

TEST_F(SshHostTest, AUserWithoutTheSudoRightIsRefusedAndNothingIsStarted) {
    on_host(
        "id plain >/dev/null 2>&1 || useradd -m plain; mkdir -p /home/plain/.ssh; cp /root/.ssh/authorized_keys "
        "/home/plain/.ssh/; "
        "chown -R plain: /home/plain/.ssh; chmod 700 /home/plain/.ssh; rm -f /etc/sudoers.d/plain");
    SshTarget wanted = target();
    wanted.user = "plain";
    const auto plain = make(wanted);
    Command command;
    command.argv = {"id", "-un"};
    command.as_root = true;
    const auto refused = await(plain->run(command));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::refused);
    EXPECT_THAT(refused.error().evidence, HasSubstr("password is required"));
    on_host("echo plain ALL=NOPASSWD: ALL > /etc/sudoers.d/plain");
    const auto allowed = await(plain->run(command));
    ASSERT_TRUE(allowed) << describe(allowed.error());
    EXPECT_EQ(allowed->output, "root\n");
}

TEST_F(SshHostTest, WhatALoginShellPrintsIsNotTheAnswer) {
    on_host(
        "printf \"echo welcome to the machine\\necho warning >&2\\n\" > /root/.bashrc.new; cat /root/.bashrc.new > "
        "/root/.bashrc; "
        "printf \"echo noise\\n\" > /etc/ssh/sshrc");
    const auto done = sh("echo answer");
    on_host("rm -f /root/.bashrc /root/.bashrc.new /etc/ssh/sshrc");
    ASSERT_TRUE(done) << describe(done.error());
    EXPECT_EQ(done->output, "answer\n");
    EXPECT_EQ(done->errors, "");
}

TEST_F(SshHostTest, HugeOutputOnBothStreamsIsBounded) {
    Command command;
    command.argv = {"sh", "-c", "head -c 100000000 /dev/zero & head -c 100000000 /dev/zero >&2; wait; echo end"};
    const auto done = await(host_->run(command));
    ASSERT_TRUE(done) << describe(done.error());
    EXPECT_EQ(done->output_bytes, 100'000'004u);
    EXPECT_EQ(done->errors_bytes, 100'000'000u);
    EXPECT_EQ(done->output.size(), 4u << 20);
    EXPECT_TRUE(done->output.ends_with("end\n"));
}

}   // namespace
}   // namespace campaign::ssh
