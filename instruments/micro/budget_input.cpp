#include <cmath>

#include "base/text.hpp"
#include "instruments/micro/reconcile.hpp"

namespace campaign::micro {
namespace {

constexpr std::size_t most_lines = 10'000;
constexpr double most = 1e15;

/// Reads members of one object; the first thing that is wrong is kept, named by its path.
class Reader {
public:
    [[nodiscard]] const std::optional<Error>& wrong() const { return wrong_; }

    void refuse(const std::string& where, const std::string& what) {
        if (wrong_) return;
        wrong_ = Error{.kind = ErrorKind::invalid,
                       .what = where + " " + what,
                       .why = {},
                       .evidence = {},
                       .next = "docs/latency-budget.md describes the input"};
    }

    static const json::value* given(const json::value& object, std::string_view key) {
        const json::value* const found = member(object, key);
        return found == nullptr || found->is_null() ? nullptr : found;
    }

    double value(const json::value& from, const std::string& where) {
        const bool number = from.is_number();
        const double out = number ? from.to_number<double>() : 0;
        if (number && std::isfinite(out) && out >= 0 && out <= most) return out;
        refuse(where, "is not a number between 0 and 1e15");
        return 0;
    }

    std::optional<double> number(const json::value& object, std::string_view key, const std::string& path) {
        const json::value* const found = given(object, key);
        if (found == nullptr) return std::nullopt;
        return value(*found, path + std::string{key});
    }

    double needed(const json::value& object, std::string_view key, const std::string& path) {
        const std::optional<double> found = number(object, key, path);
        if (!found) refuse(path + std::string{key}, "is missing");
        return found.value_or(0);
    }

    /// A number, or [low, mid, high].
    Interval interval(const json::value& from, const std::string& where) {
        if (!from.is_array()) {
            const double mid = value(from, where);
            return {mid, mid, mid};
        }
        if (from.as_array().size() != 3) {
            refuse(where, "is neither a number nor [low, mid, high]");
            return {};
        }
        Interval out{};
        for (std::size_t i = 0; i < 3; ++i) out[i] = value(from.as_array()[i], where);
        if (out[0] > out[1] || out[1] > out[2]) refuse(where, "is not in order: low, mid, high");
        return out;
    }

    std::string name(const json::value& object, const std::string& path) {
        const std::optional<std::string> found = string_at(object, "name");
        if (!found || found->empty()) refuse(path + "name", "is missing");
        return printable(found.value_or(""), 200);
    }

    const json::array& list(const json::value& object, std::string_view key) {
        const json::value* const found = given(object, key);
        if (found == nullptr) return none_;
        if (found->is_array() && found->as_array().size() <= most_lines) return found->as_array();
        refuse(std::string{key}, "is not a list of at most 10000 lines");
        return none_;
    }

    const json::value* object(const json::value& from, std::string_view key) {
        const json::value* const found = given(from, key);
        if (found == nullptr || found->is_object()) return found;
        refuse(std::string{key}, "is not an object");
        return nullptr;
    }

private:
    std::optional<Error> wrong_;
    json::array none_;
};

MeasuredOps read_ops(Reader& reader, const json::value& from, const std::string& path) {
    MeasuredOps out;
    out.name = reader.name(from, path);
    const json::value* const kind = Reader::given(from, "class");
    if (kind != nullptr && !kind->is_string()) reader.refuse(path + "class", "is not a word");
    if (kind != nullptr && kind->is_string()) out.kind = printable(std::string_view{kind->as_string()}, 60);
    out.count = reader.needed(from, "count", path);
    const json::value* const cold = Reader::given(from, "cold_us");
    if (cold == nullptr)
        reader.refuse(path + "cold_us", "is missing");
    else
        out.cold_us = reader.interval(*cold, path + "cold_us");
    const json::value* const overlaps = Reader::given(from, "overlaps");
    out.overlaps = overlaps != nullptr && !(overlaps->is_bool() && !overlaps->as_bool());
    out.could_be_us = reader.number(from, "could_be_us", path);
    return out;
}

MeasuredCollective read_collective(Reader& reader, const json::value& from, const std::string& path) {
    MeasuredCollective out;
    out.name = reader.name(from, path);
    out.count = reader.needed(from, "count", path);
    const json::value* cost = Reader::given(from, "interleaved_us");
    out.method = cost != nullptr ? "interleaved" : "burst";
    if (cost == nullptr) cost = Reader::given(from, "burst_us");
    if (cost == nullptr)
        reader.refuse(path + "burst_us", "is missing, and interleaved_us too");
    else
        out.cost_us = reader.interval(*cost, path + std::string{out.method} + "_us");
    if (const json::value* const isolated = Reader::given(from, "isolated_us"); isolated != nullptr)
        out.isolated_us = reader.interval(*isolated, path + "isolated_us")[1];
    out.could_be_us = reader.number(from, "could_be_us", path);
    return out;
}

TracedStep read_trace(Reader& reader, const json::value& from) {
    TracedStep out;
    const std::string path = "trace.";
    out.step_us = reader.needed(from, "step_us", path);
    if (out.step_us <= 0) reader.refuse("trace.step_us", "is zero");
    out.busy_union_us = reader.needed(from, "busy_union_us", path);
    out.busy_sum_us = reader.needed(from, "busy_sum_us", path);
    out.comm_min_rank_us = reader.number(from, "comm_min_rank_us", path);
    out.comm_mean_us = reader.number(from, "comm_mean_us", path);
    if (const json::value* const classes = reader.object(from, "classes"); classes != nullptr) {
        if (classes->as_object().size() > most_lines) reader.refuse("trace.classes", "has more than 10000 members");
        for (const auto& entry : classes->as_object()) {
            const std::string name = printable(std::string_view{entry.key()}, 60);
            out.classes[name] = reader.value(entry.value(), "trace.classes." + name);
        }
    }
    return out;
}

}   // namespace

Result<BudgetInput> read_budget_input(const json::value& document) {
    Reader reader;
    if (!document.is_object()) {
        reader.refuse("the input", "is not an object");
        return *reader.wrong();
    }
    const json::value* const inner = reader.object(document, "input");
    const json::value& input = inner != nullptr ? *inner : document;
    BudgetInput out;
    const json::value* const macro = reader.object(input, "macro");
    if (macro == nullptr) {
        reader.refuse("macro", "is missing");
    } else {
        out.tpot_us = reader.needed(*macro, "tpot_us", "macro.");
        out.tpot_half_width_us = reader.number(*macro, "tpot_ci", "macro.").value_or(0);
        out.tokens_per_step = reader.number(*macro, "tokens_per_step", "macro.").value_or(1);
        if (out.tpot_us <= 0) reader.refuse("macro.tpot_us", "is zero");
        if (out.tokens_per_step <= 0) reader.refuse("macro.tokens_per_step", "is zero");
    }
    out.floor_us = reader.number(input, "floor_us", "");
    std::size_t at = 0;
    for (const json::value& one : reader.list(input, "ops"))
        out.ops.push_back(read_ops(reader, one, "ops[" + std::to_string(at++) + "]."));
    at = 0;
    for (const json::value& one : reader.list(input, "comm"))
        out.collectives.push_back(read_collective(reader, one, "comm[" + std::to_string(at++) + "]."));
    if (const json::value* const trace = reader.object(input, "trace"); trace != nullptr)
        out.trace = read_trace(reader, *trace);
    if (reader.wrong()) return *reader.wrong();
    return out;
}

}   // namespace campaign::micro
