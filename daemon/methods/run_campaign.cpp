#include "daemon/methods/run_campaign.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.hpp"
#include "daemon/methods/choose.hpp"
#include "daemon/methods/method.hpp"
#include "daemon/methods/restore.hpp"

namespace campaign::methods {
namespace {

bool ended(std::string_view state) {
    return state == "done" || state == "failed" || state == "cancelled";
}

/// One phase on its way: what was chosen, what failed, what it found.
struct Progress {
    const plans::Phase* phase = nullptr;
    int ordinal = 0;
    int attempt = 1;
    Choice choice;
    std::map<plans::MethodKind, std::string> blocked;
    bool answered = false;          ///< some method gave a result
    std::optional<Error> failure;   ///< of the last method that failed
};

class Runner {
public:
    explicit Runner(Campaign& campaign) : campaign_{campaign} {}

    Async<Result<void>> run() {
        co_await set_state(campaign_, "running", "preflight", nullptr);
        for (std::size_t i = 0; i < campaign_.plan.phases.size(); ++i) {
            Progress progress;
            progress.phase = &campaign_.plan.phases[i];
            progress.ordinal = static_cast<int>(i) + 1;
            phases_.push_back(std::move(progress));
            co_await mark(phases_.back(), "pending", "", {}, "");
        }
        for (const plans::Phase& phase : campaign_.plan.phases) {
            if (facts_.contains(phase.service)) continue;
            const Result<ServiceFacts> found = co_await preflight(campaign_, phase.service);
            if (!found) co_return found.error();
            facts_.emplace(phase.service, *found);
            const auto known = campaign_.world.journal.reader().latest_event(campaign_.row.id, "production", phase.service);
            if (known && !*known) {   // a replay finds its own word there, and perhaps later ones
                co_await production(campaign_, phase.service, "as_found", "seen by preflight; nothing was changed");
            }
        }
        for (Progress& progress : phases_) {
            const std::string detail = "phase " + progress.phase->name;
            co_await set_state(campaign_, "running", detail, nullptr);
            co_await answer_in_production(progress);
        }
        co_await go_deeper();
        co_return verdict();
    }

private:
    [[nodiscard]] const ServiceFacts& facts(const Progress& progress) const { return facts_.at(progress.phase->service); }

    /// Down the ladder until a method that needs no restart has answered, or none is left.
    Async<void> answer_in_production(Progress& progress) {
        for (;;) {
            const Result<Choice> choice = co_await choose(campaign_, *progress.phase, facts(progress), progress.blocked,
                                                          std::nullopt, progress.attempt++);
            if (!choice) {
                progress.failure = choice.error();
                co_await mark(progress, "failed", "", {}, describe(choice.error()));
                co_return;
            }
            progress.choice = *choice;
            if (!choice->chosen || choice->mode != engine::Mode::production) {
                const std::string state = choice->chosen              ? "queued"   // its restart is allowed and comes next
                                          : !choice->deferred.empty() ? "deferred"
                                                                      : "skipped";
                co_await mark(progress, state, chosen_word(progress), {}, choice->why_not_deeper);
                if (state == "skipped") {
                    progress.failure = Error{ErrorKind::unavailable, "no method can answer " + progress.phase->name,
                                             choice->why_not_deeper, "", ""};
                }
                co_return;
            }
            const Session none = production_session(progress);
            if (co_await run_method(progress, none)) co_return;
        }
    }

    [[nodiscard]] Session production_session(const Progress& progress) const {
        Session session;
        const ServiceLink& link = campaign_.link(progress.phase->service);
        session.trace_dir = link.service.profiler_dir.value_or(link.where.work_dir + "/traces/" + campaign_.row.name);
        session.invocation = facts(progress).baseline.state.invocation;
        return session;
    }

    /// What needs a restart: approvals first, then session by session, each with all phases that want its mode.
    Async<void> go_deeper() {
        for (Progress& progress : phases_) {
            if (progress.choice.chosen && progress.choice.mode != engine::Mode::production && !progress.answered)
                continue;   // policy allows it
            if (progress.choice.deferred.empty()) continue;
            const std::string detail = "for a word on " + progress.choice.label + " (" + progress.phase->name + ")";
            co_await set_state(campaign_, "waiting", detail, nullptr);
            const Result<std::optional<plans::MethodKind>> approved =
                co_await await_approval(campaign_, *progress.phase, progress.choice);
            if (!approved || !*approved) {
                progress.choice.deferred.clear();
                if (!progress.answered)
                    progress.failure = Error{ErrorKind::refused, progress.phase->name + " was not answered",
                                             "nobody approved the restart that it needs", "", ""};
                continue;
            }
            const Result<Choice> choice = co_await choose(campaign_, *progress.phase, facts(progress), progress.blocked,
                                                          *approved, progress.attempt++);
            if (!choice) {
                progress.failure = choice.error();
                continue;
            }
            progress.choice = *choice;
        }
        for (;;) {
            const auto first =
                std::find_if(phases_.begin(), phases_.end(), [this](const Progress& p) { return wants_session(p); });
            if (first == phases_.end()) co_return;
            co_await run_session(first->phase->service, first->choice.mode);
        }
    }

