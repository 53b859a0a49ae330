#pragma once
// All campaigns of this daemon: begun, resumed, queued for their services, told what people say, ended.

#include <spdlog/logger.h>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "daemon/api/actions.hpp"
#include "daemon/engine/scope.hpp"

namespace campaign::daemon {

class Supervisor final : public api::Actions {
public:
    Supervisor(boost::asio::any_io_executor executor, engine::World& world, std::shared_ptr<spdlog::logger> log,
               std::string version);
    ~Supervisor() override;

    /// Takes up every unfinished campaign where its record ends.
    [[nodiscard]] Result<void> resume_all();
    /// Ends all work and leaves every campaign resumable: nothing is decided, nothing is restored. Returns when all are
    /// parked.
    Async<void> park();
    /// One line for systemd's STATUS=.
    [[nodiscard]] std::string status_line() const;

    Answer submit(std::string plan_text, std::string file, std::string who) override;
    Answer approve(std::string name, std::string decision, std::string candidate, std::string who) override;
    Answer cancel(std::string name, std::string who) override;
    Answer resume(std::string name, std::optional<std::string> as, std::string who) override;
    Answer restore(std::string name, std::string who) override;
    Answer explain(std::string plan_text, bool offline) override;
    Result<std::string> report(std::string name) override;

private:
    struct Running;

    void launch(storage::CampaignRow row, plans::Plan plan, bool only_restore);
    Async<void> run(std::shared_ptr<Running> running);
    Async<void> wait_for_services(Running& running);
    Async<void> run_to_end(Running& running);
    Async<void> finish(Running& running, std::optional<Error> failure, bool cancelled, std::optional<Error> unrestored);
    Async<Result<void>> write(storage::Writer::Work work);
    Async<void> note(storage::Id campaign, std::string kind, json::object data);
    [[nodiscard]] Result<storage::CampaignRow> find(const std::string& name) const;
    void poke(storage::Id campaign);
    void changed();

    boost::asio::any_io_executor executor_;
    engine::World& world_;
    std::shared_ptr<spdlog::logger> log_;
    std::string version_;
    std::map<storage::Id, std::shared_ptr<Running>> running_;
    std::map<std::string, storage::Id> holders_;   ///< "host unit" -> the campaign that may change it
    boost::asio::steady_timer changed_;            ///< expires when a campaign ended
    bool stopping_ = false;
};

}   // namespace campaign::daemon
