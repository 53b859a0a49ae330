#include "daemon/engine/step.hpp"

namespace campaign::engine {

Outcome Outcome::done(json::object facts, std::string seen) {
    Outcome outcome;
    outcome.is = Is::done;
    outcome.value = std::move(facts);
    outcome.evidence = std::move(seen);
    return outcome;
}

Outcome Outcome::from(Error error) {
    Outcome outcome;
    outcome.is = error.kind == ErrorKind::in_doubt ? Is::in_doubt : Is::failed;
    outcome.evidence = error.evidence.empty() ? error.what : error.evidence;
    outcome.error = std::move(error);
    return outcome;
}

json::object to_json(const Outcome& outcome) {
    json::object object;
    object["value"] = outcome.value;
    if (!outcome) object["error"] = to_json(outcome.error);
    return object;
}

Outcome outcome_from(const storage::StepRow& row) {
    Outcome outcome;
    switch (row.state) {
        case storage::StepState::done: outcome.is = Outcome::Is::done; break;
        case storage::StepState::failed: outcome.is = Outcome::Is::failed; break;
        case storage::StepState::intent:
        case storage::StepState::in_doubt: outcome.is = Outcome::Is::in_doubt; break;
    }
    outcome.evidence = row.evidence;
    if (const auto parsed = parse_json(row.outcome_json.empty() ? "{}" : row.outcome_json, "recorded outcome"); parsed) {
        if (const json::value* value = member(*parsed, "value"); value != nullptr && value->is_object())
            outcome.value = value->get_object();
        if (const json::value* error = member(*parsed, "error"); error != nullptr) outcome.error = error_from_json(*error);
    }
    return outcome;
}

Async<Result<json::object>> Step::before(Scope&) {
    co_return json::object{};
}

Async<Confirmation> Step::confirm(Scope&, const json::object&) {
    co_return Confirmation{};
}

}   // namespace campaign::engine
