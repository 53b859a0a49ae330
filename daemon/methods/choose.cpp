#include "daemon/methods/choose.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/multiple_exceptions.hpp>

#include "base/text.hpp"
#include "daemon/engine/window.hpp"

namespace campaign::methods {
namespace {

std::string question_of(plans::Measure measure) {
    switch (measure) {
        case plans::Measure::warm_up: return "is the server warm, and what distorts a measurement";
        case plans::Measure::throughput: return "how fast at which concurrency";
        case plans::Measure::decode_step: return "where a decode step goes";
    }
    return "";
}

engine::Mode mode_from(std::string_view word) {
    return word == "profiler" ? engine::Mode::profiler : word == "nsys" ? engine::Mode::nsys : engine::Mode::production;
}

double downtime_spent(Campaign& campaign, const std::string& service) {
    const auto last = campaign.world.journal.reader().latest_event(campaign.row.id, "production", service);
    if (!last || !*last) return 0;
    const Result<json::value> data = parse_json((**last).data_json, "production event");
    return data ? number_at(*data, "downtime_s").value_or(0) : 0;
}

class Decide final : public Step {
public:
    Decide(Campaign& campaign, const plans::Phase& phase, engine::DecideInput input, json::object identity)
        : campaign_{campaign}, phase_{phase}, input_{std::move(input)}, identity_{std::move(identity)} {}
    [[nodiscard]] std::string name() const override { return "decide"; }
    [[nodiscard]] std::string title() const override { return "decide how to learn " + input_.question; }
    [[nodiscard]] Effect effect() const override { return Effect::observe; }
    [[nodiscard]] json::object input() const override { return identity_; }

