#include "daemon/report/report.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "base/files.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "daemon/report/markdown.hpp"

namespace campaign::report {
namespace {

WallTime at(storage::Micros micros) {
    return WallTime{std::chrono::microseconds{micros}};
}

std::string span(double seconds) {
    return format_span(std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>{seconds}));
}

/// A document while it is written: everything the journal has on one campaign, and the footnotes so far.
class Document {
public:
    Document(storage::Reader& reader, const storage::Vault& vault) : reader_{reader}, vault_{vault} {}

    Result<std::string> write(storage::Id id) {
        if (Result<void> loaded = load(id); !loaded) return loaded.error();
        title();
        answer();
        production();
        macro();
        decode_step();
        decisions();
        not_measured();
        timeline();
        environment();
        sources();
        return std::move(out_);
    }

private:
    Result<void> load(storage::Id id) {
        const auto campaign = reader_.campaign(id);
        if (!campaign) return campaign.error();
        if (!*campaign) return Error{ErrorKind::not_found, "there is no such campaign", "", "", ""};
        campaign_ = **campaign;
        if (auto rows = reader_.phases(id); rows) {
            phases_ = std::move(*rows);
        } else {
            return rows.error();
        }
        auto steps = reader_.steps(id);
        if (!steps) return steps.error();
        for (storage::StepRow& step : *steps) steps_.emplace(step.id, std::move(step));
        auto artifacts = reader_.artifacts(id);
        if (!artifacts) return artifacts.error();
        artifacts_ = std::move(*artifacts);
        auto decided = reader_.decisions(id);
        if (!decided) return decided.error();
        decisions_ = std::move(*decided);
        storage::Id after = 0;
        for (;;) {
            auto events = reader_.events(id, after, 5000);
            if (!events) return events.error();
            for (storage::EventRow& event : *events) {
                after = event.seq;
                if (event.kind == "wait" || event.kind == "step") continue;
                Result<json::value> data = parse_json(event.data_json, "event");
                if (data && data->is_object()) events_.emplace_back(event.at, event.kind, std::move(*data));
            }
            if (events->size() < 5000) return {};
        }
    }

    // --- sources ---

    /// "[^3]" for an artifact: its step, command and hash stand at the end of the document.
    std::string source(const storage::ArtifactRow& artifact) {
        const auto step = steps_.find(artifact.step);
        std::string text;
        if (step != steps_.end()) {
            text = "step s" + std::to_string(step->second.number) + " (`" + printable(step->second.path, 200) + "`)";
            if (!step->second.command.empty()) text += ", command: " + escaped(step->second.command, 400);
        }
        text += "; artifact " + escaped(artifact.name, 120) + " from " + escaped(artifact.origin, 200) + ", SHA-256 `" +
                artifact.sha256 + "`";
        return note(text);
    }

    std::string source(const storage::StepRow& step) {
        std::string text = "step s" + std::to_string(step.number) + " (`" + printable(step.path, 200) + "`)";
        if (!step.command.empty()) text += ", command: " + escaped(step.command, 400);
        if (const auto kept = hash_of(step)) text += "; SHA-256 `" + *kept + "`";
        return note(text);
    }

    static std::optional<std::string> hash_of(const storage::StepRow& step) {
        const Result<json::value> outcome = parse_json(step.outcome_json.empty() ? "{}" : step.outcome_json, "outcome");
        const json::value* value = outcome ? member(*outcome, "value") : nullptr;
        return value != nullptr ? string_at(*value, "sha256") : std::nullopt;
    }

    std::string note(const std::string& text) {
        const auto known = std::find(notes_.begin(), notes_.end(), text);
        if (known != notes_.end()) return "[^" + std::to_string(known - notes_.begin() + 1) + "]";
        notes_.push_back(text);
        return "[^" + std::to_string(notes_.size()) + "]";
    }

