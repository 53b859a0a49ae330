#pragma once
// Lines as vLLM writes them: `(Proc pid=N) LEVEL MM-DD HH:MM:SS [file.py:N] message`, and uvicorn's `INFO:     text`.

#include <string>
#include <string_view>
#include <vector>

namespace standin {

/// Who speaks: the API process, the engine, the workers. Their process ids stand in each line.
struct Pids {
    int api = 0;
    int engine = 0;
    std::vector<int> workers;
};

/// Text to stdout, whole or not at all torn between writers; a closed stdout is ignored.
void say(std::string_view text);

class Log {
public:
    explicit Log(Pids pids) : pids_{std::move(pids)} {}

    void api(std::string_view level, std::string_view source, std::string_view message) const;
    void engine(std::string_view level, std::string_view source, std::string_view message) const;
    void worker(int rank, std::string_view level, std::string_view source, std::string_view message) const;
    /// uvicorn's own format, without a date.
    void uvicorn(std::string_view message) const;
    /// A line behind a prefix and nothing else: tracebacks, banners.
    void raw_api(std::string_view text) const;
    void raw_engine(std::string_view text) const;
    /// Text behind a worker's prefix with no newline of its own: progress bars bring theirs.
    void bar(int rank, std::string_view text) const;

    [[nodiscard]] const Pids& pids() const { return pids_; }
    /// "(Worker_TP0 pid=9) "; with one rank the engine does the worker's work.
    [[nodiscard]] std::string worker_prefix(int rank) const;

private:
    Pids pids_;
};

}   // namespace standin