    [[nodiscard]] bool wants_session(const Progress& progress) const {
        return progress.choice.chosen && progress.choice.mode != engine::Mode::production &&
               !progress.blocked.contains(*progress.choice.chosen) && !finished_.contains(progress.ordinal);
    }

    Async<void> run_session(std::string service, engine::Mode mode) {
        const std::string detail = service + " into " + std::string{engine::to_string(mode)} + " mode";
        co_await set_state(campaign_, "running", detail, nullptr);
        std::vector<Progress*> members;
        Seconds needed{0};
        for (Progress& progress : phases_) {
            if (!wants_session(progress) || progress.phase->service != service || progress.choice.mode != mode) continue;
            members.push_back(&progress);
            if (progress.choice.down_high) needed = std::max(needed, *progress.choice.down_high);
        }
        const Result<void> open = co_await await_window(campaign_, service, needed);
        if (!open) {
            for (Progress* member : members) co_await block(*member, open.error());
            co_return;
        }
        const Result<Session> session = co_await enter_mode(campaign_, service, mode, facts_.at(service));
        if (!session) {
            co_await restore_now();
            for (Progress* member : members) co_await block(*member, session.error());
        } else {
            for (Progress* member : members) {
                if (co_await run_method(*member, *session)) finished_.insert(member->ordinal);
            }
            co_await restore_now();
        }
        for (Progress* member : members) {   // what failed goes down its ladder, which may ask for another mode
            if (!finished_.contains(member->ordinal) && !member->answered) co_await answer_in_production(*member);
            if (!wants_session(*member)) finished_.insert(member->ordinal);
        }
    }

    Async<void> block(Progress& progress, Error why) {
        const std::string reason = why.what + (why.why.empty() ? "" : ": " + why.why);
        progress.blocked[*progress.choice.chosen] = reason;
        progress.failure = why;
        json::object note;
        note["text"] = progress.phase->name + ": " + chosen_word(progress) + " is blocked: " + describe(why);
        co_await once("note", std::move(note), progress.phase->name + chosen_word(progress));
        if (progress.answered) co_await mark(progress, "pivoted", "macro", {}, "deeper: " + reason);
    }

    Async<void> restore_now() {
        co_await set_state(campaign_, "restoring", "production comes back", nullptr);
        const Result<void> restored = co_await restore_all(campaign_);
        if (!restored) throw engine::EngineStop{restored.error()};
    }

    [[nodiscard]] static std::string chosen_word(const Progress& progress) {
        return progress.choice.chosen ? std::string{plans::to_string(*progress.choice.chosen)} : std::string{};
    }

    /// true: it answered. false: it is blocked, and the ladder goes on.
    Async<bool> run_method(Progress& progress, const Session& session) {
        const plans::MethodKind method = *progress.choice.chosen;
        co_await mark(progress, "running", chosen_word(progress), {}, "");
        Result<PhaseResult> found = Error{};
        switch (method) {
            case plans::MethodKind::macro:
                if (progress.phase->measure == plans::Measure::warm_up) {
                    found = co_await warm_up(campaign_, *progress.phase, facts(progress));
                } else {
                    found = co_await macro_sweep(campaign_, *progress.phase, facts(progress));
                }
                break;
            case plans::MethodKind::torch_profile:
                found = co_await torch_profile(campaign_, *progress.phase, facts(progress), session);
                break;
            case plans::MethodKind::nsys:
                found = co_await nsys_capture(campaign_, *progress.phase, facts(progress), session);
                break;
        }
        if (!found) {
            co_await block(progress, found.error());
            if (!progress.answered) co_await mark(progress, "failed", chosen_word(progress), {}, describe(found.error()));
            co_return false;
        }
        progress.answered = true;
        progress.failure.reset();
        const bool pivoted =
            method == plans::MethodKind::macro && progress.phase->methods.front() != plans::MethodKind::macro;
        json::object summary = found->summary;
        summary["cannot_show"] = progress.choice.cannot_show;
        co_await mark(progress, pivoted ? "pivoted" : "done", chosen_word(progress), std::move(summary), found->text);
        co_return true;
    }

