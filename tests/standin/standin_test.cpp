// The stand-in's own contract, with a client of a few lines: a test tool that lies would make every other test lie.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/standin/asio.hpp"
#include "tests/standin/load.hpp"
#include "tests/standin/server.hpp"

namespace standin {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;
namespace json = boost::json;

std::string read_file(const std::string& path) {
    std::ifstream file{path, std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, {}};
}

std::string unzipped(const std::string& path) {
    std::string text;
    gzFile file = gzopen(path.c_str(), "rb");
    char block[65536];
    for (int got = 0; (got = gzread(file, block, sizeof block)) > 0;) text.append(block, static_cast<std::size_t>(got));
    int state = Z_OK;
    gzerror(file, &state);
    gzclose(file);
    return state == Z_OK ? text : "torn";
}

struct Answer {
    int status = 0;
    std::string body;
    std::string allow;
};

/// A started stand-in, with folder, log and record of its own; ended with the test.
class Running {
public:
    Running(std::vector<std::string> more, const std::string& faults = "{}", std::vector<std::string> variables = {}) {
        char pattern[] = "/tmp/standin-test-XXXXXX";
        folder_ = ::mkdtemp(pattern);
        std::ofstream{folder_ + "/faults.json"} << faults;
        std::vector<std::string> words{STANDIN_SERVER, "serve", "some/model", "--host", "127.0.0.1", "--port", "0"};
        words.insert(words.end(), more.begin(), more.end());
        std::vector<std::string> environment{"STANDIN_LOAD_S=0.05",
                                             "STANDIN_STOP_S=0.05",
                                             "STANDIN_TOKEN_MS=1",
                                             "NO_COLOR=1",
                                             "STANDIN_TRUTH=" + folder_ + "/truth",
                                             "STANDIN_FAULTS=" + folder_ + "/faults.json"};
        environment.insert(environment.end(), variables.begin(), variables.end());
        pid_ = ::fork();
        if (pid_ == 0) exec(words, environment);
    }
    ~Running() {
        if (pid_ > 0) {
            ::kill(pid_, SIGKILL);
            ::waitpid(pid_, nullptr, 0);
        }
        std::filesystem::remove_all(folder_);
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

    /// Waits until the record holds that event, and returns the last such line.
    json::object until(std::string_view event, std::size_t times = 1) const {
        for (;;) {
            const auto all = events(event);
            if (all.size() >= times) return all.back();
            std::this_thread::sleep_for(5ms);
        }
    }
    std::vector<json::object> events(std::string_view event) const {
        std::vector<json::object> found;
        std::istringstream lines{read_file(folder_ + "/truth")};
        for (std::string line; std::getline(lines, line);) {
            boost::system::error_code torn;
            const auto value = json::parse(line, torn);
            if (!torn && value.as_object().at("event").as_string() == event) found.push_back(value.as_object());
        }
        return found;
    }
    /// The exit status, or minus the signal.
    int ended() {
        int status = 0;
        ::waitpid(pid_, &status, 0);
        pid_ = -1;
        return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
    }
    void signal(int number) const { ::kill(pid_, number); }
    std::string log() const { return read_file(folder_ + "/log"); }
    std::string folder() const { return folder_; }

    tcp::endpoint endpoint() const {
        return {asio::ip::make_address("127.0.0.1"), static_cast<unsigned short>(until("start").at("port").as_int64())};
    }
    boost::system::error_code connect() const {
        asio::io_context io;
        tcp::socket socket{io};
        boost::system::error_code failed;
        socket.connect(endpoint(), failed);
        return failed;
    }
    Answer ask(http::verb verb, const std::string& target, const std::string& body = "") const {
        asio::io_context io;
        beast::tcp_stream stream{io};
        stream.connect(endpoint());
        http::request<http::string_body> request{verb, target, 11};
        if (!body.empty()) request.set(http::field::content_type, "application/json");
        request.body() = body;
        request.prepare_payload();
        http::write(stream, request);
        beast::flat_buffer buffer;
        http::response<http::string_body> response;
        boost::system::error_code failed;
        http::read(stream, buffer, response, failed);
        if (failed) return {0, "", failed.message()};
        return {static_cast<int>(response.result_int()), response.body(), std::string{response[http::field::allow]}};
    }
    Answer get(const std::string& target) const { return ask(http::verb::get, target); }
    Answer post(const std::string& target, const std::string& body = "") const {
        return ask(http::verb::post, target, body);
    }

private:
    [[noreturn]] void exec(std::vector<std::string>& words, std::vector<std::string>& environment) const {
        const int log = ::open((folder_ + "/log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
        ::dup2(log, 1);
        ::dup2(log, 2);
        std::vector<char*> argv(words.size() + 1, nullptr);
        std::vector<char*> envp(environment.size() + 1, nullptr);
        const auto data = [](std::string& text) { return text.data(); };
        std::transform(words.begin(), words.end(), argv.begin(), data);
        std::transform(environment.begin(), environment.end(), envp.begin(), data);
        ::execve(argv[0], argv.data(), envp.data());
        ::_exit(127);
    }

    std::string folder_;
    pid_t pid_ = -1;
};

std::vector<std::string> with_profiler(const std::string& folder) {
    return {"--tensor-parallel-size", "2", "--profiler-config.profiler=torch",
            "--profiler-config.torch_profiler_dir=" + folder};
}

/// A folder for traces that goes with the test.
struct TraceFolder {
    TraceFolder() {
        char pattern[] = "/tmp/standin-traces-XXXXXX";
        path = ::mkdtemp(pattern);
    }
    ~TraceFolder() { std::filesystem::remove_all(path); }
    TraceFolder(const TraceFolder&) = delete;
    TraceFolder& operator=(const TraceFolder&) = delete;
    std::vector<std::string> files(const std::string& part) const {
        std::vector<std::string> found;
        for (const auto& entry : std::filesystem::directory_iterator{path})
            if (entry.path().filename().string().find(part) != std::string::npos) found.push_back(entry.path().string());
        std::sort(found.begin(), found.end());
        return found;
    }
    std::string path;
};

const std::string ten_tokens = R"({"prompt":"one two three","max_tokens":10,"ignore_eos":true})";
const std::string ten_streamed =
    R"({"prompt":"one two three","max_tokens":10,"ignore_eos":true,"stream":true,"stream_options":{"include_usage":true}})";

Parsed parse(std::vector<std::string> words, Environment environment = {}, const std::string& faults = "") {
    words.insert(words.begin(), {"serve", "some/model"});
    return parse_options(words, environment, "", faults);
}

// --- the command line ---

TEST(StandinCommandLine, TakesTheProfilerConfigAsJsonAndInDottedForm) {
    const auto json_form =
        parse({"--profiler-config", R"({"profiler":"torch","torch_profiler_dir":"/t","max_iterations":20})"});
    ASSERT_TRUE(json_form.options);
    EXPECT_EQ(json_form.options->profiler.profiler, "torch");
    EXPECT_EQ(json_form.options->profiler.max_iterations, 20);
    const auto dotted =
        parse({"--profiler-config.profiler", "torch", "--profiler-config.torch_profiler_dir=/t",
               "--profiler-config.ignore_frontend=true", "--profiler-config.torch_profiler_with_stack=false"});
    ASSERT_TRUE(dotted.options);
    EXPECT_EQ(dotted.options->profiler.torch_dir, "/t");
    EXPECT_TRUE(dotted.options->profiler.ignore_frontend);
    EXPECT_FALSE(dotted.options->profiler.with_stack);
}

TEST(StandinCommandLine, RefusesWhatItDoesNotKnowAsArgparseDoes) {
    const auto parsed = parse({"--temperature", "0.8"});
    ASSERT_TRUE(parsed.refused);
    EXPECT_EQ(parsed.refused->status, 2);
    EXPECT_THAT(parsed.refused->text, HasSubstr("error: unrecognized arguments: --temperature 0.8"));
}

TEST(StandinCommandLine, RefusesATorchProfilerWithoutAFolderAndAFolderWithoutIt) {
    EXPECT_EQ(parse({"--profiler-config.profiler=torch"}).refused->status, 1);
    EXPECT_EQ(parse({"--profiler-config", R"({"profiler":"cuda","torch_profiler_dir":"/t"})"}).refused->status, 1);
}

TEST(StandinCommandLine, AnOldVersionKnowsTheVariableAndNotTheFlag) {
    EXPECT_EQ(parse({"--profiler-config.profiler=cuda"}, {{"STANDIN_VERSION", "0.10.0"}}).refused->status, 2);
    const Environment variable{{"VLLM_TORCH_PROFILER_DIR", "/t"}};
    Environment old = variable;
    old.emplace("STANDIN_VERSION", "0.10.0");
    EXPECT_EQ(parse({}, old).options->profiler.profiler, "torch");
    EXPECT_EQ(parse({}, variable).options->profiler.profiler, "") << "a present vLLM ignores it";
}

TEST(StandinCommandLine, AFaultCanBeMeantForTheProfilerStartOnly) {
    const std::string faults = R"({"when":"profiler","load":"oom"})";
    EXPECT_EQ(parse({}, {}, faults).options->faults.load, "");
    EXPECT_EQ(parse({"--profiler-config.profiler=cuda"}, {}, faults).options->faults.load, "oom");
    EXPECT_TRUE(parse({}, {}, R"({"laod":"oom"})").refused) << "a misspelt fault would make a test pass for nothing";
}

// --- pace ---

TEST(StandinPace, ThroughputReachesAPlateauAtTheMostSequencesAStepTakes) {
    Pace pace;
    EXPECT_EQ(step_length(pace, 1, 0), 10ms);
    EXPECT_EQ(step_length(pace, 5, 0), 11ms);
    EXPECT_EQ(step_length(pace, 0, 1000), 30ms);
}

TEST(StandinLoad, GoesFromTheBannerThroughTheWeightsToTheEngineInOrder) {
    Options options;
    options.tensor_parallel = 2;
    const auto script = load_script(options);
    for (std::size_t i = 1; i < script.size(); ++i) EXPECT_GE(script[i].share, script[i - 1].share);
    EXPECT_LT(script.back().share, 1.0);
}

// --- while it loads ---

TEST(Standin, RefusesConnectionsWhileItLoadsThoughThePortIsTaken) {
    const Running server{{}, "{}", {"STANDIN_LOAD_S=600"}};
    EXPECT_EQ(server.connect(), asio::error::connection_refused);
    asio::io_context io;
    tcp::acceptor other{io};
    other.open(tcp::v4());
    boost::system::error_code failed;
    other.bind(server.endpoint(), failed);
    EXPECT_EQ(failed, asio::error::address_in_use);
}

TEST(Standin, PrintsItsLoadAsVllmDoesAndIsThenHealthy) {
    const Running server{{"--tensor-parallel-size", "2"}};
    server.until("ready");
    EXPECT_EQ(server.get("/health").status, 200);
    const std::string log = server.log();
    EXPECT_THAT(log, HasSubstr("\rLoading safetensors checkpoint shards:  50% Completed | 28/56 ["));
    EXPECT_THAT(
        log, HasSubstr("GPU KV cache size: 1,091,104 tokens, Maximum concurrency for 8,192 tokens per request: 133.19x\n"));
    EXPECT_THAT(log, HasSubstr("INFO:     Application startup complete.\n"));
    EXPECT_THAT(log, Not(HasSubstr("/start_profile")));
    EXPECT_LT(log.find("Starting to load model"), log.find("Loading weights took"));
    EXPECT_LT(log.find("torch.compile took"), log.find("GPU KV cache size"));
    EXPECT_LT(log.find("Graph capturing finished"), log.find("Available routes are:"));
}

TEST(Standin, ALoadThatRunsOutOfMemoryEndsWithOneAndVllmsWords) {
    Running server{{}, R"({"load":"oom"})"};
    EXPECT_EQ(server.ended(), 1);
    EXPECT_THAT(server.log(), HasSubstr("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate"));
    EXPECT_THAT(server.log(), HasSubstr("Engine core initialization failed. See root cause above."));
    EXPECT_TRUE(server.events("ready").empty());
}

TEST(Standin, ALoadThatIsKilledLeavesNoWord) {
    Running server{{}, R"({"load":"killed","load_at":0.3})"};
    EXPECT_EQ(server.ended(), -SIGKILL);
    EXPECT_THAT(server.log(), Not(HasSubstr("Error")));
    EXPECT_TRUE(server.events("exit").empty());
}

TEST(Standin, CanSayThatItIsReadyAndNeverBe) {
    const Running server{{}, R"({"load":"never_ready"})"};
    while (server.log().find("Application startup complete.") == std::string::npos) std::this_thread::sleep_for(5ms);
    EXPECT_EQ(server.connect(), asio::error::connection_refused);
}

TEST(Standin, ALoadThatStallsFallsSilentAndLivesOn) {
    Running server{{}, R"({"load":"stall","load_at":0.5})"};
    while (server.log().find("50% Completed") == std::string::npos) std::this_thread::sleep_for(5ms);
    server.signal(SIGTERM);
    EXPECT_EQ(server.ended(), 0);
    EXPECT_THAT(server.log(), Not(HasSubstr("100% Completed")));
    EXPECT_TRUE(server.events("ready").empty());
}

TEST(Standin, CanBeHealthyAndNeverAnswerARequest) {
    const Running server{{}, R"({"hang_completions":true})"};
    server.until("ready");
    asio::io_context io;
    beast::tcp_stream stream{io};
    stream.connect(server.endpoint());
    http::request<http::string_body> request{http::verb::post, "/v1/completions", 11};
    request.set(http::field::content_type, "application/json");
    request.body() = ten_tokens;
    request.prepare_payload();
    http::write(stream, request);
    EXPECT_EQ(server.get("/health").status, 200);
    EXPECT_EQ(server.get("/health").status, 200);
    EXPECT_EQ(stream.socket().available(), 0u);
}

TEST(Standin, CanListAnotherModelThanTheOneAskedFor) {
    const Running server{{"--served-model-name", "kimi"}, R"({"model_name":"other"})"};
    server.until("ready");
    EXPECT_THAT(server.get("/v1/models").body, Not(HasSubstr("kimi")));
    EXPECT_EQ(server.post("/v1/completions", R"({"model":"kimi","prompt":"a"})").status, 404);
}

TEST(Standin, EndsWithZeroOnSigterm) {
    Running server{{}};
    server.until("ready");
    server.signal(SIGTERM);
    EXPECT_EQ(server.ended(), 0);
    EXPECT_THAT(server.log(), HasSubstr("[shutdown] API server: shutdown triggered"));
    EXPECT_EQ(server.events("exit").at(0).at("status").as_int64(), 0);
}

TEST(Standin, EndsWithZeroOnSigtermWhileItLoads) {
    Running server{{}, "{}", {"STANDIN_LOAD_S=600"}};
    server.until("start");
    server.signal(SIGTERM);
    EXPECT_EQ(server.ended(), 0);
}

TEST(Standin, EndsWithOneWhenItsPortIsTaken) {
    const Running first{{}};
    first.until("ready");
    Running second{{"--port", std::to_string(first.endpoint().port())}};
    EXPECT_EQ(second.ended(), 1);
    EXPECT_THAT(second.log(), HasSubstr("OSError: [Errno 98] Address already in use"));
}

// --- requests ---

TEST(Standin, StreamsEachTokenThenUsageThenDone) {
    const Running server{{}};
    server.until("ready");
    const auto answer = server.post("/v1/completions", ten_streamed);
    ASSERT_EQ(answer.status, 200);
    std::size_t frames = 0;
    for (std::size_t at = 0; (at = answer.body.find("data: ", at)) != std::string::npos; ++at) ++frames;
    EXPECT_EQ(frames, 12u) << "10 tokens, usage, [DONE]";
    EXPECT_THAT(answer.body, HasSubstr(R"("finish_reason":"length")"));
    EXPECT_THAT(answer.body,
                HasSubstr(R"("choices":[],"usage":{"prompt_tokens":3,"total_tokens":13,"completion_tokens":10})"));
    EXPECT_TRUE(answer.body.ends_with("data: [DONE]\n\n"));
}

TEST(Standin, CountsReasoningTokensAgainstTheLimitInChat) {
    const Running server{{"--reasoning-parser", "x"}, "{}", {"STANDIN_REASONING_TOKENS=6"}};
    server.until("ready");
    const auto answer =
        server.post("/v1/chat/completions", R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":6,"stream":true})");
    EXPECT_THAT(answer.body, HasSubstr(R"("delta":{"role":"assistant","content":""})"));
    EXPECT_THAT(answer.body, HasSubstr(R"("delta":{"reasoning":)"));
    EXPECT_THAT(answer.body, Not(HasSubstr(R"("delta":{"content":)")));
    EXPECT_THAT(answer.body, HasSubstr(R"("finish_reason":"length")"));
}

TEST(Standin, EndsASequenceByItselfUnlessToldOtherwise) {
    const Running server{{}, "{}", {"STANDIN_NATURAL_TOKENS=4"}};
    server.until("ready");
    const auto stopped = server.post("/v1/completions", R"({"prompt":"a","max_tokens":10})");
    EXPECT_THAT(stopped.body, HasSubstr(R"("finish_reason":"stop")"));
    EXPECT_THAT(stopped.body, HasSubstr(R"("completion_tokens":4)"));
    const auto longer = server.post("/v1/completions", R"({"prompt":"a","max_tokens":10,"min_tokens":7})");
    EXPECT_THAT(longer.body, HasSubstr(R"("completion_tokens":7)"));
}

TEST(Standin, TellsErrorsInVllmsTwoShapes) {
    const Running server{{}};
    server.until("ready");
    EXPECT_EQ(server.post("/v1/completions", R"({"model":"other","prompt":"a"})").status, 404);
    EXPECT_THAT(server.post("/v1/completions", R"({"model":"other","prompt":"a"})").body, HasSubstr(R"({"error":{)"));
    EXPECT_EQ(server.get("/nothing").body, R"({"detail":"Not Found"})");
    EXPECT_EQ(server.post("/v1/completions", R"({"prompt":"a","max_tokens":)").status, 400);
}

TEST(Standin, ListsItsModelAndCountsInItsMetrics) {
    const Running server{{"--served-model-name", "kimi", "--max-model-len", "4096"}};
    server.until("ready");
    EXPECT_THAT(server.get("/v1/models").body, HasSubstr(R"("id":"kimi")"));
    EXPECT_THAT(server.get("/v1/models").body, HasSubstr(R"("max_model_len":4096)"));
    EXPECT_EQ(server.post("/v1/completions", ten_tokens).status, 200);
    EXPECT_THAT(server.get("/metrics").body,
                HasSubstr("vllm:generation_tokens_total{engine=\"0\",model_name=\"kimi\"} 10.0"));
    EXPECT_THAT(server.log(), HasSubstr("\"GET /v1/models HTTP/1.1\" 200 OK\n"));
}

TEST(Standin, FailsEachNthRequestAsAsked) {
    const Running server{{}, R"({"fail_every":2,"fail_with":"500"})"};
    server.until("ready");
    EXPECT_EQ(server.post("/v1/completions", ten_tokens).status, 200);
    EXPECT_EQ(server.post("/v1/completions", ten_tokens).status, 500);
    EXPECT_EQ(server.post("/v1/completions", ten_tokens).status, 200);
}

TEST(Standin, CanBreakAStreamInTheMiddle) {
    const Running reset{{}, R"({"fail_every":1,"fail_with":"reset"})"};
    reset.until("ready");
    EXPECT_EQ(reset.post("/v1/completions", ten_streamed).status, 0) << "the connection was reset";
    const Running error{{}, R"({"fail_every":1,"fail_with":"error_frame"})"};
    error.until("ready");
    const auto answer = error.post("/v1/completions", ten_streamed);
    EXPECT_THAT(answer.body, HasSubstr("data: {\"error\":"));
    EXPECT_TRUE(answer.body.ends_with("data: [DONE]\n\n"));
    EXPECT_THAT(answer.body, Not(HasSubstr("usage")));
}

TEST(Standin, KeepsItsApiKeyToTheRoutesThatVllmGuards) {
    const Running server{{"--api-key", "secret"}};
    server.until("ready");
    EXPECT_EQ(server.get("/v1/models").status, 401);
    EXPECT_EQ(server.get("/health").status, 200);
    EXPECT_THAT(server.log(), Not(HasSubstr("secret")));
}

// --- the profiler ---

TEST(StandinProfiler, HasNoRouteUnlessTheServerWasStartedWithIt) {
    const Running server{{}};
    server.until("ready");
    EXPECT_EQ(server.post("/start_profile").status, 404);
    EXPECT_EQ(server.post("/start_profile").body, R"({"detail":"Not Found"})");
    EXPECT_TRUE(server.events("start_profile").empty());
}

TEST(StandinProfiler, AGetTellsThatItIsThereAndStartsNothing) {
    const TraceFolder traces;
    const Running server{with_profiler(traces.path)};
    server.until("ready");
    const auto answer = server.get("/start_profile");
    EXPECT_EQ(answer.status, 405);
    EXPECT_EQ(answer.allow, "POST");
    EXPECT_TRUE(server.events("start_profile").empty());
    EXPECT_THAT(server.log(), HasSubstr("Route: /start_profile, Methods: POST"));
}

TEST(StandinProfiler, WritesOneWholeTraceARankWithTheStepsThatHappened) {
    const TraceFolder traces;
    const Running server{with_profiler(traces.path)};
    server.until("ready");
    server.post("/v1/completions", ten_tokens);
    EXPECT_EQ(server.post("/start_profile?campaign=k25").status, 200);
    server.post("/v1/completions", ten_tokens);
    EXPECT_EQ(server.post("/stop_profile?campaign=k25").status, 200);
    EXPECT_THAT(server.log(), HasSubstr("\"POST /start_profile?campaign=k25 HTTP/1.1\" 200 OK"));

    const auto files = traces.files("_rank");
    ASSERT_EQ(files.size(), 2u);
    for (std::size_t rank = 0; rank < 2; ++rank) {
        EXPECT_THAT(files[rank], HasSubstr("rank" + std::to_string(rank) + "."));
        const json::value trace = json::parse(unzipped(files[rank]));
        EXPECT_EQ(trace.at("distributedInfo").at("rank").as_int64(), static_cast<std::int64_t>(rank));
        int decode = 0;
        int reduces = 0;
        int kernels = 0;
        for (const auto& event : trace.at("traceEvents").as_array()) {
            const auto* category = event.as_object().if_contains("cat");
            if (category == nullptr) continue;
            const auto& name = event.at("name").as_string();
            if (*category == "gpu_user_annotation" && name == "execute_context_0(0)_generation_1(1)") ++decode;
            if (*category == "kernel") ++kernels;
            if (*category == "kernel" && name.find("cross_device_reduce_1stage") != json::string::npos) ++reduces;
        }
        EXPECT_EQ(decode, 9) << "ten tokens: one from the prompt's step, nine from decode steps";
        EXPECT_EQ(reduces, 10 * 2 * 4);
        EXPECT_EQ(kernels, 10 * 10 * 4);
    }
    EXPECT_EQ(server.until("stop_profile", 2).at("decode_steps").as_int64(), 9);
}

TEST(StandinProfiler, KernelsOfADecodeStepShareTheGraphLaunch) {
    const Step step{1796135000000000, 10000, 0, 0, 8};
    const std::vector<Step> steps{step};
    const TraceOf of{0, 2, 1, 7, "0.28.0"};
    const json::value trace = json::parse(worker_trace(steps, of));
    std::int64_t launch = -1;
    double last = 0;
    for (const auto& event : trace.at("traceEvents").as_array()) {
        const auto* category = event.as_object().if_contains("cat");
        if (category == nullptr) continue;
        if (event.at("name") == "cudaGraphLaunch") launch = event.at("args").at("correlation").as_int64();
        if (*category != "kernel") continue;
        EXPECT_EQ(event.at("args").at("correlation").as_int64(), launch);
        EXPECT_GE(event.at("ts").as_double(), last) << "one after the other on the stream";
        EXPECT_GT(event.at("dur").as_double(), 0);
        last = event.at("ts").as_double() + event.at("dur").as_double() - 0.01;
    }
}

TEST(StandinProfiler, AStopWithoutAStartAnswersAndWritesNothing) {
    const TraceFolder traces;
    const Running server{with_profiler(traces.path)};
    server.until("ready");
    EXPECT_EQ(server.post("/stop_profile").status, 200);
    EXPECT_TRUE(traces.files("").empty());
}

TEST(StandinProfiler, StopsByItselfAfterSoManyIterations) {
    const TraceFolder traces;
    auto words = with_profiler(traces.path);
    words.push_back("--profiler-config.max_iterations=3");
    const Running server{words};
    server.until("ready");
    server.post("/start_profile");
    server.post("/v1/completions", ten_tokens);
    server.post("/stop_profile");
    EXPECT_EQ(server.until("stop_profile", 2).at("steps").as_int64(), 3);
    EXPECT_EQ(traces.files("_rank").size(), 2u);
}

TEST(StandinProfiler, CanAnswerWithoutWritingOrLoseARankOrTearIt) {
    const auto files_after = [](const std::string& faults, const TraceFolder& traces) {
        const Running server{with_profiler(traces.path), faults};
        server.until("ready");
        server.post("/start_profile");
        server.post("/v1/completions", ten_tokens);
        EXPECT_EQ(server.post("/stop_profile").status, 200);
        return traces.files("_rank");
    };
    const TraceFolder none;
    EXPECT_TRUE(files_after(R"({"stop":"no_files"})", none).empty());
    const TraceFolder one;
    const auto left = files_after(R"({"missing_rank":1})", one);
    ASSERT_EQ(left.size(), 1u);
    EXPECT_THAT(left[0], HasSubstr("rank0."));
    const TraceFolder torn;
    const auto both = files_after(R"({"torn_rank":0})", torn);
    ASSERT_EQ(both.size(), 2u);
    EXPECT_EQ(unzipped(both[0]), "torn");
    EXPECT_NE(unzipped(both[1]), "torn");
}

TEST(StandinProfiler, CanAnswerBeforeTheFilesAreWhole) {
    const TraceFolder traces;
    const Running server{with_profiler(traces.path), R"({"stop":"early","stop_s":600})"};
    server.until("ready");
    server.post("/start_profile");
    server.post("/v1/completions", ten_tokens);
    EXPECT_EQ(server.post("/stop_profile").status, 200);
    while (traces.files("_rank").size() < 2) std::this_thread::sleep_for(5ms);
    EXPECT_EQ(unzipped(traces.files("_rank").front()).find("\"traceName\""), std::string::npos)
        << "it is being written still";
}

TEST(StandinProfiler, CanDieWhileItWrites) {
    const TraceFolder traces;
    Running server{with_profiler(traces.path), R"({"stop":"die"})"};
    server.until("ready");
    server.post("/start_profile");
    server.post("/v1/completions", ten_tokens);
    EXPECT_EQ(server.post("/stop_profile").status, 0);
    EXPECT_EQ(server.ended(), -SIGKILL);
    EXPECT_EQ(server.events("start_profile").size(), 2u);
}

}   // namespace
}   // namespace standin
