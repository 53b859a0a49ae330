#include <set>

#include "base/text.hpp"
#include "daemon/report/markdown.hpp"
#include "daemon/report/sections.hpp"

namespace campaign::report {
namespace {

using storage::StepRow;
using storage::StepState;

WallTime at(storage::Micros micros) {
    return WallTime{std::chrono::microseconds{micros}};
}

/// "2026-12-01 22:31:07": a campaign goes on over midnight.
std::string moment(storage::Micros micros) {
    std::string text = format_time(at(micros)).substr(0, 19);
    text[10] = ' ';
    return text;
}

std::string span(double seconds) {
    return format_span(std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>{seconds}));
}

std::string last_part(const std::string& path) {
    return path.substr(path.rfind('/') + 1);
}

std::string shown(const Error& error) {
    std::string text = escaped(error.what);
    if (!error.why.empty()) text += ": " + escaped(error.why);
    return text;
}

/// The last look of each service at whether it is as it was found.
std::map<std::string, const StepRow*> verifications(const Record& record) {
    std::map<std::string, const StepRow*> last;
    for (const auto& [id, step] : record.steps) {
        if (last_part(step.path) != "verify-as-found" || step.state == StepState::intent) continue;
        last[string_at(parsed(step.input_json), "service").value_or("")] = &step;
    }
    return last;
}

std::string cost_of(const json::value& candidate) {
    const json::value* down = member(candidate, "downtime_s");
    if (down == nullptr || !down->is_array() || down->get_array().size() != 2) return "unknown";
    const json::value& low = down->get_array()[0];
    const json::value& high = down->get_array()[1];
    if (!low.is_number() || !high.is_number()) return "unknown";
    const double least = low.to_number<double>();
    const double most = high.to_number<double>();
    if (most <= 0) return "none";
    return span(least) == span(most) ? "about " + span(most) : span(least) + " to " + span(most);
}

/// The decision that counts for a phase: the last one made about it.
const storage::DecisionRow* last_decision(const Record& record, const std::string& phase) {
    const storage::DecisionRow* last = nullptr;
    for (const storage::DecisionRow& decision : record.decisions) {
        if (decision.phase == phase) last = &decision;
    }
    return last;
}

}   // namespace

std::string title(const Record& record) {
    const storage::CampaignRow& campaign = record.campaign;
    std::string out = "# Campaign " + escaped(campaign.name) + "\n\nState: **" + escaped(campaign.state) + "**" +
                      (campaign.state_detail.empty() ? "" : ", " + escaped(campaign.state_detail)) + ". Submitted by " +
                      escaped(campaign.submitted_by) + " at " + format_time(at(campaign.submitted)) +
                      (campaign.ended ? ", ended " + format_time(at(*campaign.ended)) : std::string{", not ended yet"}) +
                      ". Plan SHA-256 " + code(campaign.plan_sha256) + ". Times are UTC.\n\n";
    if (campaign.error_json.empty()) return out;
    const Error error = error_from_json(parsed(campaign.error_json));
    out += "**It failed:** " + shown(error) + "\n\n";
    if (!error.evidence.empty()) out += "Seen: " + escaped(error.evidence) + "\n\n";
    if (!error.next.empty()) out += "Next: " + escaped(error.next) + "\n\n";
    return out;
}

