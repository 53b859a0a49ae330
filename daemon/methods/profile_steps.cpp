#include "daemon/methods/profile_steps.hpp"

#include "base/text.hpp"

namespace campaign::methods {

using servers::Server;

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
    seen["at"] = engine::micros(scope.clock().wall());
    co_return seen;
}

Async<Outcome> ProfileRequest::act(Scope& scope, const json::object&) {
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
    if (response->status >= 200 && response->status < 300) {
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
    const MonoTime until = scope.clock().mono() + (start_ ? Millis{std::chrono::minutes{2}} : limit_);
    bool asked_for_a_sign = false;
    for (;;) {
        const Result<host::ServiceState> state = co_await link().manager->look(unit());
        if (!state) {
            seen.evidence = "no answer from " + host() + ": " + state.error().what;
            co_return seen;
        }
        if (state->invocation != string_at(before, "invocation").value_or("")) {
            seen.is = start_ ? Confirmation::Is::not_done : Confirmation::Is::done;
            if (start_) {
                seen.is = Confirmation::Is::cannot_tell;   // the server that it was sent to is gone
            }
            seen.evidence = "the server was restarted meanwhile: no profile runs in it";
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
    const Outcome stopped = co_await track.perform(stop);
    if (!stopped) co_return stopped.error;
    co_await close_undos(campaign, undo.kind, "the profile left running was ended: " + stopped.evidence);
    co_return Result<void>{};
}

}   // namespace campaign::methods