    /// An artifact's JSON, only if its bytes still have their hash.
    std::optional<json::value> content(const storage::ArtifactRow& artifact) {
        const auto file = vault_.find(artifact.sha256);
        if (!file || !vault_.verify(artifact.sha256)) {
            damaged_.push_back(artifact.name + " (SHA-256 " + artifact.sha256 + ") is missing or damaged in the vault");
            return std::nullopt;
        }
        const Result<std::string> text = read_text(*file, std::size_t{64} << 20);
        if (!text) return std::nullopt;
        Result<json::value> value = parse_json(*text, artifact.name);
        if (!value) {
            damaged_.push_back(artifact.name + ": " + value.error().why);
            return std::nullopt;
        }
        return std::move(*value);
    }

    [[nodiscard]] std::string phase_of(const storage::ArtifactRow& artifact) const {
        const auto step = steps_.find(artifact.step);
        return step == steps_.end() ? std::string{} : step->second.path.substr(0, step->second.path.find('/'));
    }

    // --- sections ---

    void title() {
        out_ += "# Campaign " + escaped(campaign_.name) + "\n\n";
        out_ += "State: **" + escaped(campaign_.state) + "**, " + escaped(campaign_.state_detail) + ". Submitted by " +
                escaped(campaign_.submitted_by) + " at " + format_time(at(campaign_.submitted)) +
                (campaign_.ended ? ", ended " + format_time(at(*campaign_.ended)) : std::string{", not ended yet"}) +
                ". Plan SHA-256 `" + campaign_.plan_sha256 + "`. Times are UTC.\n\n";
        if (!campaign_.error_json.empty()) {
            if (const Result<json::value> error = parse_json(campaign_.error_json, "error"); error) {
                const Error why = error_from_json(*error);
                out_ += "**It failed:** " + escaped(why.what) + (why.why.empty() ? "" : ": " + escaped(why.why)) + "\n\n";
                if (!why.evidence.empty()) out_ += "Seen: " + escaped(why.evidence) + "\n\n";
                if (!why.next.empty()) out_ += "Next: " + escaped(why.next) + "\n\n";
            }
        }
    }

    /// At most three sentences: decode step, plateau, production.
    void answer() {
        out_ += "## The answer\n\n";
        bool said = false;
        for (const storage::ArtifactRow& artifact : artifacts_) {
            if (artifact.kind != "analysis") continue;
            const auto analysis = content(artifact);
            const auto text = analysis ? string_at(*analysis, "answer") : std::nullopt;
            if (!text) continue;
            out_ += "- Where a decode step goes: " + escaped(*text) + " " + source(artifact) + "\n";
            said = true;
            break;
        }
        for (const storage::ArtifactRow& artifact : artifacts_) {
            if (artifact.kind != "load-result" || artifact.name != "sweep.json") continue;
            const auto result = content(artifact);
            const json::value* plateau = result ? member(*result, "plateau") : nullptr;
            const auto rate = plateau != nullptr ? number_at(*plateau, "output_throughput") : std::nullopt;
            if (!rate) continue;
            out_ += std::string{"- Output throughput "} +
                    (bool_at(*plateau, "reached").value_or(false) ? "levels off at " : "reached ") + number(*rate, 0) +
                    " tok/s at concurrency " + std::to_string(int_at(*plateau, "concurrency").value_or(0)) +
                    (bool_at(*plateau, "reached").value_or(false) ? "" : ", the highest that was tried without a plateau") +
                    " " + source(artifact) + "\n";
            said = true;
            break;
        }
        std::string states;
        for (const auto& [service, data] : last_production()) {
            states += (states.empty() ? "" : "; ") + escaped(service) + ": " +
                      escaped(string_at(data, "state").value_or("unknown"));
        }
        out_ += "- Production: " + (states.empty() ? std::string{"nothing was looked at"} : states) + ".\n";
        if (!said) out_ += "- Nothing was measured" + std::string{campaign_.ended ? "" : " yet"} + ".\n";
        out_ += "\n";
    }

