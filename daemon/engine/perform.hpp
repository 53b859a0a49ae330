#pragma once
// perform: memo, intent, act, outcome, once for all steps.

#include <string>

#include "daemon/engine/scope.hpp"
#include "daemon/engine/step.hpp"

namespace campaign::engine {

/// A run of steps with a common path, "PHASE/METHOD" or "restore/ID": numbers them in the order in which they are performed,
/// so that the same code after a crash meets its own records.
class Track {
public:
    Track(Campaign& campaign, std::string path, std::string phase)
        : campaign_{campaign}, path_{std::move(path)}, phase_{std::move(phase)} {}

    /// A recorded outcome is returned and nothing is done. Else: intent on disk, act, outcome on disk. An intent without
    /// outcome is done again (observe, converge) or settled by looking (transition); what cannot be settled asks the
    /// operator and waits. Throws operation_aborted when the campaign is cancelled or the daemon stops.
    Async<Outcome> perform(Step& step);

    [[nodiscard]] Campaign& campaign() const { return campaign_; }
    [[nodiscard]] World& world() const { return campaign_.world; }
    [[nodiscard]] const plans::Plan& plan() const { return campaign_.plan; }
    [[nodiscard]] const std::string& phase() const { return phase_; }

private:
    Async<Outcome> act_until_known(Step& step, storage::StepRow& row, const json::object& before);
    Async<Outcome> settle(Step& step, storage::StepRow& row, const json::object& before, Error doubt);
    Async<storage::Id> begin(Step& step, storage::StepRow& row);
    Async<void> end(storage::StepRow& row, const Outcome& outcome);

    Campaign& campaign_;
    std::string path_;
    std::string phase_;
    int ordinal_ = 0;
};

/// What ends a campaign from within: the journal cannot be written, or the record contradicts the code.
class EngineStop : public std::exception {
public:
    explicit EngineStop(Error error) : error_{std::move(error)} {}
    [[nodiscard]] const char* what() const noexcept override { return error_.what.c_str(); }
    [[nodiscard]] const Error& error() const { return error_; }

private:
    Error error_;
};

}   // namespace campaign::engine
