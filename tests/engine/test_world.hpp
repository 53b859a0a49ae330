#pragma once
// A world for engine tests: a real journal in a temporary folder, a clock that jumps instead of sleeping, no hosts.

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <filesystem>
#include <string>

#include "daemon/engine/perform.hpp"

namespace campaign::engine::test {

/// Time passes only while somebody sleeps.
class JumpingClock final : public Clock {
public:
    [[nodiscard]] WallTime wall() const override {
        return WallTime{std::chrono::seconds{1'764'600'000}} + std::chrono::duration_cast<std::chrono::microseconds>(now_);
    }
    [[nodiscard]] MonoTime mono() const override { return MonoTime{now_}; }
    Async<> sleep_until(MonoTime when) override {
        if (when.time_since_epoch() > now_) now_ = when.time_since_epoch();
        co_await boost::asio::post(co_await boost::asio::this_coro::executor, boost::asio::use_awaitable);
    }

private:
    MonoTime::duration now_{};
};

class CountingRandom final : public Random {
public:
    std::uint64_t next() override { return state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL; }

private:
    std::uint64_t state_ = 1;
};

class InlineJournal final : public JournalPort {
public:
    InlineJournal(std::unique_ptr<storage::Journal> journal, std::unique_ptr<storage::Reader> reader)
        : journal_{std::move(journal)}, reader_{std::move(reader)} {}
    Async<Result<void>> write(storage::Writer::Work work) override {
        ++writes;
        if (fail_at != 0 && writes >= fail_at)
            co_return Error{ErrorKind::disk_full, "no space left for the journal", "", "", ""};
        if (Result<void> begun = journal_->begin(); !begun) co_return begun;
        if (Result<void> done = work(*journal_); !done) {
            journal_->rollback();
            co_return done;
        }
        co_return journal_->commit();
    }
    storage::Reader& reader() override { return *reader_; }

    int writes = 0;
    int fail_at = 0;   ///< this write and all later ones fail; 0: none

private:
    std::unique_ptr<storage::Journal> journal_;
    std::unique_ptr<storage::Reader> reader_;
};

class NoTransport final : public Transport {
public:
    std::shared_ptr<host::Host> open(const plans::Host&) override { return nullptr; }
    std::unique_ptr<host::ServiceManager> manager(std::shared_ptr<host::Host>, const plans::Host&,
                                                  const plans::Service&) override {
        return nullptr;
    }
    std::shared_ptr<host::Host> here() override { return nullptr; }
};

class NoHttp final : public http::Client {
public:
    Async<Result<http::Response>> send(http::Request) override {
        co_return Error{ErrorKind::unreachable, "no network here", "", "", ""};
    }
};

/// One campaign over one journal; `restart` is what a crash and a new start of the daemon do to memory.
class TestWorld {
public:
    explicit TestWorld(plans::Plan plan = {}, std::unique_ptr<Transport> transport = std::make_unique<NoTransport>(),
                       std::unique_ptr<http::Client> http = std::make_unique<NoHttp>())
        : plan_{std::move(plan)}, transport_{std::move(transport)}, http_{std::move(http)} {
        std::string pattern = (std::filesystem::temp_directory_path() / "campaign-engine-XXXXXX").string();
        folder_ = ::mkdtemp(pattern.data());
        auto journal = storage::Journal::open(folder_ / "journal.db");
        auto reader = storage::Reader::open(folder_ / "journal.db");
        auto vault = storage::Vault::open(folder_ / "vault");
        if (!journal || !reader || !vault) throw std::runtime_error("no test world");
        storage::CampaignRow row;
        row.name = "k25";
        row.state = "running";
        journal_.emplace(std::move(*journal), std::move(*reader));
        vault_.emplace(std::move(*vault));
        world_.emplace(World{clock, random, *journal_, *transport_, *http_, *vault_, "campaign-agent", "0123456789abcdef"});
        auto added = std::make_shared<storage::Id>();
        run([&]() -> Async<void> {
            storage::Writer::Work work = [row, added](storage::Journal& to) -> Result<void> {
                const auto id = to.add_campaign(row);
                if (!id) return id.error();
                *added = *id;
                return {};
            };
            const Result<void> written = co_await journal_->write(std::move(work));
            if (!written) throw std::runtime_error(written.error().what);
        });
        id_ = *added;
        restart();
    }
    ~TestWorld() {
        campaign_.reset();
        world_.reset();
        journal_.reset();
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    TestWorld(const TestWorld&) = delete;
    TestWorld& operator=(const TestWorld&) = delete;

    /// Memory is gone; what the journal has is loaded.
    void restart() {
        storage::CampaignRow row;
        row.id = id_;
        row.name = "k25";
        campaign_ = std::make_unique<Campaign>(*world_, row, plan_);
        const auto steps = journal_->reader().steps(id_);
        if (!steps) throw std::runtime_error(steps.error().what);
        for (const storage::StepRow& step : *steps) campaign_->memo.emplace(step.path, step);
        campaign_->await_word = [this](std::string what) -> Async<void> {
            asked.push_back(what);
            if (on_word) on_word();
            co_return;
        };
    }

    /// Runs a coroutine to its end; what it throws comes out here.
    template <class Body>
    void run(Body body) {
        boost::asio::io_context context{1};
        std::exception_ptr thrown;
        boost::asio::co_spawn(context, body(), [&thrown](const std::exception_ptr& error) { thrown = error; });
        context.run();
        if (thrown) std::rethrow_exception(thrown);
    }

    Outcome perform(Track& track, Step& step) {
        Outcome outcome;
        run([&]() -> Async<void> { outcome = co_await track.perform(step); });
        return outcome;
    }

    [[nodiscard]] std::vector<storage::StepRow> steps() { return *journal_->reader().steps(id_); }
    [[nodiscard]] std::vector<storage::UndoRow> undos() { return *journal_->reader().undos(id_); }
    [[nodiscard]] std::vector<storage::EventRow> events() { return *journal_->reader().events(id_, 0, 10'000); }
    [[nodiscard]] InlineJournal& journal() { return *journal_; }
    [[nodiscard]] Campaign& campaign() { return *campaign_; }

    JumpingClock clock;
    CountingRandom random;
    std::vector<std::string> asked;   ///< what a person was waited for
    std::function<void()> on_word;    ///< the person

private:
    std::filesystem::path folder_;
    plans::Plan plan_;
    std::unique_ptr<Transport> transport_;
    std::unique_ptr<http::Client> http_;
    std::optional<InlineJournal> journal_;
    std::optional<storage::Vault> vault_;
    std::optional<World> world_;
    std::unique_ptr<Campaign> campaign_;
    storage::Id id_ = 0;
};

}   // namespace campaign::engine::test