    [[nodiscard]] std::map<std::string, json::value> last_production() const {
        std::map<std::string, json::value> last;
        for (const auto& [when, kind, data] : events_) {
            if (kind == "production") last[string_at(data, "subject").value_or("?")] = data;
        }
        return last;
    }

    void production() {
        out_ += "## Production\n\n";
        for (const auto& [service, data] : last_production()) {
            const double down = number_at(data, "downtime_s").value_or(0);
            out_ += "- " + escaped(service) + " (" + escaped(string_at(data, "unit").value_or("")) + " on " +
                    escaped(string_at(data, "host").value_or("")) + "): **" +
                    escaped(string_at(data, "state").value_or("unknown")) + "**, " +
                    (down > 0 ? "down " + span(down) + " in all" : std::string{"never down by us"}) + ". " +
                    escaped(string_at(data, "detail").value_or("")) + "\n";
        }
        const storage::StepRow* verified = nullptr;
        for (const auto& [id, step] : steps_) {
            if (step.path.ends_with("/verify-as-found") && step.state != storage::StepState::intent) verified = &step;
        }
        if (verified == nullptr) {
            out_ += "\nNot verified" + std::string{campaign_.ended ? "." : " yet."} + "\n\n";
            return;
        }
        out_ += "\nChecks of the last verification " + source(*verified) + ":\n\n" + header({"check", "result", "seen"});
        const Result<json::value> outcome =
            parse_json(verified->outcome_json.empty() ? "{}" : verified->outcome_json, "outcome");
        const json::value* value = outcome ? member(*outcome, "value") : nullptr;
        const json::value* checks = value != nullptr ? member(*value, "checks") : nullptr;
        if (checks != nullptr && checks->is_array()) {
            for (const json::value& check : checks->get_array()) {
                out_ += row({escaped(string_at(check, "check").value_or("")),
                             bool_at(check, "ok").value_or(false) ? "as found" : "**NOT as found**",
                             escaped(string_at(check, "seen").value_or(""))});
            }
        }
        out_ += "\n";
    }

    static std::string cell(const json::value& level, std::string_view metric, std::string_view which, int digits) {
        const json::value* table = member(level, metric);
        const auto value = table != nullptr ? number_at(*table, which) : std::nullopt;
        return value ? number(*value, digits) : "not measured";
    }

    void macro() {
        for (const storage::ArtifactRow& artifact : artifacts_) {
            if (artifact.kind != "load-result" || (artifact.name != "sweep.json" && artifact.name != "warm-up.json"))
                continue;
            const bool preliminary = artifact.name == "warm-up.json";
            out_ += "## " + escaped(phase_of(artifact)) +
                    (preliminary ? ": warm-up (preliminary: the server may have been cold)" : ": what a client sees") +
                    "\n\n";
            const auto result = content(artifact);
            const json::value* levels = result ? member(*result, "levels") : nullptr;
            if (levels == nullptr || !levels->is_array()) {
                out_ += "The result cannot be read, so no number is shown.\n\n";
                continue;
            }
            if (bool_at(*result, "complete") == false)
                out_ += "**The run did not end by itself:** what it had measured until then follows.\n\n";
            out_ += header({"concurrency", "completed", "failed", "output tok/s", "TTFT p50 ms", "TTFT p99 ms",
                            "TPOT p50 ms", "TPOT p95 ms", "ITL p99 ms", "E2EL p50 ms", "marks", "source"});
            for (const json::value& level : levels->get_array()) {
                const auto rate = number_at(level, "output_throughput");
                std::string marks;
                const json::value* client = member(level, "client");
                if (client != nullptr && bool_at(*client, "late").value_or(false)) marks += "client late; ";
                if (bool_at(level, "reasoning_tokens_seen").value_or(false)) marks += "reasoning tokens count; ";
                if (string_at(level, "output_tokens_source") != "usage") marks += "tokens estimated; ";
                if (const json::value* remarks = member(level, "notes"); remarks != nullptr && remarks->is_array()) {
                    for (const json::value& remark : remarks->get_array()) {
                        if (remark.is_string()) marks += escaped(std::string_view{remark.get_string()}, 200) + "; ";
                    }
                }
                if (marks.ends_with("; ")) marks.resize(marks.size() - 2);
                if (marks.ends_with("; ")) marks.resize(marks.size() - 2);
                out_ += row({std::to_string(int_at(level, "concurrency").value_or(0)),
                             std::to_string(int_at(level, "completed").value_or(0)),
                             std::to_string(int_at(level, "failed").value_or(0)), rate ? number(*rate, 1) : "not measured",
                             cell(level, "ttft_ms", "p50", 1), cell(level, "ttft_ms", "p99", 1),
                             cell(level, "tpot_ms", "p50", 2), cell(level, "tpot_ms", "p95", 2),
                             cell(level, "itl_ms", "p99", 2), cell(level, "e2el_ms", "p50", 1), marks, source(artifact)});
                failures(level);
            }
            out_ += "\n";
            if (bool_at(*result, "tunnelled").value_or(false))
                out_ += "Measured through an ssh tunnel: the latencies hold the tunnel's own.\n\n";
        }
    }

