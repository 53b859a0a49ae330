#pragma once
// start_profile and stop_profile: transitions of the server that must happen once.

#include <optional>
#include <string>

#include "daemon/methods/service_step.hpp"

namespace campaign::methods {

/// One start of a server. A profile lives and dies with it.
struct ServerStart {
    std::string invocation;
    std::string boot_id;
};

/// The start that a look at the service, or the facts of a started profile, speak of; empty members where they say nothing.
[[nodiscard]] ServerStart server_start(const json::object& facts);

/// What has ended `then`, in words ("the server was restarted, invocation 0a0a.. -> 0b0b.."); nothing while it still runs.
/// Pure.
[[nodiscard]] std::optional<std::string> ended_since(const ServerStart& then, const host::ServiceState& now);

/// One POST to the server's profiler. Confirmed from the server's own log: the request carries a tag that no other has.
///
/// It is meant for one start of the server: `profiled` (the one that the profile to be stopped was started in), else the one
/// seen before the request. When that start has ended, the outcome is `conflict` with the fact "lost": no profile of ours
/// runs, and none was written.
class ProfileRequest : public ServiceStep {
public:
    ProfileRequest(Campaign& campaign, std::string service, std::string kind, bool start, std::string tag, Millis limit)
        : ServiceStep{campaign, std::move(service)},
          kind_{std::move(kind)},
          tag_{std::move(tag)},
          limit_{limit},
          start_{start} {}
    [[nodiscard]] std::string name() const override { return start_ ? "start-profile" : "stop-profile"; }
    [[nodiscard]] std::string title() const override {
        return (start_ ? "start the profiler of " : "stop the profiler of ") + on_host();
    }
    [[nodiscard]] Effect effect() const override { return Effect::transition; }
    [[nodiscard]] std::string command() const override {
        return "POST " + campaign_.plan.services.at(service_).url + (start_ ? "/start_profile" : "/stop_profile") +
               "?step=" + tag_;
    }
    [[nodiscard]] json::object input() const override;
    Async<Result<json::object>> before(Scope& scope) override;
    Async<Outcome> act(Scope& scope, const json::object& before) override;
    Async<Confirmation> confirm(Scope& scope, const json::object& before) override;

    /// For a stop: the start that the profile was started in.
    void meant_for(ServerStart profiled) { profiled_ = std::move(profiled); }

private:
    [[nodiscard]] ServerStart wanted(const json::object& before) const;
    [[nodiscard]] Outcome lost(const std::string& how) const;

    ServerStart profiled_;
    std::string kind_;
    std::string tag_;
    Millis limit_;
    bool start_;
};

class StartProfile final : public ProfileRequest {
public:
    /// `undo_needed`: the server is production's own (it had its profiler on), so a profile left running must be ended.
    StartProfile(Campaign& campaign, std::string service, std::string kind, std::string tag, bool undo_needed)
        : ProfileRequest{campaign, service, kind, true, std::move(tag), std::chrono::minutes{10}},
          service_name_{std::move(service)},
          server_kind_{std::move(kind)},
          undo_needed_{undo_needed} {}
    [[nodiscard]] std::vector<engine::Undo> undos() const override;

private:
    std::string service_name_;
    std::string server_kind_;
    bool undo_needed_;
};

/// Ends a profile that StartProfile's undo speaks of, unless it was ended.
Async<Result<void>> end_left_profile(Campaign& campaign, const storage::UndoRow& undo, int round);

/// Marks the open undos of a kind as done: what they would take back is over.
Async<void> close_undos(Campaign& campaign, std::string kind, std::string evidence);

}   // namespace campaign::methods
