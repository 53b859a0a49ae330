#include "instruments/micro/reconcile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace campaign::micro {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// The worked example of docs/latency-budget.md.
constexpr std::string_view example = R"({"macro": {"tpot_us": 12400, "tpot_ci": 100}, "floor_us": 3400,
    "ops": [{"name": "gemm", "class": "gemm", "count": 61, "cold_us": [68, 70, 72]},
            {"name": "attention", "class": "attention", "count": 61, "cold_us": 10, "overlaps": "comm"}],
    "comm": [{"name": "all_reduce", "count": 122, "burst_us": [54, 55, 56], "isolated_us": 80, "could_be_us": 20}],
    "trace": {"step_us": 13220, "busy_union_us": 12700, "busy_sum_us": 12900, "comm_min_rank_us": 6500, "comm_mean_us": 6800,
              "classes": {"gemm": 4300, "attention": 1000, "comm": 6800, "norm": 300}}})";

BudgetInput read(const json::value& document) {
    const Result<BudgetInput> input = read_budget_input(document);
    if (!input) throw std::runtime_error{input.error().what};
    return *input;
}

Budget budget_of(std::string_view text) {
    return reconcile(read(json::parse(text)));
}

TEST(Budget, TheWorkedExample) {
    const Budget budget = budget_of(example);
    EXPECT_DOUBLE_EQ(budget.compute_us[1], 61 * 70 + 61 * 10);
    EXPECT_DOUBLE_EQ(budget.communication_us[1], 6710);
    EXPECT_DOUBLE_EQ(budget.gap_us, 520);
    EXPECT_DOUBLE_EQ(budget.hidden_us, 200);
    EXPECT_DOUBLE_EQ(budget.sum_us[1], 4880 + 6710 + 520 - 200);
    EXPECT_DOUBLE_EQ(budget.residual_us[1], 490);
    EXPECT_DOUBLE_EQ(budget.residual_us[0], 12300 - (61 * 82 + 122 * 56 + 520 - 200));
    EXPECT_EQ(budget.verdict, Verdict::closes);
    EXPECT_NEAR(*budget.instrumentation_factor, 1.0661, 1e-4);
    EXPECT_DOUBLE_EQ(*budget.skew_us, 300);
    ASSERT_TRUE(budget.lever);
    EXPECT_EQ(budget.lever->line, "all_reduce");
    EXPECT_DOUBLE_EQ(budget.lever->saves_high_us, 122 * 36);
    EXPECT_DOUBLE_EQ(budget.lever->saves_low_us, 122 * 34 - 200);
}

TEST(Budget, ContradictionsAreSaid) {
    const Budget budget = budget_of(example);
    EXPECT_THAT(budget.warnings, Contains(HasSubstr("isolated all_reduce sums to 9760, burst to 6710")));
    EXPECT_THAT(budget.warnings, Contains(HasSubstr("6.6 % longer")));
    EXPECT_THAT(budget.warnings, Contains(HasSubstr("class attention: micro 610 is 0.61 of the trace's 1000")));
    EXPECT_THAT(budget.warnings, Contains(HasSubstr("class norm: 300 in the trace, nothing of it in micro")));
    EXPECT_THAT(budget.warnings, ::testing::Not(Contains(HasSubstr("class gemm"))));
}

TEST(Budget, DroppingAClassOpensTheBudgetAndNamesIt) {
    json::value document = json::parse(example);
    document.as_object()["comm"] = json::array{};
    const Budget budget = reconcile(read(document));
    EXPECT_EQ(budget.verdict, Verdict::under_explained);
    EXPECT_THAT(budget.warnings, Contains(HasSubstr("class comm: 6800 in the trace, nothing of it in micro")));
    EXPECT_FALSE(budget.lever);   // only a closed budget has one
}