    void failures(const json::value& level) {
        const json::value* classes = member(level, "failures");
        if (classes == nullptr || !classes->is_object() || int_at(level, "failed").value_or(0) == 0) return;
        for (const auto& entry : classes->get_object()) {
            const auto count = entry.value().is_int64() ? entry.value().get_int64() : 0;
            if (count > 0) {
                failed_.push_back("concurrency " + std::to_string(int_at(level, "concurrency").value_or(0)) + ": " +
                                  std::to_string(count) + " requests failed with " + std::string{entry.key()} +
                                  "; they are in no latency and no throughput");
            }
        }
    }

    void decode_step() {
        for (const storage::ArtifactRow& artifact : artifacts_) {
            if (artifact.kind != "analysis") continue;
            out_ += "## " + escaped(phase_of(artifact)) + ": where a decode step goes\n\n";
            const auto analysis = content(artifact);
            if (!analysis) {
                out_ += "The analysis cannot be read, so no number is shown.\n\n";
                continue;
            }
            const auto text = string_at(*analysis, "answer");
            out_ += text ? escaped(*text) + " " + source(artifact) + "\n\n"
                         : "No answer: " +
                               escaped(string_at(*analysis, "cannot_answer").value_or("the analysis gives no reason")) +
                               " " + source(artifact) + "\n\n";
            const json::value* ranks = member(*analysis, "ranks");
            if (ranks == nullptr || !ranks->is_array()) continue;
            for (const json::value& rank : ranks->get_array()) rank_table(rank, artifact);
            notes_of(*analysis);
        }
    }

    void rank_table(const json::value& rank, const storage::ArtifactRow& artifact) {
        const json::value* step = member(rank, "decode_step_us");
        const auto p50 = step != nullptr ? number_at(*step, "p50") : std::nullopt;
        out_ += "Rank " + std::to_string(int_at(rank, "rank").value_or(0)) + ": " +
                (p50 ? "decode step p50 " + number(*p50, 1) + " us over " + std::to_string(int_at(*step, "n").value_or(0)) +
                           " steps"
                     : std::string{"no decode steps"}) +
                " " + source(artifact) + "\n\n";
        table(member(rank, "categories"), "category", false);
        table(member(rank, "top_kernels"), "kernel", true);
    }

