#include "daemon/main/explain.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "base/text.hpp"
#include "daemon/engine/perform.hpp"
#include "daemon/methods/choose.hpp"
#include "daemon/methods/method.hpp"
#include "daemon/methods/restore.hpp"
#include "plans/parse.hpp"

namespace campaign::daemon {
namespace {

/// A journal that is thrown away: the look at the hosts is done by the very steps of a campaign, whose record nobody needs.
class ScratchJournal final : public engine::JournalPort {
public:
    ScratchJournal(std::filesystem::path folder, std::unique_ptr<storage::Journal> journal,
                   std::unique_ptr<storage::Reader> reader)
        : folder_{std::move(folder)}, journal_{std::move(journal)}, reader_{std::move(reader)} {}
    ~ScratchJournal() override {
        reader_.reset();
        journal_.reset();
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    ScratchJournal(const ScratchJournal&) = delete;
    ScratchJournal& operator=(const ScratchJournal&) = delete;

    static Result<std::unique_ptr<ScratchJournal>> make(Random& random) {
        std::error_code error;
        const std::filesystem::path folder =
            std::filesystem::temp_directory_path(error) / ("campaignd-explain-" + random.hex(8));
        if (error || !std::filesystem::create_directory(folder, error))
            return Error{ErrorKind::io, "no place for a scratch journal", error.message(), folder.string(), ""};
        std::filesystem::permissions(folder, std::filesystem::perms::owner_all, error);
        Result<std::unique_ptr<storage::Journal>> journal = storage::Journal::open(folder / "journal.db");
        if (!journal) return journal.error();
        Result<std::unique_ptr<storage::Reader>> reader = storage::Reader::open(folder / "journal.db");
        if (!reader) return reader.error();
        return std::make_unique<ScratchJournal>(folder, std::move(*journal), std::move(*reader));
    }

    Async<Result<void>> write(storage::Writer::Work work) override {
        if (Result<void> begun = journal_->begin(); !begun) co_return begun;
        if (Result<void> done = work(*journal_); !done) {
            journal_->rollback();
            co_return done;
        }
        co_return journal_->commit();
    }
    storage::Reader& reader() override { return *reader_; }

private:
    std::filesystem::path folder_;
    std::unique_ptr<storage::Journal> journal_;
    std::unique_ptr<storage::Reader> reader_;
};

/// Offline, what the plan itself says stands for what a look would have found.
methods::ServiceFacts assumed(const plans::Service& service) {
    methods::ServiceFacts facts;
    facts.service = service.name;
    facts.looked = false;
    facts.server_kind =
        service.server == plans::ServerKind::automatic ? "vllm" : std::string{plans::to_string(service.server)};
    facts.model = service.model.value_or("(the served model)");
    facts.profiler_cause = "not known offline";
    facts.profiler_evidence = "not asked: offline";
    if (service.process) {
        facts.baseline.configured_argv = service.process->command;
        facts.baseline.running_argv = service.process->command;
    }
    facts.baseline.state.exists = true;
    facts.baseline.state.loadable = true;
    facts.baseline.state.active = "active";
    return facts;
}

std::string_view changes(const engine::Planned& step) {
    const std::string_view path = step.path;
    if (path.find("/install-override") != std::string_view::npos) return "drop-in";
    if (path.find("/restart-unit") != std::string_view::npos) return "restart";
    if (path.find("/start-profile") != std::string_view::npos || path.find("/stop-profile") != std::string_view::npos)
        return "profile";
    if (path.find("/start-job") != std::string_view::npos) return "transient unit";
    return "";
}

json::value range(std::optional<Seconds> low, std::optional<Seconds> high) {
    if (!low || !high) return nullptr;
    json::array both;
    both.emplace_back(low->count());
    both.emplace_back(high->count());
    return both;
}

/// Everything about one explanation while it is made.
class Explainer {
public:
    Explainer(engine::World& world, engine::World& scratch, plans::Plan plan, bool offline)
        : history_{world}, campaign_{scratch, row_for(plan, world), std::move(plan)}, offline_{offline} {}

