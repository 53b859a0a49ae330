// campaignctl as a person or a script runs it, against a real server on a real socket.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <cstdlib>
#include <fstream>
#include <future>
#include <thread>

#include "base/json.hpp"
#include "base/sha256.hpp"
#include "daemon/api/server.hpp"
#include "fake_reader.hpp"

namespace campaign::ctl {
namespace {

namespace asio = boost::asio;
using api::test::FakeReader;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class NotingActions final : public api::Actions {
public:
    std::vector<std::string> calls;
    std::optional<Error> refuse;

    Answer submit(std::string, std::string file, std::string) override {
        calls.push_back("submit " + file);
        if (refuse) co_return *refuse;
        json::object answer;
        answer["id"] = "k25-2";
        co_return answer;
    }
    Answer approve(std::string name, std::string decision, std::string candidate, std::string) override {
        return did("approve " + name + " " + decision + " " + candidate);
    }
    Answer cancel(std::string name, std::string) override { return did("cancel " + name); }
    Answer resume(std::string name, std::optional<std::string> as, std::string) override {
        return did("resume " + name + " " + as.value_or("-"));
    }
    Answer restore(std::string name, std::string) override { return did("restore " + name); }
    Answer explain(std::string, bool) override { return did("explain"); }
    Result<std::string> report(std::string name) override { return "# " + name + "\n"; }

private:
    Answer did(std::string call) {
        calls.push_back(call);
        if (refuse) co_return *refuse;
        json::object answer;
        answer["text"] = call + ": done";
        co_return answer;
    }
};

struct Ran {
    int exit = -1;
    std::string out;
    std::string err;
};

class Command : public testing::Test {
protected:
    Command() {
        char pattern[] = "/tmp/campaign-ctl-XXXXXX";
        folder_ = ::mkdtemp(pattern);
        options_.socket = folder_ / "api.sock";
        options_.version = "0.3.0";
        options_.heartbeat = std::chrono::milliseconds{50};
        reader_.add_campaign("k25", "running");
        reader_.add_campaign("glm5", "done");
        server_ = std::make_unique<api::Server>(
            context_.get_executor(), clock_, reader_, actions_,
            [this](std::string_view sha) -> Result<std::filesystem::path> { return folder_ / std::string{sha}; }, options_);
        EXPECT_TRUE(server_->open());
        thread_ = std::thread{[this] { context_.run(); }};
    }
    ~Command() override {
        on_loop([this] { server_->close(); });
        work_.reset();
        thread_.join();
        server_.reset();
        std::filesystem::remove_all(folder_);
    }
    void on_loop(const std::function<void()>& work) {
        std::promise<void> done;
        asio::post(context_, [&] {
            work();
            done.set_value();
        });
        done.get_future().wait();
    }
    void happen(const std::string& kind, const std::string& data, const std::string& state = "") {
        on_loop([&] {
            if (!state.empty()) reader_.campaign_rows[0].state = state;
            reader_.add_event(1, "22:00:00", kind, data);
        });
        server_->notify();
    }
    /// Starts it with an empty stdin that is no terminal.
    pid_t start(const std::vector<std::string>& words, const std::string& socket = "") {
        std::vector<std::string> argv{CAMPAIGNCTL};
        argv.insert(argv.end(), words.begin(), words.end());
        const std::string where = socket.empty() ? options_.socket.string() : socket;
        const std::string out = folder_ / "out";
        const std::string err = folder_ / "err";
        const pid_t child = ::fork();
        if (child == 0) {
            const int none = ::open("/dev/null", O_RDONLY);
            const int out_fd = ::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
            const int err_fd = ::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
            ::dup2(none, 0);
            ::dup2(out_fd, 1);
            ::dup2(err_fd, 2);
            ::setenv("CAMPAIGND_SOCKET", where.c_str(), 1);
            if (::chdir(folder_.c_str()) != 0) ::_exit(126);
            std::vector<char*> raw;
            for (std::string& word : argv) raw.push_back(word.data());
            raw.push_back(nullptr);
            ::execv(raw[0], raw.data());
            ::_exit(127);
        }
        return child;
    }
    Ran finish(pid_t child) {
        Ran ran;
        int status = 0;
        ::waitpid(child, &status, 0);
        ran.exit = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
        ran.out = text_of(folder_ / "out");
        ran.err = text_of(folder_ / "err");
        return ran;
    }
    Ran run(const std::vector<std::string>& words, const std::string& socket = "") { return finish(start(words, socket)); }
    static std::string text_of(const std::filesystem::path& file) {
        std::ifstream in{file};
        return {std::istreambuf_iterator<char>{in}, {}};
    }

