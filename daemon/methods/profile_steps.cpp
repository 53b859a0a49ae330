#include "daemon/methods/profile_steps.hpp"

#include "base/text.hpp"

namespace campaign::methods {

using servers::Server;

ServerStart server_start(const json::object& facts) {
    ServerStart start;
    start.invocation = string_at(facts, "invocation").value_or("");
    start.boot_id = string_at(facts, "boot_id").value_or("");
    return start;
}

std::optional<std::string> ended_since(const ServerStart& then, const host::ServiceState& now) {
    if (!then.boot_id.empty() && !now.boot_id.empty() && then.boot_id != now.boot_id) {
        return "the host was rebooted, boot " + printable(then.boot_id.substr(0, 8), 8) + ".. -> " +
               printable(now.boot_id.substr(0, 8), 8) + "..";
    }
    if (!then.invocation.empty() && !now.invocation.empty() && then.invocation != now.invocation) {
        return "the server was restarted, invocation " + printable(then.invocation.substr(0, 8), 8) + ".. -> " +
               printable(now.invocation.substr(0, 8), 8) + "..";
    }
    if (now.active == "failed" || now.active == "inactive")
        return "the server has ended, ActiveState=" + now.active + " Result=" + printable(now.result, 60);
    return std::nullopt;
}

ServerStart ProfileRequest::wanted(const json::object& before) const {
    return profiled_.invocation.empty() ? server_start(before) : profiled_;
}

Outcome ProfileRequest::lost(const std::string& how) const {
    Outcome outcome = Outcome::from(
        Error{ErrorKind::conflict,
              start_ ? on_host() + " did not stay up while its profiler was started"
                     : "the profile of " + on_host() + " was lost with a restart that is not ours",
              "a profile ends with the process that it runs in, and its traces are written only by a stop", how, ""});
    outcome.value["lost"] = true;
    return outcome;
}

json::object ProfileRequest::input() const {
    json::object object = ServiceStep::input();
    object["tag"] = tag_;
    object["start"] = start_;
    return object;
}

Async<Result<json::object>> ProfileRequest::before(Scope& scope) {
    const Result<std::string> cursor = co_await link().manager->log_cursor(unit());
    if (!cursor) co_return cursor.error();
    const Result<host::ServiceState> state = co_await link().manager->look(unit());
    if (!state) co_return state.error();
    json::object seen;
    seen["cursor"] = *cursor;
    seen["invocation"] = state->invocation;
    seen["boot_id"] = state->boot_id;
    seen["at"] = engine::micros(scope.clock().wall());
    co_return seen;
}

Async<Outcome> ProfileRequest::act(Scope& scope, const json::object& before) {
    const ServerStart meant = wanted(before);
    const Result<host::ServiceState> state = co_await link().manager->look(unit());
    if (!state) {
        Error error = state.error();
        if (error.kind == ErrorKind::in_doubt) error.kind = ErrorKind::unreachable;   // only a look was lost
        co_return Outcome::from(std::move(error));
    }
    if (const auto how = ended_since(meant, *state)) co_return lost(*how);
    const Result<std::unique_ptr<Server>> server = servers::make_server(kind_, scope.world().http);
    if (!server) co_return Outcome::from(server.error());
    const Result<servers::Endpoint> at = co_await endpoint(link());
    if (!at) {
        Error error = at.error();
        if (error.kind == ErrorKind::in_doubt) error.kind = ErrorKind::unreachable;   // nothing was sent yet
        co_return Outcome::from(std::move(error));
    }
    const MonoTime began = scope.clock().mono();
    std::string tag = tag_;
    Result<http::Response> response = Error{};
    if (start_) {
        response = co_await (**server).start_profile(*at, std::move(tag));
    } else {
        response = co_await (**server).stop_profile(*at, std::move(tag), limit_);
    }
    if (!response) co_return Outcome::from(response.error());
    json::object facts;
    facts["status"] = response->status;
    facts["took_ms"] = std::chrono::duration_cast<Millis>(scope.clock().mono() - began).count();
    facts["tag"] = tag_;
    facts["invocation"] = meant.invocation;
    facts["boot_id"] = meant.boot_id;
    if (response->status >= 200 && response->status < 300) {
        // Whose answer was it? A server started meanwhile answers a stop with 200 too, having nothing to stop.
        const Result<host::ServiceState> behind = co_await link().manager->look(unit());
        if (!behind) {
            co_return Outcome::from(Error{ErrorKind::in_doubt, "which start of " + on_host() + " answered is not known",
                                          behind.error().what, "", ""});
        }
        if (const auto how = ended_since(meant, *behind)) co_return lost(*how);
        co_return Outcome::done(std::move(facts),
                                std::to_string(response->status) + " after " + format_span(scope.clock().mono() - began));
    }
    const std::string route = start_ ? "/start_profile" : "/stop_profile";
    const std::string seen =
        "POST " + route + " answered " + std::to_string(response->status) + " " + printable(response->body, 200);
    if (response->status == 404 || response->status == 405) {
        co_return Outcome::from(Error{ErrorKind::unavailable, on_host() + " has no profiler routes",
                                      "the server was started without its profiler setting", seen, ""});
    }
    if (response->status == 409) {
        co_return Outcome::from(Error{ErrorKind::conflict, "a profile is running already on " + on_host(),
                                      "somebody else started it", seen, "wait until it has ended, then submit again"});
    }
    if (response->status >= 500) {
        // The workers may have started or ended their profile all the same: the log and the files decide.
        co_return Outcome::from(Error{ErrorKind::in_doubt, on_host() + " failed in the middle of " + route, "", seen, ""});
    }
    co_return Outcome::from(Error{ErrorKind::refused, on_host() + " refused " + route, "", seen, ""});
}

Async<Confirmation> ProfileRequest::confirm(Scope& scope, const json::object& before) {
    Confirmation seen;
    seen.value["tag"] = tag_;
    seen.value["invocation"] = wanted(before).invocation;
    seen.value["boot_id"] = wanted(before).boot_id;
    const MonoTime until = scope.clock().mono() + (start_ ? Millis{std::chrono::minutes{2}} : limit_);
    bool asked_for_a_sign = false;
    for (;;) {
        const Result<host::ServiceState> state = co_await link().manager->look(unit());
        if (!state) {
            seen.evidence = "no answer from " + host() + ": " + state.error().what;
            co_return seen;
        }
        if (const auto how = ended_since(wanted(before), *state)) {
            seen.is = Confirmation::Is::not_done;   // and act() says what was lost, without sending anything
            seen.evidence = *how;
            co_return seen;
        }
        std::string cursor = string_at(before, "cursor").value_or("");
        const Result<std::vector<host::LogLine>> lines =
            co_await link().manager->read_log(unit(), std::move(cursor), 50'000);
        if (!lines) {
            seen.evidence = "the log of " + on_host() + " cannot be read: " + lines.error().what;
            co_return seen;
        }
        const Result<std::unique_ptr<Server>> server = servers::make_server(kind_, scope.world().http);
        if (!server) co_return seen;
        bool arrived = false;
        bool sign_seen = false;
        const std::string sign = "step=" + tag_ + "-sign";
        for (const host::LogLine& line : *lines) {
            if (line.text.find(sign) != std::string::npos) {
                sign_seen = true;
                continue;
            }
            const Server::Proof proof = (**server).profile_log_proof(line.text, start_, tag_);
            if (proof == Server::Proof::done) {
                seen.is = Confirmation::Is::done;
                seen.evidence = "the server's log: " + printable(line.text, 200);
                seen.value["status"] = 200;
                co_return seen;
            }
            if (proof == Server::Proof::failed) {
                seen.evidence = "the server's log: " + printable(line.text, 200);
                co_return seen;   // it failed in the middle: nobody can say what the workers do
            }
            if (proof == Server::Proof::arrived) arrived = true;
        }
        if (!arrived && sign_seen) {
            seen.is = Confirmation::Is::not_done;
            seen.evidence = "a later request of ours is in the server's log, this one is not";
            co_return seen;
        }
        if (scope.clock().mono() > until) {
            seen.evidence = arrived
                                ? "it arrived, and has not ended within " + format_span(limit_)
                                : "the server's log shows neither this request nor a later one: its access log may be off";
            co_return seen;
        }
        if (!arrived && !asked_for_a_sign) {
            // A harmless request after ours: once its line is in the log and ours is not, ours never arrived.
            const Result<servers::Endpoint> at = co_await endpoint(link());
            if (at) {
                http::Request request;
                request.url = at->base_url + "/version?step=" + tag_ + "-sign";
                request.unix_socket = at->unix_socket;
                const Result<http::Response> answer = co_await scope.world().http.send(std::move(request));
                asked_for_a_sign = static_cast<bool>(answer);
            }
        }
        co_await scope.clock().sleep_for(std::chrono::seconds{1});
    }
}

std::vector<engine::Undo> StartProfile::undos() const {
    if (!undo_needed_) return {};
    engine::Undo undo;
    undo.kind = "profile-ended";
    undo.data["service"] = service_name_;
    undo.data["server_kind"] = server_kind_;
    return {undo};
}

Async<void> close_undos(Campaign& campaign, std::string kind, std::string evidence) {
    const Result<std::vector<storage::UndoRow>> undos = campaign.world.journal.reader().undos(campaign.row.id);
    if (!undos) throw engine::EngineStop{undos.error()};
    const storage::Micros now = engine::micros(campaign.world.clock.wall());
    for (const storage::UndoRow& undo : *undos) {
        if (undo.kind != kind || undo.state == storage::UndoState::done) continue;
        const storage::Id id = undo.id;
        storage::Writer::Work work = [id, evidence, now](storage::Journal& journal) -> Result<void> {
            return journal.end_undo(id, storage::UndoState::done, evidence, now);
        };
        const Result<void> written = co_await campaign.world.journal.write(std::move(work));
        if (!written) throw engine::EngineStop{written.error()};
        json::object data;
        data["subject"] = kind;
        data["state"] = "done";
        data["detail"] = evidence;
        co_await engine::write_event(campaign, "undo", std::move(data));
    }
}

Async<Result<void>> end_left_profile(Campaign& campaign, const storage::UndoRow& undo, int round) {
    const Result<json::value> data = parse_json(undo.data_json, "undo record");
    if (!data) co_return data.error();
    const std::string path = "restore/" + std::to_string(undo.id) + "/r" + std::to_string(round);
    Track track{campaign, path, "restore"};
    ProfileRequest stop{campaign,
                        string_at(*data, "service").value_or(""),
                        string_at(*data, "server_kind").value_or(""),
                        false,
                        tag_of(campaign, path),
                        std::chrono::minutes{60}};
    for (const auto& [step_path, row] : campaign.memo) {   // only what is known to have started can be known as lost
        if (row.id == undo.step && row.state == storage::StepState::done)
            stop.meant_for(server_start(engine::outcome_from(row).value));
    }
    const Outcome stopped = co_await track.perform(stop);
    const bool lost = bool_at(stopped.value, "lost").value_or(false);
    if (!stopped && !lost) co_return stopped.error;
    co_await close_undos(campaign, undo.kind,
                         (lost ? "no profile is left: " : "the profile left running was ended: ") + stopped.evidence);
    co_return Result<void>{};
}

}   // namespace campaign::methods
