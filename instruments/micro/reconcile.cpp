#include "instruments/micro/reconcile.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace campaign::micro {
namespace {

constexpr double closes_within = 0.10;   // of the step
constexpr double noted_factor = 1.05;    // a traced step this much longer is another step

std::string fixed(double value, int decimals) {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
    return text.data();
}

Interval times(const Interval& interval, double count) {
    return {interval[0] * count, interval[1] * count, interval[2] * count};
}

/// Bounds are added: clock and cache errors are common to all and do not shrink with the root of their number.
Interval plus(const Interval& a, const Interval& b) {
    return {a[0] + b[0], a[1] + b[1], a[2] + b[2]};
}

class Reconciler {
public:
    explicit Reconciler(const BudgetInput& input) : in_{input} {}

    Budget run() {
        out_.step_us = in_.tpot_us * in_.tokens_per_step;
        out_.floor_us = in_.floor_us;
        half_width_ = in_.tpot_half_width_us * in_.tokens_per_step;
        compute();
        communication();
        if (in_.trace) {
            trace(*in_.trace);
        } else {
            hidden_[2] = std::min(may_overlap_, out_.communication_us[1]);   // not known: it only widens the interval
        }
        sum();
        contradictions();
        out_.verdict = verdict();
        if (out_.verdict == Verdict::closes) lever();
        return std::move(out_);
    }

private:
    void warn(std::string text) { out_.warnings.push_back(std::move(text)); }

    void compute() {
        for (const MeasuredOps& op : in_.ops) {
            const Interval us = times(op.cold_us, op.count);
            out_.lines.push_back({op.name, op.kind, us, {}});
            out_.compute_us = plus(out_.compute_us, us);
            if (op.overlaps) may_overlap_ += us[1];
        }
    }

    void communication() {
        for (const MeasuredCollective& one : in_.collectives) {
            const Interval us = times(one.cost_us, one.count);
            out_.lines.push_back({one.name, "comm", us, one.method});
            out_.communication_us = plus(out_.communication_us, us);
            const double isolated = one.isolated_us.value_or(0) * one.count;
            if (isolated > 1.25 * us[1])
                warn("isolated " + one.name + " sums to " + fixed(isolated, 0) + ", " + std::string{one.method} + " to " +
                     fixed(us[1], 0) + ": launch and entry skew, not wire");
        }
    }

    void trace(const TracedStep& trace) {
        const double hidden = std::max(0.0, trace.busy_sum_us - trace.busy_union_us);
        out_.gap_us = std::max(0.0, trace.step_us - trace.busy_union_us);
        hidden_ = {hidden, hidden, hidden};
        out_.lines.push_back({"host gap (trace)", "gap", {out_.gap_us, out_.gap_us, out_.gap_us}, {}});
        out_.traced_step_us = trace.step_us;
        out_.instrumentation_factor = trace.step_us / out_.step_us;
        if (trace.step_us > noted_factor * out_.step_us)
            warn("traced step is " + fixed(100 * (*out_.instrumentation_factor - 1), 1) +
                 " % longer than the untraced one: shares of the trace are not shares of production");
        if (trace.comm_mean_us && trace.comm_min_rank_us) {
            out_.skew_us = *trace.comm_mean_us - *trace.comm_min_rank_us;
            if (out_.communication_us[1] > 0 && *trace.comm_min_rank_us > 0)
                out_.comm_micro_over_trace_wire = out_.communication_us[1] / *trace.comm_min_rank_us;
        }
        classes(trace);
    }

    void classes(const TracedStep& trace) {
        std::map<std::string, double> micro;
        for (const BudgetLine& line : out_.lines) {
            if (line.kind != "gap") micro[line.kind] += line.us[1];
        }
        for (const auto& [name, traced] : trace.classes) {
            if (traced <= 0) continue;
            const auto found = micro.find(name);
            const ClassCheck check{name, found == micro.end() ? 0 : found->second, traced};
            out_.classes.push_back(check);
            if (found == micro.end()) {
                warn("class " + name + ": " + fixed(traced, 0) + " in the trace, nothing of it in micro");
            } else if (!check.agrees()) {
                warn("class " + name + ": micro " + fixed(check.micro_us, 0) + " is " + fixed(check.ratio(), 2) +
                     " of the trace's " + fixed(traced, 0));
            }
        }
    }

    void sum() {
        const Interval all = plus(plus(out_.compute_us, out_.communication_us), {out_.gap_us, out_.gap_us, out_.gap_us});
        out_.hidden_us = hidden_[1];
        out_.sum_us = {all[0] - hidden_[2], all[1] - hidden_[1], all[2] - hidden_[0]};
        const double step = out_.step_us;
        out_.residual_us = {step - half_width_ - out_.sum_us[2], step - out_.sum_us[1], step + half_width_ - out_.sum_us[0]};
    }

