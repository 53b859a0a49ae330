#include "tests/standin/log.hpp"

#include <unistd.h>

#include <cerrno>
#include <ctime>

namespace standin {
namespace {

std::string stamp() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    localtime_r(&now, &parts);
    char text[32];
    std::strftime(text, sizeof text, "%m-%d %H:%M:%S", &parts);
    return text;
}

std::string api_prefix(const Pids& pids) {
    return "(APIServer pid=" + std::to_string(pids.api) + ") ";
}
std::string engine_prefix(const Pids& pids) {
    return "(EngineCore pid=" + std::to_string(pids.engine) + ") ";
}

/// A message of several lines carries the prefix on each, joined by CR LF: so does vLLM's formatter.
std::string format(const std::string& prefix, std::string_view level, std::string_view source, std::string_view message) {
    const std::string head = prefix + std::string{level} + " " + stamp() + " [" + std::string{source} + "] ";
    std::string text;
    for (std::size_t from = 0;;) {
        const auto end = message.find('\n', from);
        text += head;
        text += message.substr(from, end == std::string_view::npos ? end : end - from);
        if (end == std::string_view::npos) break;
        text += "\r\n";
        from = end + 1;
    }
    return text + "\n";
}

}   // namespace

void say(std::string_view text) {
    while (!text.empty()) {
        const ssize_t done = ::write(STDOUT_FILENO, text.data(), text.size());
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return;
        text.remove_prefix(static_cast<std::size_t>(done));
    }
}

std::string Log::worker_prefix(int rank) const {
    if (pids_.workers.empty()) return engine_prefix(pids_);
    return "(Worker_TP" + std::to_string(rank) + " pid=" + std::to_string(pids_.workers.at(static_cast<std::size_t>(rank))) +
           ") ";
}

void Log::api(std::string_view level, std::string_view source, std::string_view message) const {
    say(format(api_prefix(pids_), level, source, message));
}
void Log::engine(std::string_view level, std::string_view source, std::string_view message) const {
    say(format(engine_prefix(pids_), level, source, message));
}
void Log::worker(int rank, std::string_view level, std::string_view source, std::string_view message) const {
    say(format(worker_prefix(rank), level, source, message));
}
void Log::uvicorn(std::string_view message) const {
    say(api_prefix(pids_) + "INFO:     " + std::string{message} + "\n");
}
void Log::raw_api(std::string_view text) const {
    say(api_prefix(pids_) + std::string{text} + "\n");
}
void Log::raw_engine(std::string_view text) const {
    say(engine_prefix(pids_) + std::string{text} + "\n");
}
void Log::bar(int rank, std::string_view text) const {
    say(worker_prefix(rank) + std::string{text});
}

}   // namespace standin
