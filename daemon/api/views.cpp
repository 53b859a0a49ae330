#include "daemon/api/views.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "base/text.hpp"

namespace campaign::api {
namespace {

constexpr std::size_t finished_shown = 20;
constexpr std::size_t steps_shown = 200;

json::value time_of(storage::Micros at) {
    return json::value(format_time(WallTime{std::chrono::microseconds{at}}));
}

json::value time_of(const std::optional<storage::Micros>& at) {
    return at ? time_of(*at) : json::value(nullptr);
}

json::value text_or_null(const std::string& text) {
    return text.empty() ? json::value(nullptr) : json::value(printable(text));
}

json::object production_entry(const std::string& campaign, const std::string& service, const Seen& seen,
                              storage::Micros since) {
    json::object entry;
    entry["service"] = service;
    entry["campaign"] = campaign;
    for (const char* key : {"host", "unit", "state", "detail", "downtime_s", "undos"}) {
        const json::value* found = seen.data.if_contains(key);
        entry[key] = found == nullptr ? json::value(nullptr) : *found;
    }
    entry["since"] = time_of(since);
    entry["at"] = time_of(seen.at);
    return entry;
}

json::array production_of(const std::string& campaign, const CampaignDigest& digest) {
    json::array list;
    for (const auto& [service, seen] : digest.production) {
        const auto since = digest.production_since.find(service);
        list.push_back(
            production_entry(campaign, service, seen, since == digest.production_since.end() ? seen.at : since->second));
    }
    return list;
}

/// The wait that a step is in now: a record that nothing has ended or overtaken.
json::value current_wait(const std::string& state, const CampaignDigest& digest) {
    if (is_over(state) || !digest.wait) return nullptr;
    if (string_at(digest.wait->data, "state").value_or("waiting") != "waiting") return nullptr;
    if (digest.step && digest.step->seq > digest.wait->seq) return nullptr;
    json::object wait = digest.wait->data;
    wait["at"] = time_of(digest.wait->at);
    return wait;
}

json::array needs_of(const std::string& campaign, const CampaignDigest& digest) {
    std::vector<const Seen*> order;
    for (const auto& [subject, seen] : digest.needs) order.push_back(&seen);
    std::sort(order.begin(), order.end(), [](const Seen* a, const Seen* b) { return a->seq < b->seq; });
    json::array list;
    for (const Seen* seen : order) {
        json::object need;
        need["campaign"] = campaign;
        need["subject"] = string_at(seen->data, "subject").value_or("");
        need["what"] = string_at(seen->data, "what").value_or("");
        need["command"] = string_at(seen->data, "command").value_or("");
        need["since"] = time_of(seen->at);
        list.push_back(std::move(need));
    }
    return list;
}

std::string word(storage::StepState state) {
    switch (state) {
        case storage::StepState::intent: return "intent";
        case storage::StepState::done: return "done";
        case storage::StepState::failed: return "failed";
        case storage::StepState::in_doubt: return "in_doubt";
    }
    return "";
}

std::string word(storage::Effect effect) {
    switch (effect) {
        case storage::Effect::observe: return "observe";
        case storage::Effect::converge: return "converge";
        case storage::Effect::transition: return "transition";
    }
    return "";
}

std::string word(storage::UndoState state) {
    switch (state) {
        case storage::UndoState::pending: return "pending";
        case storage::UndoState::done: return "done";
        case storage::UndoState::failed: return "failed";
    }
    return "";
}

std::string label_of(int number) {
    return "s" + std::to_string(number);
}

/// The phase that a step's path begins with.
std::string phase_of(const std::string& path) {
    return path.substr(0, path.find('/'));
}

json::object decision_entry(const storage::DecisionRow& row, const std::vector<storage::ApprovalRow>& approvals) {
    json::object entry;
    entry["label"] = row.label;
    entry["phase"] = printable(row.phase);
    entry["at"] = time_of(row.at);
    entry["question"] = printable(row.question);
    entry["chosen"] = text_or_null(row.chosen);
    entry["policy"] = printable(row.policy);
    entry["state"] = printable(row.state);
    entry["cannot_show"] = text_or_null(row.cannot_show);
    const json::value candidates = column(row.candidates_json);
    entry["candidates"] = candidates.is_array() ? candidates : json::value(json::array{});
    json::array given;
    for (const storage::ApprovalRow& approval : approvals) {
        if (approval.decision != row.label) continue;
        json::object one;
        one["candidate"] = printable(approval.candidate);
        one["by"] = printable(approval.by);
        one["at"] = time_of(approval.at);
        one["expires"] = approval.expires == 0 ? json::value(nullptr) : time_of(approval.expires);
        given.push_back(std::move(one));
    }
    entry["approvals"] = std::move(given);
    return entry;
}

/// The phase that a campaign is in, for the one line that status has for it.
json::value current_phase(const std::vector<storage::PhaseRow>& phases) {
    if (phases.empty()) return nullptr;
    const storage::PhaseRow* current = nullptr;
    for (const storage::PhaseRow& phase : phases) {
        if (phase.state == "running") current = &phase;
    }
    if (current == nullptr) {
        for (const storage::PhaseRow& phase : phases) {
            if (phase.state != "pending") current = &phase;
        }
    }
    if (current == nullptr) current = &phases.front();
    json::object entry;
    entry["ordinal"] = current - phases.data() + 1;
    entry["of"] = phases.size();
    entry["name"] = printable(current->name);
    entry["state"] = printable(current->state);
    entry["method"] = text_or_null(current->method);
    return entry;
}

json::array hosts_of(const CampaignDigest& digest) {
    json::array hosts;
    for (const auto& [service, seen] : digest.production) {
        const std::string host = string_at(seen.data, "host").value_or("");
        const bool known =
            std::any_of(hosts.begin(), hosts.end(), [&host](const json::value& h) { return h == json::value(host); });
        if (!host.empty() && !known) hosts.emplace_back(host);
    }
    return hosts;
}

json::object campaign_head(const storage::CampaignRow& row) {
    json::object head;
    head["name"] = printable(row.name);
    head["state"] = printable(row.state);
    head["detail"] = text_or_null(row.state_detail);
    head["submitted"] = time_of(row.submitted);
    head["submitted_by"] = text_or_null(row.submitted_by);
    head["ended"] = time_of(row.ended);
    head["over"] = is_over(row.state);
    head["cancel_requested"] = row.cancel_requested;
    head["cancel_by"] = text_or_null(row.cancel_by);
    return head;
}

Result<json::object> status_entry(storage::Reader& reader, const CampaignDigest& digest, const storage::CampaignRow& row) {
    const Result<std::vector<storage::PhaseRow>> phases = reader.phases(row.id);
    if (!phases) return phases.error();
    json::object entry = campaign_head(row);
    entry["hosts"] = hosts_of(digest);
    entry["phase"] = current_phase(*phases);
    entry["wait"] = current_wait(row.state, digest);
    entry["needs"] = digest.needs.size();
    entry["production"] = production_of(row.name, digest);
    return entry;
}

}   // namespace

bool is_over(std::string_view state) {
    return state == "done" || state == "failed" || state == "cancelled";
}

Result<storage::CampaignRow> find_campaign(storage::Reader& reader, std::string_view name) {
    const std::string wanted{name};
    const Result<std::optional<storage::CampaignRow>> exact = reader.campaign_by_name(wanted);
    if (!exact) return exact.error();
    if (*exact) return **exact;
    const Result<std::vector<storage::CampaignRow>> all = reader.campaigns();
    if (!all) return all.error();
    std::vector<const storage::CampaignRow*> matches;
    std::vector<std::string> names;
    for (const storage::CampaignRow& row : *all) {
        if (!wanted.empty() && row.name.starts_with(wanted)) matches.push_back(&row);
        names.push_back(row.name);
    }
    if (matches.size() == 1) return *matches.front();
    Error error{ErrorKind::not_found, "no campaign is called " + printable(name, 200), "", "", "campaignctl status"};
    if (matches.size() > 1) {
        error.what = printable(name, 200) + " is the beginning of " + std::to_string(matches.size()) + " names";
        for (std::size_t i = 0; i < matches.size() && i < 8; ++i)
            error.why += (i == 0 ? "" : ", ") + printable(matches[i]->name, 80);
        if (matches.size() > 8) error.why += ", ...";
    } else if (const auto meant = did_you_mean(name, names)) {
        error.why = "did you mean " + printable(*meant, 200) + "?";
    }
    return error;
}

Result<json::object> status_view(storage::Reader& reader, const Digest& digest, const About& about) {
    const Result<std::vector<storage::CampaignRow>> all = reader.campaigns();
    if (!all) return all.error();
    json::object view;
    view["schema"] = "campaignctl.status/1";
    view["version"] = about.version;
    view["now"] = format_time(about.now);

    // The newest word on each service, whichever campaign said it.
    std::map<std::pair<std::string, std::string>, std::pair<storage::Id, json::object>> production;
    json::array campaigns;
    json::array needs;
    std::size_t finished = 0;
    json::value last_decision = nullptr;
    storage::Micros decided = 0;
    for (const storage::CampaignRow& row : *all) {
        const CampaignDigest& known = digest.of(row.id);
        for (const auto& [service, seen] : known.production) {
            auto& slot =
                production[{string_at(seen.data, "host").value_or(""), string_at(seen.data, "unit").value_or(service)}];
            if (slot.first >= seen.seq) continue;
            const auto since = known.production_since.find(service);
            slot = {seen.seq, production_entry(printable(row.name), service, seen,
                                               since == known.production_since.end() ? seen.at : since->second)};
        }
        for (json::value& need : needs_of(printable(row.name), known)) needs.push_back(std::move(need));
        if (is_over(row.state) && known.needs.empty() && finished++ >= finished_shown) continue;
        Result<json::object> entry = status_entry(reader, known, row);
        if (!entry) return entry.error();
        campaigns.push_back(std::move(*entry));
        const Result<std::vector<storage::DecisionRow>> decisions = reader.decisions(row.id);
        if (!decisions) return decisions.error();
        if (decisions->empty() || decisions->back().at <= decided) continue;
        const Result<std::vector<storage::ApprovalRow>> approvals = reader.approvals(row.id);
        if (!approvals) return approvals.error();
        decided = decisions->back().at;
        json::object decision = decision_entry(decisions->back(), *approvals);
        decision["campaign"] = printable(row.name);
        last_decision = std::move(decision);
    }
    json::array services;
    for (auto& [key, entry] : production) services.push_back(std::move(entry.second));
    view["production"] = std::move(services);
    view["campaigns"] = std::move(campaigns);
    view["campaigns_total"] = all->size();
    view["needs"] = std::move(needs);
    view["last_decision"] = std::move(last_decision);
    return view;
}

Result<json::object> campaign_view(storage::Reader& reader, const Digest& digest, const storage::CampaignRow& row,
                                   const About& about) {
    const Result<std::vector<storage::PhaseRow>> phases = reader.phases(row.id);
    if (!phases) return phases.error();
    const Result<std::vector<storage::StepRow>> steps = reader.steps(row.id);
    if (!steps) return steps.error();
    const Result<std::vector<storage::UndoRow>> undos = reader.undos(row.id);
    if (!undos) return undos.error();
    const Result<std::vector<storage::DecisionRow>> decisions = reader.decisions(row.id);
    if (!decisions) return decisions.error();
    const Result<std::vector<storage::ApprovalRow>> approvals = reader.approvals(row.id);
    if (!approvals) return approvals.error();
    const Result<std::vector<storage::ArtifactRow>> artifacts = reader.artifacts(row.id);
    if (!artifacts) return artifacts.error();
    const CampaignDigest& known = digest.of(row.id);

    json::object view;
    view["schema"] = "campaignctl.campaign/1";
    view["version"] = about.version;
    view["now"] = format_time(about.now);
    for (auto& entry : campaign_head(row)) view[entry.key()] = entry.value();
    view["plan_sha256"] = row.plan_sha256;
    view["engine_version"] = row.engine_version;
    view["error"] = column(row.error_json);
    view["hosts"] = hosts_of(known);
    view["phase"] = current_phase(*phases);
    view["production"] = production_of(printable(row.name), known);
    view["wait"] = current_wait(row.state, known);
    view["level"] = known.level ? json::value(known.level->data) : json::value(nullptr);
    view["needs"] = needs_of(printable(row.name), known);

    json::array phase_list;
    for (const storage::PhaseRow& phase : *phases) {
        json::object entry;
        entry["name"] = printable(phase.name);
        entry["state"] = printable(phase.state);
        entry["method"] = text_or_null(phase.method);
        entry["began"] = time_of(phase.began);
        entry["ended"] = time_of(phase.ended);
        entry["summary"] = column(phase.summary_json);
        const auto said = known.phases.find(phase.name);
        entry["detail"] = said == known.phases.end() ? json::value(nullptr)
                                                     : text_or_null(string_at(said->second.data, "detail").value_or(""));
        int first = 0;
        int last = 0;
        for (const storage::StepRow& step : *steps) {
            if (phase_of(step.path) != phase.name) continue;
            if (first == 0) first = step.number;
            last = step.number;
        }
        entry["steps"] = first == 0 ? json::value(nullptr) : json::value(json::array{label_of(first), label_of(last)});
        phase_list.push_back(std::move(entry));
    }
    view["phases"] = std::move(phase_list);

    json::array step_list;
    const std::size_t from = steps->size() > steps_shown ? steps->size() - steps_shown : 0;
    for (std::size_t i = from; i < steps->size(); ++i) {
        const storage::StepRow& step = (*steps)[i];
        json::object entry;
        entry["label"] = label_of(step.number);
        entry["path"] = printable(step.path);
        entry["phase"] = printable(phase_of(step.path));
        std::string title = step.path.substr(step.path.rfind('/') + 1);
        const bool open = step.state == storage::StepState::intent || step.state == storage::StepState::in_doubt;
        if (open) {   // the event says it in words
            const Result<std::optional<storage::EventRow>> told = reader.latest_event(row.id, "step", step.path);
            if (!told) return told.error();
            if (*told) title = string_at(column((**told).data_json), "title").value_or(title);
        }
        entry["title"] = printable(title);
        entry["host"] = text_or_null(step.host);
        entry["effect"] = word(step.effect);
        entry["state"] = word(step.state);
        entry["began"] = time_of(step.intent_at);
        entry["ended"] = time_of(step.ended_at);
        entry["evidence"] = text_or_null(step.evidence);
        entry["command"] = text_or_null(step.command);
        entry["attempts"] = step.attempts;
        entry["resolved_by"] = text_or_null(step.resolved_by);
        if (step.state != storage::StepState::done) {
            const json::value outcome = column(step.outcome_json);
            const json::value* error = member(outcome, "error");
            entry["error"] = error == nullptr ? json::value(nullptr) : *error;
        }
        step_list.push_back(std::move(entry));
    }
    view["steps"] = std::move(step_list);
    view["steps_total"] = steps->size();

    json::array decision_list;
    for (const storage::DecisionRow& decision : *decisions) decision_list.push_back(decision_entry(decision, *approvals));
    view["decisions"] = std::move(decision_list);

    json::array undo_list;
    for (const storage::UndoRow& undo : *undos) {
        json::object entry;
        entry["kind"] = printable(undo.kind);
        entry["state"] = word(undo.state);
        entry["registered"] = time_of(undo.registered);
        entry["finished"] = time_of(undo.finished);
        entry["evidence"] = text_or_null(undo.evidence);
        undo_list.push_back(std::move(entry));
    }
    view["undos"] = std::move(undo_list);
    view["artifacts"] = artifacts->size();
    view["note"] = known.note ? text_or_null(string_at(known.note->data, "text").value_or("")) : json::value(nullptr);
    view["seq"] = digest.position();
    return view;
}

Result<json::object> decision_view(storage::Reader& reader, const storage::CampaignRow& row, std::string_view label) {
    const Result<std::vector<storage::DecisionRow>> decisions = reader.decisions(row.id);
    if (!decisions) return decisions.error();
    const Result<std::vector<storage::ApprovalRow>> approvals = reader.approvals(row.id);
    if (!approvals) return approvals.error();
    std::string known;
    for (const storage::DecisionRow& decision : *decisions) {
        if (decision.label == label) {
            json::object view;
            view["schema"] = "campaignctl.decision/1";
            view["campaign"] = printable(row.name);
            for (auto& entry : decision_entry(decision, *approvals)) view[entry.key()] = entry.value();
            return view;
        }
        known += (known.empty() ? "" : ", ") + decision.label;
    }
    return Error{ErrorKind::not_found, printable(row.name) + " has no decision " + printable(label, 60),
                 known.empty() ? "it has decided nothing yet" : "it has " + printable(known, 200), "",
                 "campaignctl status " + printable(row.name)};
}

Result<json::object> artifacts_view(storage::Reader& reader, const storage::CampaignRow& row) {
    const Result<std::vector<storage::ArtifactRow>> artifacts = reader.artifacts(row.id);
    if (!artifacts) return artifacts.error();
    const Result<std::vector<storage::StepRow>> steps = reader.steps(row.id);
    if (!steps) return steps.error();
    std::map<storage::Id, const storage::StepRow*> by_id;
    for (const storage::StepRow& step : *steps) by_id[step.id] = &step;
    json::array list;
    for (const storage::ArtifactRow& artifact : *artifacts) {
        json::object entry;
        entry["id"] = "a" + std::to_string(artifact.id);
        const auto step = by_id.find(artifact.step);
        entry["step"] = step == by_id.end() ? json::value(nullptr) : json::value(label_of(step->second->number));
        entry["path"] = step == by_id.end() ? json::value(nullptr) : json::value(printable(step->second->path));
        entry["kind"] = printable(artifact.kind);
        entry["name"] = printable(artifact.name);
        entry["size"] = artifact.size;
        entry["sha256"] = printable(artifact.sha256);
        entry["origin"] = text_or_null(artifact.origin);
        entry["detail"] = column(artifact.detail_json);
        entry["at"] = time_of(artifact.at);
        list.push_back(std::move(entry));
    }
    json::object view;
    view["schema"] = "campaignctl.artifacts/1";
    view["campaign"] = printable(row.name);
    view["artifacts"] = std::move(list);
    return view;
}

json::object event_view(const storage::EventRow& row, std::string_view campaign) {
    json::object view;
    view["seq"] = row.seq;
    view["at"] = time_of(row.at);
    view["campaign"] = printable(campaign);
    view["kind"] = printable(row.kind);
    view["data"] = column(row.data_json);
    return view;
}

json::object error_view(const Error& error) {
    json::object view;
    view["schema"] = "campaignctl.error/1";
    json::object inner;
    for (const auto& entry : to_json(error)) {
        // Evidence may be a whole screen of diagnostics: its line ends stay.
        const std::string text{entry.value().get_string()};
        std::string safe;
        std::vector<std::string> lines = split(text, '\n');
        for (std::size_t i = 0; i < lines.size() && i < 2000; ++i) safe += (i == 0 ? "" : "\n") + printable(lines[i]);
        inner[entry.key()] = safe;
    }
    view["error"] = std::move(inner);
    return view;
}

}   // namespace campaign::api
