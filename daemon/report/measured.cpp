#include <algorithm>

#include "daemon/report/markdown.hpp"
#include "daemon/report/sections.hpp"

namespace campaign::report {
namespace {

using storage::ArtifactRow;

constexpr std::string_view sweep_name = "sweep.json";
constexpr std::string_view warm_up_name = "warm-up.json";

/// The members of an array that is there, else none.
const json::array& list_at(const json::value& object, std::string_view key) {
    static const json::array none;
    const json::value* list = member(object, key);
    return list != nullptr && list->is_array() ? list->get_array() : none;
}

std::string count_at(const json::value& object, std::string_view key) {
    const auto count = int_at(object, key);
    return count ? std::to_string(*count) : "not measured";
}

std::optional<double> metric(const json::value& level, std::string_view name, std::string_view which) {
    const json::value* summary = member(level, name);
    return summary != nullptr ? number_at(*summary, which) : std::nullopt;
}

/// A level at which nothing was completed has no throughput: the 0 of its file is no measurement.
std::optional<double> throughput(const json::value& level) {
    return int_at(level, "completed").value_or(0) > 0 ? number_at(level, "output_throughput") : std::nullopt;
}

bool was_run(const json::value& level) {
    return string_at(level, "status") != "not_run";
}

std::string marks_of(const json::value& level) {
    std::vector<std::string> marks;
    const json::value* client = member(level, "client");
    if (client != nullptr && bool_at(*client, "late").value_or(false)) marks.emplace_back("client late");
    if (bool_at(level, "reasoning_tokens_seen").value_or(false)) marks.emplace_back("reasoning tokens count");
    const auto counted = string_at(level, "output_tokens_source");
    if (counted && *counted != "usage" && *counted != "none") marks.emplace_back("tokens estimated");
    if (!was_run(level)) marks.push_back("not run: " + escaped(string_at(level, "reason").value_or("no reason given"), 200));
    if (const auto cancelled = int_at(level, "cancelled"); cancelled && *cancelled > 0)
        marks.push_back(std::to_string(*cancelled) + " cancelled");
    for (const json::value& note : list_at(level, "notes")) {
        if (note.is_string()) marks.push_back(escaped(std::string_view{note.get_string()}, 200));
    }
    std::string line;
    for (const std::string& mark : marks) line += (line.empty() ? "" : "; ") + mark;
    return line;
}

void level_table(std::string& out, const json::value& result, const std::string& from) {
    out += header({"concurrency", "requests", "completed", "failed", "output tok/s", "TTFT p50 ms", "TTFT p99 ms",
                   "TPOT p50 ms", "TPOT p95 ms", "ITL p99 ms", "E2EL p50 ms", "marks", "source"});
    std::string few;
    for (const json::value& level : list_at(result, "levels")) {
        const std::string concurrency = count_at(level, "concurrency");
        out += row({concurrency, count_at(level, "requests"), count_at(level, "completed"), count_at(level, "failed"),
                    number(throughput(level), 1), number(metric(level, "ttft_ms", "p50"), 1),
                    number(metric(level, "ttft_ms", "p99"), 1), number(metric(level, "tpot_ms", "p50"), 2),
                    number(metric(level, "tpot_ms", "p95"), 2), number(metric(level, "itl_ms", "p99"), 2),
                    number(metric(level, "e2el_ms", "p50"), 1), marks_of(level), from});
        if (const auto n = metric(level, "ttft_ms", "n"); n && *n < 100) few += (few.empty() ? "" : ", ") + concurrency;
    }
    out += "\n";
    if (!few.empty()) {
        out += "TTFT p99 at concurrency " + few +
               " comes from fewer than 100 requests: it is close to the slowest of them.\n\n";
    }
}

/// The sweep that the answer quotes: one that found the plateau, else the one with most levels.
const ArtifactRow* best_sweep(Record& record) {
    const ArtifactRow* best = nullptr;
    std::pair<bool, std::size_t> most{false, 0};
    for (const ArtifactRow& artifact : record.artifacts) {
        if (artifact.kind != "load-result" || artifact.name != sweep_name) continue;
        const json::value* result = record.content(artifact);
        const json::value* plateau = result != nullptr ? member(*result, "plateau") : nullptr;
        if (plateau == nullptr || !number_at(*plateau, "output_throughput")) continue;
        const json::array& levels = list_at(*result, "levels");
        if (std::none_of(levels.begin(), levels.end(),
                         [](const json::value& level) { return throughput(level).has_value(); }))
            continue;
        const std::pair<bool, std::size_t> rank{bool_at(*plateau, "reached").value_or(false), levels.size()};
        if (best != nullptr && rank <= most) continue;
        best = &artifact;
        most = rank;
    }
    return best;
}

void rank_table(std::string& out, const json::array& entries, const char* what, std::size_t most) {
    if (entries.empty()) return;
    out += header({what, "us a step", "count a step", "share of busy time"});
    std::size_t shown = 0;
    for (const json::value& entry : entries) {
        if (shown++ == most) break;
        const auto share = number_at(entry, "share");
        out += row({escaped(string_at(entry, "name").value_or("?"), 160), number(number_at(entry, "per_step_us"), 1),
                    number(number_at(entry, "count_per_step"), 1), share ? number(*share * 100, 1) + " %" : "not measured"});
    }
    out += "\n";
}

}   // namespace

std::string answer(Record& record) {
    std::string out = "## The answer\n\n";
    bool said = false;
    // The latest analysis that answers: a phase that was begun anew has an earlier one too.
    for (auto artifact = record.artifacts.rbegin(); artifact != record.artifacts.rend() && !said; ++artifact) {
        if (artifact->kind != "analysis") continue;
        const json::value* analysis = record.content(*artifact);
        const auto text = analysis != nullptr ? string_at(*analysis, "answer") : std::nullopt;
        if (!text) continue;
        out += "- Where a decode step goes: " + escaped(*text) + " " + record.source(*artifact) + "\n";
        said = true;
    }
    if (const ArtifactRow* sweep = best_sweep(record)) {
        const json::value& plateau = *member(*record.content(*sweep), "plateau");
        const bool reached = bool_at(plateau, "reached").value_or(false);
        out += std::string{"- Output throughput "} + (reached ? "levels off at " : "reached ") +
               number(number_at(plateau, "output_throughput"), 0) + " tok/s at concurrency " +
               count_at(plateau, "concurrency") +
               (reached ? "" : "; no plateau was found among the levels that were tried") + " " + record.source(*sweep) +
               "\n";
        said = true;
    }
    if (!said) out += "- Nothing was measured" + std::string{record.campaign.ended ? "" : " yet"} + ".\n";
    std::string states;
    for (const auto& [service, data] : record.last_production()) {
        states +=
            (states.empty() ? "" : "; ") + escaped(service) + ": " + escaped(string_at(data, "state").value_or("unknown"));
    }
    return out + "- Production: " + (states.empty() ? std::string{"nothing was looked at"} : states) + ".\n\n";
}

std::string macro(Record& record) {
    std::string out;
    for (const ArtifactRow& artifact : record.artifacts) {
        if (artifact.kind != "load-result" || (artifact.name != sweep_name && artifact.name != warm_up_name)) continue;
        out += "## " + escaped(record.phase_of(artifact)) +
               (artifact.name == warm_up_name ? ": warm-up (preliminary: the server may have been cold)"
                                              : ": what a client sees") +
               "\n\n";
        const json::value* result = record.content(artifact);
        if (result == nullptr || !result->is_object()) {
            out += "The result cannot be read, so no number is shown.\n\n";
            continue;
        }
        if (bool_at(*result, "complete") == false) {
            out += "**The run did not end by itself:** what it had measured until then follows. " +
                   escaped(string_at(*result, "error").value_or("")) + "\n\n";
        }
        level_table(out, *result, record.source(artifact));
        if (bool_at(*result, "tunnelled").value_or(false))
            out += "Measured through an ssh tunnel: the latencies hold the tunnel's own.\n\n";
    }
    return out;
}

std::string decode_step(Record& record) {
    std::string out;
    for (const ArtifactRow& artifact : record.artifacts) {
        if (artifact.kind != "analysis") continue;
        const std::string phase = record.phase_of(artifact);
        out += "## " + escaped(phase) + ": where a decode step goes\n\n";
        const json::value* analysis = record.content(artifact);
        if (analysis == nullptr) {
            out += "The analysis cannot be read, so no number is shown.\n\n";
            continue;
        }
        const std::string from = record.source(artifact);
        const auto text = string_at(*analysis, "answer");
        out += text
                   ? "Answer: " + escaped(*text)
                   : "No answer: " + escaped(string_at(*analysis, "cannot_answer").value_or("the analysis gives no reason"));
        out += " " + from + "\n\n";
        for (const json::value& rank : list_at(*analysis, "ranks")) {
            const auto p50 = metric(rank, "decode_step_us", "p50");
            const json::value* steps = member(rank, "decode_step_us");
            out += "Rank " + count_at(rank, "rank") + ": " +
                   (p50 ? "decode step p50 " + number(p50, 1) + " us over " + count_at(*steps, "n") + " steps"
                        : std::string{"no decode steps"}) +
                   " " + from + "\n\n";
            rank_table(out, list_at(rank, "categories"), "category", 100);
            rank_table(out, list_at(rank, "top_kernels"), "kernel", 10);
        }
        if (const json::array& notes = list_at(*analysis, "notes"); !notes.empty()) {
            out += "Notes of the analysis:\n\n";
            for (const json::value& note : notes) {
                if (note.is_string()) out += "- " + escaped(std::string_view{note.get_string()}) + "\n";
            }
            out += "\n";
        }
        for (const ArtifactRow& load : record.artifacts) {
            const bool beside = load.kind == "load-result" && load.name != sweep_name && load.name != warm_up_name;
            if (!beside || record.phase_of(load) != phase) continue;
            out += escaped(load.name) +
                   " holds the requests that ran beside the capture. They show the server slowed by its " +
                   "profiler, so none of their times is given here. " + record.source(load) + "\n\n";
        }
    }
    return out;
}

std::vector<std::string> failed_requests(Record& record) {
    std::vector<std::string> lines;
    for (const ArtifactRow& artifact : record.artifacts) {
        if (artifact.kind != "load-result") continue;
        const json::value* result = record.content(artifact);
        if (result == nullptr) continue;
        for (const json::value& level : list_at(*result, "levels")) {
            const json::value* classes = member(level, "failures");
            if (classes == nullptr || !classes->is_object()) continue;
            for (const auto& entry : classes->get_object()) {
                const auto count = int_at(*classes, entry.key());
                if (!count || *count <= 0) continue;
                lines.push_back(escaped(record.phase_of(artifact)) + ", " + escaped(artifact.name) + ", concurrency " +
                                count_at(level, "concurrency") + ": " + std::to_string(*count) + " requests failed with " +
                                escaped(entry.key(), 100) + "; they are in no latency and no throughput " +
                                record.source(artifact));
            }
        }
    }
    return lines;
}

}   // namespace campaign::report
