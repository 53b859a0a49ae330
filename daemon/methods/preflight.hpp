#pragma once
// Looks at a service before anything is done to it: the baseline that restore must bring back, and what is possible here.

#include <optional>
#include <string>
#include <vector>

#include "adapters/host/service.hpp"
#include "adapters/servers/server.hpp"
#include "daemon/methods/service_step.hpp"

namespace campaign::methods {

/// What preflight found, as later steps need it.
struct ServiceFacts {
    std::string service;
    bool looked = true;   ///< false: nobody asked the host (plan explain --offline)
    host::Baseline baseline;
    std::string server_kind;
    std::string version;
    std::string model;
    servers::Ability profiler = servers::Ability::unknown;
    std::string profiler_evidence;
    std::string profiler_cause;
    int world_size = 1;
    std::optional<std::string> nsys;       ///< path of nsys on the host
    std::optional<double> probe_tpot_ms;   ///< of the short probe before the campaign
    json::object probe;
};

/// host, baseline, server, one token, short probe. Reads only; the probe sends a few requests.
/// Fails with the first thing that stands in the way of any campaign on this service.
/// `look_only`: without the token and the probe, for `plan explain`.
Async<Result<ServiceFacts>> preflight(Campaign& campaign, std::string service, bool look_only = false);

/// A short measurement by a single stream through whatever way the daemon reaches the server: comparable only with itself.
class ShortProbe final : public ServiceStep {
public:
    ShortProbe(Campaign& campaign, std::string service, std::string model, std::string name)
        : ServiceStep{campaign, std::move(service)}, model_{std::move(model)}, name_{std::move(name)} {}
    [[nodiscard]] std::string name() const override { return name_; }
    [[nodiscard]] std::string title() const override { return "short probe of " + on_host(); }
    [[nodiscard]] Effect effect() const override { return Effect::observe; }
    [[nodiscard]] json::object input() const override;
    Async<Outcome> act(Scope& scope, const json::object& before) override;

private:
    std::string model_;
    std::string name_;
};

/// argv, environment, state and command line exactly as they are now.
class ReadBaseline final : public ServiceStep {
public:
    using ServiceStep::ServiceStep;
    [[nodiscard]] std::string name() const override { return "read-baseline"; }
    [[nodiscard]] std::string title() const override { return "read how " + on_host() + " runs"; }
    [[nodiscard]] Effect effect() const override { return Effect::observe; }
    Async<Outcome> act(Scope& scope, const json::object& before) override;
};

}   // namespace campaign::methods