TEST(Budget, Verdicts) {
    struct Case {
        const char* input;
        Verdict verdict;
    };
    const Case cases[] = {
        {R"({"macro": {"tpot_us": 1000}, "ops": [{"name": "a", "count": 1, "cold_us": 950}]})", Verdict::closes},
        {R"({"macro": {"tpot_us": 1000}, "ops": [{"name": "a", "count": 1, "cold_us": 1001}]})", Verdict::over_explained},
        {R"({"macro": {"tpot_us": 1000}, "ops": [{"name": "a", "count": 1, "cold_us": 800}]})", Verdict::under_explained},
        {R"({"macro": {"tpot_us": 1000}, "ops": [{"name": "a", "count": 1, "cold_us": [800, 880, 960]}]})",
         Verdict::undecided},
        {R"({"macro": {"tpot_us": 1000, "tpot_ci": 200}, "ops": [{"name": "a", "count": 1, "cold_us": 1100}]})",
         Verdict::closes},
        {R"({"macro": {"tpot_us": 1000}, "floor_us": 990, "ops": [{"name": "a", "count": 1, "cold_us": 950}]})",
         Verdict::invalid},
        {R"({"macro": {"tpot_us": 1000}, "floor_us": 969, "ops": [{"name": "a", "count": 1, "cold_us": 950}]})",
         Verdict::closes},
        {R"({"macro": {"tpot_us": 500, "tokens_per_step": 2}, "ops": [{"name": "a", "count": 2, "cold_us": 475}]})",
         Verdict::closes}};
    for (const Case& c : cases) EXPECT_EQ(budget_of(c.input).verdict, c.verdict) << c.input;
}

TEST(Budget, WithoutATraceOverlapOnlyWidensTheInterval) {
    const char* const plain = R"({"macro": {"tpot_us": 1000}, "ops": [{"name": "a", "count": 1, "cold_us": 700}],
        "comm": [{"name": "r", "count": 10, "burst_us": 30}]})";
    const char* const beside =
        R"({"macro": {"tpot_us": 1000}, "ops": [{"name": "a", "count": 1, "cold_us": 700, "overlaps": "comm"}],
        "comm": [{"name": "r", "count": 10, "burst_us": 30}]})";
    const Budget alone = budget_of(plain);
    const Budget hidden = budget_of(beside);
    EXPECT_DOUBLE_EQ(hidden.residual_us[1], alone.residual_us[1]);
    EXPECT_DOUBLE_EQ(hidden.residual_us[0], alone.residual_us[0]);
    EXPECT_DOUBLE_EQ(hidden.residual_us[2], alone.residual_us[2] + 300);
}

TEST(Budget, InterleavedCostsStandBeforeBursts) {
    const Budget budget = budget_of(R"({"macro": {"tpot_us": 1000}, "comm": [{"name": "r", "count": 10, "burst_us": 30,
        "interleaved_us": [40, 41, 42]}]})");
    EXPECT_DOUBLE_EQ(budget.communication_us[1], 410);
    EXPECT_EQ(budget.lines.front().method, "interleaved");
}

/// Every number that is a time.
void scale(json::value& value, double by, bool is_time) {
    if (value.is_object()) {
        for (auto& member : value.as_object()) {
            const std::string_view key = member.key();
            scale(member.value(), by, is_time || key.ends_with("_us") || key == "tpot_ci" || key == "classes");
        }
    } else if (value.is_array()) {
        for (json::value& one : value.as_array()) scale(one, by, is_time);
    } else if (is_time && value.is_number()) {
        value = value.to_number<double>() * by;
    }
}

TEST(Budget, ScalingTimesScalesTheResidual) {
    const Budget once = budget_of(example);
    for (const double by : {0.001, 0.5, 7.0, 1e6}) {
        json::value document = json::parse(example);
        scale(document, by, false);
        const Budget scaled = reconcile(read(document));
        for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(scaled.residual_us[i] / by, once.residual_us[i], 1e-6) << by;
        EXPECT_EQ(scaled.verdict, once.verdict);
    }
}

TEST(Budget, SumAndResidualAreTheStepAlways) {
    for (int i = 0; i < 200; ++i) {
        json::value document = json::parse(example);
        json::object& op = document.as_object()["ops"].as_array()[0].as_object();
        op["count"] = i;
        document.as_object()["macro"].as_object()["tpot_us"] = 1000 + 100 * i;
        if (i % 2 == 0) document.as_object().erase("trace");
        const Budget budget = reconcile(read(document));
        EXPECT_NEAR(budget.sum_us[1] + budget.residual_us[1], budget.step_us, 1e-9);
        EXPECT_LE(budget.residual_us[0], budget.residual_us[1]);
        EXPECT_LE(budget.residual_us[1], budget.residual_us[2]);
    }
}