    /// Writes a phase's row and event, once for each state and method: the same code after a crash changes nothing.
    Async<void> mark(const Progress& progress, std::string state, std::string method, json::object summary,
                     std::string detail) {
        const std::string key = progress.phase->name + "\n" + state + "\n" + method + "\n" + detail;
        if (!campaign_.marks.insert(key).second) co_return;
        const storage::Micros now = engine::micros(campaign_.world.clock.wall());
        storage::PhaseRow row;
        const Result<std::vector<storage::PhaseRow>> rows = campaign_.world.journal.reader().phases(campaign_.row.id);
        if (rows) {
            for (const storage::PhaseRow& known : *rows) {
                if (known.ordinal == progress.ordinal) row = known;
            }
        }
        row.campaign = campaign_.row.id;
        row.ordinal = progress.ordinal;
        row.name = progress.phase->name;
        row.state = state;
        if (!method.empty()) row.method = method;
        row.method_version = method_version;
        if (state == "running" && !row.began) row.began = now;
        if (state != "running" && state != "pending") row.ended = now;
        if (!summary.empty()) {
            summary["text"] = detail;
            row.summary_json = json::serialize(summary);
        }
        json::object data;
        data["subject"] = row.name;
        data["state"] = state;
        data["method"] = row.method;
        data["detail"] = printable(detail, 900);
        data["mark"] = key;
        storage::EventRow event;
        event.campaign = row.campaign;
        event.at = now;
        event.kind = "phase";
        event.data_json = json::serialize(data);
        storage::Writer::Work work = [row, event](storage::Journal& journal) -> Result<void> {
            if (const auto put = journal.put_phase(row); !put) return put.error();
            if (const auto noted = journal.add_event(event); !noted) return noted.error();
            return {};
        };
        const Result<void> written = co_await campaign_.world.journal.write(std::move(work));
        if (!written) throw engine::EngineStop{written.error()};
    }

    Async<void> once(std::string kind, json::object data, std::string key) {
        if (!campaign_.marks.insert(key).second) co_return;
        data["mark"] = key;
        co_await engine::write_event(campaign_, std::move(kind), std::move(data));
    }

    [[nodiscard]] Result<void> verdict() const {
        for (const Progress& progress : phases_) {
            if (!progress.answered && progress.failure) return *progress.failure;
        }
        return {};
    }

    Campaign& campaign_;
    std::map<std::string, ServiceFacts> facts_;
    std::vector<Progress> phases_;
    std::set<int> finished_;
};

/// The services whose baseline is on record, from preflight's own steps.
Async<Result<void>> verify_seen(Campaign& campaign) {
    std::set<std::string> done;
    for (const plans::Phase& phase : campaign.plan.phases) {
        if (!done.insert(phase.service).second) continue;
        const bool complete = std::any_of(campaign.memo.begin(), campaign.memo.end(), [&phase](const auto& entry) {
            return entry.first.starts_with("preflight/" + phase.service + "/") && entry.first.ends_with("/probe-before") &&
                   entry.second.state == storage::StepState::done;
        });
        if (!complete) continue;   // preflight did not end: nothing was or could have been changed
        const auto last = campaign.world.journal.reader().latest_event(campaign.row.id, "production", phase.service);
        if (last && *last && (**last).data_json.find("\"verified\"") != std::string::npos)
            continue;                                                                     // a session's restore proved it
        const Result<ServiceFacts> facts = co_await preflight(campaign, phase.service);   // all from the record
        if (!facts) co_return facts.error();
        const Result<void> verified = co_await verify_as_found(campaign, *facts);
        if (!verified) {
            co_await production(campaign, phase.service, "unknown", describe(verified.error()));
            co_return verified;
        }
    }
    co_return Result<void>{};
}

}   // namespace

Async<Result<void>> run_phases(Campaign& campaign) {
    Runner runner{campaign};
    co_return co_await runner.run();
}

Async<Result<void>> put_back(Campaign& campaign) {
    const Result<void> restored = co_await restore_all(campaign);
    if (!restored) co_return restored;
    co_return co_await verify_seen(campaign);
}

Async<void> set_state(Campaign& campaign, std::string state, std::string detail, const Error* error) {
    if (campaign.row.state == state && campaign.row.state_detail == detail) co_return;
    campaign.row.state = state;
    campaign.row.state_detail = detail;
    const storage::Micros now = engine::micros(campaign.world.clock.wall());
    const std::optional<storage::Micros> at = ended(state) ? std::optional{now} : std::nullopt;
    const std::string error_json = error == nullptr ? std::string{} : json::serialize(to_json(*error));
    const storage::Id id = campaign.row.id;
    json::object data;
    data["state"] = state;
    data["detail"] = detail;
    storage::EventRow event;
    event.campaign = id;
    event.at = now;
    event.kind = "campaign";
    event.data_json = json::serialize(data);
    storage::Writer::Work work = [id, state, detail, at, error_json, event](storage::Journal& journal) -> Result<void> {
        if (Result<void> set = journal.set_campaign_state(id, state, detail, at, error_json); !set) return set;
        if (const auto noted = journal.add_event(event); !noted) return noted.error();
        return {};
    };
    const Result<void> written = co_await campaign.world.journal.write(std::move(work));
    if (!written) throw engine::EngineStop{written.error()};
}

}   // namespace campaign::methods
