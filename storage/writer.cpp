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
        for (;;) {
            std::vector<std::pair<Work, Done>> batch;
            {
                std::unique_lock hold{mutex};
                if (queue.empty() && !closing && journal->checkpoint_due()) {
                    hold.unlock();   // the gap between two writes is the time to checkpoint
                    journal->checkpoint();
                    hold.lock();
                }
                wake.wait(hold, [this] { return closing || !queue.empty(); });
                if (queue.empty()) return;
                batch.swap(queue);
            }
            commit(batch);
        }
    }

    /// All of it in one transaction with one sync. A piece that fails takes back only itself, unless SQLite took back the
    /// whole transaction with it (a full disk): then nothing of the batch is on disk, and each is told so.
    void commit(std::vector<std::pair<Work, Done>>& batch) {
        std::vector<Result<void>> results;
        results.reserve(batch.size());
        Result<void> whole = journal->begin();
        for (auto& [work, done] : batch) {
            if (!whole) break;
            results.push_back(piece(work));
            if (!journal->in_transaction()) whole = taken_back(results.back());
        }
        if (whole) whole = journal->commit();
        if (!whole) {
            journal->rollback();
            results.resize(batch.size(), whole);
            for (Result<void>& result : results) {
                if (result) result = whole;
            }
        }
        for (std::size_t i = 0; i < batch.size(); ++i) {
            if (batch[i].second) batch[i].second(std::move(results[i]));
        }
    }

    static Result<void> taken_back(const Result<void>& by) {
        if (!by) return by;
        return Error{ErrorKind::bug, "a piece of work ended the journal's transaction", "", "", ""};
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