    void table(const json::value* entries, const char* what, bool top) {
        if (entries == nullptr || !entries->is_array() || entries->get_array().empty()) return;
        out_ += header({what, "us a step", "count a step", "share of busy time"});
        std::size_t shown = 0;
        for (const json::value& entry : entries->get_array()) {
            if (top && ++shown > 10) break;
            const auto per_step = number_at(entry, "per_step_us");
            const auto count = number_at(entry, "count_per_step");
            const auto share = number_at(entry, "share");
            out_ +=
                row({escaped(string_at(entry, "name").value_or(""), 160), per_step ? number(*per_step, 1) : "not measured",
                     count ? number(*count, 1) : "-", share ? number(*share * 100, 1) + " %" : "not measured"});
        }
        out_ += "\n";
    }

    void notes_of(const json::value& value) {
        const json::value* remarks = member(value, "notes");
        if (remarks == nullptr || !remarks->is_array() || remarks->get_array().empty()) return;
        out_ += "Notes of the analysis:\n\n";
        for (const json::value& remark : remarks->get_array()) {
            if (remark.is_string()) out_ += "- " + escaped(std::string_view{remark.get_string()}) + "\n";
        }
        out_ += "\n";
    }

    void decisions() {
        if (decisions_.empty()) return;
        out_ += "## Decisions\n\n";
        for (const storage::DecisionRow& decision : decisions_) {
            out_ += "### " + escaped(decision.label) + ": " + escaped(decision.question) + " (" + escaped(decision.phase) +
                    ")\n\n" + format_time(at(decision.at)) + ". Policy: " + escaped(decision.policy) + ". Chosen: **" +
                    (decision.chosen.empty() ? "nothing" : escaped(decision.chosen)) + "**, " + escaped(decision.state) +
                    ".\n\n";
            out_ += header({"method", "downtime", "shows", "verdict", "why", "evidence"});
            const Result<json::value> candidates = parse_json(decision.candidates_json, "candidates");
            if (candidates && candidates->is_array()) {
                for (const json::value& candidate : candidates->get_array()) {
                    const json::value* down = member(candidate, "downtime_s");
                    std::string cost = "unknown";
                    if (down != nullptr && down->is_array() && down->get_array().size() == 2) {
                        const auto high = down->get_array()[1].is_number() ? down->get_array()[1].to_number<double>() : 0.0;
                        cost = high > 0 ? "about " + span(high) : "none";
                    }
                    out_ += row({escaped(string_at(candidate, "method").value_or("")), cost,
                                 escaped(string_at(candidate, "shows").value_or("")),
                                 escaped(string_at(candidate, "verdict").value_or("")),
                                 escaped(string_at(candidate, "why").value_or("")),
                                 escaped(string_at(candidate, "evidence").value_or(""))});
                }
            }
            out_ += "\n";
            if (!decision.cannot_show.empty())
                out_ += "What the chosen method cannot show: " + escaped(decision.cannot_show) + ".\n\n";
        }
    }

    void not_measured() {
        out_ += "## What was not measured\n\n";
        bool any = false;
        const auto say = [&](const std::string& text) {
            out_ += "- " + text + "\n";
            any = true;
        };
        for (const storage::PhaseRow& phase : phases_) {
            if (phase.state == "done") continue;
            const Result<json::value> summary =
                parse_json(phase.summary_json.empty() ? "{}" : phase.summary_json, "summary");
            const std::string lacks = summary ? string_at(*summary, "cannot_show").value_or("") : "";
            say(escaped(phase.name) + " is " + escaped(phase.state) +
                (phase.method.empty() ? "" : " (" + escaped(phase.method) + ")") +
                (lacks.empty() ? "" : "; it cannot show " + escaped(lacks)));
        }
        for (const auto& [when, kind, data] : events_) {
            if (kind == "note" && string_at(data, "mark")) say(escaped(string_at(data, "text").value_or("")));
        }
        for (const auto& [id, step] : steps_) {
            if (step.state != storage::StepState::failed) continue;
            const Result<json::value> outcome = parse_json(step.outcome_json.empty() ? "{}" : step.outcome_json, "outcome");
            const json::value* error = outcome ? member(*outcome, "error") : nullptr;
            if (error != nullptr)
                say("step s" + std::to_string(step.number) + " failed: " + escaped(describe(error_from_json(*error)), 900) +
                    " " + source(step));
        }
        for (const std::string& text : failed_) say(escaped(text));
        for (const std::string& text : damaged_) say(escaped(text));
        if (!any) out_ += "- Every phase of the plan was answered by its first method.\n";
        out_ += "\n";
    }

