#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "storage/journal.hpp"

namespace campaign::storage {

struct Writer::State {
    std::unique_ptr<Journal> journal;
    std::mutex mutex;
    std::condition_variable wake;
    std::vector<std::pair<Work, Done>> queue;
    bool closing = false;
    std::thread thread;

    void run() {
        std::size_t since_checkpoint = 0;
        for (;;) {
            std::vector<std::pair<Work, Done>> batch;
            {
                std::unique_lock hold{mutex};
                if (queue.empty() && since_checkpoint >= 64 && !closing) {
                    hold.unlock();   // the gap between two writes is the time to checkpoint
                    journal->checkpoint();
                    since_checkpoint = 0;
                    hold.lock();
                }
                wake.wait(hold, [this] { return closing || !queue.empty(); });
                if (queue.empty()) return;
                batch.swap(queue);
            }
            commit(batch);
            since_checkpoint += batch.size();
        }
    }

    /// All of it in one transaction with one sync; a piece that fails takes back only itself.
    void commit(std::vector<std::pair<Work, Done>>& batch) {
        std::vector<Result<void>> results;
        results.reserve(batch.size());
        Result<void> begun = journal->begin();
        for (auto& [work, done] : batch) {
            if (!begun) {
                results.emplace_back(begun.error());
                continue;
            }
            results.push_back(piece(work));
        }
        if (begun) {
            if (const Result<void> committed = journal->commit(); !committed) {
                journal->rollback();
                for (Result<void>& result : results) {
                    if (result) result = committed.error();
                }
            }
        }
        for (std::size_t i = 0; i < batch.size(); ++i) {
            if (batch[i].second) batch[i].second(std::move(results[i]));
        }
    }

    Result<void> piece(const Work& work) {
        if (Result<void> saved = journal->savepoint(); !saved) return saved;
        Result<void> result = Error{ErrorKind::bug, "a piece of work threw", "", "", ""};
        try {
            result = work(*journal);
        } catch (const std::exception& error) {
            result = Error{ErrorKind::bug, "a piece of work for the journal threw", error.what(), "", ""};
        }
        if (!result) {
            (void)journal->undo_savepoint();
            return result;
        }
        return journal->release();
    }
};

Writer::Writer(std::unique_ptr<Journal> journal) : state_{std::make_unique<State>()} {
    state_->journal = std::move(journal);
    state_->thread = std::thread{[state = state_.get()] { state->run(); }};
}

Writer::~Writer() {
    {
        const std::lock_guard hold{state_->mutex};
        state_->closing = true;
    }
    state_->wake.notify_one();
    state_->thread.join();
}

void Writer::submit(Work work, Done done) {
    {
        const std::lock_guard hold{state_->mutex};
        state_->queue.emplace_back(std::move(work), std::move(done));
    }
    state_->wake.notify_one();
}

}   // namespace campaign::storage
