// Every trace of the corpus (CAMPAIGN_CORPUS/traces) against what a slow, exact calculator found in it: event counts, notes,
// the times of each device and category, and the steps. Not compared, because this analysis does not give them: attributions
// of overlapping time, gaps and their causes, overlap of communication and computation, single streams, skew between ranks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "base/files.hpp"
#include "base/json.hpp"
#include "instruments/trace/summary.hpp"
#include "instruments/trace/trace.hpp"

namespace campaign::trace {
namespace {

namespace fs = std::filesystem;

fs::path folder() {
    const char* corpus = std::getenv("CAMPAIGN_CORPUS");
    return fs::path(corpus == nullptr ? "" : corpus) / "traces";
}

/// The trace that an expected file is about.
fs::path trace_of(const std::string& name) {
    for (const auto& [prefix, place] : {std::pair{"broken_", "broken"}, std::pair{"synth_", "synth"}})
        if (name.starts_with(prefix)) return folder() / place / name.substr(std::string_view{prefix}.size());
    return folder() / name;
}

std::vector<std::string> names() {
    std::vector<std::string> found;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder() / "expected", none)) {
        std::string name = entry.path().stem().string();
        if (fs::exists(trace_of(name))) found.push_back(std::move(name));
    }
    std::sort(found.begin(), found.end());
    return found;
}

json::value expected(const std::string& name) {
    constexpr std::size_t limit = std::size_t{64} << 20U;
    const Result<std::string> text = read_text(folder() / "expected" / (name + ".json"), limit);
    return text ? *parse_json(*text, name) : json::value(nullptr);
}

std::int64_t number(const json::value& object, std::string_view key) {
    return int_at(object, key).value_or(-1);
}

class CorpusTrace : public ::testing::TestWithParam<std::string> {
protected:
    json::value want_ = expected(GetParam());
    Recording got_ = *read_trace(trace_of(GetParam()));
};

TEST_P(CorpusTrace, HoldsTheSameEvents) {
    const json::value& events = want_.at("events");
    const auto of_kind = [this](Kind kind) {
        return std::count_if(got_.gpu.begin(), got_.gpu.end(), [kind](const GpuEvent& event) { return event.kind == kind; });
    };
    EXPECT_EQ(of_kind(Kind::kernel), number(events, "kernel"));
    EXPECT_EQ(of_kind(Kind::memcpy), number(events, "memcpy"));
    EXPECT_EQ(of_kind(Kind::memset), number(events, "memset"));
    EXPECT_EQ(static_cast<std::int64_t>(got_.negative), number(events, "negative_dur"));
    EXPECT_EQ(got_.rank, int_at(want_, "rank"));
    EXPECT_EQ(got_.world_size, int_at(want_, "world_size"));
}

TEST_P(CorpusTrace, HasTheSameNotes) {
    std::multiset<std::string> notes;
    for (const json::value& note : want_.at("notes").as_array()) notes.emplace(note.as_string());
    EXPECT_EQ(std::multiset<std::string>(got_.notes.begin(), got_.notes.end()), notes);
}

TEST_P(CorpusTrace, AddsUpToTheSameNanosecond) {
    const std::vector<DeviceSummary> devices = summarize(got_, assign_steps(got_), Taxonomy{});
    const json::value* const wanted = member(want_, "devices");
    ASSERT_EQ(devices.size(), wanted == nullptr ? 0 : wanted->as_object().size());
    for (const DeviceSummary& device : devices) {
        const json::value* const one = member(*wanted, device.device);
        ASSERT_NE(one, nullptr) << device.device;
        EXPECT_EQ(device.span, number(*one, "span_ns"));
        EXPECT_EQ(device.busy, number(*one, "busy_ns"));
        ASSERT_EQ(device.categories.size(), one->at("categories").as_object().size());
        for (const Share& share : device.categories) {
            const json::value* const category = member(one->at("categories"), share.name);
            ASSERT_NE(category, nullptr) << share.name;
            EXPECT_EQ(share.sum, number(*category, "sum_ns")) << share.name;
            EXPECT_EQ(share.covered, number(*category, "union_ns")) << share.name;
            EXPECT_EQ(static_cast<std::int64_t>(share.count), number(*category, "n")) << share.name;
        }
        EXPECT_EQ(static_cast<std::int64_t>(device.kernels_by_time.size()), number(*one, "n_kernel_names"));
        const json::array& top = one->at("top_kernels").as_array();
        ASSERT_LE(top.size(), device.kernels_by_time.size());
        for (std::size_t i = 0; i < top.size(); ++i) EXPECT_EQ(device.kernels_by_time[i].sum, number(top[i], "sum_ns")) << i;
    }
}