    Async<json::object> explain() {
        for (const plans::Phase& phase : campaign_.plan.phases) {
            if (!facts_.contains(phase.service)) co_await look(phase.service);
        }
        campaign_.rehearsal = &planned_;
        for (const plans::Phase& phase : campaign_.plan.phases) co_await phase_of(phase);
        co_await deeper();
        campaign_.rehearsal = nullptr;
        co_return answer();
    }

private:
    static storage::CampaignRow row_for(const plans::Plan& plan, engine::World& world) {
        storage::CampaignRow row;
        row.id = 1;
        row.name = plan.name;
        row.submitted = engine::micros(world.clock.wall());
        return row;
    }

    Async<void> look(std::string service) {
        if (offline_) {
            facts_.emplace(service, assumed(campaign_.plan.services.at(service)));
            unknown_.emplace_back("what " + service + " can do and how it runs: its host was not asked");
            co_return;
        }
        const Result<methods::ServiceFacts> found = co_await methods::preflight(campaign_, service, true);
        if (found) {
            facts_.emplace(service, *found);
            facts_read_ = true;
        } else {
            facts_.emplace(service, assumed(campaign_.plan.services.at(service)));
            warnings_.emplace_back(service + ": " + describe(found.error()));
            blocked_.insert(service);
        }
    }

    engine::Decision decide(const plans::Phase& phase, std::optional<plans::MethodKind> approved) {
        engine::DecideInput input;
        input.question = std::string{plans::to_string(phase.measure)};
        input.ladder = methods::candidates(phase, facts_.at(phase.service));
        input.policy = campaign_.plan.policy;
        std::vector<engine::PastLoad> loads;
        const plans::Service& service = campaign_.plan.services.at(phase.service);
        if (const auto rows = history_.journal.reader().loads(service.host, service.name); rows) {
            for (const storage::LoadRow& row : *rows) loads.push_back({Seconds{row.seconds}, row.finished});
        }
        input.load = engine::estimate(loads);
        if (service.load_time) input.operator_load = *service.load_time;
        source_ = input.load.loads > 0 ? std::to_string(input.load.loads) + " loads seen here"
                  : service.load_time  ? "services." + service.name + ".load_time"
                                       : "unknown";
        input.approved = approved;
        return engine::decide(input);
    }

    Async<void> phase_of(const plans::Phase& phase) {
        const methods::ServiceFacts& facts = facts_.at(phase.service);
        const engine::Decision decision = decide(phase, std::nullopt);
        json::object entry;
        entry["name"] = phase.name;
        entry["method"] = decision.chosen ? json::value(plans::to_string(*decision.chosen)) : json::value(nullptr);
        entry["candidates"] = engine::candidates_json(decision);
        entry["downtime_source"] = source_;
        entry["if_impossible"] = if_impossible(decision);
        entry["cannot_show"] = decision.cannot_show;
        const std::size_t before = planned_.size();
        std::optional<Seconds> low = Seconds{0};
        std::optional<Seconds> high = Seconds{0};
        if (decision.chosen && decision.mode == engine::Mode::production) {
            methods::Session none;
            none.trace_dir = "(the server's own trace folder)";
            co_await rehearse(phase, facts, *decision.chosen, none);
        } else if (decision.chosen) {
            sessions_.emplace_back(&phase, std::pair{*decision.chosen, decision.mode});
        }
        for (const engine::Judged& judged : decision.candidates) {
            if (judged.verdict == engine::Verdict::chosen) {
                low = judged.down_low;
                high = judged.down_high;
            }
            if (judged.verdict == engine::Verdict::deferred) {
                const std::string method{plans::to_string(judged.candidate.method)};
                asks_.emplace_back(
                    "an approval of " + method + " for " + phase.name + ", down " +
                    (judged.down_high ? format_span(std::chrono::duration_cast<std::chrono::nanoseconds>(*judged.down_high))
                                      : std::string{"unknown"}));
                if (std::none_of(sessions_.begin(), sessions_.end(),
                                 [&phase](const auto& s) { return s.first == &phase; })) {
                    sessions_.emplace_back(&phase, std::pair{judged.candidate.method, judged.candidate.mode});
                }
            }
        }
        entry["downtime_s"] = range(low, high);
        entry["changes"] = changes_since(before);
        phases_.push_back(std::move(entry));
    }