    std::filesystem::path folder_;
    asio::io_context context_{1};
    asio::executor_work_guard<asio::io_context::executor_type> work_ = asio::make_work_guard(context_);
    SystemClock clock_;
    FakeReader reader_;
    NotingActions actions_;
    api::ServerOptions options_;
    std::unique_ptr<api::Server> server_;
    std::thread thread_;
};

TEST_F(Command, StatusAnswersOnStdoutAlone) {
    const Ran text = run({"status"});
    EXPECT_EQ(text.exit, 0);
    EXPECT_THAT(text.out, HasSubstr("CAMPAIGNS\n"));
    EXPECT_THAT(text.out, Not(HasSubstr("\x1b")));
    EXPECT_THAT(text.err, IsEmpty());
    const Ran one = run({"status", "--json"});
    EXPECT_EQ(string_at(parse_json(one.out, "status").value(), "schema"), "campaignctl.status/1");
    EXPECT_EQ(run({"status", "k25"}).exit, 0);
}

TEST_F(Command, ANameThatIsNotThereIsExitEight) {
    const Ran none = run({"status", "gml5"});
    EXPECT_EQ(none.exit, 8);
    EXPECT_EQ(none.err, "error: no campaign is called gml5: did you mean glm5?\n  next    campaignctl status\n");
    const Ran json = run({"status", "gml5", "--json"});
    EXPECT_EQ(json.exit, 8);
    EXPECT_EQ(string_at(parse_json(json.out, "error").value(), "schema"), "campaignctl.error/1");
}

TEST_F(Command, WithoutADaemonItSaysWhyWhatIsSafeAndWhatNext) {
    const Ran none = run({"status"}, (folder_ / "no.sock").string());
    EXPECT_EQ(none.exit, 10);
    EXPECT_THAT(none.err, HasSubstr("was not started"));
    EXPECT_THAT(none.err, HasSubstr("  safe    campaigns are on record"));
    EXPECT_THAT(none.err, HasSubstr("systemctl status campaignd"));
    EXPECT_EQ(run({"watch", "k25"}, (folder_ / "no.sock").string()).exit, 10);
    EXPECT_EQ(run({"wait", "k25"}, (folder_ / "no.sock").string()).exit, 10);
    EXPECT_EQ(run({"version"}, (folder_ / "no.sock").string()).exit, 0) << "its own version it always knows";
}

TEST_F(Command, DestructiveVerbsWithoutATerminalDoNothing) {
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
             {"cancel", "k25"}, {"restore", "k25"}, {"resume", "k25", "--as", "done"}, {"cancel", "k25", "--yes=k2"}}) {
        const Ran refused = run(words);
        EXPECT_EQ(refused.exit, 2) << words[0];
        EXPECT_THAT(refused.err, HasSubstr("--yes=k25"));
    }
    EXPECT_THAT(actions_.calls, IsEmpty());
}

TEST_F(Command, TheWholeNameConfirms) {
    EXPECT_EQ(run({"cancel", "k", "--yes=k25"}).exit, 0);
    EXPECT_EQ(run({"restore", "k25", "--yes", "k25"}).exit, 0);
    EXPECT_EQ(run({"resume", "k25", "--as", "done", "--yes=k25"}).exit, 0);
    EXPECT_EQ(run({"resume", "k25"}).exit, 0) << "to look again needs no confirmation";
    const Ran approved = run({"approve", "k25", "D2", "torch-profile"});
    EXPECT_EQ(approved.out, "approve k25 D2 torch-profile: done\n");
    EXPECT_EQ(actions_.calls, (std::vector<std::string>{"cancel k25", "restore k25", "resume k25 done", "resume k25 -",
                                                        "approve k25 D2 torch-profile"}));
}

TEST_F(Command, ARefusalOfTheDaemonKeepsItsCause) {
    actions_.refuse = Error{ErrorKind::refused, "you may not approve", "your role is viewer", "", ""};
    const Ran refused = run({"approve", "k25", "D2", "x"});
    EXPECT_EQ(refused.exit, 9);
    EXPECT_THAT(refused.err, HasSubstr("you may not approve: your role is viewer"));
}

TEST_F(Command, WaitEndsWithTheCampaignAndItsCode) {
    const pid_t waiting = start({"wait", "k25", "--timeout", "100s"});
    happen("production", R"({"subject":"kimi","host":"gpu03","unit":"u.service","state":"down"})");
    happen("production", R"({"subject":"kimi","host":"gpu03","unit":"u.service","state":"verified"})");
    happen("campaign", R"({"state":"failed","detail":"out of memory"})", "failed");
    const Ran over = finish(waiting);
    EXPECT_EQ(over.exit, 3);
    EXPECT_EQ(over.out, "k25 x FAILED\n");
}

TEST_F(Command, WaitTellsThatProductionIsNotBack) {
    happen("production", R"({"subject":"kimi","host":"gpu03","unit":"u.service","state":"changed"})");
    happen("campaign", R"({"state":"cancelled"})", "cancelled");
    EXPECT_EQ(run({"wait", "k25"}).exit, 6);
    EXPECT_EQ(run({"wait", "k25", "--for", "restored"}).exit, 6);
    EXPECT_EQ(run({"wait", "glm5"}).exit, 0);
}

