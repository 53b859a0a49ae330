// start_profile and stop_profile around restarts that are not ours.
#include "daemon/methods/profile_steps.hpp"

#include <gtest/gtest.h>

#include "scripted.hpp"

using namespace campaign;
using namespace campaign::engine;
using campaign::engine::test::Scene;
using campaign::engine::test::ScriptedWorld;
using campaign::methods::ended_since;
using campaign::methods::ProfileRequest;
using campaign::methods::ServerStart;
using campaign::methods::StartProfile;

namespace {

void restart_by_somebody(Scene& scene) {
    scene.state.invocation = "0b0b0b0b0b0b0b0b";
}

struct Story : ScriptedWorld {
    Outcome start(bool in_production = false) {
        StartProfile step{world.campaign(), "kimi", "vllm", "k25-start", in_production};
        return world.perform(*track, step);
    }
    Outcome stop(const Outcome& started) {
        ProfileRequest step{world.campaign(), "kimi", "vllm", false, "k25-stop", std::chrono::minutes{1}};
        step.meant_for(methods::server_start(started.value));
        return world.perform(*track, step);
    }
    [[nodiscard]] int sent(std::string_view route) const {
        int count = 0;
        for (const http::Request& request : scene.asked) count += request.url.find(route) != std::string::npos ? 1 : 0;
        return count;
    }
    std::optional<Track> track{Track{world.campaign(), "deep/torch-profile", "deep"}};
};

}   // namespace

TEST(EndedSince, SaysWhatEndedAStartOfTheServer) {
    struct Row {
        const char* what;
        ServerStart then;
        const char* invocation;
        const char* boot;
        const char* active;
        const char* said;   ///< part of the answer; "": it still runs
    };
    const Row table[] = {
        {"the same", {"aa", "b1"}, "aa", "b1", "active", ""},
        {"restarted", {"aa", "b1"}, "bb", "b1", "active", "restarted, invocation aa.. -> bb.."},
        {"rebooted", {"aa", "b1"}, "bb", "b2", "active", "rebooted, boot b1.. -> b2.."},
        {"dead, not started again", {"aa", "b1"}, "aa", "b1", "failed", "has ended, ActiveState=failed"},
        {"stopped", {"aa", "b1"}, "", "b1", "inactive", "has ended, ActiveState=inactive"},
        {"on its way out, the profile may still be written", {"aa", "b1"}, "aa", "b1", "deactivating", ""},
        {"a record that knows no start", {"", ""}, "bb", "b2", "active", ""},
        {"a record without the boot", {"aa", ""}, "aa", "b2", "active", ""},
    };
    for (const Row& row : table) {
        host::ServiceState now;
        now.invocation = row.invocation;
        now.boot_id = row.boot;
        now.active = row.active;
        const auto said = ended_since(row.then, now);
        EXPECT_EQ(said.has_value(), *row.said != '\0') << row.what;
        EXPECT_NE(said.value_or("").find(row.said), std::string::npos) << row.what << ": " << said.value_or("");
    }
}

TEST(StopProfile, OfTheServerThatWasStartedIsDone) {
    Story story;
    const Outcome started = story.start();
    ASSERT_TRUE(started);
    EXPECT_TRUE(story.stop(started));
    EXPECT_EQ(story.sent("/stop_profile"), 1);
}

TEST(StopProfile, OfAServerThatSomebodyRestartedIsNotDone) {
    Story story;
    const Outcome started = story.start();
    restart_by_somebody(story.scene);
    const Outcome stopped = story.stop(started);
    EXPECT_EQ(stopped.is, Outcome::Is::failed);
    EXPECT_EQ(stopped.error.what, "the profile of vllm.service on gpu1 was lost with a restart that is not ours");
    EXPECT_EQ(stopped.error.evidence, "the server was restarted, invocation 0a0a0a0a.. -> 0b0b0b0b..");
    EXPECT_EQ(story.sent("/stop_profile"), 0) << "another server's profiler is none of our business";
}

