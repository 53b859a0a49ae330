#pragma once
// One latency budget of a decode step out of macro, micro and, if there is one, trace numbers. Rules and definitions:
// docs/latency-budget.md. The residual is a result: it is never spread over the lines, and a share names its denominator.
// All times are microseconds a decode step unless a name says otherwise.

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"

namespace campaign::micro {

using Interval = std::array<double, 3>;   ///< low, mid, high

/// A class of operations measured alone: compute, attention, small kernels.
struct MeasuredOps {
    std::string name;
    std::string kind = "gemm";           ///< the class of the budget
    double count = 0;                    ///< in a step
    Interval cold_us{};                  ///< of one, out of a cold cache
    bool overlaps = false;               ///< may run beside communication
    std::optional<double> could_be_us;   ///< of one, if it were mended: for the largest lever
};

struct MeasuredCollective {
    std::string name;
    double count = 0;
    Interval cost_us{};        ///< of one, as the budget takes it
    std::string_view method;   ///< interleaved where it was measured so, else burst
    std::optional<double> isolated_us;
    std::optional<double> could_be_us;
};

struct TracedStep {
    double step_us = 0;
    double busy_union_us = 0;
    double busy_sum_us = 0;
    std::optional<double> comm_min_rank_us;   ///< the rank that waited least: nearest to the wire
    std::optional<double> comm_mean_us;
    std::map<std::string, double> classes;   ///< by the budget's class
};

struct BudgetInput {
    double tpot_us = 0;
    double tpot_half_width_us = 0;
    double tokens_per_step = 1;   ///< more with speculation
    std::optional<double> floor_us;
    std::vector<MeasuredOps> ops;
    std::vector<MeasuredCollective> collectives;
    std::optional<TracedStep> trace;
};

enum class Verdict { closes, under_explained, over_explained, undecided, invalid };
[[nodiscard]] std::string_view to_string(Verdict verdict);

struct BudgetLine {
    std::string name;
    std::string kind;
    Interval us{};
    std::string_view method;   ///< of communication
};

/// A class in micro and in the trace.
struct ClassCheck {
    std::string name;
    double micro_us = 0;
    double trace_us = 0;
    [[nodiscard]] double ratio() const { return micro_us / trace_us; }
    [[nodiscard]] bool agrees() const { return ratio() >= 0.8 && ratio() <= 1.25; }
};

/// What mending one line would give: an upper bound, for a saving off the critical path gives nothing.
struct Lever {
    std::string line;
    double saves_low_us = 0;
    double saves_high_us = 0;
};

struct Budget {
    double step_us = 0;   ///< TPOT x tokens a step
    std::vector<BudgetLine> lines;
    Interval compute_us{};
    Interval communication_us{};
    double gap_us = 0;        ///< traced: step less busy union; 0 without a trace, which cannot say
    double hidden_us = 0;     ///< traced: what ran beside something else
    Interval sum_us{};        ///< explained: compute + communication + gap - hidden
    Interval residual_us{};   ///< step - sum
    std::optional<double> floor_us;
    std::optional<double> instrumentation_factor;   ///< traced step / untraced step
    std::optional<double> skew_us;
    std::optional<double> comm_micro_over_trace_wire;
    std::optional<double> traced_step_us;
    std::vector<ClassCheck> classes;
    std::optional<Lever> lever;   ///< only of a budget that closes
    Verdict verdict = Verdict::undecided;
    std::vector<std::string> warnings;
};

/// `document` is {"input": {...}} or the input itself. Error kind `invalid`: what is missing, of the wrong type, negative,
/// not finite or out of order, by name.
[[nodiscard]] Result<BudgetInput> read_budget_input(const json::value& document);

[[nodiscard]] Budget reconcile(const BudgetInput& input);

[[nodiscard]] json::object to_json(const Budget& budget);

}   // namespace campaign::micro
