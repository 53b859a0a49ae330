#pragma once
// Waits out a model load: the log, the unit's state and health together, paced by the history of earlier loads.

#include <string>

#include "daemon/methods/service_step.hpp"

namespace campaign::methods {

/// done: ready is proven (unit active with our invocation, health, model listed, one token). failed: why, with the evidence
/// line; error kind `failed` (the server failed), `timed_out` (stalled or over its limit), `conflict` (another restart
/// happened).
class AwaitReady final : public ServiceStep {
public:
    struct Start {
        std::string invocation;   ///< of the start that is waited for
        std::string cursor;       ///< log position before it
        storage::Micros at = 0;   ///< when the restart was sent
    };
    AwaitReady(Campaign& campaign, std::string service, std::string kind, std::string model, std::string mode, Start start)
        : ServiceStep{campaign, std::move(service)},
          kind_{std::move(kind)},
          model_{std::move(model)},
          mode_{std::move(mode)},
          start_{std::move(start)} {}
    [[nodiscard]] std::string name() const override { return "await-ready"; }
    [[nodiscard]] std::string title() const override { return "wait until " + on_host() + " has loaded its model"; }
    [[nodiscard]] Effect effect() const override { return Effect::observe; }
    [[nodiscard]] json::object input() const override {
        json::object object = ServiceStep::input();
        object["invocation"] = start_.invocation;
        object["model"] = model_;
        object["mode"] = mode_;
        return object;
    }
    Async<Outcome> act(Scope& scope, const json::object& before) override;

private:
    friend class ReadyWatch;
    std::string kind_;
    std::string model_;
    std::string mode_;
    Start start_;
};

}   // namespace campaign::methods
