// Every model, parallelism and budget of the corpus against what a slow reference made of it, and against real servers'
// logs.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "base/files.hpp"
#include "base/json.hpp"
#include "instruments/micro/reconcile.hpp"
#include "instruments/micro/step.hpp"

namespace campaign::micro {
namespace {

namespace fs = std::filesystem;

fs::path folder() {
    const char* const corpus = std::getenv("CAMPAIGN_CORPUS");
    return fs::path{corpus != nullptr ? corpus : "."} / "micro";
}

json::value read(const fs::path& file) {
    const Result<std::string> text = read_text(file, std::size_t{16} << 20U);
    return text ? json::parse(*text) : json::value(nullptr);
}

std::vector<std::string> files(const char* kind) {
    std::vector<std::string> out;
    std::error_code none;
    for (const fs::directory_entry& entry : fs::directory_iterator{folder() / kind, none}) {
        if (entry.path().extension() == ".json") out.push_back(std::string{kind} + "/" + entry.path().stem().string());
    }
    std::sort(out.begin(), out.end());
    return out;
}

std::string named(const ::testing::TestParamInfo<std::string>& info) {
    std::string out = info.param;
    for (char& c : out) {
        if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
    }
    return out;
}

Request request_of(const json::value& args) {
    Request request;
    request.parallel.tensor = int_at(args, "tp").value_or(1);
    request.parallel.data = int_at(args, "dp").value_or(1);
    request.parallel.pipeline = int_at(args, "pp").value_or(1);
    request.parallel.expert = bool_at(args, "ep").value_or(false);
    request.batch = int_at(args, "batch").value_or(1);
    request.draft = int_at(args, "draft").value_or(0);
    request.tokens = int_at(args, "tokens").value_or(0);
    if (string_at(args, "phase") == "prefill") request.phase = Phase::prefill;
    return request;
}

std::string key(const json::value& entry) {
    std::string out;
    for (const char* name : {"op", "where", "name", "weights"}) out += string_at(entry, name).value_or("") + "/";
    return out + std::to_string(int_at(entry, "layers").value_or(0));
}

bool same_number(const json::value& expected, const json::value& got) {
    if (!got.is_number()) return false;
    const double a = expected.to_number<double>();
    const double b = got.to_number<double>();
    if (!expected.is_double()) return a == b;
    return std::abs(a - b) <= std::max(1e-9 * std::max(std::abs(a), std::abs(b)), 1e-6);
}

/// Members that are there in `expected`; what explains itself in words is free.
void compare(const json::value& expected, const json::value* got, const std::string& path) {
    ASSERT_NE(got, nullptr) << path;
    if (expected.is_object()) {
        for (const auto& entry : expected.as_object()) {
            const std::string_view name = entry.key();
            if (name == "args" || name == "model" || name == "notes" || name == "reason" || name == "warnings") continue;
            ASSERT_TRUE(got->is_object()) << path;
            compare(entry.value(), got->as_object().if_contains(name), path + "/" + std::string{name});
        }
    } else if (expected.is_array()) {
        ASSERT_TRUE(got->is_array()) << path;
        json::array a = expected.as_array();
        json::array b = got->as_array();
        ASSERT_EQ(a.size(), b.size()) << path;
        const auto before = [](const json::value& x, const json::value& y) { return key(x) < key(y); };
        if (!a.empty() && a.front().is_object()) {
            std::stable_sort(a.begin(), a.end(), before);
            std::stable_sort(b.begin(), b.end(), before);
        }
        for (std::size_t i = 0; i < a.size(); ++i) compare(a[i], &b[i], path + "/" + key(a[i]) + std::to_string(i));
    } else if (expected.is_number()) {
        EXPECT_TRUE(same_number(expected, *got)) << path << ": " << expected << ", not " << *got;
    } else {
        EXPECT_EQ(expected, *got) << path;
    }
}

class MicroShapes : public ::testing::TestWithParam<std::string> {};

TEST_P(MicroShapes, AsTheReference) {
    const json::value expected = read(folder() / (GetParam() + ".json"));
    const std::string name = *string_at(expected, "model");
    const Result<Model> model = load_model(folder() / "configs" / name);
    const Result<Step> step = model ? derive(*model, request_of(*member(expected, "args"))) : Result<Step>{model.error()};
    const json::value got = step ? json::value(to_json(*step, name, {})) : json::value(refusal_json(step.error(), name));
    compare(expected, &got, "");
}

class MicroBudgets : public ::testing::TestWithParam<std::string> {};

TEST_P(MicroBudgets, AsTheReference) {
    const json::value document = read(folder() / (GetParam() + ".json"));
    const Result<BudgetInput> input = read_budget_input(document);
    ASSERT_TRUE(input) << input.error().what;
    const json::value got = to_json(reconcile(*input));
    const json::value& expected = *member(document, "expected");
    compare(expected, &got, "");
    EXPECT_GE(member(got, "warnings")->as_array().size(), member(expected, "warnings")->as_array().size());
}

INSTANTIATE_TEST_SUITE_P(Corpus, MicroShapes, ::testing::ValuesIn(files("expected")), named);
INSTANTIATE_TEST_SUITE_P(Corpus, MicroBudgets, ::testing::ValuesIn(files("reconcile")), named);

TEST(MicroObserved, RealServersLogsMeetTheDerivation) {
    const json::value observed = read(folder() / "observed.json");
    ASSERT_TRUE(observed.is_object());
    for (const json::value& row : member(observed, "rows")->as_array()) {
        const std::string name = *string_at(row, "model");
        const Result<Model> model = load_model(folder() / "configs" / name);
        ASSERT_TRUE(model) << name;
        const Result<Step> step = derive(*model, request_of(*member(row, "args")));
        ASSERT_TRUE(step) << name;
        constexpr double gib = 1024.0 * 1024 * 1024;
        const double tolerance = *number_at(row, "tolerance");
        EXPECT_NEAR(static_cast<double>(step->held_bytes) / gib / *number_at(row, "model_gib"), 1, tolerance) << name;
        if (const std::optional<double> cache = number_at(row, "kv_gib")) {
            EXPECT_NEAR(static_cast<double>(step->cache.bytes_per_token) / (*cache * gib / *number_at(row, "kv_tokens")), 1,
                        tolerance)
                << name;
        }
    }
}

}   // namespace
}   // namespace campaign::micro
