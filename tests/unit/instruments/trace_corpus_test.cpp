// Every trace of the corpus (CAMPAIGN_CORPUS/traces) against what a slow, exact calculator found in it, field by field.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
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
        if (fs::is_regular_file(trace_of(name))) found.push_back(std::move(name));
    }
    std::sort(found.begin(), found.end());
    return found;
}

json::value expected(const std::string& name) {
    constexpr std::size_t limit = std::size_t{64} << 20U;
    const Result<std::string> text = read_text(folder() / "expected" / (name + ".json"), limit);
    return text ? *parse_json(*text, name) : json::value(nullptr);
}

/// Not compared: how much text there was, the version of the rules, and names of kernels with equal sums, which may be in
/// any order.
bool passed_over(std::string_view name) {
    return name == "raw_bytes" || name == "taxonomy_version" || name == "top_kernels";
}

std::multiset<std::string> as_set(const json::value& list) {
    std::multiset<std::string> texts;
    if (list.is_array())
        for (const json::value& each : list.as_array()) texts.insert(json::serialize(each));
    return texts;
}

/// Every member of what is wanted, under the same name: integers equal, fractions within 2e-6.
void compare(const json::value& want, const json::value* got, const std::string& path) {
    ASSERT_NE(got, nullptr) << path;
    if (const json::object* members = want.if_object()) {
        for (const auto& [name, value] : *members) {
            if (passed_over(name)) continue;
            const std::string inside = path + "/" + std::string{name};
            const json::object* const object = got->if_object();
            ASSERT_NE(object, nullptr) << path;
            compare(value, object->if_contains(name), inside);
        }
    } else if (path.ends_with("/notes")) {
        EXPECT_EQ(as_set(*got), as_set(want)) << path;
    } else if (const json::array* list = want.if_array()) {
        ASSERT_TRUE(got->is_array() && got->as_array().size() == list->size()) << path;
        for (std::size_t i = 0; i < list->size(); ++i)
            compare((*list)[i], &got->as_array()[i], path + "[" + std::to_string(i) + "]");
    } else if (want.is_double()) {
        ASSERT_TRUE(got->is_number()) << path;
        EXPECT_NEAR(got->to_number<double>(), want.get_double(), 2e-6 * std::max(1.0, std::abs(want.get_double()))) << path;
    } else {
        EXPECT_EQ(json::serialize(*got), json::serialize(want)) << path;
    }
}

class CorpusTrace : public ::testing::TestWithParam<std::string> {};

TEST_P(CorpusTrace, IsTheSameInEveryField) {
    const std::vector<fs::path> files{trace_of(GetParam())};
    const json::object full = analyze_in_full(files).full;
    compare(expected(GetParam()), &full.at("files").at(0), "");
}

TEST_P(CorpusTrace, TheTopKernelsHaveTheSameSums) {
    const std::vector<fs::path> files{trace_of(GetParam())};
    const json::object full = analyze_in_full(files).full;
    const json::value want = expected(GetParam());
    const json::value* const devices = member(want, "devices");
    if (devices == nullptr) return;
    for (const auto& [device, one] : devices->as_object()) {
        const json::array& top = one.at("top_kernels").as_array();
        const json::array& got = full.at("files").at(0).at("devices").at(device).at("top_kernels").as_array();
        ASSERT_EQ(got.size(), top.size());
        for (std::size_t i = 0; i < top.size(); ++i) EXPECT_EQ(int_at(got[i], "sum_ns"), int_at(top[i], "sum_ns")) << i;
    }
}

TEST(TraceCorpus, RanksWaitForEachOtherAsTheReferenceHasIt) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder()))
        if (entry.path().filename().string().starts_with("param_dlrm_rank")) files.push_back(entry.path());
    ASSERT_EQ(files.size(), 8U);
    const json::object full = analyze_in_full(files).full;
    compare(expected("ranks_param_dlrm"), &full.at("ranks"), "");
}

/// What torch itself added up for each kernel of the same run.
TEST(TraceCorpus, KernelsAddUpToTorchsOwnSums) {
    const Result<Recording> recording = read_trace(folder() / "h200-eager-decode-b8.rank0.pt.trace.json.gz");
    ASSERT_TRUE(recording);
    std::map<std::string, std::pair<Nanoseconds, std::int64_t>> sums;
    for (const GpuEvent& event : recording->gpu) {
        auto& [sum, count] = sums[recording->names.text(event.name)];
        sum += event.duration();
        ++count;
    }
    std::size_t compared = 0;
    const json::value torch = expected("h200-eager.torch-key-averages");
    for (const json::value& each : torch.as_array()) {
        const auto found = sums.find(string_at(each, "name").value_or(""));
        if (found == sums.end()) continue;   // an operator, not a kernel
        EXPECT_NEAR(*number_at(each, "self_device_us"), static_cast<double>(found->second.first) / 1e3, 0.0005)
            << found->first;
        EXPECT_EQ(int_at(each, "count"), found->second.second) << found->first;
        ++compared;
    }
    EXPECT_GE(compared, 15U);
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
