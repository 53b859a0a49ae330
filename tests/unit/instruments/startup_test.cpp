// Logs composed in the forms that vLLM 0.6 to 0.28 write, alone, under journald and under compose.

#include "instruments/startup/startup.hpp"

#include <gtest/gtest.h>

#include "instruments/startup/message.hpp"

namespace campaign::startup {
namespace {

Progress after(std::string_view log) {
    Reader reader;
    reader.feed(log);
    reader.finish();
    return reader.progress();
}

const std::string begun =
    "(APIServer pid=7) INFO 07-21 04:40:13 [utils.py:299] vLLM server version 0.25.0, serving model m\n";
const std::string loading =
    begun +
    "(EngineCore pid=9) INFO 07-21 04:40:33 [gpu_model_runner.py:4879] Starting to load model m...\n"
    "(EngineCore pid=9) \rLoading safetensors checkpoint shards:  42% Completed | 69/163 [07:31<10:14,  6.54s/it]\r";
const std::string ready = loading + "\n(APIServer pid=7) INFO:     Application startup complete.\n";

TEST(Startup, SaysHowFarTheWeightsAre) {
    const Progress state = after(loading);
    EXPECT_EQ(state.outcome, Outcome::loading);
    EXPECT_EQ(state.phase, Phase::weights);
    EXPECT_EQ(state.percent, 42);
    EXPECT_EQ(state.shards_done, 69);
    EXPECT_EQ(state.shards_total, 163);
    EXPECT_DOUBLE_EQ(state.phase_left_s.value_or(0), 614);
    EXPECT_EQ(state.version, "0.25.0");
}

TEST(Startup, IsReadyAtUvicornsOwnLine) {
    const Progress state = after(ready);
    EXPECT_EQ(state.outcome, Outcome::ready);
    EXPECT_EQ(state.phase, Phase::ready);
    EXPECT_EQ(state.percent, 100);
    EXPECT_EQ(state.evidence, "(APIServer pid=7) INFO:     Application startup complete.");
    EXPECT_EQ(state.evidence_line, 4U);
}

TEST(Startup, IsTheSameForEverySplitOfTheBytes) {
    const std::string log = "\x1b[32m" + ready + "\x1b]0;title\aCUDA out of memory\n";
    const Progress whole = after(log);
    for (std::size_t at = 0; at <= log.size(); ++at) {
        Reader reader;
        reader.feed(std::string_view{log}.substr(0, at));
        reader.feed(std::string_view{log}.substr(at));
        reader.finish();
        EXPECT_EQ(reader.progress().outcome, whole.outcome) << at;
        EXPECT_EQ(reader.progress().percent, whole.percent) << at;
        EXPECT_EQ(reader.progress().evidence_line, whole.evidence_line) << at;
        EXPECT_EQ(reader.progress().last_line, whole.last_line) << at;
    }
}

TEST(Startup, IsNotReadyBecauseSomebodyQuotesTheLine) {
    EXPECT_EQ(after(loading + "\nwaiting for: Application startup complete.\n").outcome, Outcome::loading);
    EXPECT_EQ(after(begun + "INFO 07-21 04:40:13 [a.py:1] served_model_name=Application startup complete.\n").outcome,
              Outcome::loading);
}

TEST(Startup, IsNotReadyBecauseAnotherContainerIs) {
    const std::string gateway = "gateway-1  | INFO:     Application startup complete.\n";
    const std::string engine = "vllm-1     | " + begun;
    EXPECT_EQ(after(gateway + engine + gateway).outcome, Outcome::loading);
    EXPECT_EQ(after(gateway + engine + "vllm-1     | (APIServer pid=7) INFO:     Application startup complete.\n").outcome,
              Outcome::ready);
}

TEST(Startup, NamesTheCauseNotTheEchoThatFollows) {
    const Progress state =
        after(loading +
              "\n(Worker pid=3) ERROR torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 896.00 MiB.\n"
              "(EngineCore pid=9) ERROR EngineCore failed to start.\n"
              "(APIServer pid=7) RuntimeError: Engine core initialization failed. See root cause above.\n");
    EXPECT_EQ(state.outcome, Outcome::failed);
    EXPECT_EQ(state.failure_kind, "cuda_oom");
    EXPECT_EQ(state.phase, Phase::weights);
    EXPECT_EQ(state.evidence_line, 4U);
}

TEST(Startup, NamesTheCauseThoughTheEchoCameFirst) {
    EXPECT_EQ(after(begun + "ERROR EngineCore failed to start.\nValueError: No available memory for the cache blocks.\n")
                  .failure_kind,
              "kv_cache_no_memory");
}

const std::string caught = "(EngineCore pid=9) ERROR FileNotFoundError: no tuned config for this device\n";
const std::string kv_cache =
    "(EngineCore pid=9) INFO 07-21 04:50:33 [a.py:1] GPU KV cache size: 1,234,567 tokens, Maximum concurrency ...\n";

TEST(Startup, ACauseThatTheServerOutlivesIsNoFailure) {
    EXPECT_EQ(after(loading + "\n" + caught).outcome, Outcome::failed);
    const Progress state = after(loading + "\n" + caught + kv_cache);
    EXPECT_EQ(state.outcome, Outcome::loading);
    EXPECT_EQ(state.phase, Phase::kv_cache);
    EXPECT_EQ(state.failure_kind, "");
    EXPECT_EQ(state.evidence, "");
    EXPECT_EQ(after(loading + "\n" + caught + "(APIServer pid=7) INFO:     Application startup complete.\n").outcome,
              Outcome::ready);
}

TEST(Startup, ACauseThatTheServerOutlivedIsNamedWhenTheStartFailsAfterAll) {
    const Progress state = after(loading + "\n" + caught + kv_cache + "ERROR EngineCore failed to start.\n");
    EXPECT_EQ(state.outcome, Outcome::failed);
    EXPECT_EQ(state.failure_kind, "missing_file");
    EXPECT_EQ(state.evidence_line, 4U);
    EXPECT_EQ(
        after(loading + "\n" + caught + kv_cache + "ValueError: No available memory for the cache blocks.\n").failure_kind,
        "kv_cache_no_memory");
}

TEST(Startup, WhatOtherRanksStillSayDoesNotUndoAFailure) {
    EXPECT_EQ(after(loading + "\nCUDA out of memory\n(Worker_TP1 pid=4) INFO 07-21 04:50:33 [a.py:1] Loading weights took 5 "
                              "seconds\n")
                  .outcome,
              Outcome::failed);
}

TEST(Startup, EachFailureHasItsKind) {
    const auto kind = [](std::string_view line) { return after(begun + std::string{line} + "\n").failure_kind; };
    EXPECT_EQ(kind("ERROR failed to bind listener for OpenAI server"), "bind_failed");
    EXPECT_EQ(kind("OSError: [Errno 98] Address already in use"), "port_in_use");
    EXPECT_EQ(kind("error while attempting to bind on ('0.0.0.0', 8000): Address already in use"), "port_in_use");
    EXPECT_EQ(kind("torch.distributed.DistBackendError: ncclSystemError: a call failed"), "nccl_error");
    EXPECT_EQ(kind("ERROR WorkerProc hit an exception."), "worker_died");
    EXPECT_EQ(kind("ERROR Process RustFrontend (PID: 77) died with exit code 2"), "worker_died");
    EXPECT_EQ(kind("TimeoutError: Timed out waiting for engine core processes to start."), "engine_core_failed");
    EXPECT_EQ(kind("ERROR failed to connect to engine core"), "engine_core_failed");
    EXPECT_EQ(kind("usage: vllm serve\nvllm: error: unrecognized arguments: --frob"), "bad_argument");
}

TEST(Startup, WarnsOfWhatAProfileDidWrongOnceEach) {
    const std::string not_there =
        "(APIServer pid=7) INFO:     127.0.0.1:5 - \"POST /start_profile HTTP/1.1\" 404 Not Found\n";
    EXPECT_EQ(after(ready + not_there + not_there).warnings, std::vector<std::string>{"profiler_not_enabled"});
    const std::string slow = "ERROR TimeoutError: RPC call to sample_tokens timed out.\n";
    EXPECT_TRUE(after(ready + slow).warnings.empty()) << "no profiler, so not its fault";
    const std::string armed = "WARNING 07-21 04:40:13 [a.py:1] Profiler with mode 'torch' is enabled in the API server.\n";
    EXPECT_EQ(after(begun + armed + slow).warnings, std::vector<std::string>{"profiler_timeout"});
    EXPECT_TRUE(after(begun + armed + slow + "Failed to stop profiler: x\n" + kv_cache + begun).warnings.empty())
        << "a new run";
}

TEST(Startup, IsReadyAtTheRustFrontEndsLine) {
    EXPECT_EQ(after(loading + "\nINFO OpenAI server is ready to accept requests bind_address=0.0.0.0:8000\n").outcome,
              Outcome::ready);
}

TEST(Startup, ADraftModelsBarBeginsAgain) {
    const Progress state =
        after(loading +
              "\nINFO 07-21 04:48:33 [a.py:1] Loading drafter model...\n\rLoading safetensors checkpoint shards:   0% "
              "Completed | 0/1 [00:00<?, ?it/s]\n");
    EXPECT_EQ(state.phase, Phase::weights);
    EXPECT_EQ(state.percent, 0);
    EXPECT_EQ(state.shards_total, 1);
    EXPECT_FALSE(state.phase_left_s.has_value());
}

TEST(Startup, AWarningOrARequestsErrorIsNoFailure) {
    EXPECT_EQ(after(begun + "WARNING 07-21 04:40:14 [a.py:1] retrying after CUDA out of memory\n").outcome,
              Outcome::loading);
    EXPECT_EQ(after(ready + "ERROR request 7: CUDA out of memory\n").outcome, Outcome::ready);
}

TEST(Startup, DeathAfterReadyIsAFailureOfServing) {
    const Progress state = after(ready + "(EngineCore pid=9) ERROR EngineCore encountered a fatal error.\n");
    EXPECT_EQ(state.outcome, Outcome::failed);
    EXPECT_EQ(state.phase, Phase::serving);
    EXPECT_TRUE(state.was_ready);
    EXPECT_FALSE(state.percent.has_value());
}

TEST(Startup, ANewRunForgetsTheFailureOfTheLast) {
    const std::string journal = "2026-05-23T08:00:38+00:00 gpu-node systemd[1]: ";
    const std::string failed =
        loading + "\nCUDA out of memory\n" + journal + "vllm.service: Scheduled restart job, restart counter is at 3.\n";
    EXPECT_TRUE(after(failed).restart_pending);
    const Progress state = after(failed + journal + "Started vllm.service - vLLM server.\n");
    EXPECT_EQ(state.outcome, Outcome::loading);
    EXPECT_EQ(state.runs, 2);
    EXPECT_EQ(state.restarts, 3);
    EXPECT_FALSE(state.restart_pending);
    EXPECT_EQ(state.failure_kind, "");
}

TEST(Startup, RepeatedWaitingIsNoActivity) {
    Reader reader;
    reader.feed(loading + "\n");
    const std::uint64_t before = reader.activity();
    reader.feed("INFO [shm_broadcast.py:456] No available shared memory broadcast block found in 60 seconds.\n");
    EXPECT_EQ(reader.activity(), before);
    reader.feed("(EngineCore pid=9) INFO 07-21 04:50:33 [m.py:1] Loading weights took 500.1 seconds\n");
    EXPECT_GT(reader.activity(), before);
}

TEST(Startup, SeesThatTheProfilerIsArmed) {
    EXPECT_FALSE(after(ready).profiler_armed);
    EXPECT_TRUE(after(begun + "INFO 07-21 04:40:13 [launcher.py:46] Route: /start_profile, Methods: POST\n").profiler_armed);
}

TEST(Startup, ALineWithoutEndTakesNoMemoryWithoutEnd) {
    Reader reader;
    const std::string piece(std::size_t{1} << 20U, 'x');
    for (int i = 0; i < 8; ++i) reader.feed(piece);
    reader.finish();
    EXPECT_LE(reader.progress().last_line.size(), 2000U);
}

TEST(Startup, OtherServersAreToldFromVllm) {
    EXPECT_EQ(after("[2026-07-14 08:14:02] server_args=ServerArgs(model_path='m')\n"
                    "[2026-07-14 08:14:50] INFO:     Application startup complete.\n")
                  .outcome,
              Outcome::loading);   // SGLang warms up after uvicorn is there
    const Progress sglang = after(
        "[2026-07-14 08:14:02] server_args=ServerArgs(model_path='m')\n"
        "[2026-07-14 08:14:55] The server is fired up and ready to roll!\n");
    EXPECT_EQ(sglang.outcome, Outcome::ready);
    EXPECT_EQ(sglang.server, "sglang");
}

TEST(Startup, AServerThatWasToldToStopHasNotFailed) {
    const Progress state =
        after(ready +
              "(APIServer pid=7) INFO 07-21 05:00:00 [launcher.py:1] [shutdown] API server: shutdown triggered\n"
              "(EngineCore pid=9) ERROR 07-21 05:00:01 [x.py:1] Worker proc VllmWorker-0 died unexpectedly\n");
    EXPECT_EQ(state.outcome, Outcome::stopped);
    EXPECT_EQ(state.phase, Phase::serving);
    EXPECT_EQ(state.failure_kind, "");
}

TEST(Startup, SystemdTellsTheEndOfARunThatNamedNoCause) {
    const std::string front = "2026-05-23T08:01:38+00:00 gpu systemd[1]: ";
    const Progress died = after(begun + front + "v.service: Main process exited, code=killed, status=9/KILL\n" + front +
                                "v.service: Failed with result 'signal'.\n");
    EXPECT_EQ(died.outcome, Outcome::failed);
    EXPECT_EQ(died.exit_status, 137);
    EXPECT_EQ(died.failure_kind, "");
    const Progress stopped = after(begun + front + "Stopping v.service - vLLM...\n" + front +
                                   "v.service: Main process exited, code=exited, status=143/n/a\n" + front +
                                   "v.service: Failed with result 'exit-code'.\n" + front + "Stopped v.service - vLLM.\n");
    EXPECT_EQ(stopped.outcome, Outcome::stopped);
}

TEST(Startup, TimesAreThoseOfTheLinesInAnyForm) {
    const auto at = [](std::string_view line) { return message_of(line).stamp.seconds(2026); };
    const double there = 1785154273;   // 2026-07-27 12:11:13 UTC
    EXPECT_EQ(at("INFO 07-27 12:11:13 [a.py:1] x"), there);
    EXPECT_EQ(at("(EngineCore pid=9) INFO 07-27 12:11:13 [a.py:1] x"), there);
    EXPECT_EQ(at("[2026-07-27 12:11:13 TP0] x"), there);
    EXPECT_EQ(at("[07/27/2026-12:11:13] [TRT-LLM] [I] x"), there);
    EXPECT_EQ(at("Jul 27 12:11:13 gpu python3[12]: x"), there);
    EXPECT_EQ(at("2026-07-27T14:11:13+02:00 gpu python3[12]: INFO 01-01 00:00:00 [a.py:1] x"), there);
    EXPECT_EQ(at("2026-07-27T12:11:13.500Z x"), there + 0.5);
    EXPECT_EQ(at("2026-07-27 12:11:13,250\tINFO worker.py:1 -- x"), there + 0.25);
    EXPECT_EQ(at("1.02.466.031 I srv x"), 62.466031);
    EXPECT_EQ(at("no time at all"), std::nullopt);
    EXPECT_EQ(at("INFO 13-45 12:11:13 [a.py:1] x"), std::nullopt);
}

TEST(Startup, ALoadOverNewYearIsNotNegative) {
    const Stamp from = message_of("INFO 12-31 23:59:50 [a.py:1] x").stamp;
    const Stamp to = message_of("INFO 01-01 00:00:20 [a.py:1] x").stamp;
    EXPECT_EQ(seconds_between(from, to, 2026), 30.0);
    EXPECT_EQ(seconds_between(from, Stamp{Stamp::Form::relative, "0.00.100.000"}, 2026), std::nullopt);
}

TEST(MessageOf, TakesOffWhatOthersPutBefore) {
    const auto text = [](std::string_view line) { return std::string{message_of(line).text}; };
    EXPECT_EQ(
        text(
            "2026-08-18T14:11:41+00:00 gpu-node python3[30112]: (APIServer pid=30112) INFO 08-18 14:11:41 [a.py:345] hello"),
        "hello");
    EXPECT_EQ(text("Aug 18 14:11:41 gpu-node vllm[1]: INFO:     hello"), "hello");
    EXPECT_EQ(text("vllm-1     | (EngineCore pid=7) (RayWorkerWrapper pid=8) hello"), "hello");
    EXPECT_EQ(text("[2026-07-14 08:14:13 TP0] hello"), "hello");
    EXPECT_EQ(text("Loading shards:  36% Completed | 5/14 [00:20<00:36]"),
              "Loading shards:  36% Completed | 5/14 [00:20<00:36]");
    for (const char* const odd :
         {"", " ", "(", "( pid=", "[2026-", "INFO", "INFO:", "Aug 18 14:11:41 h", "2026-08-18T14:11:41+00:00", "a-1 | "})
        EXPECT_LE(text(odd).size(), std::string_view{odd}.size());
    EXPECT_EQ(message_of("vllm-1     | x").container, "vllm-1");
    EXPECT_TRUE(message_of("2026-08-18T14:11:37+00:00 gpu-node systemd[1]: Started vllm.service - vLLM.").by_systemd);
}

}   // namespace
}   // namespace campaign::startup
