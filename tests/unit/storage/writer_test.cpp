#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <future>

#include "scratch.hpp"
#include "storage/journal.hpp"

using namespace campaign;
using namespace campaign::storage;
using campaign::storage::test::Scratch;

namespace {

Writer::Work add(const std::string& name) {
    return [name](Journal& journal) -> Result<void> {
        CampaignRow row;
        row.name = name;
        row.state = "queued";
        const auto added = journal.add_campaign(row);
        if (!added) return added.error();
        return {};
    };
}

Writer::Work failing() {
    return [](Journal& journal) -> Result<void> {
        CampaignRow row;
        row.name = "half";
        (void)journal.add_campaign(row);
        return Error{ErrorKind::conflict, "second thoughts", "", "", ""};
    };
}

}   // namespace

TEST(Writer, TellsEachAndKeepsTheOrder) {
    Scratch scratch;
    std::vector<int> order;
    {
        Writer writer{std::move(Journal::open(scratch / "journal.db")).value()};
        for (int i = 0; i < 200; ++i) {
            writer.submit(add("c" + std::to_string(i)), [&order, i](Result<void> result) {
                EXPECT_TRUE(result);
                order.push_back(i);
            });
        }
    }
    ASSERT_EQ(order.size(), 200U) << "what was queued is written before the writer goes";
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
    EXPECT_EQ(std::move(Reader::open(scratch / "journal.db")).value()->campaigns().value().size(), 200U);
}

TEST(Writer, APieceThatFailsTakesBackOnlyItself) {
    Scratch scratch;
    std::vector<bool> good;
    {
        Writer writer{std::move(Journal::open(scratch / "journal.db")).value()};
        for (const auto& work : {add("first"), failing(), add("third")}) {
            writer.submit(work, [&good](Result<void> result) { good.push_back(static_cast<bool>(result)); });
        }
    }
    EXPECT_EQ(good, (std::vector<bool>{true, false, true}));
    const auto rows = std::move(Reader::open(scratch / "journal.db")).value()->campaigns().value();
    ASSERT_EQ(rows.size(), 2U);
    EXPECT_EQ(rows[0].name, "third");
    EXPECT_EQ(rows[1].name, "first");
}

TEST(Writer, WorkThatThrowsIsAnErrorOfItsOwn) {
    Scratch scratch;
    std::promise<Result<void>> told;
    {
        Writer writer{std::move(Journal::open(scratch / "journal.db")).value()};
        writer.submit([](Journal&) -> Result<void> { throw std::runtime_error("oops"); },
                      [&told](Result<void> result) { told.set_value(std::move(result)); });
    }
    const Result<void> result = told.get_future().get();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().why, "oops");
}

TEST(Writer, EveryAcknowledgedRowSurvivesKill) {
    for (int round = 0; round < 10; ++round) {
        Scratch scratch;
        int acknowledged[2];
        ASSERT_EQ(::pipe(acknowledged), 0);
        const pid_t child = ::fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            Writer writer{std::move(Journal::open(scratch / "journal.db")).value()};
            for (int i = 0;; ++i) {
                std::promise<void> done;
                writer.submit(add("c" + std::to_string(i)), [&](Result<void> result) {
                    const char mark = result ? '+' : '-';
                    if (::write(acknowledged[1], &mark, 1) != 1) ::_exit(1);
                    done.set_value();
                });
                done.get_future().wait();
            }
        }
        ::close(acknowledged[1]);
        std::size_t seen = 0;
        char mark = 0;
        const std::size_t wanted = 20 + static_cast<std::size_t>(round) * 13;
        while (seen < wanted && ::read(acknowledged[0], &mark, 1) == 1) ++seen;
        ::kill(child, SIGKILL);
        while (::read(acknowledged[0], &mark, 1) == 1) ++seen;
        ::close(acknowledged[0]);
        ::waitpid(child, nullptr, 0);
        const auto rows = std::move(Journal::open(scratch / "journal.db")).value();
        const std::size_t kept = std::move(Reader::open(scratch / "journal.db")).value()->campaigns().value().size();
        EXPECT_GE(kept, seen) << "round " << round;
        EXPECT_LE(kept, seen + 1) << "one more may be on disk than was told";
    }
}