TEST(StopProfile, AnsweredByAServerThatStartedMeanwhileIsNotDone) {
    Story story;
    const Outcome started = story.start();
    story.scene.on_request = [&](const http::Request&) -> Result<http::Response> {
        restart_by_somebody(story.scene);
        http::Response answer;
        answer.status = 200;
        return answer;
    };
    const Outcome stopped = story.stop(started);
    EXPECT_EQ(stopped.is, Outcome::Is::failed);
    EXPECT_EQ(stopped.error.kind, ErrorKind::conflict);
}

TEST(StopProfile, WhoseServerIsRestartedBeforeItsOutcomeIsKnownIsNotDone) {
    Story story;
    const Outcome started = story.start();
    story.scene.on_request = [&](const http::Request&) -> Result<http::Response> {
        restart_by_somebody(story.scene);
        return Error{ErrorKind::in_doubt, "the connection was closed in the middle", "", "", ""};
    };
    const Outcome stopped = story.stop(started);
    EXPECT_EQ(stopped.is, Outcome::Is::failed);
    EXPECT_EQ(stopped.error.kind, ErrorKind::conflict);
    EXPECT_EQ(story.sent("/stop_profile"), 1) << "it is not sent to the new server";
    EXPECT_TRUE(story.world.asked.empty()) << "nothing here needs a person";
}

TEST(StopProfile, FoundAfterACrashInARestartedServerIsNotDone) {
    Story story;
    const Outcome started = story.start();
    struct Crash {};
    story.scene.on_request = [](const http::Request&) -> Result<http::Response> { throw Crash{}; };
    EXPECT_THROW(story.stop(started), Crash);
    story.scene.on_request = {};
    restart_by_somebody(story.scene);
    story.world.restart();
    story.track.emplace(story.world.campaign(), "deep/torch-profile", "deep");
    const Outcome again = story.start();
    EXPECT_EQ(methods::server_start(again.value).invocation, "0a0a0a0a0a0a0a0a") << "from the record";
    const Outcome stopped = story.stop(again);
    EXPECT_EQ(stopped.is, Outcome::Is::failed);
    EXPECT_EQ(stopped.error.kind, ErrorKind::conflict);
    EXPECT_EQ(story.sent("/stop_profile"), 1);
}

TEST(StartProfile, OfAServerThatIsRestartedMeanwhileIsNotDone) {
    Story story;
    story.scene.on_request = [&](const http::Request&) -> Result<http::Response> {
        restart_by_somebody(story.scene);
        return Error{ErrorKind::in_doubt, "the connection was closed in the middle", "", "", ""};
    };
    const Outcome started = story.start();
    EXPECT_EQ(started.is, Outcome::Is::failed);
    EXPECT_EQ(started.error.what, "vllm.service on gpu1 did not stay up while its profiler was started");
    EXPECT_EQ(story.sent("/start_profile"), 1);
    EXPECT_TRUE(story.world.asked.empty());
}

TEST(ProfileLeftRunning, IsOverWhenItsServerWasRestarted) {
    Story story;
    ASSERT_TRUE(story.start(true));
    ASSERT_EQ(story.world.undos().size(), 1U);
    restart_by_somebody(story.scene);
    Result<void> ended = Error{};
    story.world.run([&]() -> Async<void> {
        const storage::UndoRow undo = story.world.undos().at(0);
        ended = co_await methods::end_left_profile(story.world.campaign(), undo, 1);
    });
    EXPECT_TRUE(ended) << describe(ended.error());
    EXPECT_EQ(story.sent("/stop_profile"), 0);
    EXPECT_EQ(story.world.undos().at(0).state, storage::UndoState::done);
    EXPECT_EQ(story.world.undos().at(0).evidence,
              "no profile is left: the server was restarted, invocation 0a0a0a0a.. -> 0b0b0b0b..");
}
