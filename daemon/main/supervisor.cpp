#include "daemon/main/supervisor.hpp"

#include <algorithm>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/sha256.hpp"
#include "base/text.hpp"
#include "daemon/engine/perform.hpp"
#include "daemon/main/explain.hpp"
#include "daemon/methods/run_campaign.hpp"
#include "daemon/report/report.hpp"
#include "plans/parse.hpp"

namespace campaign::daemon {
namespace asio = boost::asio;

/// One campaign at work.
struct Supervisor::Running {
    Running(asio::any_io_executor executor, engine::World& world, storage::CampaignRow row, plans::Plan plan)
        : campaign{world, std::move(row), std::move(plan)}, word{executor, asio::steady_timer::time_point::max()} {}

    engine::Campaign campaign;
    asio::cancellation_signal signal;   ///< ends what runs now
    asio::steady_timer word;            ///< expires when somebody said something
    std::uint64_t words = 0;            ///< how often somebody did
    std::uint64_t heard = 0;            ///< how much of it was looked at
    bool only_restore = false;
    bool restoring = false;   ///< a cancel changes nothing any more
};

namespace {

Result<void> load_record(engine::Campaign& campaign, storage::Reader& reader) {
    Result<std::vector<storage::StepRow>> steps = reader.steps(campaign.row.id);
    if (!steps) return steps.error();
    for (storage::StepRow& step : *steps) {
        if (step.path.find('@') == std::string::npos) campaign.memo.emplace(step.path, std::move(step));
    }
    storage::Id after = 0;
    for (;;) {
        const Result<std::vector<storage::EventRow>> events = reader.events(campaign.row.id, after, 5000);
        if (!events) return events.error();
        for (const storage::EventRow& event : *events) {
            after = event.seq;
            if (event.kind != "phase" && event.kind != "note") continue;
            const Result<json::value> data = parse_json(event.data_json, "event");
            if (const auto mark = data ? string_at(*data, "mark") : std::nullopt) campaign.marks.insert(*mark);
        }
        if (events->size() < 5000) return {};
    }
}

Async<void> close_needs(engine::Campaign& campaign) {
    std::set<std::string> open;
    storage::Id after = 0;
    for (;;) {
        const Result<std::vector<storage::EventRow>> events =
            campaign.world.journal.reader().events(campaign.row.id, after, 5000);
        if (!events) throw engine::EngineStop{events.error()};
        for (const storage::EventRow& event : *events) {
            after = event.seq;
            if (event.kind != "need") continue;
            const Result<json::value> data = parse_json(event.data_json, "event");
            const std::string subject = data ? string_at(*data, "subject").value_or("") : "";
            if (data && string_at(*data, "state") == "open") {
                open.insert(subject);
            } else {
                open.erase(subject);
            }
        }
        if (events->size() < 5000) break;
    }
    open.erase("restore");
    for (const std::string& subject : open) {
        json::object data;
        data["subject"] = subject;
        data["state"] = "closed";
        co_await engine::write_event(campaign, "need", std::move(data));
    }
}

std::set<std::string> units_of(const engine::Campaign& campaign) {
    std::set<std::string> units;
    for (const plans::Phase& phase : campaign.plan.phases) {
        const plans::Service& service = campaign.plan.services.at(phase.service);
        const plans::Host& host = campaign.plan.hosts.at(service.host);
        units.insert((host.local ? "local" : host.ssh) + " " + (service.unit.empty() ? service.name : service.unit));
    }
    return units;
}

json::object said(std::string text) {
    json::object answer;
    answer["text"] = std::move(text);
    return answer;
}

}   // namespace

Supervisor::Supervisor(asio::any_io_executor executor, engine::World& world, std::shared_ptr<spdlog::logger> log,
                       std::string version)
    : executor_{executor},
      world_{world},
      log_{std::move(log)},
      version_{std::move(version)},
      changed_{executor, asio::steady_timer::time_point::max()} {}

Supervisor::~Supervisor() = default;

Result<void> Supervisor::resume_all() {
    const Result<std::vector<storage::CampaignRow>> unfinished = world_.journal.reader().unfinished();
    if (!unfinished) return unfinished.error();
    for (const storage::CampaignRow& row : *unfinished) {
        auto plan = plans::parse(row.plan_text);
        if (auto* good = std::get_if<plans::Plan>(&plan)) {
            log_->info("campaign {} goes on: it was {} ({})", row.name, row.state, row.state_detail);
            launch(row, std::move(*good), false);
        } else {
            // A plan of an older version that this one refuses: nothing is guessed, a person must look.
            log_->error("campaign {} cannot go on: its frozen plan is refused by this version", row.name);
        }
    }
    return {};
}

void Supervisor::launch(storage::CampaignRow row, plans::Plan plan, bool only_restore) {
    const auto running = std::make_shared<Running>(executor_, world_, std::move(row), std::move(plan));
    running->only_restore = only_restore || running->campaign.row.cancel_requested;
    Running* const raw = running.get();
    running->campaign.await_word = [raw](std::string) -> Async<void> {
        // Words that came since the last look count: nothing said between a look and this wait is lost.
        if (raw->heard == raw->words) {
            raw->word.expires_at(asio::steady_timer::time_point::max());
            boost::system::error_code ignored;
            co_await raw->word.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
        }
        raw->heard = raw->words;
        const auto state = co_await asio::this_coro::cancellation_state;
        if (state.cancelled() != asio::cancellation_type::none)
            throw boost::system::system_error{asio::error::operation_aborted};
    };
    running_[running->campaign.row.id] = running;
    asio::co_spawn(executor_, run(running), asio::detached);
}

Async<void> Supervisor::run(std::shared_ptr<Running> running) {
    const storage::Id id = running->campaign.row.id;
    const std::string name = running->campaign.row.name;
    try {
        const Result<void> loaded = load_record(running->campaign, world_.journal.reader());
        if (!loaded) throw engine::EngineStop{loaded.error()};
        co_await wait_for_services(*running);
        if (!stopping_) co_await run_to_end(*running);
    } catch (const engine::EngineStop& stop) {
        log_->critical("campaign {}: {}", name, describe(stop.error()));
    } catch (const boost::system::system_error& error) {
        if (!stopping_) log_->critical("campaign {}: {}", name, error.what());
    } catch (const std::exception& error) {
        log_->critical("campaign {}: {}", name, error.what());
    }
    std::erase_if(holders_, [id](const auto& entry) { return entry.second == id; });
    running_.erase(id);
    changed();
}

/// One campaign at a time may change a service; others wait and say for whom.
Async<void> Supervisor::wait_for_services(Running& running) {
    const std::set<std::string> units = units_of(running.campaign);
    for (;;) {
        if (stopping_) co_return;
        storage::Id other = 0;
        for (const std::string& unit : units) {
            const auto holder = holders_.find(unit);
            if (holder != holders_.end() && holder->second != running.campaign.row.id) other = holder->second;
        }
        if (other == 0) break;
        const auto ahead = running_.find(other);
        const std::string detail = "waits until campaign " +
                                   (ahead == running_.end() ? std::string{"?"} : ahead->second->campaign.row.name) +
                                   " has ended";
        co_await methods::set_state(running.campaign, "queued", detail, nullptr);
        if (running.only_restore) co_return;   // cancelled while it waited: it has changed nothing
        boost::system::error_code ignored;
        co_await changed_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
        running.only_restore = running.only_restore || running.campaign.row.cancel_requested;
    }
    for (const std::string& unit : units) holders_[unit] = running.campaign.row.id;
}

Async<void> Supervisor::run_to_end(Running& running) {
    engine::Campaign& campaign = running.campaign;
    std::optional<Error> failure;
    bool cancelled = running.only_restore;
    if (!running.only_restore) {
        try {
            const Result<void> answered =
                co_await asio::co_spawn(executor_, methods::run_phases(campaign),
                                        asio::bind_cancellation_slot(running.signal.slot(), asio::use_awaitable));
            if (!answered) failure = answered.error();
        } catch (const boost::system::system_error& error) {
            if (error.code() != asio::error::operation_aborted)
                failure = Error{ErrorKind::bug, "the campaign stopped", error.what(), "", ""};
            cancelled = error.code() == asio::error::operation_aborted;
        } catch (const engine::EngineStop& stop) {
            failure = stop.error();
        } catch (const std::exception& error) {
            failure =
                Error{ErrorKind::bug, "the campaign stopped", error.what(), "", "please report this with the daemon's log"};
        }
        if (stopping_) co_return;
        if (failure) log_->warn("campaign {}: {}", campaign.row.name, describe(*failure));
    }
    running.restoring = true;
    co_await close_needs(campaign);   // what a person was asked for the phases is asked no more
    const std::string detail = cancelled ? "cancelled: production comes back" : "production comes back";
    co_await methods::set_state(campaign, "restoring", detail, nullptr);
    std::optional<Error> unrestored;
    try {
        const Result<void> back =
            co_await asio::co_spawn(executor_, methods::put_back(campaign),
                                    asio::bind_cancellation_slot(running.signal.slot(), asio::use_awaitable));
        if (!back) unrestored = back.error();
    } catch (const boost::system::system_error& error) {
        if (stopping_) co_return;
        unrestored =
            Error{ErrorKind::bug, "the restore stopped", error.what(), "", "campaignctl restore " + campaign.row.name};
    }
    if (stopping_) co_return;
    co_await finish(running, failure, cancelled, unrestored);
}

Async<void> Supervisor::finish(Running& running, std::optional<Error> failure, bool cancelled,
                               std::optional<Error> unrestored) {
    engine::Campaign& campaign = running.campaign;
    if (unrestored) {
        const Error& error = *unrestored;
        const std::string detail = "production is NOT as found: " + error.what;
        log_->error("campaign {}: {}", campaign.row.name, describe(error));
        co_await methods::set_state(campaign, "failed", detail, &error);
    } else if (cancelled) {
        const auto looked = world_.journal.reader().latest_event(campaign.row.id, "production", "");
        const std::string how = looked && !*looked ? "; production was not touched" : "; production verified";
        const std::string detail =
            "cancelled" + (campaign.row.cancel_by.empty() ? std::string{} : " by " + campaign.row.cancel_by) + how;
        co_await methods::set_state(campaign, "cancelled", detail, nullptr);
    } else if (failure) {
        const Error& error = *failure;
        const std::string detail = error.what;
        log_->warn("campaign {}: {}", campaign.row.name, describe(error));
        co_await methods::set_state(campaign, "failed", detail, &error);
    } else {
        const std::string detail = "done; production verified";
        co_await methods::set_state(campaign, "done", detail, nullptr);
    }
    log_->info("campaign {} ended: {}", campaign.row.name, campaign.row.state_detail);
}

Async<void> Supervisor::park() {
    stopping_ = true;
    changed();
    for (const auto& [id, running] : running_) running->signal.emit(asio::cancellation_type::terminal);
    for (int waits = 0; !running_.empty() && waits < 300; ++waits)
        co_await world_.clock.sleep_for(std::chrono::milliseconds{50});
}

void Supervisor::changed() {
    changed_.cancel();
    changed_.expires_at(asio::steady_timer::time_point::max());
}

void Supervisor::poke(storage::Id campaign) {
    const auto found = running_.find(campaign);
    if (found == running_.end()) return;
    ++found->second->words;
    found->second->word.cancel();
}

std::string Supervisor::status_line() const {
    if (running_.empty()) return "no campaign runs";
    std::string line = std::to_string(running_.size()) + (running_.size() == 1 ? " campaign: " : " campaigns: ");
    const engine::Campaign& first = running_.begin()->second->campaign;
    return line + first.row.name + " " + first.row.state + ", " + first.row.state_detail;
}

Async<Result<void>> Supervisor::write(storage::Writer::Work work) {
    return world_.journal.write(std::move(work));
}

Async<void> Supervisor::note(storage::Id campaign, std::string kind, json::object data) {
    storage::EventRow event;
    event.campaign = campaign;
    event.at = engine::micros(world_.clock.wall());
    event.kind = std::move(kind);
    event.data_json = json::serialize(data);
    storage::Writer::Work work = [event](storage::Journal& journal) -> Result<void> {
        const auto added = journal.add_event(event);
        if (!added) return added.error();
        return {};
    };
    const Result<void> written = co_await write(std::move(work));
    if (!written) log_->error("an event of campaign {} is not on record: {}", campaign, written.error().what);
}

Result<storage::CampaignRow> Supervisor::find(const std::string& name) const {
    const auto row = world_.journal.reader().campaign_by_name(name);
    if (!row) return row.error();
    if (!*row) return Error{ErrorKind::not_found, "there is no campaign " + name, "", "", "campaignctl status"};
    return **row;
}

api::Actions::Answer Supervisor::submit(std::string plan_text, std::string file, std::string who) {
    auto parsed = plans::parse(plan_text);
    if (const auto* wrong = std::get_if<plans::Diagnostics>(&parsed)) {
        co_return Error{ErrorKind::invalid, "the plan is refused",
                        std::to_string(wrong->size()) + (wrong->size() == 1 ? " error" : " errors"),
                        plans::render(*wrong, file.empty() ? "plan" : file, plan_text),
                        "campaignctl plan check " + (file.empty() ? "FILE" : file)};
    }
    plans::Plan plan = std::get<plans::Plan>(std::move(parsed));
    storage::CampaignRow row;
    row.name = plan.name;
    row.plan_text = plan_text;
    row.plan_sha256 = sha256(plan_text);
    row.state = "queued";
    row.state_detail = "submitted";
    row.submitted_by = who;
    row.submitted = engine::micros(world_.clock.wall());
    row.engine_version = version_;
    const Result<std::vector<storage::CampaignRow>> unfinished = world_.journal.reader().unfinished();
    if (!unfinished) co_return unfinished.error();
    for (const storage::CampaignRow& other : *unfinished) {
        if (other.plan_sha256 != row.plan_sha256) continue;
        co_return Error{ErrorKind::conflict, "this plan is already submitted as " + other.name, "it is " + other.state, "",
                        "campaignctl status " + other.name};
    }
    const auto id = std::make_shared<storage::Id>();
    storage::Writer::Work work = [row, id, who](storage::Journal& journal) -> Result<void> {
        const auto added = journal.add_campaign(row);
        if (!added) return added.error();
        *id = *added;
        if (Result<void> noted = journal.audit(who, "submit", row.name, row.submitted); !noted) return noted;
        storage::EventRow event;
        event.campaign = *added;
        event.at = row.submitted;
        event.kind = "campaign";
        json::object data;
        data["state"] = row.state;
        data["detail"] = "submitted by " + who;
        event.data_json = json::serialize(data);
        const auto told = journal.add_event(event);
        if (!told) return told.error();
        return {};
    };
    const Result<void> written = co_await write(std::move(work));
    if (!written) co_return written.error();
    const auto stored = world_.journal.reader().campaign(*id);
    if (!stored) co_return stored.error();
    if (!*stored) co_return Error{ErrorKind::bug, "the campaign is not in the journal", "", "", ""};
    log_->info("campaign {} submitted by {}", (**stored).name, printable(who, 80));
    launch(**stored, std::move(plan), false);
    json::object answer;
    answer["id"] = (**stored).name;
    co_return answer;
}

api::Actions::Answer Supervisor::approve(std::string name, std::string label, std::string candidate, std::string who) {
    const Result<storage::CampaignRow> row = find(name);
    if (!row) co_return row.error();
    const Result<std::vector<storage::DecisionRow>> decisions = world_.journal.reader().decisions(row->id);
    if (!decisions) co_return decisions.error();
    const auto decision =
        std::find_if(decisions->begin(), decisions->end(), [&label](const auto& d) { return d.label == label; });
    if (decision == decisions->end())
        co_return Error{ErrorKind::not_found, name + " has no decision " + label, "", "", "campaignctl status " + name};
    if (decision->state != "open" || row->ended) {
        co_return Error{ErrorKind::conflict, label + " of " + name + " waits for nobody", "it is " + decision->state, "",
                        "campaignctl status " + name};
    }
    const Result<json::value> candidates = parse_json(decision->candidates_json, "candidates");
    bool may = false;
    std::string down = "unknown";
    std::string could;
    if (candidates && candidates->is_array()) {
        for (const json::value& entry : candidates->get_array()) {
            if (string_at(entry, "verdict") != "deferred") continue;
            const std::string method = string_at(entry, "method").value_or("");
            could += (could.empty() ? "" : ", ") + method;
            if (method != candidate) continue;
            may = true;
            if (const json::value* range = member(entry, "downtime_s");
                range != nullptr && range->is_array() && range->get_array().size() == 2) {
                const auto high = json::value_to<double>(range->get_array()[1]);
                down = "about " + format_span(std::chrono::duration_cast<std::chrono::nanoseconds>(Seconds{high}));
            }
        }
    }
    if (!may) {
        co_return Error{ErrorKind::usage, candidate + " cannot be approved in " + label,
                        could.empty() ? "nothing waits for an approval there" : "these wait: " + could, "",
                        "campaignctl status " + name + " --decision " + label};
    }
    storage::ApprovalRow approval;
    approval.campaign = row->id;
    approval.decision = label;
    approval.candidate = candidate;
    approval.by = who;
    approval.at = engine::micros(world_.clock.wall());
    storage::Writer::Work work = [approval](storage::Journal& journal) -> Result<void> {
        const auto added = journal.add_approval(approval);
        if (!added) return added.error();
        return journal.audit(approval.by, "approve", approval.decision + " " + approval.candidate, approval.at);
    };
    const Result<void> written = co_await write(std::move(work));
    if (!written) co_return written.error();
    const auto waiting = running_.find(row->id);
    if (waiting != running_.end() && waiting->second->campaign.row.state == "waiting") {
        // From now on nobody is waited for: who asks next must not be told so.
        const std::string detail = candidate + " approved by " + printable(who, 80);
        co_await methods::set_state(waiting->second->campaign, "running", detail, nullptr);
    }
    json::object event;
    event["subject"] = label;
    event["candidate"] = candidate;
    event["by"] = printable(who, 80);
    event["state"] = "given";
    co_await note(row->id, "approval", std::move(event));
    poke(row->id);
    co_return said("approved by " + printable(who, 80) + ": " + candidate + " for " + decision->phase + ", down " + down);
}

api::Actions::Answer Supervisor::cancel(std::string name, std::string who) {
    const Result<storage::CampaignRow> row = find(name);
    if (!row) co_return row.error();
    if (row->ended) co_return Error{ErrorKind::conflict, name + " has ended already", "it is " + row->state, "", ""};
    const storage::Id id = row->id;
    const storage::Micros now = engine::micros(world_.clock.wall());
    storage::Writer::Work work = [id, who, now](storage::Journal& journal) -> Result<void> {
        if (Result<void> asked = journal.request_cancel(id, who); !asked) return asked;
        return journal.audit(who, "cancel", std::to_string(id), now);
    };
    const Result<void> written = co_await write(std::move(work));
    if (!written) co_return written.error();
    json::object event;
    event["text"] = "cancelled by " + printable(who, 80);
    co_await note(id, "note", std::move(event));
    const auto running = running_.find(id);
    if (running != running_.end()) {
        running->second->campaign.row.cancel_requested = true;
        running->second->campaign.row.cancel_by = printable(who, 80);
        const std::shared_ptr<Running> ending = running->second;
        if (!ending->restoring) {
            ending->signal.emit(asio::cancellation_type::terminal);
            const std::string detail =
                "cancelled: production comes back";   // who asks next must not be told that a person is waited for
            co_await methods::set_state(ending->campaign, "restoring", detail, nullptr);
            co_await close_needs(ending->campaign);
        }
        changed();
    }
    co_return said("cancelled by " + printable(who, 80) + "; production is put back and verified now");
}

api::Actions::Answer Supervisor::resume(std::string name, std::optional<std::string> as, std::string who) {
    const Result<storage::CampaignRow> row = find(name);
    if (!row) co_return row.error();
    if (row->ended) co_return Error{ErrorKind::conflict, name + " has ended already", "it is " + row->state, "", ""};
    if (!as) {
        poke(row->id);
        if (row->state == "waiting")
            co_return said(name + " waits " + (row->state_detail.empty() ? "for a person" : row->state_detail) +
                           ": resume does not answer that. campaignctl status " + name + " shows the choices");
        co_return said(row->state == "in_doubt" ? "looking again"
                                                : name + " is " + row->state + ", nothing is in doubt: looking again");
    }
    if (*as != "done" && *as != "not-done") co_return Error{ErrorKind::usage, "--as takes done or not-done", "", *as, ""};
    const Result<std::vector<storage::StepRow>> steps = world_.journal.reader().steps(row->id);
    if (!steps) co_return steps.error();
    const auto step =
        std::find_if(steps->rbegin(), steps->rend(), [](const auto& s) { return s.state == storage::StepState::in_doubt; });
    if (step == steps->rend())
        co_return Error{ErrorKind::conflict, "nothing of " + name + " is in doubt", "", "", "campaignctl status " + name};
    const storage::Id id = step->id;
    const storage::Micros now = engine::micros(world_.clock.wall());
    const storage::StepState state = *as == "done" ? storage::StepState::done : storage::StepState::intent;
    const std::string evidence =
        printable(who, 80) + " said: " + (*as == "done" ? "it was carried out" : "it was not carried out");
    storage::Writer::Work work = [id, state, evidence, who, now](storage::Journal& journal) -> Result<void> {
        if (Result<void> settled = journal.resolve_step(id, state, "{}", evidence, who, now); !settled) return settled;
        return journal.audit(who, "resume", evidence, now);
    };
    const Result<void> written = co_await write(std::move(work));
    if (!written) co_return written.error();
    json::object event;
    event["text"] = "step s" + std::to_string(step->number) + ": " + evidence;
    co_await note(row->id, "note", std::move(event));
    poke(row->id);
    co_return said("s" + std::to_string(step->number) + " is taken as " + *as + ", by " + printable(who, 80));
}

api::Actions::Answer Supervisor::restore(std::string name, std::string who) {
    const Result<storage::CampaignRow> row = find(name);
    if (!row) co_return row.error();
    const storage::Micros now = engine::micros(world_.clock.wall());
    storage::Writer::Work work = [name, who, now](storage::Journal& journal) -> Result<void> {
        return journal.audit(who, "restore", name, now);
    };
    const Result<void> written = co_await write(std::move(work));
    if (!written) co_return written.error();
    const auto running = running_.find(row->id);
    if (running != running_.end() && (running->second->restoring || running->second->campaign.row.state == "restoring")) {
        poke(row->id);
        co_return said("trying again now");
    }
    if (running != running_.end()) {
        co_return Error{ErrorKind::conflict, name + " is still " + row->state, "to restore in the middle ends the campaign",
                        "", "campaignctl cancel " + name};
    }
    auto plan = plans::parse(row->plan_text);
    if (!std::holds_alternative<plans::Plan>(plan))
        co_return Error{ErrorKind::invalid, "the frozen plan of " + name + " is refused by this version", "", "", ""};
    storage::CampaignRow again = *row;
    again.ended.reset();
    launch(std::move(again), std::get<plans::Plan>(std::move(plan)), true);
    co_return said("production is put back and verified now");
}

api::Actions::Answer Supervisor::explain(std::string plan_text, bool offline) {
    return explain_plan(world_, std::move(plan_text), offline);
}

Result<std::string> Supervisor::report(std::string name) {
    const Result<storage::CampaignRow> row = find(name);
    if (!row) return row.error();
    return report::markdown(world_.journal.reader(), world_.vault, row->id);
}

}   // namespace campaign::daemon