    Async<Outcome> act(Scope& scope, const json::object&) override {
        const engine::Decision decision = engine::decide(input_);
        storage::DecisionRow row;
        row.campaign = campaign_.row.id;
        row.phase = phase_.name;
        row.at = engine::micros(scope.clock().wall());
        row.question = decision.question;
        row.chosen = decision.chosen ? std::string{plans::to_string(*decision.chosen)} : std::string{};
        row.policy = decision.policy;
        row.candidates_json = json::serialize(engine::candidates_json(decision));
        row.cannot_show = decision.cannot_show;
        row.state = decision.deferred.empty() ? "final" : "open";
        const Result<std::vector<storage::DecisionRow>> earlier = scope.world().journal.reader().decisions(campaign_.row.id);
        std::string label;
        if (earlier) {
            for (const storage::DecisionRow& old : *earlier) {   // a crash right after this was written: it stands
                if (old.phase == row.phase && old.candidates_json == row.candidates_json && old.state != "superseded")
                    label = old.label;
            }
        }
        if (label.empty()) {
            const std::vector<storage::DecisionRow> before = earlier ? *earlier : std::vector<storage::DecisionRow>{};
            row.label = "D" + std::to_string(before.size() + 1);   // only this coroutine decides for this campaign
            label = row.label;
            storage::Writer::Work work = [row, before](storage::Journal& journal) -> Result<void> {
                for (const storage::DecisionRow& old : before) {
                    if (old.phase != row.phase || old.state != "open") continue;
                    if (Result<void> closed = journal.set_decision_state(old.id, "superseded"); !closed) return closed;
                }
                const auto added = journal.add_decision(row);
                if (!added) return added.error();
                return {};
            };
            const Result<void> written = co_await scope.world().journal.write(std::move(work));
            if (!written) throw engine::EngineStop{written.error()};
            json::object event;
            event["subject"] = label;
            event["chosen"] = row.chosen;
            event["detail"] =
                phase_.name + ": " + (row.chosen.empty() ? "nothing yet" : row.chosen) + explain_losers(decision);
            co_await scope.event("decision", std::move(event));
        }
        json::object facts;
        facts["label"] = label;
        facts["chosen"] = row.chosen;
        facts["mode"] = std::string{engine::to_string(decision.mode)};
        facts["cannot_show"] = decision.cannot_show;
        json::array deferred;
        for (const plans::MethodKind method : decision.deferred)
            deferred.emplace_back(std::string{plans::to_string(method)});
        facts["deferred"] = std::move(deferred);
        std::string why;
        for (const engine::Judged& judged : decision.candidates) {
            if (judged.verdict == engine::Verdict::chosen) {
                if (judged.down_high) facts["down_high_s"] = judged.down_high->count();
                break;
            }
            why += (why.empty() ? "" : "; ") + std::string{plans::to_string(judged.candidate.method)} + " " +
                   std::string{engine::to_string(judged.verdict)} + ": " + judged.why;
        }
        facts["why_not_deeper"] = why;
        std::string seen = label + ": " + (row.chosen.empty() ? "nothing is possible and allowed now" : row.chosen) +
                           (why.empty() ? "" : " (" + why + ")");
        co_return Outcome::done(std::move(facts), printable(seen, 600));
    }

private:
    static std::string explain_losers(const engine::Decision& decision) {
        std::string text;
        for (const engine::Judged& judged : decision.candidates) {
            if (judged.verdict == engine::Verdict::chosen) continue;
            text += "; " + std::string{plans::to_string(judged.candidate.method)} + " " +
                    std::string{engine::to_string(judged.verdict)} + ": " + printable(judged.why, 200);
        }
        return text;
    }
    Campaign& campaign_;
    const plans::Phase& phase_;
    engine::DecideInput input_;
    json::object identity_;
};

class AwaitApproval final : public Step {
public:
    AwaitApproval(Campaign& campaign, const plans::Phase& phase, const Choice& choice)
        : campaign_{campaign}, phase_{phase}, choice_{choice} {}
    [[nodiscard]] std::string name() const override { return "await-approval"; }
    [[nodiscard]] std::string title() const override {
        return "wait for a word on " + choice_.label + " (" + phase_.name + ")";
    }
    [[nodiscard]] Effect effect() const override { return Effect::observe; }
    [[nodiscard]] json::object input() const override {
        json::object object;
        object["decision"] = choice_.label;
        return object;
    }
    Async<Result<json::object>> before(Scope& scope) override {
        json::object seen;
        seen["expires"] = engine::micros(scope.clock().wall() + campaign_.plan.policy.approval_expires);
        co_return seen;
    }
    Async<Outcome> act(Scope& scope, const json::object& before) override {
        using namespace boost::asio::experimental::awaitable_operators;
        const storage::Micros expires = int_at(before, "expires").value_or(0);
        bool asked = false;
        for (;;) {
            const Result<std::vector<storage::ApprovalRow>> given =
                scope.world().journal.reader().approvals(campaign_.row.id);
            const storage::Micros now = engine::micros(scope.clock().wall());
            if (given) {
                for (const storage::ApprovalRow& approval : *given) {
                    if (approval.decision != choice_.label || (approval.expires != 0 && approval.expires < now)) continue;
                    if (asked) co_await close(scope);
                    json::object facts;
                    facts["candidate"] = approval.candidate;
                    facts["by"] = approval.by;
                    facts["at"] = approval.at;
                    co_return Outcome::done(std::move(facts),
                                            printable(approval.by, 80) + " approved " + approval.candidate);
                }
            }
            if (now >= expires) {
                if (asked) co_await close(scope);
                json::object gone;
                gone["subject"] = choice_.label;
                gone["state"] = "expired";
                co_await scope.event("approval", std::move(gone));
                json::object facts;
                facts["candidate"] = nullptr;
                co_return Outcome::done(std::move(facts), "nobody approved it in time");
            }
            if (!asked) {
                asked = true;
                const std::string first{plans::to_string(choice_.deferred.front())};
                json::object need;
                need["subject"] = choice_.label;
                need["what"] = "approve " + first + " for " + phase_.name + ", or cancel; dropped at " +
                               format_time(engine::wall_time(expires));
                need["command"] = "campaignctl approve " + campaign_.row.name + " " + choice_.label + " " + first;
                need["state"] = "open";
                co_await scope.event("need", std::move(need));
            }
            std::string what = "approval:" + choice_.label;
            const auto left = std::chrono::microseconds{expires - now};
            try {
                co_await (campaign_.await_word(what) || scope.clock().sleep_for(left));
            } catch (const boost::asio::multiple_exceptions& both) {   // a cancel ends both, and each says so
                std::rethrow_exception(both.first_exception());
            }
        }
    }

private:
    Async<void> close(Scope& scope) {
        json::object data;
        data["subject"] = choice_.label;
        data["state"] = "closed";
        co_await scope.event("need", std::move(data));
    }
    Campaign& campaign_;
    const plans::Phase& phase_;
    const Choice& choice_;
};

class AwaitWindow final : public Step {
public:
    AwaitWindow(Campaign& campaign, engine::Window window, Seconds needed)
        : campaign_{campaign}, window_{std::move(window)}, needed_{needed} {}
    [[nodiscard]] std::string name() const override { return "await-window"; }
    [[nodiscard]] std::string title() const override {
        return "wait for the window " + campaign_.plan.policy.window.value_or("");
    }
    [[nodiscard]] Effect effect() const override { return Effect::observe; }
    [[nodiscard]] json::object input() const override {
        json::object object;
        object["window"] = campaign_.plan.policy.window.value_or("");
        return object;
    }
    Async<Outcome> act(Scope& scope, const json::object&) override {
        for (;;) {
            host::Command command;
            command.argv = {"env", "TZ=" + window_.zone, "date", "+%H %M %S"};
            const std::shared_ptr<host::Host> here = scope.world().transport.here();
            const Result<host::Finished> told = co_await here->run(std::move(command));
            if (!told) co_return Outcome::from(told.error());
            int hours = 0;
            int minutes = 0;
            int seconds = 0;
            if (std::sscanf(told->output.c_str(), "%d %d %d", &hours, &minutes, &seconds) != 3) {
                co_return Outcome::from(Error{ErrorKind::failed, "the time in " + window_.zone + " cannot be told", "",
                                              printable(told->output, 80), ""});
            }
            const std::chrono::seconds now =
                std::chrono::hours{hours} + std::chrono::minutes{minutes} + std::chrono::seconds{seconds};
            const auto needed = std::chrono::duration_cast<std::chrono::seconds>(needed_);
            const std::optional<std::chrono::seconds> wait = engine::until_open(window_, now, needed);
            if (!wait) {
                co_return Outcome::from(Error{ErrorKind::refused,
                                              "the window " + campaign_.plan.policy.window.value_or("") + " is too short",
                                              "this needs about " + format_span(needed), "", "widen policy.window"});
            }
            if (wait->count() == 0) co_return Outcome::done({}, "the window is open");
            json::object waiting;
            waiting["subject"] = "window";
            waiting["for"] = "the window " + campaign_.plan.policy.window.value_or("") + " to open";
            waiting["gives_up"] = nullptr;
            waiting["next_probe"] = format_time(scope.clock().wall() + *wait);
            waiting["state"] = "waiting";
            co_await scope.event("wait", std::move(waiting));
            co_await scope.clock().sleep_for(std::min<std::chrono::seconds>(*wait, std::chrono::minutes{10}));
        }
    }

private:
    Campaign& campaign_;
    engine::Window window_;
    Seconds needed_;
};

}   // namespace

std::optional<plans::MethodKind> method_from(std::string_view word) {
    for (const plans::MethodKind kind :
         {plans::MethodKind::macro, plans::MethodKind::torch_profile, plans::MethodKind::nsys}) {
        if (plans::to_string(kind) == word) return kind;
    }
    return std::nullopt;
}

engine::LoadEstimate load_estimate(Campaign& campaign, const std::string& service) {
    std::vector<engine::PastLoad> history;
    const auto rows = campaign.world.journal.reader().loads(campaign.plan.services.at(service).host, service);
    if (rows) {
        for (const storage::LoadRow& row : *rows) history.push_back({Seconds{row.seconds}, row.finished});
    }
    return engine::estimate(history);
}

Async<Result<Choice>> choose(Campaign& campaign, const plans::Phase& phase, const ServiceFacts& facts,
                             const std::map<plans::MethodKind, std::string>& blocked,
                             std::optional<plans::MethodKind> approved, int attempt) {
    engine::DecideInput input;
    input.question = question_of(phase.measure);
    input.ladder = candidates(phase, facts);
    for (engine::Candidate& candidate : input.ladder) {
        const auto why = blocked.find(candidate.method);
        if (why == blocked.end()) continue;
        candidate.can = engine::Can::no;
        candidate.reason = "tried, and failed: " + why->second;
    }
    input.policy = campaign.plan.policy;
    input.load = load_estimate(campaign, facts.service);
    if (campaign.plan.services.at(facts.service).load_time)
        input.operator_load = *campaign.plan.services.at(facts.service).load_time;
    input.downtime_spent = Seconds{downtime_spent(campaign, facts.service)};
    input.approved = approved;

    json::object identity;
    identity["phase"] = phase.name;
    identity["attempt"] = attempt;
    identity["approved"] = approved ? json::value(plans::to_string(*approved)) : json::value(nullptr);
    Track track{campaign, phase.name + "/decision-" + std::to_string(attempt), phase.name};
    Decide decide{campaign, phase, std::move(input), std::move(identity)};
    const Outcome decided = co_await track.perform(decide);
    if (!decided) co_return decided.error;
    Choice choice;
    choice.label = string_at(decided.value, "label").value_or("");
    choice.chosen = method_from(string_at(decided.value, "chosen").value_or(""));
    choice.mode = mode_from(string_at(decided.value, "mode").value_or(""));
    choice.cannot_show = string_at(decided.value, "cannot_show").value_or("");
    choice.why_not_deeper = string_at(decided.value, "why_not_deeper").value_or("");
    if (const auto down = number_at(decided.value, "down_high_s")) choice.down_high = Seconds{*down};
    if (const json::value* deferred = decided.value.if_contains("deferred"); deferred != nullptr && deferred->is_array()) {
        for (const json::value& word : deferred->get_array()) {
            if (const auto method = method_from(std::string_view{word.as_string()})) choice.deferred.push_back(*method);
        }
    }
    co_return choice;
}

Async<Result<std::optional<plans::MethodKind>>> await_approval(Campaign& campaign, const plans::Phase& phase,
                                                               const Choice& choice) {
    Track track{campaign, phase.name + "/approval-" + choice.label, phase.name};
    AwaitApproval await{campaign, phase, choice};
    const Outcome word = co_await track.perform(await);
    if (!word) co_return word.error;
    co_return method_from(string_at(word.value, "candidate").value_or(""));
}

Async<Result<void>> await_window(Campaign& campaign, const std::string& service, Seconds needed) {
    if (campaign.plan.policy.restart != plans::Restart::window || !campaign.plan.policy.window) co_return Result<void>{};
    const std::optional<engine::Window> window = engine::parse_window(*campaign.plan.policy.window);
    if (!window)
        co_return Error{ErrorKind::invalid, "policy.window is not understood", "", *campaign.plan.policy.window,
                        "write it as 22:00-06:00 Europe/Zurich"};
    Track track{campaign, "window/" + service, "session"};
    AwaitWindow await{campaign, *window, needed};
    const Outcome open = co_await track.perform(await);
    if (!open) co_return open.error;
    co_return Result<void>{};
}

}   // namespace campaign::methods
