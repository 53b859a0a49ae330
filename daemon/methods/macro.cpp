// Macro: what a user of the server sees. No downtime, no kernel names.

#include <algorithm>
#include <cstdio>

#include "daemon/methods/jobs.hpp"
#include "daemon/methods/method.hpp"

namespace campaign::methods {
namespace {

json::object load_spec(const plans::Load& load, const std::string& model) {
    json::object spec;
    spec["route"] = "completions";
    spec["model"] = model;
    json::array levels;
    for (const int level : load.concurrency) levels.emplace_back(level);
    spec["concurrency"] = std::move(levels);
    spec["auto"] = json::object{{"max", load.max_concurrency}};
    spec["requests"] = load.requests ? json::value(*load.requests) : json::value(nullptr);
    spec["duration_s"] =
        load.duration ? json::value(std::chrono::duration<double>(*load.duration).count()) : json::value(nullptr);
    spec["input_tokens"] = load.input_tokens;
    spec["output_tokens"] = load.output_tokens;
    spec["ignore_eos"] = true;
    spec["seed"] = 1;
    spec["request_timeout_s"] = 600;
    spec["warmup_requests"] = 1;
    return spec;
}

std::optional<double> percentile(const json::value& level, std::string_view metric, std::string_view which) {
    const json::value* table = member(level, metric);
    return table != nullptr ? number_at(*table, which) : std::nullopt;
}

/// What the phase's row says; every number is copied from the artifact, none is made here.
PhaseResult summarise(const LoadDone& done) {
    PhaseResult result;
    result.summary["sha256"] = done.sha256;
    json::array rows;
    if (const json::value* levels = member(done.result, "levels"); levels != nullptr && levels->is_array()) {
        for (const json::value& level : levels->get_array()) {
            json::object row;
            for (const std::string_view key : {"concurrency", "completed", "failed", "output_throughput"}) {
                if (const json::value* value = member(level, key); value != nullptr) row[key] = *value;
            }
            if (const auto ttft = percentile(level, "ttft_ms", "p50")) row["ttft_p50_ms"] = *ttft;
            if (const auto tpot = percentile(level, "tpot_ms", "p50")) row["tpot_p50_ms"] = *tpot;
            rows.push_back(std::move(row));
        }
    }
    result.summary["levels"] = std::move(rows);
    const json::value* plateau = member(done.result, "plateau");
    if (plateau != nullptr) {
        result.summary["plateau"] = *plateau;
        char text[128];
        std::snprintf(text, sizeof text, "%s %.0f tok/s at concurrency %lld",
                      bool_at(*plateau, "reached").value_or(false) ? "plateau" : "no plateau up to",
                      number_at(*plateau, "output_throughput").value_or(0),
                      static_cast<long long>(int_at(*plateau, "concurrency").value_or(0)));
        result.text = text;
    }
    return result;
}

bool nothing_completed(const json::value& result) {
    const json::value* levels = member(result, "levels");
    if (levels == nullptr || !levels->is_array()) return true;
    const auto& list = levels->get_array();
    return std::none_of(list.begin(), list.end(),
                        [](const json::value& level) { return int_at(level, "completed").value_or(0) > 0; });
}

}   // namespace

Async<Result<PhaseResult>> macro_sweep(Campaign& campaign, const plans::Phase& phase, const ServiceFacts& facts) {
    Track track{campaign, phase.name + "/macro", phase.name};
    plans::Load load = phase.load;
    if (phase.measure == plans::Measure::decode_step && load.concurrency.empty()) {
        load.concurrency = {phase.capture.concurrency};   // the pivot of a deep question looks at the same point
    }
    LoadRequest request;
    request.label = "sweep";
    request.spec = load_spec(load, facts.model);
    request.limit = phase.time_limit;
    const Result<LoadDone> done = co_await run_load(track, facts.service, std::move(request));
    if (!done) co_return done.error();
    if (campaign.rehearsal != nullptr) co_return PhaseResult{};
    if (nothing_completed(done->result)) {
        co_return Error{ErrorKind::failed, "no request of the sweep completed", "the load result has the failures by class",
                        "sha256 " + done->sha256, "campaignctl report " + campaign.row.name};
    }
    co_return summarise(*done);
}

Async<Result<PhaseResult>> warm_up(Campaign& campaign, const plans::Phase& phase, const ServiceFacts& facts) {
    Track track{campaign, phase.name + "/warm-up", phase.name};
    plans::Load load;
    load.concurrency = {1};
    load.requests = 3;
    load.input_tokens = std::min(phase.load.input_tokens, 128);
    load.output_tokens = 16;
    LoadRequest request;
    request.label = "warm-up";
    request.spec = load_spec(load, facts.model);
    request.spec["warmup_requests"] = 0;   // the first, perhaps cold, request is what this looks at
    request.limit = phase.time_limit;
    const Result<LoadDone> done = co_await run_load(track, facts.service, std::move(request));
    if (!done) co_return done.error();
    if (campaign.rehearsal != nullptr) co_return PhaseResult{};
    if (nothing_completed(done->result)) {
        co_return Error{ErrorKind::failed, "no warm-up request completed", "", "sha256 " + done->sha256, ""};
    }
    PhaseResult result = summarise(*done);
    result.summary["preliminary"] = true;
    const json::value* levels = member(done->result, "levels");
    const json::value& level = levels->get_array().front();
    char text[160];
    std::snprintf(
        text, sizeof text, "preliminary: TTFT p50 %.0f ms, TPOT p50 %.2f ms%s",
        percentile(level, "ttft_ms", "p50").value_or(0), percentile(level, "tpot_ms", "p50").value_or(0),
        bool_at(level, "reasoning_tokens_seen").value_or(false) ? "; reasoning tokens count against max_tokens" : "");
    result.text = text;
    co_return result;
}

}   // namespace campaign::methods
