#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <future>
#include <optional>
#include <thread>

#include "fault_vfs.hpp"
#include "scratch.hpp"
#include "storage/journal.hpp"

using namespace campaign;
using namespace campaign::storage;
using campaign::storage::test::FaultVfs;
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

/// A writer whose next pieces of work wait until they are let go, all in one batch.
class Held {
public:
    explicit Held(const std::filesystem::path& file) : writer_{std::in_place, std::move(Journal::open(file)).value()} {
        submit(add("first"));
        writer_->submit(
            [this](Journal&) -> Result<void> {
                entered_.set_value();
                gate_.get_future().wait();
                return {};
            },
            [](Result<void>) {});
        entered_.get_future().wait();
    }
    void submit(Writer::Work work) {
        writer_->submit(std::move(work), [this](Result<void> result) { results_.push_back(std::move(result)); });
    }
    /// What each piece was told after the first, in order.
    std::vector<Result<void>> let_go() {
        gate_.set_value();
        writer_.reset();
        return {results_.begin() + 1, results_.end()};
    }

private:
    std::promise<void> entered_;
    std::promise<void> gate_;
    std::vector<Result<void>> results_;
    std::optional<Writer> writer_;
};

std::vector<std::string> names(const std::filesystem::path& file) {
    std::vector<std::string> list;
    for (const CampaignRow& row : std::move(Reader::open(file)).value()->campaigns().value()) list.push_back(row.name);
    return list;
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
    for (int round = 0; round < 20; ++round) {
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

TEST(Writer, WhatWaitedTogetherIsOneCommitWithOneSync) {
    FaultVfs disk;
    Scratch scratch;
    Held held{scratch / "journal.db"};
    for (int i = 0; i < 100; ++i) held.submit(add("c" + std::to_string(i)));
    const int before = disk.log_syncs();
    const auto results = held.let_go();
    EXPECT_EQ(results.size(), 100U);
    // the batch with the gate, the batch of 100, and the one checkpoint that closing makes
    EXPECT_LE(disk.log_syncs() - before, 3);
    EXPECT_EQ(names(scratch / "journal.db").size(), 101U);
}

TEST(Writer, ACommitThatFailsIsToldToAllOfItsBatch) {
    FaultVfs disk;
    Scratch scratch;
    Held held{scratch / "journal.db"};
    held.submit([&disk](Journal& journal) {
        disk.break_after(0, SQLITE_FULL);
        return add("a")(journal);
    });
    held.submit(failing());
    held.submit(add("b"));
    const auto results = held.let_go();
    disk.mend();
    ASSERT_EQ(results.size(), 3U);
    EXPECT_EQ(results[0].error().kind, ErrorKind::disk_full);
    EXPECT_EQ(results[1].error().what, "second thoughts");
    EXPECT_EQ(results[2].error().kind, ErrorKind::disk_full);
    EXPECT_EQ(names(scratch / "journal.db"), std::vector<std::string>{"first"});
}

TEST(Writer, WhatSqliteTookBackByItselfIsToldToAllOfItsBatch) {
    FaultVfs disk;
    Scratch scratch;
    Held held{scratch / "journal.db"};
    held.submit(add("a"));
    held.submit([&disk](Journal& journal) -> Result<void> {   // more than the cache holds: written before the commit
        disk.break_after(10, SQLITE_FULL);
        CampaignRow row;
        row.name = "large";
        row.state = "queued";
        row.plan_text = std::string(8'000'000, 'p');
        const auto added = journal.add_campaign(row);
        disk.mend();
        if (!added) return added.error();
        return {};
    });
    held.submit(add("b"));
    const auto results = held.let_go();
    EXPECT_GT(disk.refused(), 0);
    ASSERT_EQ(results.size(), 3U);
    for (const Result<void>& result : results) {
        ASSERT_FALSE(result);
        EXPECT_EQ(result.error().kind, ErrorKind::disk_full);
    }
    EXPECT_EQ(names(scratch / "journal.db"), std::vector<std::string>{"first"});
}

TEST(Writer, GoesOnWhenThereIsRoomAgain) {
    for (const int code : {SQLITE_FULL, SQLITE_IOERR_WRITE}) {
        for (int good = 0; good < 6; ++good) {
            FaultVfs disk;
            Scratch scratch;
            std::vector<std::string> acknowledged;
            {
                Writer writer{std::move(Journal::open(scratch / "journal.db")).value()};
                for (int i = 0; i < 10; ++i) {
                    if (i == 3) disk.break_after(good, code);
                    if (i == 7) disk.mend();
                    std::promise<void> told;
                    const std::string name = "c" + std::to_string(i);
                    writer.submit(add(name), [&](Result<void> result) {
                        if (result) acknowledged.push_back(name);
                        told.set_value();
                    });
                    told.get_future().wait();
                }
            }
            EXPECT_GE(acknowledged.size(), 6U) << "code " << code << ", after " << good << " writes";
            EXPECT_LT(acknowledged.size(), 10U) << "code " << code << ", after " << good << " writes";
            std::vector<std::string> kept = names(scratch / "journal.db");
            std::reverse(kept.begin(), kept.end());
            EXPECT_EQ(kept, acknowledged) << "code " << code << ", after " << good << " writes";
        }
    }
}

TEST(Writer, ManyThreadsMaySubmit) {
    Scratch scratch;
    std::atomic<int> told{0};
    {
        Writer writer{std::move(Journal::open(scratch / "journal.db")).value()};
        std::vector<std::thread> threads;
        for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&writer, &told, t] {
                for (int i = 0; i < 50; ++i) {
                    writer.submit(add("t" + std::to_string(t) + "-" + std::to_string(i)), [&told](Result<void> result) {
                        if (result) ++told;
                    });
                }
            });
        }
        for (std::thread& thread : threads) thread.join();
    }
    EXPECT_EQ(told, 200);
    EXPECT_EQ(names(scratch / "journal.db").size(), 200U);
}