std::string production(Record& record) {
    std::string out = "## Production\n\n";
    const auto services = record.last_production();
    const auto looks = verifications(record);
    for (const auto& [service, data] : services) {
        const auto down = number_at(data, "downtime_s");
        out += "- " + escaped(service) + " (" + escaped(string_at(data, "unit").value_or("unit unknown")) + " on " +
               escaped(string_at(data, "host").value_or("host unknown")) + "): **" +
               escaped(string_at(data, "state").value_or("unknown")) + "**, " +
               (!down       ? std::string{"downtime unknown"}
                : *down > 0 ? "down " + span(*down) + " in all"
                            : std::string{"never down by us"}) +
               ". " + escaped(string_at(data, "detail").value_or("")) + "\n";
    }
    if (services.empty()) out += "Nothing was looked at" + std::string{record.campaign.ended ? "" : " yet"} + ".\n";
    if (looks.empty()) return out + "\nNot verified" + std::string{record.campaign.ended ? "" : " yet"} + ".\n\n";
    for (const auto& [service, step] : looks) {
        out += "\nChecks of the last verification of " + (service.empty() ? std::string{"production"} : escaped(service)) +
               ", " + moment(step->ended_at.value_or(step->intent_at)) + " " + record.source(*step) + ":\n\n" +
               header({"check", "result", "seen"});
        const json::value value = outcome_of(*step, "value");
        const json::value* checks = member(value, "checks");
        if (checks != nullptr && checks->is_array()) {
            for (const json::value& check : checks->get_array()) {
                out += row({escaped(string_at(check, "check").value_or("?")),
                            bool_at(check, "ok").value_or(false) ? "as found" : "**NOT as found**",
                            escaped(string_at(check, "seen").value_or(""))});
            }
        }
        const json::value error = outcome_of(*step, "error");
        if (step->state != StepState::done && error.is_object()) out += "\n" + shown(error_from_json(error)) + "\n";
    }
    return out + "\n";
}

std::string decisions(const Record& record) {
    if (record.decisions.empty()) return "";
    std::string out = "## Decisions\n\n";
    for (const storage::DecisionRow& decision : record.decisions) {
        out += "### " + escaped(decision.label) + ": " + escaped(decision.question) + " (" + escaped(decision.phase) +
               ")\n\n" + moment(decision.at) + ". Policy: " + escaped(decision.policy) + ". Chosen: **" +
               (decision.chosen.empty() ? "nothing" : escaped(decision.chosen)) + "**, " + escaped(decision.state) +
               ".\n\n" + header({"method", "downtime", "shows", "verdict", "why", "evidence"});
        std::string deferred;
        const json::value candidates = parsed(decision.candidates_json);
        if (candidates.is_array()) {
            for (const json::value& candidate : candidates.get_array()) {
                const std::string method = escaped(string_at(candidate, "method").value_or("?"));
                const std::string verdict = string_at(candidate, "verdict").value_or("");
                out += row({method, cost_of(candidate), escaped(string_at(candidate, "shows").value_or("")),
                            escaped(verdict), escaped(string_at(candidate, "why").value_or("")),
                            escaped(string_at(candidate, "evidence").value_or(""))});
                if (verdict == "deferred") deferred += (deferred.empty() ? "" : ", ") + method;
            }
        }
        out += "\n";
        if (!decision.cannot_show.empty())
            out += "What the chosen method cannot show: " + escaped(decision.cannot_show) + ".\n\n";
        if (!deferred.empty()) out += "Deferred until it is allowed: " + deferred + ".\n\n";
    }
    return out;
}

std::string not_measured(Record& record) {
    std::vector<std::string> lines;
    if (record.phases.empty()) lines.emplace_back("No phase of the plan was begun.");
    for (const storage::PhaseRow& phase : record.phases) {
        std::string line = escaped(phase.name) + " is " + escaped(phase.state) +
                           (phase.method.empty() ? "" : " (" + escaped(phase.method) + ")");
        const std::string lacks = string_at(parsed(phase.summary_json), "cannot_show").value_or("");
        if (phase.state == "done" && lacks.empty()) continue;
        if (!lacks.empty()) line += "; it cannot show " + escaped(lacks);
        lines.push_back(std::move(line));
        if (phase.state == "done") continue;
        const storage::DecisionRow* decision = last_decision(record, phase.name);
        const json::value candidates = decision != nullptr ? parsed(decision->candidates_json) : json::value{};
        if (!candidates.is_array()) continue;
        for (const json::value& candidate : candidates.get_array()) {
            const std::string verdict = string_at(candidate, "verdict").value_or("");
            if (verdict == "chosen" || verdict == "not needed") continue;
            lines.push_back(escaped(phase.name) + " by " + escaped(string_at(candidate, "method").value_or("?")) + ": " +
                            escaped(verdict) + ", " + escaped(string_at(candidate, "why").value_or("no reason given")) +
                            " (" + escaped(decision->label) + ")");
        }
    }
    for (const Event& event : record.events) {
        if (event.kind == "note" && string_at(event.data, "mark"))
            lines.push_back(escaped(string_at(event.data, "text").value_or("")));
    }
    for (const auto& [id, step] : record.steps) {
        if (step.state != StepState::failed && step.state != StepState::in_doubt) continue;
        const json::value error = outcome_of(step, "error");
        std::string line =
            "step s" + std::to_string(step.number) + (step.state == StepState::failed ? " failed: " : " is in doubt: ");
        if (error.is_object()) {
            const Error why = error_from_json(error);
            line += shown(why) + (why.evidence.empty() ? "" : "; seen: " + escaped(why.evidence, 400));
        } else {
            line += escaped(step.evidence.empty() ? "no reason is on record" : step.evidence);
        }
        lines.push_back(line + " " + record.source(step));
    }
    for (std::string& line : failed_requests(record)) lines.push_back(std::move(line));
    for (const std::string& line : record.damaged()) lines.push_back(escaped(line));
    if (lines.empty()) lines.emplace_back("Every phase of the plan was answered, and no method left anything out.");
    std::string out = "## What was not measured\n\n";
    for (const std::string& line : lines) out += "- " + line + "\n";
    return out + "\n";
}