    /// Sessions, each once for all phases that share it: what would run if everything that is asked for is approved.
    Async<void> deeper() {
        std::set<std::pair<std::string, engine::Mode>> done;
        for (const auto& [first, what] : sessions_) {
            const auto [method, mode] = what;
            if (!done.insert({first->service, mode}).second) continue;
            const methods::ServiceFacts& facts = facts_.at(first->service);
            const std::size_t before = planned_.size();
            const Result<host::Change> change = methods::render_mode(campaign_, first->service, mode, facts);
            if (change) {
                json::object file;
                file["host"] = campaign_.plan.services.at(first->service).host;
                file["path"] = change->path;
                file["content"] = change->content;
                drop_ins_.push_back(std::move(file));
                const Result<methods::Session> session =
                    co_await methods::enter_mode(campaign_, first->service, mode, facts);
                if (!session) {
                    warnings_.emplace_back(first->service + ": " + describe(session.error()));
                    continue;
                }
                for (const auto& [phase, other] : sessions_) {
                    if (phase->service == first->service && other.second == mode)
                        co_await rehearse(*phase, facts, other.first, *session);
                }
                const engine::Undo undo = methods::service_as_found(campaign_, first->service, facts, *change);
                storage::UndoRow row;
                row.id = 1;
                row.kind = undo.kind;
                row.data_json = json::serialize(undo.data);
                const Result<void> back = co_await methods::carry_out(campaign_, row, 1);
                if (!back) warnings_.emplace_back(first->service + ": " + describe(back.error()));
            } else if (offline_) {
                unknown_.emplace_back("the drop-in for " + std::string{engine::to_string(mode)} +
                                      " mode: the command line of " + first->service + " is read from its host");
            } else {
                warnings_.emplace_back(describe(change.error()));
            }
            json::object entry;
            entry["name"] = first->name + " (when approved or allowed)";
            entry["method"] = plans::to_string(method);
            const engine::Decision decision = decide(*first, method);
            json::value down = nullptr;
            for (const engine::Judged& judged : decision.candidates) {
                if (judged.candidate.method != method) continue;
                down = range(judged.down_low, judged.down_high);
                if (judged.down_low && judged.down_high) {
                    total_low_ += *judged.down_low;
                    total_high_ += *judged.down_high;
                } else {
                    total_known_ = false;
                }
            }
            entry["downtime_s"] = std::move(down);
            entry["downtime_source"] = source_;
            entry["changes"] = changes_since(before);
            entry["if_impossible"] = "the answer without a restart stands";
            entry["candidates"] = json::array{};
            phases_.push_back(std::move(entry));
        }
    }

    Async<void> rehearse(const plans::Phase& phase, const methods::ServiceFacts& facts, plans::MethodKind method,
                         const methods::Session& session) {
        Result<methods::PhaseResult> found = Error{};
        switch (method) {
            case plans::MethodKind::macro:
                if (phase.measure == plans::Measure::warm_up) {
                    found = co_await methods::warm_up(campaign_, phase, facts);
                } else {
                    found = co_await methods::macro_sweep(campaign_, phase, facts);
                }
                break;
            case plans::MethodKind::torch_profile:
                found = co_await methods::torch_profile(campaign_, phase, facts, session);
                break;
            case plans::MethodKind::nsys: found = co_await methods::nsys_capture(campaign_, phase, facts, session); break;
        }
        if (!found) warnings_.emplace_back(phase.name + ": " + describe(found.error()));
    }

