#include "daemon/engine/perform.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test_world.hpp"

using namespace campaign;
using namespace campaign::engine;
using campaign::engine::test::TestWorld;

namespace {

/// The daemon dies here: nothing after this point runs.
struct Crash {};

/// A restart of a server that exists only in the test: what really happened is `happened`, whatever the engine believes.
struct Server {
    int happened = 0;
};

class Restart final : public Step {
public:
    enum class Then { answers, dies_before, dies_after, link_lost_before, link_lost_after, refuses };
    Restart(Server& server, Then then) : server_{server}, then_{then} {}
    [[nodiscard]] std::string name() const override { return "restart-unit"; }
    [[nodiscard]] std::string title() const override { return "restart vllm.service on gpu1"; }
    [[nodiscard]] Effect effect() const override { return Effect::transition; }
    [[nodiscard]] json::object input() const override {
        json::object object;
        object["unit"] = unit;
        return object;
    }
    [[nodiscard]] std::vector<Undo> undos() const override {
        Undo undo;
        undo.kind = "service-as-found";
        undo.data["unit"] = unit;
        return {undo};
    }
    Async<Result<json::object>> before(Scope&) override {
        json::object seen;
        seen["starts"] = server_.happened;
        co_return seen;
    }
    Async<Outcome> act(Scope& scope, const json::object&) override {
        ++acts;
        undo_on_record = !scope.world().journal.reader().undos(scope.campaign().row.id)->empty();
        switch (then_) {
            case Then::answers: ++server_.happened; co_return Outcome::done({}, "restarted");
            case Then::dies_before: throw Crash{};
            case Then::dies_after: ++server_.happened; throw Crash{};
            case Then::link_lost_before:
                then_ = Then::answers;
                co_return Outcome::from(Error{ErrorKind::in_doubt, "link closed", "", "", ""});
            case Then::link_lost_after:
                ++server_.happened;
                co_return Outcome::from(Error{ErrorKind::in_doubt, "link closed", "", "", ""});
            case Then::refuses: co_return Outcome::from(Error{ErrorKind::refused, "start-limit-hit", "", "", ""});
        }
        co_return Outcome{};
    }
    Async<Confirmation> confirm(Scope&, const json::object& before) override {
        ++confirms;
        Confirmation seen;
        if (!can_tell) {
            seen.evidence = "no answer";
            co_return seen;
        }
        seen.is =
            server_.happened > int_at(before, "starts").value_or(0) ? Confirmation::Is::done : Confirmation::Is::not_done;
        seen.evidence = "InvocationID";
        co_return seen;
    }

    std::string unit = "vllm.service";
    int acts = 0;
    int confirms = 0;
    bool can_tell = true;
    bool undo_on_record = false;

private:
    Server& server_;
    Then then_;
};

class Look final : public Step {
public:
    [[nodiscard]] std::string name() const override { return "look"; }
    [[nodiscard]] std::string title() const override { return "look"; }
    [[nodiscard]] Effect effect() const override { return Effect::observe; }
    [[nodiscard]] json::object input() const override { return {}; }
    Async<Outcome> act(Scope&, const json::object&) override {
        ++acts;
        if (acts <= unreachable) co_return Outcome::from(Error{ErrorKind::unreachable, "no route", "", "", ""});
        json::object facts;
        facts["acts"] = acts;
        co_return Outcome::done(std::move(facts), "seen");
    }
    int acts = 0;
    int unreachable = 0;
};

}   // namespace

TEST(Perform, RecordsIntentUndoAndOutcome) {
    TestWorld world;
    Server server;
    Restart restart{server, Restart::Then::answers};
    Track track{world.campaign(), "deep/torch", "deep"};
    EXPECT_TRUE(world.perform(track, restart));
    ASSERT_EQ(world.steps().size(), 1U);
    EXPECT_EQ(world.steps()[0].path, "deep/torch/1/restart-unit");
    EXPECT_EQ(world.steps()[0].state, storage::StepState::done);
    EXPECT_TRUE(restart.undo_on_record) << "the undo must be on record before the effect";
}

