#include "daemon/methods/restore.hpp"

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "daemon/methods/await_ready.hpp"
#include "daemon/methods/profile_steps.hpp"
#include "daemon/methods/session.hpp"

namespace campaign::methods {
namespace {

json::object to_json(const ServiceFacts& facts) {
    json::object object;
    object["service"] = facts.service;
    object["baseline"] = host::to_json(facts.baseline);
    object["server_kind"] = facts.server_kind;
    object["version"] = facts.version;
    object["model"] = facts.model;
    object["world_size"] = facts.world_size;
    if (facts.probe_tpot_ms) object["probe_tpot_ms"] = *facts.probe_tpot_ms;
    return object;
}

Result<ServiceFacts> facts_from_json(const json::value& value) {
    ServiceFacts facts;
    const json::value* baseline = member(value, "baseline");
    if (baseline == nullptr)
        return Error{ErrorKind::bug, "an undo without a baseline", "", json::serialize(value).substr(0, 300), ""};
    const Result<host::Baseline> parsed = host::baseline_from_json(*baseline);
    if (!parsed) return parsed.error();
    facts.service = string_at(value, "service").value_or("");
    facts.baseline = *parsed;
    facts.server_kind = string_at(value, "server_kind").value_or("");
    facts.version = string_at(value, "version").value_or("");
    facts.model = string_at(value, "model").value_or("");
    facts.world_size = static_cast<int>(int_at(value, "world_size").value_or(1));
    facts.probe_tpot_ms = number_at(value, "probe_tpot_ms");
    return facts;
}

bool same_process(const host::Baseline& now, const host::Baseline& found, std::string& difference) {
    if (now.running_argv != found.running_argv) {
        difference = "argv differs";
        return false;
    }
    for (const auto& [name, hash] : found.environment_hashes) {
        if (name == "INVOCATION_ID" || name == "JOURNAL_STREAM" || name == "SYSTEMD_EXEC_PID" ||
            name == "MEMORY_PRESSURE_WATCH" || name == "NOTIFY_SOCKET")
            continue;
        const auto other = now.environment_hashes.find(name);
        if (other == now.environment_hashes.end() || other->second != hash) {
            difference = "variable " + name + (other == now.environment_hashes.end() ? " is gone" : " differs");
            return false;
        }
    }
    for (const auto& [name, hash] : now.environment_hashes) {
        if (found.environment_hashes.contains(name)) continue;
        if (name == "INVOCATION_ID" || name == "JOURNAL_STREAM" || name == "SYSTEMD_EXEC_PID" ||
            name == "MEMORY_PRESSURE_WATCH" || name == "NOTIFY_SOCKET")
            continue;
        difference = "variable " + name + " is new";
        return false;
    }
    return true;
}

class RemoveOverride final : public ServiceStep {
public:
    RemoveOverride(Campaign& campaign, std::string service, std::string path, std::string sha256)
        : ServiceStep{campaign, std::move(service)}, path_{std::move(path)}, sha256_{std::move(sha256)} {}
    [[nodiscard]] std::string name() const override { return "remove-override"; }
    [[nodiscard]] std::string title() const override { return "remove " + path_ + " on " + host(); }
    [[nodiscard]] Effect effect() const override { return Effect::converge; }
    [[nodiscard]] std::string command() const override {
        return "rm " + path_ + " (only with sha256 " + sha256_ + "); systemctl daemon-reload";
    }
    [[nodiscard]] json::object input() const override {
        json::object object = ServiceStep::input();
        object["path"] = path_;
        object["sha256"] = sha256_;
        return object;
    }
    Async<Outcome> act(Scope&, const json::object&) override {
        const Result<json::object> removed = co_await link().manager->remove(unit(), path_, sha256_);
        if (!removed) co_return Outcome::from(removed.error());
        co_return Outcome::done(*removed, path_ + " is gone");
    }

private:
    std::string path_;
    std::string sha256_;
};

/// Does the service run as it was found, or must it be started again?
class CompareRunning final : public ServiceStep {
public:
    CompareRunning(Campaign& campaign, std::string service, const host::Baseline& found)
        : ServiceStep{campaign, std::move(service)}, found_{found} {}
    [[nodiscard]] std::string name() const override { return "compare-running"; }
    [[nodiscard]] std::string title() const override { return "compare " + on_host() + " with how it was found"; }
    [[nodiscard]] Effect effect() const override { return Effect::observe; }
    Async<Outcome> act(Scope& scope, const json::object&) override {
        json::object facts;
        const Result<std::string> cursor = co_await link().manager->log_cursor(unit());
        if (!cursor) co_return Outcome::from(cursor.error());
        facts["cursor"] = *cursor;
        facts["at"] = engine::micros(scope.clock().wall());
        const Result<host::ServiceState> state = co_await link().manager->look(unit());
        if (!state) co_return Outcome::from(state.error());
        facts["invocation"] = state->invocation;
        facts["rebooted"] = state->boot_id != found_.state.boot_id;
        std::string difference;
        if (state->active != "active" && state->active != "activating") {
            difference = "ActiveState=" + state->active;
        } else {
            const Result<host::Baseline> now = co_await link().manager->baseline(unit());
            if (!now && (now.error().kind == ErrorKind::unreachable || now.error().kind == ErrorKind::in_doubt))
                co_return Outcome::from(now.error());
            if (!now) {
                difference = now.error().what;
            } else {
                same_process(*now, found_, difference);
            }
        }
        facts["needs_restart"] = !difference.empty();
        facts["active"] = state->active == "active";
        facts["difference"] = difference;
        std::string seen =
            difference.empty() ? "it runs as it was found" : "it must be restarted: " + printable(difference, 300);
        co_return Outcome::done(std::move(facts), std::move(seen));
    }

private:
    const host::Baseline& found_;
};

/// Every check that makes production "verified", each with what was seen.
class VerifyAsFound final : public ServiceStep {
public:
    VerifyAsFound(Campaign& campaign, const ServiceFacts& facts, std::string our_path)
        : ServiceStep{campaign, facts.service}, facts_{facts}, our_path_{std::move(our_path)} {}
    [[nodiscard]] std::string name() const override { return "verify-as-found"; }
    [[nodiscard]] std::string title() const override { return "verify that " + on_host() + " is as it was found"; }
    [[nodiscard]] Effect effect() const override { return Effect::observe; }
    Async<Outcome> act(Scope&, const json::object&) override {
        const Result<host::Baseline> now = co_await link().manager->baseline(unit());
        if (!now) co_return Outcome::from(now.error());
        const auto& drop_ins = now->state.drop_ins;
        const bool ours_gone = our_path_.empty() || std::find(drop_ins.begin(), drop_ins.end(), our_path_) == drop_ins.end();
        check("drop-in", ours_gone,
              our_path_.empty() ? "none was written" : our_path_ + (ours_gone ? " is gone" : " is still in effect"));
        std::vector<std::string> others = facts_.baseline.state.drop_ins;
        std::vector<std::string> others_now = drop_ins;
        std::erase(others_now, our_path_);
        std::erase(others, our_path_);
        check("other drop-ins", others == others_now,
              std::to_string(others_now.size()) + " of others, " + std::to_string(others.size()) + " before");
        check("configured argv", now->configured_argv == facts_.baseline.configured_argv,
              std::to_string(now->configured_argv.size()) + " words");
        std::string difference;
        const bool same = same_process(*now, facts_.baseline, difference);
        check("argv and environment", same, same ? "/proc/" + std::to_string(now->server_pid) + " as before" : difference);
        check("active", now->state.active == "active", now->state.active + "/" + now->state.sub);
        const bool new_start = now->state.invocation != facts_.baseline.state.invocation;
        check("invocation", !now->state.invocation.empty(),
              new_start ? "new: " + now->state.invocation.substr(0, 8) : "the one before: never restarted");

        const Result<std::unique_ptr<servers::Server>> server =
            servers::make_server(facts_.server_kind, campaign_.world.http);
        if (!server) co_return Outcome::from(server.error());
        const Result<servers::Endpoint> at = co_await endpoint(link());
        if (!at) co_return Outcome::from(at.error());
        const Result<servers::Health> health = co_await (**server).health(*at);
        const bool healthy = health && *health == servers::Health::ready;
        check("health", healthy, healthy ? "200" : "not ready");
        const Result<std::vector<std::string>> models = co_await (**server).models(*at);
        const bool listed = models && std::find(models->begin(), models->end(), facts_.model) != models->end();
        check("model", listed, facts_.model + (listed ? " is listed" : " is not listed"));
        const Result<servers::Token> token = co_await (**server).one_token(*at, facts_.model);
        const bool generated = token && token->generated;
        check("one token", generated, generated ? "in " + format_span(token->took) : "none came");

        json::object outcome;
        outcome["checks"] = checks_;
        outcome["invocation"] = now->state.invocation;
        outcome["new_invocation"] = new_start;
        if (!all_good_) {
            Outcome failed = Outcome::from(Error{ErrorKind::failed, on_host() + " is not as it was found", bad_, "", ""});
            failed.value = std::move(outcome);
            co_return failed;
        }
        co_return Outcome::done(std::move(outcome), good_);
    }

private:
    void check(const std::string& what, bool good, const std::string& seen) {
        json::object entry;
        entry["check"] = what;
        entry["ok"] = good;
        entry["seen"] = printable(seen, 300);
        checks_.push_back(std::move(entry));
        if (good) {
            good_ += (good_.empty() ? "= " : " = ") + what;
        } else {
            all_good_ = false;
            bad_ += (bad_.empty() ? "" : "; ") + what + ": " + printable(seen, 200);
        }
    }
    const ServiceFacts& facts_;
    std::string our_path_;
    json::array checks_;
    std::string good_;
    std::string bad_;
    bool all_good_ = true;
};

/// The probe after against the one before; a noisy machine gets three tries.
Async<Result<std::string>> probe_again(Campaign& campaign, Track& track, const ServiceFacts& facts) {
    if (!campaign.plan.restore.verify_probe || !facts.probe_tpot_ms) co_return std::string{"no probe to compare with"};
    double nearest = 1e9;
    for (int attempt = 1; attempt <= 3; ++attempt) {
        ShortProbe probe{campaign, facts.service, facts.model,
                         attempt == 1 ? "probe-after" : "probe-after-" + std::to_string(attempt)};
        const Outcome measured = co_await track.perform(probe);
        if (!measured) co_return measured.error;
        const double now = number_at(measured.value, "tpot_p50_ms").value_or(0);
        const double off = now / *facts.probe_tpot_ms - 1;
        if (std::abs(off) < std::abs(nearest)) nearest = off;
        if (std::abs(off) <= campaign.plan.restore.probe_within) {
            char text[120];
            std::snprintf(text, sizeof text, "probe TPOT %.2f ms, %+.1f %% of the one before", now, off * 100);
            co_return std::string{text};
        }
    }
    char text[160];
    std::snprintf(text, sizeof text, "the nearest of three probes is %+.1f %% off, the plan allows %.0f %%", nearest * 100,
                  campaign.plan.restore.probe_within * 100);
    co_return Error{ErrorKind::failed, "production of " + facts.service + " is back, but slower or faster than before", text,
                    "", "look at what else the host does, then campaignctl restore " + campaign.row.name};
}

/// Did an earlier round restart the service and see it ready?
bool came_back_earlier(const Campaign& campaign, storage::Id undo, int round) {
    for (int earlier = 1; earlier < round; ++earlier) {
        const std::string prefix = "restore/" + std::to_string(undo) + "/r" + std::to_string(earlier) + "/";
        const auto done = [&campaign, &prefix](std::string_view step) {
            return std::any_of(campaign.memo.begin(), campaign.memo.end(), [&](const auto& entry) {
                return entry.first.starts_with(prefix) && entry.first.ends_with(step) &&
                       entry.second.state == storage::StepState::done;
            });
        };
        if (done("/restart-unit") && done("/await-ready")) return true;
    }
    return false;
}

Async<void> end_undo(Campaign& campaign, storage::Id undo, std::string evidence) {
    const storage::Micros now = engine::micros(campaign.world.clock.wall());
    storage::Writer::Work work = [undo, evidence, now](storage::Journal& journal) -> Result<void> {
        return journal.end_undo(undo, storage::UndoState::done, evidence, now);
    };
    const Result<void> written = co_await campaign.world.journal.write(std::move(work));
    if (!written) throw engine::EngineStop{written.error()};
    json::object data;
    data["subject"] = "service-as-found";
    data["state"] = "done";
    data["detail"] = evidence;
    co_await engine::write_event(campaign, "undo", std::move(data));
}

}   // namespace

engine::Undo service_as_found(const Campaign& campaign, const std::string& service, const ServiceFacts& facts,
                              const host::Change& change) {
    engine::Undo undo;
    undo.kind = "service-as-found";
    undo.data["facts"] = to_json(facts);
    undo.data["host"] = campaign.plan.services.at(service).host;
    undo.data["unit"] = campaign.plan.services.at(service).unit;
    undo.data["path"] = change.path;
    undo.data["sha256"] = change.sha256;
    return undo;
}

Async<void> production(Campaign& campaign, std::string service, std::string state, std::string detail) {
    const storage::Micros now = engine::micros(campaign.world.clock.wall());
    double down = 0;
    const auto last = campaign.world.journal.reader().latest_event(campaign.row.id, "production", service);
    if (last && *last) {
        const Result<json::value> data = parse_json((**last).data_json, "production event");
        if (data) {
            down = number_at(*data, "downtime_s").value_or(0);
            const std::string was = string_at(*data, "state").value_or("");
            if (was == "down" || was == "restoring") down += static_cast<double>(now - (**last).at) / 1e6;
            if (was == state && string_at(*data, "detail") == detail) co_return;
        }
    }
    int pending = 0;
    if (const auto undos = campaign.world.journal.reader().undos(campaign.row.id); undos) {
        for (const storage::UndoRow& undo : *undos) pending += undo.state == storage::UndoState::done ? 0 : 1;
    }
    json::object data;
    data["subject"] = service;
    data["host"] = campaign.plan.services.at(service).host;
    data["unit"] = campaign.link(service).unit();
    data["state"] = std::move(state);
    data["detail"] = std::move(detail);
    data["downtime_s"] = down;
    data["undos"] = pending;
    co_await engine::write_event(campaign, "production", std::move(data));
}

Async<Result<void>> carry_out(Campaign& campaign, const storage::UndoRow& undo, int round) {
    const Result<json::value> data = parse_json(undo.data_json, "undo record");
    if (!data) co_return data.error();
    const json::value* recorded = member(*data, "facts");
    const Result<ServiceFacts> facts = facts_from_json(recorded != nullptr ? *recorded : json::value(nullptr));
    if (!facts) co_return facts.error();
    const std::string path = string_at(*data, "path").value_or("");
    const std::string hash = string_at(*data, "sha256").value_or("");
    Track track{campaign, "restore/" + std::to_string(undo.id) + "/r" + std::to_string(round), "restore"};

    RemoveOverride remove{campaign, facts->service, path, hash};
    const Outcome removed = co_await track.perform(remove);
    if (!removed) co_return removed.error;

    CompareRunning compare{campaign, facts->service, facts->baseline};
    const Outcome compared = co_await track.perform(compare);
    if (!compared) co_return compared.error;
    AwaitReady::Start start;
    start.invocation = string_at(compared.value, "invocation").value_or("");
    start.cursor = string_at(compared.value, "cursor").value_or("");
    start.at = int_at(compared.value, "at").value_or(0);
    const bool untouched = start.invocation == facts->baseline.state.invocation;
    bool needs_restart = bool_at(compared.value, "needs_restart").value_or(true);
    if (needs_restart && bool_at(compared.value, "active").value_or(false) && came_back_earlier(campaign, undo.id, round)) {
        // A restart of ours has brought it back once and it still differs: another one would only take production down
        // again.
        needs_restart = false;
    }
    if (needs_restart) {
        RestartService restart{campaign, facts->service, "restoring", "restarted as it was found"};
        const Outcome restarted = co_await track.perform(restart);
        if (!restarted) co_return restarted.error;
        start.invocation = string_at(restarted.value, "invocation").value_or("");
        start.cursor = string_at(restarted.value, "cursor").value_or("");
        start.at = int_at(restarted.value, "at").value_or(0);
    }
    if (!untouched || needs_restart) {
        AwaitReady ready{campaign, facts->service, facts->server_kind, facts->model, "production", start};
        const Outcome loaded = co_await track.perform(ready);
        if (!loaded) co_return loaded.error;
    }
    VerifyAsFound verify{campaign, *facts, path};
    const Outcome verified = co_await track.perform(verify);
    if (!verified) co_return verified.error;
    const Result<std::string> probed = co_await probe_again(campaign, track, *facts);
    if (!probed) co_return probed.error();
    if (campaign.rehearsal != nullptr) co_return Result<void>{};
    std::string evidence = verified.evidence + " = " + *probed;
    co_await end_undo(campaign, undo.id, evidence);
    co_await production(campaign, facts->service, "verified", evidence);
    co_return Result<void>{};
}

Async<Result<void>> verify_as_found(Campaign& campaign, const ServiceFacts& facts) {
    int round = 1;   // a round that failed stays on record, and the next look is a new one
    const auto failed = [&campaign, &facts](int number) {
        const std::string prefix = "verify/" + facts.service + "/r" + std::to_string(number) + "/";
        return std::any_of(campaign.memo.begin(), campaign.memo.end(), [&prefix](const auto& entry) {
            return entry.first.starts_with(prefix) && entry.second.state == storage::StepState::failed;
        });
    };
    while (failed(round)) ++round;
    Track track{campaign, "verify/" + facts.service + "/r" + std::to_string(round), "restore"};
    VerifyAsFound verify{campaign, facts, ""};
    const Outcome verified = co_await track.perform(verify);
    if (!verified) co_return verified.error;
    const Result<std::string> probed = co_await probe_again(campaign, track, facts);
    if (!probed) co_return probed.error();
    std::string evidence = verified.evidence + " = " + *probed;
    co_await production(campaign, facts.service, "verified", evidence);
    co_return Result<void>{};
}

Async<Result<void>> restore_all(Campaign& campaign) {
    const MonoTime until = campaign.world.clock.mono() + campaign.plan.restore.time_limit;
    for (int round = 1;; ++round) {
        const Result<std::vector<storage::UndoRow>> undos = campaign.world.journal.reader().undos(campaign.row.id);
        if (!undos) co_return undos.error();
        std::optional<Error> trouble;
        for (auto undo = undos->rbegin(); undo != undos->rend(); ++undo) {
            if (undo->state == storage::UndoState::done) continue;
            Result<void> undone = Error{};
            if (undo->kind == "profile-ended") {
                undone = co_await end_left_profile(campaign, *undo, round);
            } else {
                undone = co_await carry_out(campaign, *undo, round);
            }
            if (!undone) trouble = undone.error();
        }
        if (!trouble) co_return Result<void>{};
        const std::string next_round = "/r" + std::to_string(round + 1) + "/";
        const bool replayed = std::any_of(campaign.memo.begin(), campaign.memo.end(), [&next_round](const auto& entry) {
            return entry.first.starts_with("restore/") && entry.first.find(next_round) != std::string::npos;
        });
        if (replayed) continue;
        json::object note;
        note["text"] = "restore, round " + std::to_string(round) + ": " + describe(*trouble);
        co_await engine::write_event(campaign, "note", std::move(note));
        const bool over_time = campaign.world.clock.mono() > until || round >= 4;
        if (!over_time) {
            co_await campaign.world.clock.sleep_for(std::chrono::seconds{5 * round});
            continue;
        }
        json::object need;
        need["subject"] = "restore";
        need["what"] =
            "production could not be restored: " + trouble->what + (trouble->why.empty() ? "" : ": " + trouble->why);
        need["command"] = "campaignctl restore " + campaign.row.name;
        need["state"] = "open";
        co_await engine::write_event(campaign, "need", std::move(need));
        std::string what = "restore";
        co_await campaign.await_word(what);
        json::object closed;
        closed["subject"] = "restore";
        closed["state"] = "closed";
        co_await engine::write_event(campaign, "need", std::move(closed));
    }
}

}   // namespace campaign::methods
