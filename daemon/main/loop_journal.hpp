#pragma once
// The journal for coroutines of one loop: writes go to the writer's thread and come back here.

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <memory>

#include "daemon/engine/world.hpp"

namespace campaign::daemon {

class LoopJournal final : public engine::JournalPort {
public:
    /// `committed` is called on the writer's thread after each commit (live events are waiting then).
    LoopJournal(boost::asio::any_io_executor executor, std::unique_ptr<storage::Journal> journal,
                std::unique_ptr<storage::Reader> reader, std::function<void()> committed);

    Async<Result<void>> write(storage::Writer::Work work) override;
    storage::Reader& reader() override { return *reader_; }

private:
    boost::asio::any_io_executor executor_;
    std::unique_ptr<storage::Reader> reader_;
    std::function<void()> committed_;
    storage::Writer writer_;   // last: its thread ends first, and calls nothing of ours afterwards
};

}   // namespace campaign::daemon