TEST(Perform, ARecordedOutcomeIsReturnedAndNothingIsDone) {
    TestWorld world;
    Server server;
    Restart first{server, Restart::Then::answers};
    Track track{world.campaign(), "deep/torch", "deep"};
    world.perform(track, first);
    world.restart();
    Restart again{server, Restart::Then::answers};
    Track replay{world.campaign(), "deep/torch", "deep"};
    EXPECT_TRUE(world.perform(replay, again));
    EXPECT_EQ(again.acts, 0);
    EXPECT_EQ(server.happened, 1);
    EXPECT_EQ(world.undos().size(), 1U);
}

TEST(Perform, AfterACrashBeforeTheEffectItIsDoneOnce) {
    TestWorld world;
    Server server;
    Restart dies{server, Restart::Then::dies_before};
    Track track{world.campaign(), "deep/torch", "deep"};
    EXPECT_THROW(world.perform(track, dies), Crash);
    world.restart();
    Restart again{server, Restart::Then::answers};
    Track replay{world.campaign(), "deep/torch", "deep"};
    EXPECT_TRUE(world.perform(replay, again));
    EXPECT_EQ(again.confirms, 1) << "nothing is done again before looking";
    EXPECT_EQ(server.happened, 1);
    EXPECT_EQ(world.undos().size(), 1U);
}

TEST(Perform, AfterACrashBehindTheEffectItIsAdoptedAndNotRepeated) {
    TestWorld world;
    Server server;
    Restart dies{server, Restart::Then::dies_after};
    Track track{world.campaign(), "deep/torch", "deep"};
    EXPECT_THROW(world.perform(track, dies), Crash);
    world.restart();
    Restart again{server, Restart::Then::answers};
    Track replay{world.campaign(), "deep/torch", "deep"};
    const Outcome outcome = world.perform(replay, again);
    EXPECT_TRUE(outcome);
    EXPECT_EQ(again.acts, 0);
    EXPECT_EQ(server.happened, 1);
    EXPECT_EQ(outcome.evidence, "found done: InvocationID");
}

TEST(Perform, ALostLinkIsSettledByLooking) {
    TestWorld world;
    Server server;
    Restart after{server, Restart::Then::link_lost_after};
    Track track{world.campaign(), "deep/torch", "deep"};
    EXPECT_TRUE(world.perform(track, after));
    EXPECT_EQ(server.happened, 1);
    EXPECT_EQ(after.acts, 1);
    Restart before{server, Restart::Then::link_lost_before};
    EXPECT_TRUE(world.perform(track, before));
    EXPECT_EQ(server.happened, 2);
    EXPECT_EQ(before.acts, 2);
}

TEST(Perform, WhatCannotBeToldAsksAPersonAndIsNotRepeated) {
    TestWorld world;
    Server server;
    Restart lost{server, Restart::Then::link_lost_after};
    lost.can_tell = false;
    world.on_word = [&] { lost.can_tell = true; };
    Track track{world.campaign(), "deep/torch", "deep"};
    EXPECT_TRUE(world.perform(track, lost));
    EXPECT_EQ(world.asked, std::vector<std::string>{"in_doubt:deep/torch/1/restart-unit"});
    EXPECT_EQ(lost.acts, 1);
    bool asked = false;
    bool closed = false;
    for (const storage::EventRow& event : world.events()) {
        if (event.kind != "need") continue;
        asked = asked || event.data_json.find("campaignctl resume k25 --as done|not-done") != std::string::npos;
        closed = closed || event.data_json.find("\"closed\"") != std::string::npos;
    }
    EXPECT_TRUE(asked);
    EXPECT_TRUE(closed);
}

