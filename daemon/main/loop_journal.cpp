#include "daemon/main/loop_journal.hpp"

#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace campaign::daemon {
namespace asio = boost::asio;

LoopJournal::LoopJournal(asio::any_io_executor executor, std::unique_ptr<storage::Journal> journal,
                         std::unique_ptr<storage::Reader> reader, std::function<void()> committed)
    : executor_{std::move(executor)},
      reader_{std::move(reader)},
      committed_{std::move(committed)},
      writer_{std::move(journal)} {}

Async<Result<void>> LoopJournal::write(storage::Writer::Work work) {
    // The operation takes no notice of cancellation: what the writer was given it will record.
    auto start = [this](auto handler, storage::Writer::Work job) {
        auto shared = std::make_shared<decltype(handler)>(std::move(handler));
        auto keep = asio::make_work_guard(executor_);
        storage::Writer::Done done = [this, shared, keep](Result<void> result) {
            if (result && committed_) committed_();
            asio::post(executor_,
                       [shared, result = std::move(result)]() mutable { std::move (*shared)(std::move(result)); });
        };
        writer_.submit(std::move(job), std::move(done));
    };
    co_return co_await asio::async_initiate<decltype(asio::use_awaitable), void(Result<void>)>(start, asio::use_awaitable,
                                                                                               std::move(work));
}

}   // namespace campaign::daemon
