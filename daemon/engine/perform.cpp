#include "daemon/engine/perform.hpp"

#include <boost/asio/this_coro.hpp>

#include "base/sha256.hpp"
#include "base/text.hpp"

namespace campaign::engine {
namespace {

namespace asio = boost::asio;

bool worth_repeating(const Error& error) {
    return error.kind == ErrorKind::unreachable || error.kind == ErrorKind::timed_out || error.kind == ErrorKind::in_doubt;
}

/// How long an unreachable host is waited for before a step that only looks gives up: a reboot, a long night cut.
constexpr std::chrono::minutes patience{30};

Seconds pause_after(int tries, Random& random) {
    const double base = std::min(30.0, 0.5 * static_cast<double>(1U << std::min(tries, 7)));
    return Seconds{base * (0.8 + 0.4 * random.unit())};
}

json::object step_event(const storage::StepRow& row, const Step& step, std::string_view state, std::string_view detail) {
    json::object data;
    data["subject"] = row.path;
    data["step"] = row.id;
    data["label"] = "s" + std::to_string(row.number);
    data["title"] = step.title();
    data["state"] = state;
    data["detail"] = printable(detail, 500);
    return data;
}

/// The question about the scope's step needs no person any more.
Async<void> close_need(Scope& scope) {
    json::object data;
    data["subject"] = scope.path();
    data["state"] = "closed";
    co_await scope.event("need", std::move(data));
}

storage::EventRow event_row(storage::Id campaign, storage::Micros at, std::string kind, const json::object& data) {
    storage::EventRow row;
    row.campaign = campaign;
    row.at = at;
    row.kind = std::move(kind);
    row.data_json = json::serialize(data);
    return row;
}

}   // namespace

Async<Outcome> Track::perform(Step& step) {
    const std::string path = path_ + "/" + std::to_string(++ordinal_) + "/" + step.name();
    if (campaign_.rehearsal != nullptr) {
        Planned planned;
        planned.path = path;
        planned.title = step.title();
        planned.host = step.host();
        planned.command = step.command();
        planned.effect = step.effect();
        campaign_.rehearsal->push_back(std::move(planned));
        co_return Outcome::done(step.example(), "rehearsed");
    }
    const json::object input = step.input();
    const std::string hash = sha256(canonical(input));
    const auto known = campaign_.memo.find(path);
    storage::StepRow row;
    json::object before;
    bool begun_earlier = false;
    if (known != campaign_.memo.end()) {
        row = known->second;
        if (row.input_hash != hash) {
            throw EngineStop{Error{ErrorKind::conflict, "step " + path + " is not the one on record",
                                   "its input differs from what was recorded, so the record cannot stand for it",
                                   "recorded " + row.input_json + ", now " + canonical(input),
                                   "campaignctl restore " + campaign_.row.name + ", then submit the plan again"}};
        }
        if (row.state == storage::StepState::done || row.state == storage::StepState::failed) co_return outcome_from(row);
        begun_earlier = true;
        if (const auto parsed = parse_json(row.before_json.empty() ? "{}" : row.before_json, "recorded evidence");
            parsed && parsed->is_object()) {
            before = parsed->get_object();
        }
    } else {
        row.campaign = campaign_.row.id;
        row.path = path;
        row.input_hash = hash;
        row.input_json = canonical(input);
        row.effect = step.effect();
        row.host = step.host();
        row.command = step.command();
    }

    if (!begun_earlier) {
        // Evidence first: after a crash it must be possible to tell whether the intent was carried out.
        Scope looking{campaign_, path, 0, phase_};
        const MonoTime until = world().clock.mono() + patience;
        for (int tries = 0;; ++tries) {
            Result<json::object> seen = co_await step.before(looking);
            if (seen) {
                before = *seen;
                break;
            }
            if (!worth_repeating(seen.error()) || world().clock.mono() > until) {
                const Error reason = seen.error();
                row.before_json = "{}";
                row.id = co_await begin(step, row);
                Outcome failed = Outcome::from(reason);
                failed.is = Outcome::Is::failed;   // nothing was sent
                co_await end(row, failed);
                co_return failed;
            }
            const Seconds pause = pause_after(tries, world().random);
            co_await world().clock.sleep_for(std::chrono::duration_cast<std::chrono::nanoseconds>(pause));
        }
        row.before_json = json::serialize(before);
        row.id = co_await begin(step, row);
    } else if (step.effect() == Effect::transition) {
        const Error doubt{ErrorKind::in_doubt, "the daemon ended before the outcome of " + step.title() + " was known", "",
                          "", ""};
        const Outcome settled = co_await settle(step, row, before, doubt);
        if (settled.error.kind == ErrorKind::cancelled) throw boost::system::system_error{asio::error::operation_aborted};
        co_await asio::this_coro::throw_if_cancelled(
            false);   // what is known is recorded, also when a cancel came meanwhile
        co_await end(row, settled);
        co_await asio::this_coro::throw_if_cancelled(true);
        co_return settled;
    } else {
        row.id = co_await begin(step, row);   // counts one more attempt
    }

    const Outcome outcome = co_await act_until_known(step, row, before);
    if (outcome.error.kind == ErrorKind::cancelled) throw boost::system::system_error{asio::error::operation_aborted};
    co_await asio::this_coro::throw_if_cancelled(false);   // what is known is recorded, also when a cancel came meanwhile
    co_await end(row, outcome);
    co_await asio::this_coro::throw_if_cancelled(true);
    co_return outcome;
}

Async<Outcome> Track::act_until_known(Step& step, storage::StepRow& row, const json::object& before) {
    Scope scope{campaign_, row.path, row.id, phase_};
    const MonoTime until = world().clock.mono() + patience;
    for (int tries = 0;; ++tries) {
        Outcome outcome = co_await step.act(scope, before);
        if (outcome) co_return outcome;
        if (step.effect() == Effect::transition) {
            if (outcome.is == Outcome::Is::in_doubt) {
                const Error doubt = outcome.error;
                co_return co_await settle(step, row, before, doubt);
            }
            if (outcome.error.kind != ErrorKind::unreachable) co_return outcome;   // unreachable: certainly not begun
        } else if (!worth_repeating(outcome.error)) {
            co_return outcome;
        }
        if (world().clock.mono() > until) {
            outcome.is = Outcome::Is::failed;
            co_return outcome;
        }
        json::object waiting;
        waiting["subject"] = row.path;
        waiting["for"] = outcome.error.what;
        waiting["state"] = "waiting";
        co_await scope.event("wait", std::move(waiting));
        const Seconds pause = pause_after(tries, world().random);
        co_await world().clock.sleep_for(std::chrono::duration_cast<std::chrono::nanoseconds>(pause));
    }
}

Async<Outcome> Track::settle(Step& step, storage::StepRow& row, const json::object& before, Error doubt) {
    Scope scope{campaign_, row.path, row.id, phase_};
    bool asked = false;
    const MonoTime until = world().clock.mono() + std::chrono::minutes{2};
    for (int tries = 0;; ++tries) {
        const Confirmation seen = co_await step.confirm(scope, before);
        std::string evidence = seen.evidence;
        if (seen.is == Confirmation::Is::done) {
            Outcome outcome = Outcome::done(seen.value, "found done: " + evidence);
            if (asked) co_await close_need(scope);
            co_return outcome;
        }
        if (seen.is == Confirmation::Is::not_done) {
            row.id = co_await begin(step, row);
            if (asked) co_await close_need(scope);
            Outcome outcome = co_await step.act(scope, before);
            if (outcome.is != Outcome::Is::in_doubt) co_return outcome;
            doubt = outcome.error;
            continue;
        }
        if (world().clock.mono() < until) {   // the link may be healing
            const Seconds pause = pause_after(tries, world().random);
            co_await world().clock.sleep_for(std::chrono::duration_cast<std::chrono::nanoseconds>(pause));
            continue;
        }
        if (!asked) {
            asked = true;
            json::object need;
            need["subject"] = row.path;
            need["what"] = "was it carried out: " + step.title() + "? " + doubt.what + "; " + evidence;
            need["command"] = "campaignctl resume " + campaign_.row.name + " --as done|not-done";
            need["state"] = "open";
            co_await scope.event("need", std::move(need));
            const storage::Id id = row.id;
            const storage::Micros now = micros(world().clock.wall());
            Outcome unknown = Outcome::from(doubt);
            unknown.is = Outcome::Is::in_doubt;
            const std::string text = json::serialize(to_json(unknown));
            storage::Writer::Work work = [id, text, evidence, now](storage::Journal& journal) -> Result<void> {
                return journal.end_step(id, storage::StepState::in_doubt, text, evidence, now);
            };
            const Result<void> written = co_await world().journal.write(std::move(work));
            if (!written) throw EngineStop{written.error()};
            json::object data = step_event(row, step, "in_doubt", evidence);
            co_await scope.event("step", std::move(data));
        }
        std::string what = "in_doubt:" + row.path;
        co_await campaign_.await_word(what);
        const Result<std::optional<storage::StepRow>> now_on_record = world().journal.reader().step(row.id);
        if (now_on_record && *now_on_record && (**now_on_record).state == storage::StepState::done) {
            co_await close_need(scope);
            co_return outcome_from(**now_on_record);   // a person said so; resolved_by names them
        }
        if (now_on_record && *now_on_record && (**now_on_record).state == storage::StepState::intent) {
            // a person said that it was not carried out
            co_await close_need(scope);
            row.id = co_await begin(step, row);
            Outcome outcome = co_await step.act(scope, before);
            if (outcome.is != Outcome::Is::in_doubt) co_return outcome;
            doubt = outcome.error;
            asked = false;
        }
    }
}

Async<storage::Id> Track::begin(Step& step, storage::StepRow& row) {
    row.state = storage::StepState::intent;
    row.intent_at = micros(world().clock.wall());
    const std::vector<Undo> undos = step.undos();
    const auto id = std::make_shared<std::pair<storage::Id, int>>();
    const bool first = row.id == 0;
    const std::string title = step.title();
    json::object data = step_event(row, step, "intent", first ? "" : "begun again");
    storage::Writer::Work work = [row, undos, id, data, first](storage::Journal& journal) -> Result<void> {
        const auto step_id = journal.begin_step(row);
        if (!step_id) return step_id.error();
        id->first = *step_id;
        json::object event = data;
        event["step"] = *step_id;
        const auto number = journal.step_number(*step_id);
        if (!number) return number.error();
        id->second = *number;
        event["label"] = "s" + std::to_string(*number);
        if (first) {   // the undo is on record in the same transaction as the intent
            for (const Undo& undo : undos) {
                storage::UndoRow record;
                record.campaign = row.campaign;
                record.step = *step_id;
                record.kind = undo.kind;
                record.data_json = json::serialize(undo.data);
                record.registered = row.intent_at;
                const auto added = journal.add_undo(record);
                if (!added) return added.error();
                const auto noted = journal.add_event(event_row(row.campaign, row.intent_at, "undo",
                                                               json::object{{"subject", undo.kind}, {"state", "pending"}}));
                if (!noted) return noted.error();
            }
        }
        const auto noted = journal.add_event(event_row(row.campaign, row.intent_at, "step", event));
        if (!noted) return noted.error();
        return {};
    };
    // A cancel must not tear the record: it waits until the write is over.
    co_await asio::this_coro::throw_if_cancelled(false);
    const Result<void> written = co_await world().journal.write(std::move(work));
    co_await asio::this_coro::throw_if_cancelled(true);
    if (!written) throw EngineStop{written.error()};
    row.number = id->second;
    row.id = id->first;
    campaign_.memo[row.path] = row;
    co_return id->first;
}

Async<void> Track::end(storage::StepRow& row, const Outcome& outcome) {
    const storage::Micros now = micros(world().clock.wall());
    row.state = outcome.is == Outcome::Is::done     ? storage::StepState::done
                : outcome.is == Outcome::Is::failed ? storage::StepState::failed
                                                    : storage::StepState::in_doubt;
    row.outcome_json = json::serialize(to_json(outcome));
    row.evidence = printable(outcome.evidence, 2000);
    row.ended_at = now;
    json::object data;
    data["subject"] = row.path;
    data["step"] = row.id;
    data["label"] = "s" + std::to_string(row.number);
    data["title"] = row.path.substr(row.path.rfind('/') + 1);
    data["state"] = std::string{storage::to_string(row.state)};
    data["detail"] = outcome ? printable(outcome.evidence, 500) : printable(describe(outcome.error), 900);
    storage::Writer::Work work = [row, now, data](storage::Journal& journal) -> Result<void> {
        if (Result<void> ended = journal.end_step(row.id, row.state, row.outcome_json, row.evidence, now); !ended)
            return ended;
        const auto noted = journal.add_event(event_row(row.campaign, now, "step", data));
        if (!noted) return noted.error();
        return {};
    };
    const Result<void> written = co_await world().journal.write(std::move(work));   // the caller holds off cancellation
    if (!written) throw EngineStop{written.error()};
    campaign_.memo[row.path] = row;
}

}   // namespace campaign::engine