TEST(Perform, APersonsWordSettlesAStep) {
    TestWorld world;
    Server server;
    Restart lost{server, Restart::Then::link_lost_after};
    lost.can_tell = false;
    world.on_word = [&] {
        const storage::Id id = world.steps()[0].id;
        world.run([&]() -> Async<void> {
            storage::Writer::Work work = [id](storage::Journal& journal) {
                return journal.resolve_step(id, storage::StepState::done, "{}", "ana said so", "ana", 1);
            };
            const Result<void> written = co_await world.journal().write(std::move(work));
            EXPECT_TRUE(written);
        });
    };
    Track track{world.campaign(), "deep/torch", "deep"};
    EXPECT_TRUE(world.perform(track, lost));
    EXPECT_EQ(lost.acts, 1);
    EXPECT_EQ(world.steps()[0].resolved_by, "ana");
}

TEST(Perform, ARefusalIsAFailureAndStays) {
    TestWorld world;
    Server server;
    Restart refused{server, Restart::Then::refuses};
    Track track{world.campaign(), "deep/torch", "deep"};
    const Outcome outcome = world.perform(track, refused);
    EXPECT_EQ(outcome.is, Outcome::Is::failed);
    world.restart();
    Restart again{server, Restart::Then::answers};
    Track replay{world.campaign(), "deep/torch", "deep"};
    const Outcome same = world.perform(replay, again);
    EXPECT_EQ(same.is, Outcome::Is::failed);
    EXPECT_EQ(same.error.what, "start-limit-hit");
    EXPECT_EQ(again.acts, 0);
}

TEST(Perform, ALookIsRepeatedUntilTheHostAnswers) {
    TestWorld world;
    Look look;
    look.unreachable = 5;
    Track track{world.campaign(), "preflight/kimi", "preflight"};
    EXPECT_TRUE(world.perform(track, look));
    EXPECT_EQ(look.acts, 6);
}

TEST(Perform, ALookGivesUpInTheEnd) {
    TestWorld world;
    Look look;
    look.unreachable = 1'000'000;
    Track track{world.campaign(), "preflight/kimi", "preflight"};
    const Outcome outcome = world.perform(track, look);
    EXPECT_EQ(outcome.is, Outcome::Is::failed);
    EXPECT_EQ(outcome.error.kind, ErrorKind::unreachable);
    EXPECT_LT(look.acts, 200);
}

TEST(Perform, AnotherInputThanTheRecordedOneStopsTheCampaign) {
    TestWorld world;
    Server server;
    Restart first{server, Restart::Then::answers};
    Track track{world.campaign(), "deep/torch", "deep"};
    world.perform(track, first);
    world.restart();
    Restart other{server, Restart::Then::answers};
    other.unit = "other.service";
    Track replay{world.campaign(), "deep/torch", "deep"};
    try {
        world.perform(replay, other);
        FAIL() << "it must not run";
    } catch (const EngineStop& stop) {
        EXPECT_EQ(stop.error().kind, ErrorKind::conflict);
        EXPECT_NE(stop.error().evidence.find("other.service"), std::string::npos);
    }
    EXPECT_EQ(other.acts, 0);
}

TEST(Perform, WithoutAnIntentOnDiskNothingIsDone) {
    TestWorld world;
    Server server;
    Restart restart{server, Restart::Then::answers};
    world.journal().fail_at = world.journal().writes + 1;
    Track track{world.campaign(), "deep/torch", "deep"};
    EXPECT_THROW(world.perform(track, restart), EngineStop);
    EXPECT_EQ(restart.acts, 0);
}

TEST(Perform, ARehearsalNotesEveryStepAndDoesNothing) {
    TestWorld world;
    Server server;
    Restart restart{server, Restart::Then::answers};
    std::vector<Planned> planned;
    world.campaign().rehearsal = &planned;
    Track track{world.campaign(), "deep/torch", "deep"};
    EXPECT_TRUE(world.perform(track, restart));
    EXPECT_EQ(server.happened, 0);
    ASSERT_EQ(planned.size(), 1U);
    EXPECT_EQ(planned[0].title, "restart vllm.service on gpu1");
    EXPECT_TRUE(world.steps().empty());
}
