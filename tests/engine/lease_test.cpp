// The host's lease on a unit, as a campaign takes it, waits for it and gives it back.
#include "daemon/methods/lease.hpp"

#include <gtest/gtest.h>

#include "daemon/methods/restore.hpp"
#include "scripted.hpp"

using namespace campaign;
using namespace campaign::engine;
using campaign::engine::test::ScriptedWorld;

namespace {

/// The host's side: one lease file, as the scripts keep it.
struct LeaseStory : ScriptedWorld {
    LeaseStory() {
        scene.on_command = [this](const host::Command& command) { return answer(command); };
    }

    Result<host::Finished> answer(const host::Command& command) {
        ++commands;
        host::Finished done;
        if (refuse) return *refuse;
        const std::string script = command.argv.at(2);
        const bool take = !command.input.empty();
        const bool release = script.find("released") != std::string::npos;
        if (frees_at != 0 && commands >= frees_at) file.clear();
        if (take) {
            const std::string token = command.argv.at(6);
            if (!file.empty() && host::parse_lease(file).token != token) {
                done.exit_code = 75;
                done.output = file;
            } else {
                file = command.input;
            }
        } else if (release) {
            const bool ours = host::parse_lease(file).token == command.argv.at(6);
            done.output = file.empty() ? "absent\n" : ours ? "released\n" : "other\n";
            if (ours) file.clear();
        } else {
            done.output = file;
        }
        return done;
    }

    Result<void> take() {
        return call([this] { return methods::take_lease(world.campaign(), "kimi"); });
    }
    Result<void> confirm() {
        return call([this] { return methods::confirm_lease(world.campaign(), "kimi", "profiler"); });
    }
    Result<void> release() {
        return call([this] { return methods::release_leases(world.campaign()); });
    }
    template <class Call>
    Result<void> call(Call made) {
        Result<void> result = Error{};
        world.run([&]() -> Async<void> { result = co_await made(); });
        return result;
    }
    [[nodiscard]] bool said(const std::string& words) {
        for (const storage::EventRow& event : world.events())
            if (event.data_json.find(words) != std::string::npos) return true;
        return false;
    }

    std::string file;
    int commands = 0;
    int frees_at = 0;   ///< the other's lease goes with this command
    std::optional<Error> refuse;
};

host::Lease of_another() {
    host::Lease lease;
    lease.token = "k24-0123";
    lease.campaign = "k24";
    lease.holder = "campaignd on mon2";
    lease.since = "2026-12-01T22:14:00Z";
    return lease;
}

}   // namespace

TEST(HostLease, IsTakenConfirmedAndGivenBack) {
    LeaseStory story;
    ASSERT_TRUE(story.take());
    EXPECT_EQ(host::parse_lease(story.file).campaign, "k25");
    EXPECT_TRUE(story.confirm());
    ASSERT_TRUE(story.release());
    EXPECT_EQ(story.file, "");
    for (const storage::UndoRow& undo : story.world.undos()) EXPECT_EQ(undo.state, storage::UndoState::done);
    const int before = story.commands;
    ASSERT_TRUE(story.release());
    EXPECT_EQ(story.commands, before) << "once";
}

TEST(HostLease, OfAnotherIsWaitedForAndNamed) {
    LeaseStory story;
    story.file = host::lease_text(of_another());
    story.frees_at = 5;
    ASSERT_TRUE(story.take());
    EXPECT_TRUE(story.said("waits: vllm.service on gpu1 is held by campaign k24 of campaignd on mon2"));
    EXPECT_EQ(story.commands, 5);
    EXPECT_EQ(host::parse_lease(story.file).campaign, "k25");
    EXPECT_EQ(story.world.campaign().row.state, "running");
}

TEST(HostLease, OfAnotherThatNeverGoesEndsInARefusalThatNamesIt) {
    LeaseStory story;
    story.file = host::lease_text(of_another());
    const Result<void> taken = story.take();
    ASSERT_FALSE(taken);
    EXPECT_EQ(taken.error().kind, ErrorKind::conflict);
    EXPECT_NE(taken.error().what.find("is held by campaign k24 of campaignd on mon2"), std::string::npos);
    ASSERT_TRUE(story.release());
    EXPECT_EQ(host::parse_lease(story.file).campaign, "k24") << "what is not ours stays";
}

TEST(HostLease, SurvivesTheDaemon) {
    LeaseStory story;
    ASSERT_TRUE(story.take());
    story.world.restart();
    const int before = story.commands;
    ASSERT_TRUE(story.take());
    EXPECT_EQ(story.commands, before) << "it is on record";
    EXPECT_TRUE(story.confirm());
}

TEST(HostLease, IsNotGivenBackByARestoreInTheMiddle) {
    LeaseStory story;
    ASSERT_TRUE(story.take());
    ASSERT_TRUE(story.call([&story] { return methods::restore_all(story.world.campaign()); }));
    EXPECT_NE(story.file, "");
}

TEST(HostLease, ThatIsGoneOrAnothersForbidsAChange) {
    struct Row {
        const char* what;
        std::string file;
        ErrorKind kind;
        const char* words;
    };
    const Row table[] = {
        {"broken by a person, then taken", host::lease_text(of_another()), ErrorKind::conflict, "held by campaign k24"},
        {"gone with a reboot", "", ErrorKind::refused, "not changed without its lease"},
        {"damaged", "?", ErrorKind::conflict, "somebody unknown"},
    };
    for (const Row& row : table) {
        LeaseStory story;
        ASSERT_TRUE(story.take());
        story.file = row.file;
        const Result<void> ours = story.confirm();
        ASSERT_FALSE(ours) << row.what;
        EXPECT_EQ(ours.error().kind, row.kind) << row.what;
        EXPECT_NE(ours.error().what.find(row.words), std::string::npos) << row.what << ": " << ours.error().what;
    }
}

TEST(HostLease, ThatTheHostRefusesStopsChangesOnly) {
    LeaseStory story;
    story.refuse =
        Error{ErrorKind::refused, "gpu1: cannot take the lease on vllm.service", "the right is missing there", "", ""};
    EXPECT_TRUE(story.take()) << "who may not write may still measure";
    story.refuse.reset();
    EXPECT_FALSE(story.confirm());
}