TEST(BudgetInput, WhatIsWrongIsNamed) {
    struct Case {
        const char* input;
        const char* reason;
    };
    const Case cases[] = {
        {"[]", "the input is not an object"},
        {"{}", "macro is missing"},
        {R"({"macro": 3})", "macro is not an object"},
        {R"({"macro": {}})", "macro.tpot_us is missing"},
        {R"({"macro": {"tpot_us": 0}})", "macro.tpot_us is zero"},
        {R"({"macro": {"tpot_us": -1}})", "macro.tpot_us is not a number"},
        {R"({"macro": {"tpot_us": 1e300}})", "macro.tpot_us is not a number"},
        {R"({"macro": {"tpot_us": "12"}})", "macro.tpot_us is not a number"},
        {R"({"macro": {"tpot_us": 1, "tokens_per_step": 0}})", "macro.tokens_per_step is zero"},
        {R"({"macro": {"tpot_us": 1}, "ops": {}})", "ops is not a list"},
        {R"({"macro": {"tpot_us": 1}, "ops": [3]})", "ops[0].name is missing"},
        {R"({"macro": {"tpot_us": 1}, "ops": [{"name": "a", "cold_us": 1}]})", "ops[0].count is missing"},
        {R"({"macro": {"tpot_us": 1}, "ops": [{"name": "a", "count": 1}]})", "ops[0].cold_us is missing"},
        {R"({"macro": {"tpot_us": 1}, "ops": [{"name": "a", "count": 1, "cold_us": [1, 2]}]})", "ops[0].cold_us is neither"},
        {R"({"macro": {"tpot_us": 1}, "ops": [{"name": "a", "count": 1, "cold_us": [3, 2, 1]}]})",
         "ops[0].cold_us is not in order"},
        {R"({"macro": {"tpot_us": 1}, "comm": [{"name": "a", "count": 1}]})", "comm[0].burst_us is missing"},
        {R"({"macro": {"tpot_us": 1}, "trace": {}})", "trace.step_us is missing"},
        {R"({"macro": {"tpot_us": 1}, "trace": {"step_us": 1, "busy_union_us": 1, "busy_sum_us": 1, "classes": {"a": "b"}}})",
         "trace.classes.a is not a number"},
        {R"({"macro": {"tpot_us": 1}, "floor_us": [1]})", "floor_us is not a number"}};
    for (const Case& c : cases) {
        const Result<BudgetInput> input = read_budget_input(json::parse(c.input));
        ASSERT_FALSE(input) << c.input;
        EXPECT_EQ(input.error().kind, ErrorKind::invalid);
        EXPECT_THAT(input.error().what, HasSubstr(c.reason));
    }
}

TEST(BudgetInput, NamesAreMadePrintable) {
    const BudgetInput input =
        read(json::parse(R"({"macro": {"tpot_us": 1}, "ops": [{"name": "a\u001b[2J", "count": 1, "cold_us": 1}]})"));
    EXPECT_EQ(input.ops.front().name.find('\x1b'), std::string::npos);
}

TEST(Budget, JsonNamesTheDenominatorOfEachShare) {
    const json::value out = to_json(budget_of(example));
    const json::value& shares = *member(out, "share_comm");
    EXPECT_NEAR(*number_at(shares, "of_client_step"), 6710.0 / 12400, 1e-12);
    EXPECT_NEAR(*number_at(shares, "of_traced_step"), 6710.0 / 13220, 1e-12);
    EXPECT_NEAR(*number_at(shares, "of_sum"), 6710.0 / 11910, 1e-12);
    EXPECT_EQ(string_at(out, "verdict"), "closes");
    const json::value open = to_json(budget_of(R"({"macro": {"tpot_us": 1000}})"));
    EXPECT_TRUE(open.at("gap_us").is_null());   // not known is not zero
    EXPECT_TRUE(open.at("share_comm").at("of_sum").is_null());
    EXPECT_THAT(open.at("warnings").as_array(), IsEmpty());
}

}   // namespace
}   // namespace campaign::micro
