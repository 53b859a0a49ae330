#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/json.hpp"
#include "configs.hpp"
#include "instruments/agent/commands.hpp"

namespace campaign::agent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class MicroCommand : public ::testing::Test {
protected:
    MicroCommand() {
        std::string name = (std::filesystem::temp_directory_path() / "micro-XXXXXX").string();
        folder_ = ::mkdtemp(name.data());
    }
    ~MicroCommand() override { std::filesystem::remove_all(folder_); }

    std::string put(const std::string& name, std::string_view text) {
        const std::filesystem::path file = folder_ / name;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream{file} << text;
        return file.string();
    }

    int call(std::vector<std::string> words) {
        words.insert(words.begin(), "micro");
        out_.str({});
        err_.str({});
        return run(words, out_, err_);
    }

    json::value answer() { return json::parse(out_.str()); }

    std::filesystem::path folder_;
    std::ostringstream out_;
    std::ostringstream err_;
};

TEST_F(MicroCommand, WrongUsageIsToldFromRefusal) {
    const std::string config = put("mine/config.json", micro::testing::dense);
    const std::vector<std::vector<std::string>> cases = {{},
                                                         {"frobnicate"},
                                                         {"shapes"},
                                                         {"shapes", "--tp"},
                                                         {"shapes", "--tp", "eight", config},
                                                         {"shapes", "--tp", "8x", config},
                                                         {"shapes", "--phase", "sideways", config},
                                                         {"shapes", "--phase", "prefill", config},
                                                         {"shapes", "--tokens", "5", config},
                                                         {"shapes", "--gpu", "V1", config},
                                                         {"shapes", "--what", config},
                                                         {"shapes", config, config},
                                                         {"reconcile"},
                                                         {"reconcile", "--what"},
                                                         {"reconcile", "a", "b"}};
    for (const std::vector<std::string>& words : cases) {
        EXPECT_EQ(call(words), usage) << ::testing::PrintToString(words);
        EXPECT_THAT(err_.str(), HasSubstr("exit status")) << "the help follows";
    }
    EXPECT_EQ(call({"--help"}), as_asked);
}

TEST_F(MicroCommand, ShapesOfAFolderOrItsFile) {
    const std::string file = put("mine/config.json", micro::testing::dense);
    for (const std::string& config : {file, (folder_ / "mine").string(), (folder_ / "mine").string() + "/"}) {
        ASSERT_EQ(call({"shapes", "--tp", "2", "--batch", "3", "--json", config}), as_asked) << err_.str();
        EXPECT_EQ(string_at(answer(), "model"), "mine") << config;
        EXPECT_EQ(int_at(answer(), "padded_tokens"), 4);
    }
    ASSERT_EQ(call({"shapes", "--gpu", "H200", file}), as_asked);
    EXPECT_THAT(out_.str(), AllOf(HasSubstr("mine (llama), one rank of TP 1"), HasSubstr("no TPOT is below")));
    std::istringstream lines{out_.str()};
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

TEST_F(MicroCommand, ARefusalIsAnAnswerWithItsReasonAndNoPartialPlan) {
    const std::string config = put("mine/config.json", micro::testing::dense);
    EXPECT_EQ(call({"shapes", "--tp", "5", "--json", config}), failed);
    EXPECT_EQ(string_at(answer(), "refused"), "refused");
    EXPECT_THAT(*string_at(answer(), "reason"), HasSubstr("16 attention heads"));
    EXPECT_EQ(member(answer(), "gemms"), nullptr);
    EXPECT_EQ(call({"shapes", "--tp", "5", config}), failed);
    EXPECT_THAT(err_.str(), HasSubstr("mine cannot be run so: 16 attention heads"));
    for (const std::string& bad : {put("bad/config.json", "{"), put("none/x", ""), (folder_ / "absent").string()}) {
        EXPECT_EQ(call({"shapes", "--json", bad}), failed);
        EXPECT_EQ(string_at(answer(), "refused"), "unsupported");
    }
}

TEST_F(MicroCommand, ModeloptsFileLiesBesideTheConfig) {
    const std::string config = (folder_ / "mine").string();
    put("mine/config.json", micro::testing::dense);
    put("mine/hf_quant_config.json",
        R"({"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": []}})");
    ASSERT_EQ(call({"shapes", "--json", config}), as_asked);
    const json::value quantised = answer();
    EXPECT_EQ(string_at(member(quantised, "gemms")->as_array()[0], "weights"), "fp8_tensor");
    EXPECT_EQ(int_at(*member(quantised, "kv"), "bytes_per_token"), 4 * 2 * 4 * 64);
    ASSERT_EQ(call({"shapes", "--json", "--kv-bytes", "2", config}), as_asked);
    EXPECT_EQ(int_at(*member(answer(), "kv"), "bytes_per_token"), 4 * 2 * 4 * 64 * 2);
    put("mine/hf_quant_config.json", R"({"quantization": 8})");
    EXPECT_EQ(call({"shapes", "--json", config}), failed);
}

TEST_F(MicroCommand, ReconcileShowsTheResidualAndItsVerdict) {
    const std::string file = put("budget.json", R"({"macro": {"tpot_us": 12400, "tpot_ci": 100}, "floor_us": 3404,
        "comm": [{"name": "all_reduce", "count": 122, "burst_us": [54.8, 55.8, 57]}]})");
    ASSERT_EQ(call({"reconcile", "--json", file}), as_asked) << err_.str();
    EXPECT_EQ(string_at(answer(), "verdict"), "under-explained");
    ASSERT_EQ(call({"reconcile", file}), as_asked);
    EXPECT_THAT(out_.str(), AllOf(HasSubstr("residual"), HasSubstr("54.9 % of the client's step"),
                                  HasSubstr("verdict: under-explained; without a trace gaps and overlap are not known")));
    EXPECT_EQ(call({"reconcile", put("bad.json", R"({"macro": {}})")}), failed);
    EXPECT_THAT(err_.str(), HasSubstr("macro.tpot_us is missing"));
    EXPECT_EQ(call({"reconcile", (folder_ / "absent.json").string()}), failed);
}

}   // namespace
}   // namespace campaign::agent
