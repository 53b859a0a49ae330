#pragma once
// Reads a server's start-up log: which phase, how far, ready or failed, and why. Bytes in, state out; no clock, no file.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "instruments/startup/stamp.hpp"

namespace campaign::startup {

enum class Phase {
    none,
    start,
    config,
    distributed_init,
    weights,
    compile,
    kv_cache,
    warmup,
    graphs,
    api_start,
    ready,
    serving
};
enum class Outcome { loading, ready, failed, stalled, stopped };
[[nodiscard]] std::string_view to_string(Phase phase);
[[nodiscard]] std::string_view to_string(Outcome outcome);

struct Progress {
    Phase phase = Phase::none;
    Outcome outcome = Outcome::loading;
    std::optional<int> percent;   ///< as last shown in this phase
    std::optional<int> shards_done;
    std::optional<int> shards_total;
    std::optional<double> phase_left_s;   ///< the bar's own estimate, seconds
    std::string failure_kind;             ///< "cuda_oom", "port_in_use", ... ; "" when none
    std::string evidence;                 ///< the line that decided
    std::uint64_t evidence_line = 0;      ///< from 1
    std::string last_line;                ///< last line with real progress
    std::string server;                   ///< "vllm", "sglang", "llamacpp"; "" while the log has not shown it
    std::string version;
    int runs = 0;                        ///< starts seen
    bool was_ready = false;              ///< this run had been ready before
    int restarts = 0;                    ///< the service manager's own count
    bool restart_pending = false;        ///< it waits to start the server again
    bool degraded = false;               ///< it came up without something that it wanted (memory for a part, a GPU)
    bool profiler_armed = false;         ///< the log says profiler routes are on
    std::optional<int> exit_status;      ///< of this run's end, as the log tells it; 128 + N: killed by signal N
    std::vector<std::string> warnings;   ///< of this run, each name once: "profiler_not_enabled", ...
    // Times as the log's lines carry them; a line without one has that of the line before it.
    Stamp began;        ///< the run's first
    Stamp last;         ///< of any line
    Stamp progressed;   ///< of the last line that was progress
    Stamp became_ready;
    bool silent_end = true;   ///< the log's last line was progress, no repeated remark
};

/// The newest SGLang release on the day of a log that names none: an estimate, for releases up to 0.4.10 only. "" else.
[[nodiscard]] std::string sglang_release_of(const Stamp& began, int year);

/// The text with U+FFFD for what is no UTF-8, else as it is.
[[nodiscard]] std::string as_utf8(std::string_view text);

/// Incremental: any split of the same bytes gives the same state. Lines end at LF; CR separates redrawn bars; escapes are
/// removed.
class Reader {
public:
    Reader();
    ~Reader();
    Reader(Reader&&) noexcept;
    Reader& operator=(Reader&&) noexcept;

    void feed(std::string_view bytes);
    /// The input ended: an unfinished last line counts.
    void finish();
    [[nodiscard]] const Progress& progress() const;
    /// Rises by one whenever a line meant progress; what a stall watch looks at.
    [[nodiscard]] std::uint64_t activity() const;

private:
    struct Machine;
    std::unique_ptr<Machine> machine_;
};

}   // namespace campaign::startup
