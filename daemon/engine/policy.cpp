#include "daemon/engine/policy.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace campaign::engine {
namespace {

std::string span_text(Seconds span) {
    return format_span(std::chrono::duration_cast<std::chrono::nanoseconds>(span));
}

/// Two loads: into the mode and back. The little that stopping and checking take is in the rounding up to p90.
void estimate_downtime(Judged& judged, const DecideInput& input) {
    if (judged.candidate.mode == Mode::production) {
        judged.down_low = Seconds{0};
        judged.down_high = Seconds{0};
    } else if (input.load.loads > 0) {
        judged.down_low = 2 * input.load.p50;
        judged.down_high = 2 * input.load.p90;
    } else if (input.operator_load) {
        judged.down_low = 2 * *input.operator_load;
        judged.down_high = 2 * *input.operator_load;
    }
}

/// What policy says about a candidate that needs a restart: nothing (it may run), or a verdict with its reason.
std::optional<std::pair<Verdict, std::string>> objection(const Judged& judged, const DecideInput& input) {
    const plans::Policy& policy = input.policy;
    if (judged.candidate.mode == Mode::production) return std::nullopt;
    if (policy.restart == plans::Restart::never)
        return std::pair{Verdict::forbidden, std::string{"policy.restart is never"}};
    const Seconds allowed = policy.max_downtime;
    if (judged.down_high && input.downtime_spent + *judged.down_high > allowed) {
        return std::pair{
            Verdict::forbidden,
            "it would take production down for about " + span_text(*judged.down_high) + ", the plan allows " +
                span_text(allowed) + " in all" +
                (input.downtime_spent > Seconds{0} ? " and " + span_text(input.downtime_spent) + " are spent" : "")};
    }
    if (input.approved == judged.candidate.method) return std::nullopt;
    if (policy.restart == plans::Restart::ask) return std::pair{Verdict::deferred, std::string{"needs approval"}};
    if (!judged.down_high) {
        return std::pair{
            Verdict::deferred,
            std::string{"needs approval: how long a load takes here is unknown (services.*.load_time tells it)"}};
    }
    return std::nullopt;
}

}   // namespace

std::string_view to_string(Mode mode) {
    switch (mode) {
        case Mode::production: return "production";
        case Mode::profiler: return "profiler";
        case Mode::nsys: return "nsys";
    }
    return "";
}

std::string_view to_string(Verdict verdict) {
    switch (verdict) {
        case Verdict::chosen: return "chosen";
        case Verdict::impossible: return "impossible";
        case Verdict::forbidden: return "forbidden";
        case Verdict::deferred: return "deferred";
        case Verdict::not_needed: return "not needed";
    }
    return "";
}

std::string policy_in_words(const plans::Policy& policy) {
    const std::string limit = "at most " + format_span(policy.max_downtime) + " down in all";
    switch (policy.restart) {
        case plans::Restart::never: return "no downtime is allowed";
        case plans::Restart::ask: return "a restart needs an approval; " + limit;
        case plans::Restart::window: return "restarts within " + policy.window.value_or("the window") + "; " + limit;
        case plans::Restart::allow: return "restarts are allowed; " + limit;
    }
    return "";
}

Decision decide(const DecideInput& input) {
    Decision decision;
    decision.question = input.question;
    decision.policy = policy_in_words(input.policy);
    for (const Candidate& candidate : input.ladder) {
        Judged judged;
        judged.candidate = candidate;
        estimate_downtime(judged, input);
        if (candidate.can == Can::no) {
            judged.verdict = Verdict::impossible;
            judged.why = candidate.reason;
        } else if (decision.chosen) {
            judged.verdict = Verdict::not_needed;
            judged.why = std::string{plans::to_string(*decision.chosen)} + " shows more";
        } else if (const auto against = objection(judged, input)) {
            judged.verdict = against->first;
            judged.why = against->second;
            if (judged.verdict == Verdict::deferred) decision.deferred.push_back(candidate.method);
        } else {
            judged.verdict = Verdict::chosen;
            judged.why =
                candidate.mode == Mode::production ? "works without downtime" : "the best that is possible and allowed";
            if (candidate.can == Can::unknown) judged.why += "; whether it works shows when it is tried";
            decision.chosen = candidate.method;
            decision.mode = candidate.mode;
            decision.cannot_show = candidate.cannot_show;
        }
        decision.candidates.push_back(std::move(judged));
    }
    return decision;
}

boost::json::array candidates_json(const Decision& decision) {
    boost::json::array list;
    for (const Judged& judged : decision.candidates) {
        boost::json::object entry;
        entry["method"] = plans::to_string(judged.candidate.method);
        entry["mode"] = to_string(judged.candidate.mode);
        entry["verdict"] = to_string(judged.verdict);
        entry["why"] = judged.why;
        entry["shows"] = judged.candidate.shows;
        entry["cannot_show"] = judged.candidate.cannot_show;
        entry["evidence"] = judged.candidate.evidence;
        if (judged.down_low && judged.down_high) {
            entry["downtime_s"] = boost::json::array{judged.down_low->count(), judged.down_high->count()};
        } else {
            entry["downtime_s"] = nullptr;
        }
        list.push_back(std::move(entry));
    }
    return list;
}

}   // namespace campaign::engine
