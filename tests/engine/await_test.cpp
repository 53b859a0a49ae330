// A wait's parts end together, however the wait ends.
#include "daemon/methods/await_ready.hpp"

#include <gtest/gtest.h>

#include "scripted.hpp"

using namespace campaign;
using namespace campaign::engine;
using campaign::engine::test::ScriptedWorld;
using campaign::methods::AwaitReady;

TEST(AwaitReady, EndsTheFollowerOfTheLogWhenTheJournalCannotBeWritten) {
    ScriptedWorld story;
    story.scene.on_request = [](const http::Request&) -> Result<http::Response> {
        return Error{ErrorKind::unreachable, "connection refused", "", "", ""};
    };
    int seen_following = 0;
    story.scene.on_look = [&] {   // the disk is full from the first look on
        seen_following = story.scene.followers;
        story.world.journal().fail_at = story.world.journal().writes + 1;
    };
    AwaitReady::Start start;
    start.invocation = story.scene.state.invocation;
    start.at = engine::micros(story.world.clock.wall());
    AwaitReady wait{story.world.campaign(), "kimi", "vllm", "kimi-k2.5", "profiler", start};
    Track track{story.world.campaign(), "session/kimi/profiler", "session"};
    EXPECT_THROW(story.world.perform(track, wait), EngineStop) << "and not a wait for ever";
    EXPECT_EQ(seen_following, 1);
    EXPECT_EQ(story.scene.followers, 0);
}
