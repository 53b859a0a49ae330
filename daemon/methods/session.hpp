#pragma once
// Putting a service into another mode: override on disk, one restart, the model load waited out, the result proven.

#include <string>

#include "daemon/engine/policy.hpp"
#include "daemon/methods/preflight.hpp"
#include "daemon/methods/service_step.hpp"

namespace campaign::methods {

/// A service that runs in a mode of ours. Its undo is on record; `leave` is methods::restore.
struct Session {
    engine::Mode mode = engine::Mode::production;
    std::string trace_dir;      ///< on the host; belongs to the service's user
    std::string invocation;     ///< of the server that runs in this mode
    std::string nsys_session;   ///< name for `nsys start --session`
};

/// make-trace-dir, install-override (registers the undo), restart, await-ready, verify-effective. A failure leaves the undo
/// pending: the caller restores.
Async<Result<Session>> enter_mode(Campaign& campaign, std::string service, engine::Mode mode, const ServiceFacts& facts);

/// What would be written, for `plan explain`: pure.
Result<host::Change> render_mode(Campaign& campaign, const std::string& service, engine::Mode mode,
                                 const ServiceFacts& facts);

/// Restarts the service; proven by a new InvocationID.
class RestartService final : public ServiceStep {
public:
    /// `state`: what production is from then on ("down", "restoring"); `reason`: for people.
    RestartService(Campaign& campaign, std::string service, std::string state, std::string reason)
        : ServiceStep{campaign, std::move(service)}, state_{std::move(state)}, reason_{std::move(reason)} {}
    [[nodiscard]] std::string name() const override { return "restart-unit"; }
    [[nodiscard]] std::string title() const override { return "restart " + on_host(); }
    [[nodiscard]] Effect effect() const override { return Effect::transition; }
    [[nodiscard]] json::object input() const override {
        json::object object = ServiceStep::input();
        object["reason"] = reason_;
        return object;
    }
    [[nodiscard]] std::string command() const override {
        return "systemctl reset-failed " + unit() + "; systemctl restart --no-block " + unit();
    }
    [[nodiscard]] json::object example() const override {
        json::object object;
        object["invocation"] = "(new)";
        return object;
    }
    Async<Result<json::object>> before(Scope& scope) override;
    Async<Outcome> act(Scope& scope, const json::object& before) override;
    Async<Confirmation> confirm(Scope& scope, const json::object& before) override;

private:
    Async<Outcome> see_it_start(Scope& scope, const json::object& before);
    std::string state_;
    std::string reason_;
};

}   // namespace campaign::methods