TEST_P(CorpusTrace, PutsTheSameWorkIntoTheSameSteps) {
    const Steps steps = assign_steps(got_);
    if (bool_at(want_, "empty").value_or(false)) {   // without device work the reference does not look for steps
        EXPECT_TRUE(steps.of_event.empty());
        return;
    }
    const json::value* const wanted = member(want_, "steps");
    ASSERT_EQ(steps.steps.size(), wanted == nullptr ? 0 : wanted->as_array().size());
    std::vector<std::int64_t> counts(steps.steps.size());
    std::vector<std::int64_t> sums(steps.steps.size());
    for (std::size_t i = 0; i < got_.gpu.size(); ++i) {
        if (steps.of_event[i] == Steps::none) continue;
        ++counts[steps.of_event[i]];
        sums[steps.of_event[i]] += got_.gpu[i].duration();
    }
    for (std::size_t i = 0; i < counts.size(); ++i) {
        const json::value& step = wanted->as_array()[i];
        EXPECT_EQ(got_.names.text(steps.steps[i].name), step.at("name").as_string());
        EXPECT_EQ(steps.steps[i].kind == StepKind::decode, step.at("phase").as_string() == "decode");
        EXPECT_EQ(counts[i], number(step, "n"));
        EXPECT_EQ(sums[i], counts[i] == 0 ? 0 : number(step, "sum_ns"));
    }
    if (const json::value* const how = member(want_, "step_assignment");
        how != nullptr && steps.family != StepFamily::none) {
        EXPECT_EQ(static_cast<std::int64_t>(steps.by_launch), number(*how, "by_launch"));
        EXPECT_EQ(static_cast<std::int64_t>(steps.by_gpu_window), number(*how, "by_gpu_window"));
        EXPECT_EQ(static_cast<std::int64_t>(steps.unassigned), number(*how, "unassigned"));
    }
}

TEST(TraceCorpus, IsThere) {
    EXPECT_GE(names().size(), 50U);
}

TEST(TraceCorpus, TaxonomyGivesEveryKnownCategory) {
    const Result<std::string> text = read_text(folder() / "taxonomy_cases.json", std::size_t{1} << 20U);
    ASSERT_TRUE(text);
    const Taxonomy taxonomy;
    const json::value cases = *parse_json(*text, "cases");
    for (const json::value& each : cases.as_array()) {
        const json::string& kernel = each.at(0).as_string();
        EXPECT_EQ(taxonomy.category({kernel.data(), kernel.size()}), std::string_view{each.at(1).as_string()}) << kernel;
    }
}

TEST(TraceCorpus, TaxonomyHasTheRulesOfTheReference) {
    const Result<std::string> text = read_text(folder() / "taxonomy.json", std::size_t{1} << 20U);
    ASSERT_TRUE(text);
    const json::value reference = *parse_json(*text, "taxonomy");
    const json::array& rules = reference.at("rules").as_array();
    ASSERT_EQ(rules.size(), taxonomy_rules().size());
    for (std::size_t i = 0; i < rules.size(); ++i) {
        EXPECT_EQ(std::string_view{rules[i].at(0).as_string()}, taxonomy_rules()[i].category);
        EXPECT_EQ(std::string_view{rules[i].at(1).as_string()}, taxonomy_rules()[i].pattern);
    }
}

std::string test_name(const ::testing::TestParamInfo<std::string>& trace) {
    std::string name = trace.param;
    for (char& c : name)
        if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
    return name;
}

INSTANTIATE_TEST_SUITE_P(Traces, CorpusTrace, ::testing::ValuesIn(names()), test_name);

}   // namespace
}   // namespace campaign::trace
