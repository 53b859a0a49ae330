#pragma once
// A managed server process: what systemd and the plain process manager both offer.

#include <boost/json.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "adapters/host/host.hpp"

namespace campaign::host {

/// One look at a service.
struct ServiceState {
    std::string boot_id;
    bool exists = false;     ///< LoadState is not not-found
    bool loadable = false;   ///< LoadState=loaded; false for bad-setting, masked, error
    std::string load_state;
    std::string active;       ///< systemd's ActiveState; process: active | inactive
    std::string sub;          ///< SubState
    std::string result;       ///< Result
    std::string invocation;   ///< InvocationID; process: "BOOT:PID:STARTTIME"
    int main_pid = 0;
    int restarts = 0;   ///< NRestarts
    std::optional<int> exit_status;
    std::uint64_t entered_active_us = 0;   ///< ActiveEnterTimestampMonotonic (host's monotonic clock)
    bool job_pending = false;
    bool needs_reload = false;
    std::vector<std::string> drop_ins;
};

/// A reason not to restart a service in another mode, by the code of the reference list ("detached", "pending-edit", ...).
struct Obstacle {
    std::string code;
    std::string sentence;
    std::string next;   ///< what the operator can do
};

/// The service exactly as it was found: what restore must bring back, and what it is verified against.
/// Secrets in the environment are kept as hashes: values never leave the host.
struct Baseline {
    ServiceState state;
    std::vector<std::string> configured_argv;                ///< as the unit gives it, specifiers expanded, $ kept
    std::vector<std::string> running_argv;                   ///< from /proc of the server process
    std::map<std::string, std::string> environment_hashes;   ///< NAME -> SHA-256 of the value, from /proc/PID/environ
    std::string user;
    std::string fragment;
    int start_limit_burst = 0;
    std::uint64_t start_limit_interval_us = 0;
    std::uint64_t start_timeout_us = 0;   ///< TimeoutStartUSec; UINT64_MAX: infinity
    std::uint64_t stop_timeout_us = 0;
    int server_pid = 0;   ///< the process whose argv is the server's (not a wrapper's); 0: none was found

    // What render needs to know beside it.
    std::string server_kind;                      ///< "vllm", ...; "" when the program is not a known one
    std::string how;                              ///< direct, shell, wrapper, container, detached; process: direct
    std::string exec_path;                        ///< the program of configured_argv as the manager resolves it
    std::vector<std::string> exec_flags;          ///< ignore-failure, no-env-expand, privileged, ...
    std::string unit_type;                        ///< simple, notify, oneshot, ...
    std::map<std::string, std::string> sandbox;   ///< ProtectSystem, ProtectHome, PrivateTmp, ... where they are on
    std::vector<std::string> environment_files;
    std::vector<std::string> dependents;   ///< services that a restart restarts too
    std::vector<Obstacle> obstacles;       ///< why it must not be restarted in another mode; render refuses with the first
};
[[nodiscard]] boost::json::object to_json(const Baseline& baseline);
[[nodiscard]] Result<Baseline> baseline_from_json(const boost::json::value& value);
[[nodiscard]] boost::json::object to_json(const ServiceState& state);

/// What a restart in another mode adds to the service.
struct Override {
    std::vector<std::string> prefix;      ///< words before the command (nsys launch ...)
    std::vector<std::string> arguments;   ///< words after the server's own
    std::vector<std::string>
        removes;   ///< options of the present command line to leave out, with their values and dotted forms
    std::map<std::string, std::string> environment;
    std::vector<std::string> writable;   ///< folders the server must be able to write
    std::string marker;                  ///< comment lines that say whose it is: campaign, owner, expiry
};

/// The override as files on the host: pure, so that `plan explain` shows what would be written.
struct Change {
    std::string path;   ///< /run/systemd/system/UNIT.d/zz-campaignd.conf
    std::string content;
    std::string sha256;
    std::vector<std::string> effective_argv;   ///< what the service's command line must be afterwards
};

struct LogLine {
    std::string text;
    std::uint64_t realtime_us = 0;   ///< by the host's clock; 0: unknown
    std::string cursor;              ///< position after this line
    int pid = 0;
    bool from_manager = false;   ///< systemd's own word about the unit
};
using OnLog = std::function<bool(const LogLine&)>;   ///< false ends the following

/// A remote job: a detached command with its result in files, named after the step that started it.
struct Job {
    std::string name;   ///< [a-z0-9-]; deterministic
    std::vector<std::string> argv;
    std::string directory;   ///< results: NAME.out, NAME.err, NAME.status (written tmp + rename)
    std::map<std::string, std::string> environment;
    std::optional<Millis> limit;   ///< it is ended after this
    std::vector<int> cpus;         ///< affinity; empty: any
};
struct JobState {
    enum class Is { absent, running, ended } is = Is::absent;
    std::optional<int> exit_code;   ///< when ended
    std::string output_file;
    std::string errors_file;
};

class ServiceManager {
public:
    virtual ~ServiceManager() = default;
    [[nodiscard]] virtual std::string kind() const = 0;   ///< "systemd", "process"

    virtual Async<Result<ServiceState>> look(std::string service) = 0;
    virtual Async<Result<Baseline>> baseline(std::string service) = 0;

    /// Pure. Refuses (kind refused, with units.md's code in `why`) where the command line cannot be restated safely.
    [[nodiscard]] virtual Result<Change> render(const std::string& service, const Baseline& baseline,
                                                const Override& change) const = 0;
    /// Writes the change, reloads, reads back and compares what the service would now run. Safe to repeat.
    virtual Async<Result<boost::json::object>> install(std::string service, Change change) = 0;
    /// Removes our file by path and hash, the folder if empty, reloads. Safe to repeat.
    virtual Async<Result<boost::json::object>> remove(std::string service, std::string path, std::string sha256) = 0;

    /// reset-failed, then restart without waiting. The caller observes what comes of it.
    virtual Async<Result<void>> restart(std::string service) = 0;
    virtual Async<Result<void>> stop(std::string service) = 0;

    /// A position in the log, to be taken before acting.
    virtual Async<Result<std::string>> log_cursor(std::string service) = 0;
    /// Lines after the cursor, then as they come. An error of kind not_found: the cursor is gone (a gap).
    virtual Async<Result<bool>> follow_log(std::string service, std::string cursor, OnLog on_log) = 0;
    /// Lines after the cursor up to now, at most `limit`.
    virtual Async<Result<std::vector<LogLine>>> read_log(std::string service, std::string cursor, std::size_t limit) = 0;

    /// Starts the job unless one of that name is there already (conflict: attach to it with job_state).
    virtual Async<Result<void>> start_job(Job job) = 0;
    virtual Async<Result<JobState>> job_state(Job job) = 0;
    /// Ends it if it runs and forgets the unit; result files stay.
    virtual Async<Result<void>> clear_job(Job job) = 0;
};

}   // namespace campaign::host