    [[nodiscard]] json::array changes_since(std::size_t before) const {
        std::map<std::string_view, int> counts;
        for (std::size_t i = before; i < planned_.size(); ++i) {
            if (const std::string_view what = changes(planned_[i]); !what.empty()) ++counts[what];
        }
        json::array list;
        for (const auto& [what, count] : counts)
            list.emplace_back(std::to_string(count) + " " + std::string{what} + (count > 1 ? "s" : ""));
        return list;
    }

    static std::string if_impossible(const engine::Decision& decision) {
        bool after = false;
        for (const engine::Judged& judged : decision.candidates) {
            if (after && judged.verdict != engine::Verdict::impossible && judged.verdict != engine::Verdict::forbidden) {
                return std::string{plans::to_string(judged.candidate.method)};
            }
            if (judged.verdict == engine::Verdict::chosen) after = true;
        }
        return "the phase fails, the others go on";
    }

    json::object answer() {
        json::object result;
        result["campaign"] = campaign_.plan.name;
        result["facts_read"] = facts_read_;
        result["facts_at"] = format_time(history_.clock.wall());
        result["phases"] = std::move(phases_);
        result["total_downtime_s"] = total_known_ ? range(total_low_, total_high_) : json::value(nullptr);
        result["allowed_s"] = std::chrono::duration<double>(campaign_.plan.policy.max_downtime).count();
        result["policy"] = engine::policy_in_words(campaign_.plan.policy);
        result["asks"] = std::move(asks_);
        json::array commands;
        for (const engine::Planned& step : planned_) {
            json::object entry;
            entry["phase"] = step.path.substr(0, step.path.find('/'));
            entry["step"] = step.title;
            entry["host"] = step.host;
            entry["effect"] = storage::to_string(step.effect);
            const std::string_view what = changes(step);
            entry["changes_production"] = what == "drop-in" || what == "restart" || what == "profile" ||
                                          step.path.find("/remove-override") != std::string::npos;
            entry["command"] = step.command;
            commands.push_back(std::move(entry));
        }
        result["commands"] = std::move(commands);
        result["drop_ins"] = std::move(drop_ins_);
        result["unknown"] = std::move(unknown_);
        result["warnings"] = std::move(warnings_);
        return result;
    }

    engine::World& history_;
    engine::Campaign campaign_;
    bool offline_;
    bool facts_read_ = false;
    bool total_known_ = true;
    Seconds total_low_{0};
    Seconds total_high_{0};
    std::string source_;
    std::map<std::string, methods::ServiceFacts> facts_;
    std::set<std::string> blocked_;
    std::vector<std::pair<const plans::Phase*, std::pair<plans::MethodKind, engine::Mode>>> sessions_;
    std::vector<engine::Planned> planned_;
    json::array phases_;
    json::array asks_;
    json::array drop_ins_;
    json::array unknown_;
    json::array warnings_;
};

}   // namespace

Async<Result<boost::json::object>> explain_plan(engine::World& world, std::string plan_text, bool offline) {
    auto parsed = plans::parse(plan_text);
    if (const auto* wrong = std::get_if<plans::Diagnostics>(&parsed)) {
        co_return Error{ErrorKind::invalid, "the plan is refused",
                        std::to_string(wrong->size()) + (wrong->size() == 1 ? " error" : " errors"),
                        plans::render(*wrong, "plan", plan_text), "campaignctl plan check FILE"};
    }
    Result<std::unique_ptr<ScratchJournal>> journal = ScratchJournal::make(world.random);
    if (!journal) co_return journal.error();
    engine::World scratch{world.clock, world.random, **journal,   world.transport,
                          world.http,  world.vault,  world.agent, world.agent_sha256};
    storage::CampaignRow row;
    row.name = "explain";
    row.plan_text = plan_text;
    storage::Writer::Work work = [row](storage::Journal& to) -> Result<void> {
        const auto added = to.add_campaign(row);
        if (!added) return added.error();
        return {};
    };
    const Result<void> written = co_await scratch.journal.write(std::move(work));
    if (!written) co_return written.error();
    Explainer explainer{world, scratch, std::get<plans::Plan>(std::move(parsed)), offline};
    co_return co_await explainer.explain();
}

}   // namespace campaign::daemon
