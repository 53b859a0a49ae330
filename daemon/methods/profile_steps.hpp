#pragma once
// start_profile and stop_profile: transitions of the server that must happen once.

#include <string>

#include "daemon/methods/service_step.hpp"

namespace campaign::methods {

/// One POST to the server's profiler. Confirmed from the server's own log: the request carries a tag that no other has.
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

private:
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
