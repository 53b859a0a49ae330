#include "instruments/agent/micro_table.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "base/text.hpp"

namespace campaign::agent {
namespace {

std::string fixed(double value, int decimals) {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
    return text.data();
}

std::string left(const std::string& text, std::size_t width) {
    const std::string cut = text.size() > width ? text.substr(0, width - 3) + "..." : text;
    return cut + std::string(width - cut.size(), ' ');
}

std::string right(const std::string& text, std::size_t width) {
    return std::string(width - std::min(width, text.size()), ' ') + text;
}

std::string bytes(double count) {
    return format_bytes(static_cast<std::uint64_t>(std::max(0.0, count)));
}
std::string bytes(std::int64_t count) {
    return bytes(static_cast<double>(count));
}

std::string header(const micro::Step& step, const std::string& name) {
    const micro::Request& request = step.request;
    const micro::Parallel& parallel = request.parallel;
    std::string text = printable(name, 200) + " (" + printable(step.model_type, 60) + "), one rank of TP " +
                       std::to_string(parallel.tensor);
    if (parallel.data > 1) text += ", DP " + std::to_string(parallel.data);
    if (step.expert_ranks > 1) text += ", EP " + std::to_string(step.expert_ranks);
    if (parallel.pipeline > 1) text += ", PP " + std::to_string(parallel.pipeline) + " (all stages together)";
    text += "\n";
    const std::string tokens = std::to_string(step.tokens);
    if (request.phase == micro::Phase::prefill) return text + "a prefill chunk of " + tokens + " tokens\n\n";
    text += "a decode step: " + std::to_string(request.batch) + " sequences with " + std::to_string(request.context) +
            " tokens each in the cache";
    if (request.draft > 0) text += ", " + std::to_string(request.draft) + " drafted";
    if (step.padded_tokens != step.tokens) text += "; " + tokens + " rows, run as " + std::to_string(step.padded_tokens);
    return text + "\n\n";
}

std::string gemm_rows(const micro::Step& step) {
    std::string text = "  " + left("operation", 18) + right("count", 6) + right("M", 7) + right("N", 8) + right("K", 8) +
                       "  " + left("weights", 10) + right("read a step", 12) + right("share", 7) + "\n";
    const double all = step.read_bytes();
    for (const micro::Gemm& gemm : step.gemms) {
        const double each = static_cast<double>(gemm.weight_bytes) * static_cast<double>(gemm.count());
        const double read = gemm.experts ? each * gemm.experts->distinct : each;
        const std::string rows =
            gemm.m ? std::to_string(*gemm.m) : "~" + fixed(gemm.experts->rows / gemm.experts->distinct, 1);
        text += "  " + left(gemm.name, 18) + right(std::to_string(gemm.count()), 6) + right(rows, 7) +
                right(std::to_string(gemm.n), 8) + right(std::to_string(gemm.k), 8) + "  " +
                left(std::string{to_string(gemm.format)}, 10) + right(bytes(read), 12) +
                right(fixed(100 * read / all, 1) + "%", 7) + "\n";
    }
    for (const micro::Gemm& gemm : step.gemms) {
        if (!gemm.experts) continue;
        const micro::Experts& experts = *gemm.experts;
        text += "\n  experts hit in a layer: " + fixed(experts.distinct, 1) + " of the " + std::to_string(experts.local) +
                " here if routed evenly,\n  between " + std::to_string(experts.distinct_low) + " and " +
                std::to_string(experts.distinct_high) + " however they are routed\n";
        break;
    }
    return text;
}

std::string collective_rows(const micro::Step& step) {
    if (step.collectives.empty()) return {};
    std::string text =
        "\n  " + left("communication", 19) + left("where", 18) + right("count", 7) + right("bytes each", 14) + "\n";
    for (const micro::Collective& one : step.collectives)
        text += "  " + left(std::string{one.op}, 19) + left(std::string{one.where}, 18) +
                right(std::to_string(one.count), 7) + right((one.upper_bound ? "<= " : "") + std::to_string(one.bytes), 14) +
                "\n";
    return text;
}

std::string sums(const micro::Step& step, const std::optional<micro::Gpu>& gpu) {
    const micro::Cache& cache = step.cache;
    const micro::Parameters& parameters = step.parameters;
    const auto billions = [](std::int64_t count) { return fixed(static_cast<double>(count) / 1e9, 2) + "e9"; };
    std::string text = "\n  parameters   " + billions(parameters.total) + ", of which a token uses " +
                       billions(parameters.active) + "\n  weights      held " + bytes(step.held_bytes) + ", read " +
                       bytes(step.read_bytes()) + "\n  KV cache     " + std::to_string(cache.bytes_per_token) +
                       " bytes a token" + (cache.replicated ? ", the same on several ranks" : "");
    if (cache.sliding_layers > 0)
        text += "; " + std::to_string(cache.sliding_layers) + " layers see " + std::to_string(cache.window.value_or(0)) +
                " tokens";
    text += "\n";
    if (step.request.phase == micro::Phase::decode) {
        text += "               read " + bytes(cache.read_bytes) + " a step\n";
        if (!gpu)
            text += "  floor        at 3350 GB/s " + fixed(step.floor_us(3350, true), 0) + " us, at 4800 GB/s " +
                    fixed(step.floor_us(4800, true), 0) + " us; --gpu NAME for another\n";
    }
    if (gpu) {
        if (step.request.phase == micro::Phase::decode) {
            const double floor = step.floor_us(gpu->bandwidth_gb_s, true);
            text += "  floor        " + fixed(floor, 0) + " us on " + std::string{gpu->name} + " at its nominal " +
                    fixed(gpu->bandwidth_gb_s, 0) + " GB/s: no TPOT is below " +
                    fixed(floor / static_cast<double>(1 + step.request.draft) / 1000, 2) + " ms\n";
        }
        if (step.held_bytes > gpu->memory_bytes)
            text += "  does not fit: " + std::string{gpu->name} + " holds " + bytes(gpu->memory_bytes) + "\n";
    }
    for (const std::string& note : step.notes) text += "  note         " + note + "\n";
    return text;
}

std::string milliseconds(double us) {
    return fixed(us / 1000, 2);
}

std::string budget_row(const std::string& name, const std::string& kind, const micro::Interval& us, double step) {
    return "  " + left(name, 30) + left(kind, 11) + right(milliseconds(us[1]), 8) + right(milliseconds(us[0]), 10) + " to" +
           right(milliseconds(us[2]), 7) + right(fixed(100 * us[1] / step, 1) + "%", 8) + "\n";
}

}   // namespace

std::string shapes_table(const micro::Step& step, const std::string& name, const std::optional<micro::Gpu>& gpu) {
    return header(step, name) + gemm_rows(step) + collective_rows(step) + sums(step, gpu);
}

std::string budget_table(const micro::Budget& budget) {
    const double step = budget.step_us;
    std::string text = "one decode step: " + milliseconds(step) + " ms (TPOT x tokens a step, untraced)\n\n  " +
                       left("", 30) + left("class", 11) + right("ms", 8) + right("between", 20) + right("of step", 8) + "\n";
    for (const micro::BudgetLine& line : budget.lines) {
        const std::string method = line.method.empty() ? "" : " (" + std::string{line.method} + ")";
        text += budget_row(printable(line.name, 200) + method, line.kind, line.us, step);
    }
    if (budget.hidden_us > 0)
        text += budget_row("hidden by overlap (trace)", "", {-budget.hidden_us, -budget.hidden_us, -budget.hidden_us}, step);
    text += budget_row("explained", "", budget.sum_us, step) + budget_row("residual", "", budget.residual_us, step);
    if (budget.floor_us) text += "\n  memory floor " + milliseconds(*budget.floor_us) + " ms\n";
    const double communication = budget.communication_us[1];
    if (communication > 0) {
        text += "\n  communication is " + fixed(100 * communication / step, 1) + " % of the client's step";
        if (budget.traced_step_us)
            text += ", " + fixed(100 * communication / *budget.traced_step_us, 1) + " % of the traced one";
        if (budget.sum_us[1] > 0)
            text += ",\n  " + fixed(100 * communication / budget.sum_us[1], 1) + " % of what is explained";
        text += "\n";
    }
    if (budget.skew_us)
        text += "  skew between ranks " + milliseconds(*budget.skew_us) + " ms (trace: mean less least rank)\n";
    text += "\n  verdict: " + std::string{to_string(budget.verdict)};
    if (!budget.traced_step_us) text += "; without a trace gaps and overlap are not known";
    text += "\n";
    if (budget.lever)
        text += "  largest lever: " + printable(budget.lever->line, 200) + ", at most " +
                milliseconds(budget.lever->saves_high_us) + " ms a step, at least " +
                milliseconds(budget.lever->saves_low_us) + "\n";
    for (const std::string& warning : budget.warnings) text += "  warning: " + printable(warning, 400) + "\n";
    return text;
}

}   // namespace campaign::agent