    void contradictions() {
        if (!in_.floor_us || *in_.floor_us <= 0) return;
        const double floor = *in_.floor_us;
        const double compute = out_.compute_us[1];
        below_floor_ = compute > 0 && compute < 0.98 * floor;
        if (below_floor_)
            warn("compute sum " + fixed(compute, 0) + " is below the memory floor " + fixed(floor, 0) +
                 ": the cache was warm or bytes are missing");
        if (out_.step_us + half_width_ < floor + out_.communication_us[0] - hidden_[2])
            warn("step " + fixed(out_.step_us, 0) + " is shorter than memory floor + communication " +
                 fixed(floor + out_.communication_us[0], 0) + ": wrong model, wrong step, or overlap");
    }

    [[nodiscard]] Verdict verdict() const {
        const double bound = closes_within * out_.step_us;
        if (below_floor_) return Verdict::invalid;
        if (out_.residual_us[2] < 0) return Verdict::over_explained;
        if (out_.residual_us[0] > bound) return Verdict::under_explained;
        return std::abs(out_.residual_us[1]) <= bound ? Verdict::closes : Verdict::undecided;
    }

    /// The line whose mending, to what the caller says one call could take, saves most. What is hidden now may give nothing.
    void lever() {
        const auto consider = [this](const std::string& name, double count, const Interval& us,
                                     std::optional<double> could_be) {
            if (!could_be) return;
            const double low = std::max(0.0, count * (us[0] - *could_be) - out_.hidden_us);
            const double high = count * (us[2] - *could_be);
            if (high > 0 && (!out_.lever || high > out_.lever->saves_high_us)) out_.lever = Lever{name, low, high};
        };
        for (const MeasuredOps& op : in_.ops) consider(op.name, op.count, op.cold_us, op.could_be_us);
        for (const MeasuredCollective& one : in_.collectives) consider(one.name, one.count, one.cost_us, one.could_be_us);
    }

    const BudgetInput& in_;
    Budget out_;
    Interval hidden_{};
    double half_width_ = 0;
    double may_overlap_ = 0;
    bool below_floor_ = false;
};

json::array interval_json(const Interval& interval) {
    json::array out;
    for (const double value : interval) out.emplace_back(value);
    return out;
}

json::value ratio(double part, double whole) {
    return whole != 0 ? json::value(part / whole) : json::value(nullptr);
}

}   // namespace

std::string_view to_string(Verdict verdict) {
    switch (verdict) {
        case Verdict::closes: return "closes";
        case Verdict::under_explained: return "under-explained";
        case Verdict::over_explained: return "over-explained";
        case Verdict::undecided: return "undecided";
        case Verdict::invalid: return "invalid";
    }
    return "unknown";
}

Budget reconcile(const BudgetInput& input) {
    return Reconciler{input}.run();
}

json::object to_json(const Budget& budget) {
    json::object out;
    out["schema"] = "campaign.budget/1";
    out["verdict"] = to_string(budget.verdict);
    out["step_us"] = budget.step_us;
    json::array lines;
    for (const BudgetLine& line : budget.lines) {
        json::object one;
        one["name"] = line.name;
        one["kind"] = line.kind;
        one["us"] = interval_json(line.us);
        if (!line.method.empty()) one["method"] = line.method;
        lines.emplace_back(std::move(one));
    }
    out["lines"] = std::move(lines);
    out["compute_us"] = interval_json(budget.compute_us);
    out["comm_us"] = interval_json(budget.communication_us);
    out["gap_us"] = budget.traced_step_us ? json::value(budget.gap_us) : json::value(nullptr);
    out["hidden_us"] = budget.hidden_us;
    out["sum_us"] = interval_json(budget.sum_us);
    out["residual_us"] = interval_json(budget.residual_us);
    out["explained"] = budget.sum_us[1] / budget.step_us;
    json::object shares;
    shares["of_client_step"] = budget.communication_us[1] / budget.step_us;
    shares["of_sum"] = ratio(budget.communication_us[1], budget.sum_us[1]);
    if (budget.traced_step_us) shares["of_traced_step"] = budget.communication_us[1] / *budget.traced_step_us;
    out["share_comm"] = std::move(shares);
    if (budget.floor_us) out["floor_us"] = *budget.floor_us;
    if (budget.traced_step_us) out["traced_step_us"] = *budget.traced_step_us;
    if (budget.instrumentation_factor) out["instrumentation_factor"] = *budget.instrumentation_factor;
    if (budget.skew_us) out["skew_us"] = *budget.skew_us;
    if (budget.comm_micro_over_trace_wire) out["comm_micro_over_trace_wire"] = *budget.comm_micro_over_trace_wire;
    json::array classes;
    for (const ClassCheck& check : budget.classes) {
        json::object one;
        one["class"] = check.name;
        one["micro_us"] = check.micro_us;
        one["trace_us"] = check.trace_us;
        one["ratio"] = check.ratio();
        one["agrees"] = check.agrees();
        classes.emplace_back(std::move(one));
    }
    out["classes"] = std::move(classes);
    if (budget.lever) {
        json::object lever;
        lever["line"] = budget.lever->line;
        lever["saves_us"] = json::array({budget.lever->saves_low_us, budget.lever->saves_high_us});
        out["lever"] = std::move(lever);
    }
    out["warnings"] = json::value_from(budget.warnings);
    return out;
}

}   // namespace campaign::micro
