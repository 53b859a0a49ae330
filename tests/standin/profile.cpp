#include "tests/standin/profile.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace standin {

Profile::Profile(asio::io_context& io, const Options& options, const Log& log, const Truth& truth, Engine& engine)
    : io_{io}, options_{options}, log_{log}, truth_{truth}, engine_{engine}, exported_{io} {
    exported_.expires_at(asio::steady_timer::time_point::max());
}

void Profile::start() {
    if (active_) return;
    active_ = true;
    seen_ = 0;
    steps_.clear();
    written_.clear();
    recording_ = options_.profiler.delay_iterations == 0;
    if (first_cycle_ && options_.profiler.profiler == "torch")
        for (int rank = 0; rank < options_.tensor_parallel; ++rank)
            log_.worker(rank, "INFO", "wrapper.py:160",
                        "Torch profiling enabled. Traces will be saved to: " + options_.profiler.torch_dir);
}

void Profile::step(const Step& step) {
    if (!active_) return;
    ++seen_;
    const auto& config = options_.profiler;
    if (!recording_ && steps_.empty() && seen_ >= config.delay_iterations) recording_ = true;
    if (!recording_) return;
    steps_.push_back(step);
    if (config.max_iterations > 0 && static_cast<int>(steps_.size()) >= config.max_iterations) {
        // The real one exports inside a worker's step: the engine stands still meanwhile.
        recording_ = false;
        asio::co_spawn(io_, write_traces(), asio::detached);
    }
}

Async<void> Profile::stop() {
    if (!active_) {
        log_.worker(0, "WARNING", "wrapper.py:120", "Profiler was not started, nothing to stop.");
        co_return;
    }
    active_ = false;
    if (recording_ || written_.empty()) {
        if (!exporting_) {
            recording_ = false;
            if (options_.faults.stop == "early")
                asio::co_spawn(io_, write_traces(), asio::detached);
            else
                co_await write_traces();
        }
    }
    while (exporting_ && options_.faults.stop != "early") {
        error_code ignored;
        co_await exported_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
    if (first_cycle_) log_.worker(0, "INFO", "wrapper.py:131", "Profiler stopped successfully.");
    first_cycle_ = false;
}

Async<void> Profile::write_traces() {
    exporting_ = true;
    const bool blocks = options_.faults.stop != "early";
    if (blocks) engine_.pause(true);
    std::vector<std::pair<std::string, std::string>> files;
    const auto& config = options_.profiler;
    if (config.profiler == "torch" && options_.faults.stop != "no_files") {
        const std::int64_t now_ns = realtime_us() * 1000;
        for (int rank = 0; rank < options_.tensor_parallel; ++rank) {
            if (options_.faults.missing_rank == rank) continue;
            const auto& workers = log_.pids().workers;
            const int pid = workers.empty() ? log_.pids().engine : workers.at(static_cast<std::size_t>(rank));
            const TraceOf of{rank, options_.tensor_parallel, options_.pace.trace_layers, pid, options_.version};
            std::string text = worker_trace(steps_, of);
            if (config.gzip) text = gzip(text);
            if (options_.faults.torn_rank == rank) text.resize(text.size() * 6 / 10);
            files.emplace_back(trace_file_name(rank, now_ns + std::int64_t{1000} * rank, config.gzip), std::move(text));
        }
        if (!config.ignore_frontend) {
            char host[256] = "localhost";
            (void)::gethostname(host, sizeof host - 1);
            std::string text = frontend_trace(log_.pids().api, realtime_us());
            if (config.gzip) text = gzip(text);
            files.emplace_back(std::string{host} + "_" + std::to_string(log_.pids().api) + ".async_llm." +
                                   std::to_string(now_ns) + ".pt.trace.json" + (config.gzip ? ".gz" : ""),
                               std::move(text));
        }
    }
    co_await write_slowly(std::move(files));
    if (config.profiler == "torch" && config.table && !written_.empty()) write_table();
    if (blocks) engine_.pause(false);
    exporting_ = false;
    exported_.cancel();
}

Async<void> Profile::write_slowly(std::vector<std::pair<std::string, std::string>> files) {
    struct Open {
        std::string name;
        std::string text;
        std::size_t done = 0;
        int fd = -1;
    };
    std::vector<Open> open;
    std::error_code failed;
    if (!files.empty()) std::filesystem::create_directories(options_.profiler.torch_dir, failed);
    for (auto& [name, text] : files) {
        const std::string path = options_.profiler.torch_dir + "/" + name;
        const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (fd < 0) {
            log_.worker(0, "ERROR", "wrapper.py:128",
                        "Failed to stop profiler: [Errno " + std::to_string(errno) + "] '" + path + "'");
            continue;
        }
        open.push_back({name, std::move(text), 0, fd});
    }
    constexpr int parts = 20;
    asio::steady_timer timer{io_, std::chrono::steady_clock::now()};
    const auto pause = std::chrono::nanoseconds{static_cast<long long>(options_.pace.stop_s * 1e9 / parts)};
    for (int part = 1; part <= parts; ++part) {
        timer.expires_at(timer.expiry() + pause);
        co_await timer.async_wait(asio::use_awaitable);
        for (auto& file : open) {
            const std::size_t until = file.text.size() * static_cast<std::size_t>(part) / parts;
            if (::write(file.fd, file.text.data() + file.done, until - file.done) < 0)
                log_.worker(0, "ERROR", "wrapper.py:128",
                            "Failed to stop profiler: write: [Errno " + std::to_string(errno) + "]");
            file.done = until;
        }
        if (options_.faults.stop == "die" && part == parts / 2) {
            truth_.tell("dies", {{"during", "stop_profile"}});
            ::raise(SIGKILL);
        }
    }
    for (auto& file : open) {
        ::close(file.fd);
        written_.push_back(file.name);
    }
}

void Profile::write_table() const {
    const std::string table =
        "-------------------------------------------------------  ------------  ------------\n"
        "                                                   Name     CUDA total    # of Calls\n"
        "-------------------------------------------------------  ------------  ------------\n"
        "                     vllm::cross_device_reduce_1stage     51.00 %          " +
        std::to_string(steps_.size() * 2 * static_cast<std::size_t>(options_.pace.trace_layers)) + "\n";
    std::ofstream{options_.profiler.torch_dir + "/profiler_out_0.txt"} << table;
    log_.bar(0, "\n");
    say(table);
}

boost::json::object Profile::summary() const {
    const auto decode = std::count_if(steps_.begin(), steps_.end(), [](const Step& s) { return s.context_requests == 0; });
    boost::json::array files;
    for (const auto& name : written_) files.emplace_back(name);
    return {{"steps", steps_.size()}, {"decode_steps", decode}, {"files", std::move(files)}};
}

}   // namespace standin
