// The decision on units that we composed ourselves: files in, answer out.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "adapters/adapt/case_files.hpp"

namespace campaign::adapt {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Adapt : public ::testing::Test {
protected:
    Adapt() : folder_{fs::temp_directory_path() / ("adapt-" + std::to_string(::getpid()))} {
        fs::create_directories(folder_);
        put("show.txt", "Id=llm.service\nLoadState=loaded\nActiveState=active\nType=simple\nMainPID=10\nUser=llm\n");
        put("ask.json", R"({"want": "torch", "server_version": "0.24.0"})");
        start({"/opt/vllm/bin/vllm", "serve", "/m", "--tensor-parallel-size", "2"});
        server({"/opt/vllm/bin/python3", "/opt/vllm/bin/vllm", "serve", "/m", "--tensor-parallel-size", "2"});
    }
    ~Adapt() override { fs::remove_all(folder_); }

    void put(const std::string& name, const std::string& text) { std::ofstream{folder_ / name} << text; }
    void start(const std::vector<std::string>& argv) {
        put("bus.json", json::serialize(json::object{
                            {"ExecStartEx", json::array{json::array{argv[0], json::value_from(argv), json::array{}}}}}));
    }
    void server(const std::vector<std::string>& argv, const json::object& environment = {}) {
        const json::array processes({json::object{
            {"pid", 10}, {"ppid", 1}, {"argv", json::value_from(argv)}, {"env", environment}, {"main", true}}});
        put("proc.json", json::serialize(processes));
    }
    json::object answer() {
        const Result<Case> found = read_case(folder_);
        EXPECT_TRUE(found) << describe(found.error());
        return found ? adapt(found->unit, found->facts, found->ask) : json::object{};
    }
    static std::string text(const json::object& found, const char* key) {
        return string_at(found.at("adapt"), key).value_or("");
    }

    fs::path folder_;
};

TEST_F(Adapt, ADirectCommandGetsItsArgumentsBehindItsOwn) {
    const json::object found = answer();
    EXPECT_EQ(text(found, "kind"), "drop-in");
    EXPECT_EQ(text(found, "path"), "/run/systemd/system/llm.service.d/zz-campaignd.conf");
    EXPECT_EQ(found.at("how").as_string(), "direct");
    EXPECT_EQ(found.at("server_pid").to_number<int>(), 10);
    EXPECT_THAT(json::serialize(found.at("effective_argv_after")), HasSubstr(R"("2","--profiler-config.profiler=torch")"));
    EXPECT_EQ(found.at("ranks_hint").at("traces_expected").to_number<int>(), 2);
}

TEST_F(Adapt, AProfilerThatIsOnNeedsNoRestartAndOneThatNamesNoneDoes) {
    const std::vector<std::string> plain{"/opt/vllm/bin/vllm", "serve", "/m", "--profiler-config"};
    for (const auto& [config, kind] : {std::pair{R"({"profiler": "torch", "torch_profiler_dir": "/t"})", "none"},
                                       std::pair{R"({"profiler": null})", "drop-in"}, std::pair{"{}", "drop-in"}}) {
        std::vector<std::string> argv = plain;
        argv.emplace_back(config);
        start(argv);
        server(argv);
        EXPECT_EQ(text(answer(), "kind"), kind) << config;
    }
}

TEST_F(Adapt, AScriptsOwnVariableTakesTheArgumentsBehindItsFormerWords) {
    start({"/opt/llm/run"});
    server({"/opt/vllm/bin/python3", "/opt/vllm/bin/vllm", "serve", "/m", "--x"}, {{"MORE", "--x"}});
    EXPECT_EQ(text(answer(), "code"), "wrapper-fixed-args");
    put("ask.json", R"({"want": "torch", "server_version": "0.24.0", "plan": {"extra_args_env": "MORE"}})");
    const json::object found = answer();
    EXPECT_EQ(text(found, "kind"), "env");
    EXPECT_THAT(std::string{found.at("effective_env_after").at("MORE").as_string()},
                ::testing::StartsWith("--x --profiler-config.profiler=torch "));
    EXPECT_THAT(json::serialize(found.at("adapt").at("lines")), HasSubstr("Environment="));
    put("ask.json",
        R"({"want": "torch", "server_version": "0.24.0", "plan": {"extra_args_env": "MORE", "profiler_dir": "/a b"}})");
    EXPECT_EQ(text(answer(), "code"), "wrapper-extra-args") << "the script would split the folder in two";
}

TEST_F(Adapt, AFolderThatTheServiceCannotUseIsReplacedAndThatIsSaid) {
    put("show.txt", "Id=llm.service\nLoadState=loaded\nActiveState=active\nType=simple\nMainPID=10\nPrivateTmp=yes\n");
    put("ask.json", R"({"want": "torch", "server_version": "0.24.0", "plan": {"profiler_dir": "/tmp/traces"}})");
    const json::object found = answer();
    EXPECT_EQ(found.at("profiler_dir").as_string(), "/var/lib/campaignd-profiles/llm");
    EXPECT_THAT(json::serialize(found.at("cautions")), HasSubstr("a /tmp of its own"));
}

TEST_F(Adapt, ServersWithoutATorchProfilerAreRefusedByName) {
    start({"/usr/bin/llama-server", "-m", "/m.gguf"});
    server({"/usr/bin/llama-server", "-m", "/m.gguf"});
    const json::object found = answer();
    EXPECT_EQ(text(found, "code"), "no-torch-profiler");
    EXPECT_THAT(text(found, "reason"), ::testing::AllOf(HasSubstr("llm"), HasSubstr("llama-server"), HasSubstr("nsys")));
    put("ask.json", R"({"want": "nsys", "delay_s": 5, "duration_s": 2})");
    EXPECT_THAT(json::serialize(answer().at("adapt").at("lines")), HasSubstr("--delay=5 --duration=2"));
}

TEST_F(Adapt, FilesThatAreNotWhatTheyShouldBeAreNamed) {
    for (const auto& [name, content] :
         {std::pair{"show.txt", "ActiveState=active\n"}, std::pair{"bus.json", R"({"ExecStartEx": [[1]]})"},
          std::pair{"proc.json", "{}"}, std::pair{"ask.json", R"({"want": "perf"})"}}) {
        put(name, content);
        const Result<Case> found = read_case(folder_);
        ASSERT_FALSE(found) << name;
        EXPECT_THAT(found.error().what, HasSubstr(name));
        put("show.txt", "Id=llm.service\nLoadState=loaded\n");
        put("ask.json", R"({"want": "torch"})");
        start({"/opt/vllm/bin/vllm", "serve", "/m"});
        server({"/opt/vllm/bin/vllm", "serve", "/m"});
    }
}

}   // namespace
}   // namespace campaign::adapt
