#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "adapters/servers/openai.hpp"
#include "adapters/servers/server.hpp"
#include "adapters/servers/vllm_settings.hpp"
#include "sh_host.hpp"

namespace campaign::servers {
namespace {

using List = std::vector<std::string>;
using Proof = Server::Proof;
const List argv{"python3", "/opt/vllm", "serve", "/m", "--tensor-parallel-size", "8"};

/// Answers "METHOD PATH" from a table; what is not in it is refused. Everything asked is kept.
class Scripted final : public http::Client {
public:
    std::map<std::string, http::Response> answers;
    std::optional<Error> error;
    List asked;
    std::vector<http::Request> requests;

    void answer(const std::string& what, int status, std::string body = {}) {
        answers[what] = {status, {}, std::move(body), Millis{5}};
    }
    Async<Result<http::Response>> send(http::Request request) override {
        const std::string what = request.method + " " + request.url.substr(request.url.find('/', 8));
        asked.push_back(what);
        requests.push_back(request);
        if (error) co_return *error;
        const auto found = answers.find(what);
        if (found == answers.end()) co_return http::Response{404, {}, R"({"detail":"Not Found"})", Millis{1}};
        co_return found->second;
    }
};

class Vllm : public ::testing::Test {
protected:
    Vllm() : server{std::move(*make_server("vllm", client))} {
        client.answer("GET /v1/models", 200, R"({"data":[{"id":"kimi","owned_by":"vllm","max_model_len":131072}]})");
        client.answer("GET /version", 200, R"({"version":"0.24.0"})");
    }
    Capabilities capabilities(const List& running = argv, const List& names = {}) {
        auto found = test::await(server->capabilities(at, running, names));
        EXPECT_TRUE(found);
        return found ? *found : Capabilities{};
    }
    Scripted client;
    std::unique_ptr<Server> server;
    Endpoint at{"http://127.0.0.1:8000", std::nullopt, "secret"};
};

TEST_F(Vllm, NamesTheRootCauseOfAMissingProfiler) {
    const Capabilities found = capabilities();
    EXPECT_EQ(found.profiler, Ability::no);
    EXPECT_EQ(found.profiler_evidence, "GET /start_profile answered 404; argv has no --profiler-config");
    EXPECT_EQ(found.profiler_cause, "the server was started without --profiler-config");
    EXPECT_EQ(found.models, List{"kimi"});
    EXPECT_EQ(found.max_model_len, 131072);
    EXPECT_EQ(found.tensor_parallel, 8);
    EXPECT_EQ(found.world_size, 8);
}

TEST_F(Vllm, TakesMethodNotAllowedForAnEnabledProfiler) {
    client.answer("GET /start_profile", 405);
    EXPECT_EQ(capabilities().profiler, Ability::yes);
    for (const std::string& what : client.asked) EXPECT_TRUE(what.starts_with("GET ")) << what;   // nothing was started
}

TEST_F(Vllm, AsksTheApiDescriptionWhenTheStatusSaysNothing) {
    client.answer("GET /start_profile", 403);
    EXPECT_EQ(capabilities().profiler, Ability::unknown);
    client.answer("GET /openapi.json", 200, R"({"paths":{"/start_profile":{}}})");
    EXPECT_EQ(capabilities().profiler, Ability::yes);
    client.answer("GET /openapi.json", 200, R"({"paths":{"/health":{}}})");
    EXPECT_EQ(capabilities().profiler, Ability::no);
}

TEST_F(Vllm, NeverTouchesTheProfileRouteOfAnotherServer) {
    client.answer("GET /v1/models", 200, R"({"data":[{"id":"x","owned_by":"sglang"}]})");
    EXPECT_EQ(capabilities().profiler, Ability::unknown);
    client.answer("GET /v1/models", 200, R"({"data":[{"id":"x","owned_by":"vllm"}]})");
    EXPECT_EQ(capabilities({"python", "-m", "sglang.launch_server"}).profiler, Ability::unknown);
    client.answer("GET /v1/models", 401);
    EXPECT_EQ(capabilities({}).profiler, Ability::unknown);   // neither argv nor the list says what it is
    for (const std::string& what : client.asked) EXPECT_NE(what, "GET /start_profile");
}

TEST_F(Vllm, TellsLoadingFromDeadAndDown) {
    const auto health = [&] { return test::await(server->health(at)); };
    client.answer("GET /health", 200);
    EXPECT_EQ(*health(), Health::ready);
    client.answer("GET /health", 503);
    EXPECT_EQ(*health(), Health::dead);
    client.error = Error{ErrorKind::unreachable, "", "", "Connection refused", ""};
    EXPECT_EQ(*health(), Health::loading);
    client.error = Error{ErrorKind::unreachable, "", "", "Could not resolve host: gpu9", ""};
    EXPECT_EQ(*health(), Health::down);
    client.error = Error{ErrorKind::in_doubt, "", "the connection ended", "", ""};   // a tunnel to a port nobody listens on
    EXPECT_EQ(*health(), Health::loading);
    client.error = Error{ErrorKind::in_doubt, "", "no answer within 10 s", "", ""};
    EXPECT_FALSE(health());
}

TEST_F(Vllm, StartsAProfileWithATagAndNothingElse) {
    client.answer("POST /start_profile?step=c7-3-a-b", 200);
    const auto answer = test::await(server->start_profile(at, "c7-3 a/b"));
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 200);
    EXPECT_EQ(client.requests.back().body, std::nullopt);
    EXPECT_EQ(client.requests.back().headers, List{"Authorization: Bearer secret"});
    test::await(server->stop_profile(at, "t", Millis{0}));
    EXPECT_EQ(client.requests.back().total_limit, Millis{0});   // writing the trace takes as long as it takes
}

TEST_F(Vllm, CountsATokenOnlyWhenOneWasGenerated) {
    const auto token = [&](int status, const char* body) {
        client.answer("POST /v1/completions", status, body);
        return test::await(server->one_token(at, "kimi"))->generated;
    };
    EXPECT_TRUE(token(200, R"({"model":"kimi","choices":[{"text":""}],"usage":{"completion_tokens":1}})"));
    EXPECT_FALSE(token(200, R"({"model":"kimi","choices":[{"text":""}],"usage":{"completion_tokens":0}})"));
    EXPECT_FALSE(token(200, R"({"model":"other","choices":[{"text":"x"}],"usage":{"completion_tokens":1}})"));
    EXPECT_FALSE(token(200, R"({"choices":[]})"));
    EXPECT_FALSE(token(200, "<html>"));
    EXPECT_FALSE(token(500, R"({"error":{"message":"EngineDeadError"}})"));
}

TEST(VllmSettings, FollowTheVersion) {
    const auto with = [](const char* version) { return *vllm::torch_setting(version, "/t", argv); };
    EXPECT_TRUE(with("0.11.2").arguments.empty());
    EXPECT_EQ(with("0.11.2").environment.at("VLLM_TORCH_PROFILER_DIR"), "/t");
    EXPECT_FALSE(with("0.24.0").arguments.empty());
    EXPECT_EQ(with("0.24.0").environment.count("VLLM_TORCH_PROFILER_DIR"), 0u);
    for (const char* unsure : {"0.16.0", "", "0.1.dev1+gabc"}) {   // both, where it is not sure which is read
        EXPECT_FALSE(with(unsure).arguments.empty()) << unsure;
        EXPECT_EQ(with(unsure).environment.count("VLLM_TORCH_PROFILER_DIR"), 1u) << unsure;
    }
    EXPECT_EQ(with("0.24.0").arguments,
              (List{"--profiler-config.profiler=torch", "--profiler-config.torch_profiler_dir=/t",
                    "--profiler-config.torch_profiler_with_stack=false", "--profiler-config.ignore_frontend=true"}));
    EXPECT_EQ(with("0.24.0").environment.at("VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS"), "7200");
    EXPECT_FALSE(vllm::torch_setting("0.24.0", "relative", argv));
}

TEST(VllmSettings, ReplaceTheProfilerThatIsThere) {
    List present = argv;
    present.insert(present.end(), {"--profiler_config", "{}"});
    EXPECT_EQ(vllm::torch_setting("0.24.0", "/t", present)->removes, List{"--profiler-config"});
    EXPECT_TRUE(vllm::torch_setting("0.24.0", "/t", argv)->removes.empty());
}

TEST(VllmSettings, MarkCaptureRangesForNsys) {
    EXPECT_EQ(vllm::cuda_setting("0.24.0", argv)->arguments, List{"--profiler-config.profiler=cuda"});
    EXPECT_EQ(vllm::cuda_setting("0.12.0", argv)->environment.at("VLLM_TORCH_CUDA_PROFILE"), "1");
    EXPECT_EQ(vllm::cuda_setting("0.10.0", argv).error().kind, ErrorKind::unavailable);
}

TEST(VllmSettings, ExplainTheCauseByVersion) {
    EXPECT_NE(vllm::profiler_cause("0.11.0", argv, {}).find("VLLM_TORCH_PROFILER_DIR"), std::string::npos);
    EXPECT_NE(vllm::profiler_cause("0.24.0", argv, {"VLLM_TORCH_PROFILER_DIR"}).find("only from --profiler-config"),
              std::string::npos);
}

TEST(VllmSettings, ReadParallelism) {
    const auto p =
        vllm::parallelism({"vllm", "serve", "-tp=4", "--pipeline_parallel_size", "2", "--data-parallel-size=3", "-tp", "8"});
    EXPECT_EQ(p.tensor, 8);
    EXPECT_EQ(p.pipeline, 2);
    EXPECT_EQ(p.data, 3);
    EXPECT_EQ(vllm::parallelism({"-tp", "many"}).tensor, 1);
}

TEST(VllmVersion, IsReadOrUnknown) {
    EXPECT_EQ(vllm::parse_version("v0.11.2.dev3+g1"), (vllm::Version{0, 11}));
    for (const char* unknown : {"", "dev", "0.1.dev1+g2", "7"})
        EXPECT_EQ(vllm::parse_version(unknown), std::nullopt) << unknown;
}

TEST(LogProof, BelongsToTheTaggedRequestOnly) {
    const std::string line = R"(INFO:     127.0.0.1:40000 - "POST /start_profile?step=c7-3 HTTP/1.1" 200 OK)";
    EXPECT_EQ(vllm::log_proof(line, true, "c7-3"), Proof::done);
    EXPECT_EQ(vllm::log_proof("(APIServer pid=7) " + line, true, "c7-3"), Proof::done);
    EXPECT_EQ(vllm::log_proof(line, true, "c7-31"), Proof::nothing);
    EXPECT_EQ(vllm::log_proof(line, true, "c7"), Proof::nothing);
    EXPECT_EQ(vllm::log_proof(line, false, "c7-3"), Proof::nothing);
    EXPECT_EQ(vllm::log_proof(R"("POST /stop_profile?step=t HTTP/1.1" 500 Internal Server Error)", false, "t"),
              Proof::failed);
    EXPECT_EQ(vllm::log_proof(R"("POST /start_profile?step=t HTTP/1.1" 409 Conflict)", true, "t"), Proof::failed);
}

TEST(LogProof, ReadsTheServersOwnWords) {
    EXPECT_EQ(vllm::log_proof("INFO Starting profiler...", true, "t"), Proof::arrived);
    EXPECT_EQ(vllm::log_proof("INFO Profiler started.", true, "t"), Proof::done);
    EXPECT_EQ(vllm::log_proof("stopping profiler", false, "t"), Proof::arrived);
    EXPECT_EQ(vllm::log_proof("Profiler stopped.", false, "t"), Proof::done);
    EXPECT_EQ(vllm::log_proof("ERROR Failed to stop profiler: disk full", false, "t"), Proof::failed);
    EXPECT_EQ(vllm::log_proof("Invocation of profile method failed", true, "t"), Proof::failed);
    EXPECT_EQ(vllm::log_proof("Profiler started.", false, "t"), Proof::nothing);
    EXPECT_EQ(vllm::log_proof("loading weights", true, "t"), Proof::nothing);
}

TEST(TraceName, TellsTheRankWhereTheNameDoes) {
    const auto rank = [](const char* file) { return vllm::trace_name(file)->rank; };
    EXPECT_EQ(rank("dp0_pp0_tp3_dcp0_ep3_rank3.1796125115708385.pt.trace.json.gz"), 3);
    EXPECT_EQ(rank("c7_dp0_pp0_tp11_dcp0_ep0_rank11.17.pt.trace.json"), 11);
    EXPECT_EQ(rank("a1b2-rank-5.17.pt.trace.json.gz"), 5);
    EXPECT_EQ(rank("gpu1_4711.17.pt.trace.json.gz"), std::nullopt);
    EXPECT_TRUE(vllm::trace_name("gpu1_4711.async_llm.17.pt.trace.json.gz")->frontend);
    for (const char* other : {"profiler_out_0.txt", "x.pt.trace.json.gz.part", "x.json", ""})
        EXPECT_FALSE(vllm::trace_name(other)) << other;
}

TEST(DetectKind, SeesTheServerInEveryDress) {
    EXPECT_EQ(detect_kind({"/opt/vllm/bin/python3", "/opt/vllm/bin/vllm", "serve", "/m"}), "vllm");
    EXPECT_EQ(detect_kind({"python", "-m", "vllm.entrypoints.openai.api_server"}), "vllm");
    EXPECT_EQ(detect_kind({"numactl", "-N", "0", "vllm", "serve", "/m"}), "vllm");
    EXPECT_EQ(detect_kind({"bash", "-lc", "source a && exec vllm serve /m"}), "vllm");
    EXPECT_EQ(detect_kind({"VLLM::EngineCore"}), "vllm");
    EXPECT_EQ(detect_kind({"docker", "run", "vllm/vllm-openai:v1", "--model", "m"}), "vllm");
    EXPECT_EQ(detect_kind({"python", "-m", "sglang.launch_server"}), "sglang");
    EXPECT_EQ(detect_kind({"/usr/local/bin/llama-server", "-m", "x"}), "llama-server");
    EXPECT_EQ(detect_kind({"trtllm-serve", "m"}), "trtllm-serve");
    for (const List& other : {List{}, List{"nginx"}, List{"vllm", "bench", "serve"}, List{"tail", "-f", "/var/log/vllm"}})
        EXPECT_EQ(detect_kind(other), "");
}

TEST(MakeServer, SaysWhatWorksInPlaceOfAnUnsupportedKind) {
    Scripted client;
    const auto sglang = make_server("sglang", client);
    ASSERT_FALSE(sglang);
    EXPECT_EQ(sglang.error().kind, ErrorKind::unavailable);
    EXPECT_NE(sglang.error().next.find("generic"), std::string::npos);
    const auto generic = make_server("generic", client);
    ASSERT_TRUE(generic);
    EXPECT_EQ((*generic)->profiler_setting("", "/t", {}).error().kind, ErrorKind::unavailable);
    client.answer("GET /health", 503);
    EXPECT_EQ(*test::await((*generic)->health(Endpoint{"http://h:1", {}, {}})), Health::loading);
}

}   // namespace
}   // namespace campaign::servers