    void timeline() {
        out_ += "## Timeline\n\n" + header({"time", "what", "detail"});
        for (const auto& [when, kind, data] : events_) {
            if (kind == "artifact" || kind == "level" || kind == "need") continue;
            std::string what = kind;
            if (const auto subject = string_at(data, "subject")) what += " " + *subject;
            if (const auto state = string_at(data, "state")) what += ": " + *state;
            std::string detail = string_at(data, "detail").value_or(string_at(data, "text").value_or(""));
            if (kind == "approval")
                detail = string_at(data, "candidate").value_or("") + " by " + string_at(data, "by").value_or("nobody");
            if (kind == "phase" && string_at(data, "method").value_or("") != "")
                what += " (" + *string_at(data, "method") + ")";
            out_ += row({format_clock(at(when)), escaped(what, 200), escaped(detail, 300)});
        }
        out_ += "\n";
    }

    void environment() {
        out_ += "## Environment\n\n";
        for (const auto& [id, step] : steps_) {
            if (!step.path.starts_with("preflight/") || step.state != storage::StepState::done) continue;
            const std::string name = step.path.substr(step.path.rfind('/') + 1);
            if (name != "look-at-host" && name != "find-server" && name != "read-baseline") continue;
            out_ += "- " + escaped(step.host) + ", " + name + ": " + escaped(step.evidence) + " " + source(step) + "\n";
            if (name != "read-baseline") continue;
            const Result<json::value> outcome = parse_json(step.outcome_json, "outcome");
            const json::value* value = outcome ? member(*outcome, "value") : nullptr;
            const json::value* baseline = value != nullptr ? member(*value, "baseline") : nullptr;
            const json::value* argv = baseline != nullptr ? member(*baseline, "running_argv") : nullptr;
            if (argv == nullptr || !argv->is_array()) continue;
            std::string line;
            for (const json::value& word : argv->get_array()) {
                if (word.is_string()) line += (line.empty() ? "" : " ") + std::string{word.get_string()};
            }
            out_ += "  - command line: " + escaped(line, 2000) + "\n";
        }
        out_ += "- campaignd " + escaped(campaign_.engine_version) + "\n\n";
    }

    void sources() {
        out_ += "## Sources\n\n";
        for (std::size_t i = 0; i < notes_.size(); ++i) out_ += "[^" + std::to_string(i + 1) + "]: " + notes_[i] + "\n";
        out_ += "\n" + header({"artifact", "kind", "size", "SHA-256"});
        for (const storage::ArtifactRow& artifact : artifacts_)
            out_ += row({escaped(artifact.name, 160), escaped(artifact.kind), format_bytes(artifact.size),
                         "`" + artifact.sha256 + "`"});
    }

    storage::Reader& reader_;
    const storage::Vault& vault_;
    storage::CampaignRow campaign_;
    std::vector<storage::PhaseRow> phases_;
    std::map<storage::Id, storage::StepRow> steps_;
    std::vector<storage::ArtifactRow> artifacts_;
    std::vector<storage::DecisionRow> decisions_;
    std::vector<std::tuple<storage::Micros, std::string, json::value>> events_;
    std::vector<std::string> notes_;
    std::vector<std::string> failed_;
    std::vector<std::string> damaged_;
    std::string out_;
};

}   // namespace

Result<std::string> markdown(storage::Reader& reader, const storage::Vault& vault, storage::Id campaign) {
    Document document{reader, vault};
    return document.write(campaign);
}

}   // namespace campaign::report