TEST_F(Command, WaitForADecisionEndsWhenOneIsNeeded) {
    const pid_t waiting = start({"wait", "k25", "--for", "decision"});
    happen("need", R"({"subject":"D2","what":"approve it","command":"campaignctl approve k25 D2 x","state":"open"})");
    EXPECT_EQ(finish(waiting).exit, 0);
}

TEST_F(Command, WaitGivesUpWithSeven) {
    const Ran late = run({"wait", "k25", "--timeout", "300ms"});
    EXPECT_EQ(late.exit, 7);
    EXPECT_THAT(late.err, HasSubstr("k25 has not ended within 300ms"));
}

TEST_F(Command, LogsAreOneLineAnEvent) {
    happen("note", R"({"text":"first\nwith \u001b[31mcolour"})");
    happen("step", R"({"label":"s1","title":"look at gpu03","state":"done","detail":"active"})");
    const Ran logs = run({"logs", "k25"});
    EXPECT_EQ(logs.exit, 0);
    EXPECT_EQ(logs.out, "22:00:00   first with colour\n22:00:00 = s1 look at gpu03: active\n");
    const Ran json = run({"logs", "k25", "--json"});
    EXPECT_EQ(std::count(json.out.begin(), json.out.end(), '\n'), 2);
    EXPECT_EQ(string_at(parse_json(json.out.substr(0, json.out.find('\n')), "line").value(), "kind"), "note");
}

TEST_F(Command, WatchLeavesWhenTheCampaignEnds) {
    const pid_t watching = start({"watch", "k25", "--json"});
    happen("campaign", R"({"state":"done"})", "done");
    EXPECT_EQ(finish(watching).exit, 0);
}

TEST_F(Command, AnInterruptDetachesAndTheCampaignGoesOn) {
    const pid_t watching = start({"logs", "k25", "-f"});
    happen("note", R"({"text":"seen"})");
    while (text_of(folder_ / "out").empty()) std::this_thread::yield();
    ::kill(watching, SIGINT);
    EXPECT_EQ(finish(watching).exit, 130);
    EXPECT_THAT(actions_.calls, IsEmpty());
}

TEST_F(Command, AnArtifactIsCheckedBeforeItCounts) {
    const std::string bytes(300'000, 'q');
    const std::string sha = sha256(bytes);
    api::test::FakeReader& reader = reader_;
    on_loop([&] {
        storage::ArtifactRow row;
        row.id = 1;
        row.campaign = 1;
        row.kind = "trace";
        row.name = "rank0.json.gz";
        row.sha256 = sha;
        row.size = bytes.size();
        reader.artifact_rows.push_back(row);
    });
    std::ofstream{folder_ / sha} << bytes;
    EXPECT_THAT(run({"artifacts", "k25"}).out, HasSubstr(sha.substr(0, 8) + "  rank0.json.gz"));
    const Ran got = run({"artifacts", "k25", "get", "rank0.json.gz"});
    EXPECT_EQ(got.exit, 0) << got.err;
    EXPECT_TRUE(text_of(folder_ / "rank0.json.gz") == bytes);
    EXPECT_EQ(run({"artifacts", "k25", "get", "rank0.json.gz"}).exit, 2) << "a file that is here is not overwritten";
    std::ofstream{folder_ / sha} << "damaged";
    const Ran damaged = run({"artifacts", "k25", "get", sha.substr(0, 12), "-o", "other"});
    EXPECT_EQ(damaged.exit, 1);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "other"));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "other.part"));
    EXPECT_EQ(run({"artifacts", "k25", "get", "nothing"}).exit, 8);
}

TEST_F(Command, TheReportGoesToStdoutOrAFile) {
    EXPECT_EQ(run({"report", "k25"}).out, "# k25\n");
    EXPECT_EQ(run({"report", "k25", "-o", "r.md"}).exit, 0);
    EXPECT_EQ(text_of(folder_ / "r.md"), "# k25\n");
}

TEST_F(Command, ABrokenPlanIsRefusedBeforeTheDaemonSeesIt) {
    std::ofstream{folder_ / "bad.yaml"} << "campaign: x\nbad_key: 1\n";
    const Ran refused = run({"submit", "bad.yaml"});
    EXPECT_EQ(refused.exit, 11);
    EXPECT_THAT(refused.err, HasSubstr("bad.yaml"));
    EXPECT_EQ(run({"plan", "check", "bad.yaml"}).exit, 11);
    EXPECT_EQ(run({"plan", "check", "absent.yaml"}).exit, 8);
    EXPECT_THAT(actions_.calls, IsEmpty());
}

TEST_F(Command, ASlipInAVerbIsNotRun) {
    const Ran slip = run({"cancle", "k25", "--yes=k25"});
    EXPECT_EQ(slip.exit, 2);
    EXPECT_THAT(slip.err, HasSubstr("did you mean cancel?"));
    EXPECT_THAT(actions_.calls, IsEmpty());
}

}   // namespace
}   // namespace campaign::ctl