std::string timeline(const Record& record) {
    static const std::set<std::string, std::less<>> told{"campaign", "phase", "production", "decision",
                                                         "approval", "undo",  "note"};
    std::string out = "## Timeline\n\n" + header({"time", "what", "detail"});
    for (const auto& [when, kind, data] : record.events) {
        if (!told.contains(kind)) continue;
        std::string what = kind;
        if (const auto subject = string_at(data, "subject")) what += " " + *subject;
        if (const auto state = string_at(data, "state")) what += ": " + *state;
        if (const auto method = string_at(data, "method"); method && !method->empty()) what += " (" + *method + ")";
        std::string detail = string_at(data, "detail").value_or(string_at(data, "text").value_or(""));
        if (kind == "approval")
            detail = string_at(data, "candidate").value_or("?") + " by " + string_at(data, "by").value_or("nobody");
        if (const auto down = number_at(data, "downtime_s"); kind == "production" && down && *down > 0)
            detail += (detail.empty() ? "" : "; ") + ("down " + span(*down) + " so far");
        out += row({moment(when), escaped(what, 200), escaped(detail, 300)});
    }
    return out + "\n";
}

std::string environment(Record& record) {
    std::string out = "## Environment\n\n";
    for (const auto& [id, step] : record.steps) {
        if (!step.path.starts_with("preflight/") || step.state != StepState::done) continue;
        const std::string name = last_part(step.path);
        if (name != "look-at-host" && name != "find-server" && name != "read-baseline") continue;
        out += "- " + escaped(step.host) + ", " + name + ": " + escaped(step.evidence) + " " + record.source(step) + "\n";
        const json::value value = outcome_of(step, "value");
        const json::value* baseline = member(value, "baseline");
        const json::value* argv = baseline != nullptr ? member(*baseline, "running_argv") : nullptr;
        if (argv == nullptr || !argv->is_array()) continue;
        std::string line;
        for (const json::value& word : argv->get_array()) {
            if (word.is_string()) line += (line.empty() ? "" : " ") + std::string{word.get_string()};
        }
        out += "  - command line: " + escaped(line, 2000) + "\n";
    }
    return out + "- campaignd " + escaped(record.campaign.engine_version) + "\n\n";
}

std::string sources(const Record& record) {
    std::string out = "## Sources\n\n";
    for (std::size_t i = 0; i < record.footnotes().size(); ++i)
        out += "[^" + std::to_string(i + 1) + "]: " + record.footnotes()[i] + "\n";
    out += "\n" + header({"artifact", "kind", "step", "size", "SHA-256"});
    for (const storage::ArtifactRow& artifact : record.artifacts) {
        const auto step = record.steps.find(artifact.step);
        out += row({escaped(artifact.name, 160), escaped(artifact.kind),
                    step != record.steps.end() ? "s" + std::to_string(step->second.number) : std::string{},
                    format_bytes(artifact.size), code(artifact.sha256)});
    }
    return out;
}

}   // namespace campaign::report
