#include "daemon/report/record.hpp"

#include <algorithm>

#include "base/files.hpp"
#include "base/sha256.hpp"
#include "daemon/report/markdown.hpp"

namespace campaign::report {

json::value parsed(const std::string& text) {
    Result<json::value> value = parse_json(text.empty() ? "null" : text, "journal");
    return value ? std::move(*value) : json::value{};
}

json::value outcome_of(const storage::StepRow& step, std::string_view name) {
    const json::value outcome = parsed(step.outcome_json);
    const json::value* value = member(outcome, name);
    return value != nullptr ? *value : json::value{};
}

std::string step_name(const storage::StepRow& step) {
    return "step s" + std::to_string(step.number) + " (" + code(step.path) + ")";
}

Result<Record> Record::load(storage::Reader& reader, const storage::Vault& vault, storage::Id id) {
    Record record{vault};
    auto campaign = reader.campaign(id);
    if (!campaign) return campaign.error();
    if (!*campaign) return Error{ErrorKind::not_found, "there is no such campaign", "", "", ""};
    record.campaign = std::move(**campaign);
    // While it runs, each call sees more than the one before: what is referred to is read last.
    auto artifacts = reader.artifacts(id);
    if (!artifacts) return artifacts.error();
    record.artifacts = std::move(*artifacts);
    auto decisions = reader.decisions(id);
    if (!decisions) return decisions.error();
    record.decisions = std::move(*decisions);
    auto phases = reader.phases(id);
    if (!phases) return phases.error();
    record.phases = std::move(*phases);
    auto steps = reader.steps(id);
    if (!steps) return steps.error();
    for (storage::StepRow& step : *steps) record.steps.emplace(step.id, std::move(step));
    constexpr std::size_t batch = 5000;
    for (storage::Id after = 0;;) {
        auto events = reader.events(id, after, batch);
        if (!events) return events.error();
        for (const storage::EventRow& event : *events) {
            after = event.seq;
            if (event.kind == "wait" || event.kind == "step") continue;
            json::value data = parsed(event.data_json);
            if (data.is_object()) record.events.push_back({event.at, event.kind, std::move(data)});
        }
        if (events->size() < batch) return record;
    }
}

std::map<std::string, json::value> Record::last_production() const {
    std::map<std::string, json::value> last;
    for (const Event& event : events) {
        if (event.kind == "production") last[string_at(event.data, "subject").value_or("?")] = event.data;
    }
    return last;
}

std::string Record::phase_of(const storage::ArtifactRow& artifact) const {
    const auto step = steps.find(artifact.step);
    return step == steps.end() ? std::string{} : step->second.path.substr(0, step->second.path.find('/'));
}

Result<json::value> Record::read(const storage::ArtifactRow& artifact) const {
    const auto file = vault_->find(artifact.sha256);
    if (!file) return file.error();
    const Result<std::string> text = read_text(*file, std::size_t{64} << 20);
    if (!text) return text.error();
    if (sha256(*text) != artifact.sha256) return Error{ErrorKind::io, "damaged", "its bytes changed on the disk", "", ""};
    return parse_json(*text, artifact.name);
}

const json::value* Record::content(const storage::ArtifactRow& artifact) {
    auto known = contents_.find(artifact.sha256);
    if (known == contents_.end()) {
        Result<json::value> value = read(artifact);
        if (!value) {
            damaged_.push_back(artifact.name + " (SHA-256 " + artifact.sha256 +
                               ") is missing or damaged in the vault: " + value.error().what + ", " + value.error().why);
        }
        known = contents_.emplace(artifact.sha256, value ? std::optional{std::move(*value)} : std::nullopt).first;
    }
    return known->second ? &*known->second : nullptr;
}

std::string Record::source(const storage::ArtifactRow& artifact) {
    const auto step = steps.find(artifact.step);
    std::string text;
    if (step == steps.end()) {
        text = "a step that is not on record";
    } else {
        text = step_name(step->second);
        if (!step->second.command.empty()) text += ", command: " + escaped(step->second.command, 400);
    }
    return footnote(text + "; artifact " + escaped(artifact.name, 200) + " from " + escaped(artifact.origin, 200) +
                    ", SHA-256 " + code(artifact.sha256));
}

std::string Record::source(const storage::StepRow& step) {
    std::string text = step_name(step);
    if (!step.command.empty()) text += ", command: " + escaped(step.command, 400);
    const json::value value = outcome_of(step, "value");
    if (const auto hash = string_at(value, "sha256")) text += "; SHA-256 " + code(*hash);
    return footnote(std::move(text));
}

std::string Record::footnote(std::string text) {
    auto known = std::find(footnotes_.begin(), footnotes_.end(), text);
    if (known == footnotes_.end()) known = footnotes_.insert(footnotes_.end(), std::move(text));
    return "[^" + std::to_string(known - footnotes_.begin() + 1) + "]";
}

}   // namespace campaign::report
