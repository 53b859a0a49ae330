#pragma once
// What a campaign should do, as the operator wrote it: typed, complete, every default filled in.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace campaign::plans {

using Millis = std::chrono::milliseconds;

/// How a host is reached. Everything but `ssh` is optional: what is absent comes from the ssh configuration.
struct Host {
    std::string name;
    bool local = false;   ///< the daemon's own machine, without ssh
    std::string ssh;      ///< alias of the ssh configuration, or a host name
    std::optional<std::string> user;
    std::optional<int> port;
    std::optional<std::string> key_file;                ///< a path, never a key
    std::optional<std::string> jump;                    ///< alias of the jump host
    std::optional<std::string> known_hosts;             ///< path
    std::string work_dir = "/var/lib/campaignd-host";   ///< where our files lie on the host (traces, job results)
    bool sudo = false;                                  ///< changes are made through `sudo -n`
};

enum class ServerKind { automatic, vllm, sglang, llamacpp, trtllm, generic };

/// A server that a plan starts by its command line, on machines without systemd.
struct Process {
    std::vector<std::string> command;                 ///< argv
    std::map<std::string, std::string> environment;   ///< beside the minimal PATH, HOME and LANG
    std::string directory = "/";
    std::string log;   ///< the file that its output is appended to
};

/// A secret by reference only.
struct SecretRef {
    std::optional<std::string> file;         ///< path, read at use
    std::optional<std::string> credential;   ///< name under $CREDENTIALS_DIRECTORY
};

struct Service {
    std::string name;
    std::string host;   ///< a key of Plan::hosts
    std::string unit;   ///< systemd unit with its suffix; empty when `process` is given
    std::optional<Process> process;
    std::string url;   ///< as the server is reached on its own host: "http://127.0.0.1:8000"
    ServerKind server = ServerKind::automatic;
    std::optional<std::string> model;   ///< the served name that must be listed; found out when absent
    std::optional<SecretRef> api_key;
    std::optional<std::string> profiler_dir;   ///< on the host; default below Host::work_dir
    std::optional<Millis> load_time;           ///< the operator's own estimate of one model load
};

enum class Restart { never, ask, window, allow };

struct Policy {
    Restart restart = Restart::never;
    std::optional<std::string> window;                 ///< "22:00-06:00 Europe/Zurich"
    Millis max_downtime{0};                            ///< in all; 0: no restart is allowed
    Millis approval_expires{std::chrono::hours{24}};   ///< an open question is dropped after this
};

enum class Measure { warm_up, throughput, decode_step };
enum class MethodKind { macro, torch_profile, nsys };

struct Load {
    std::vector<int> concurrency;   ///< empty: auto (1, 2, 4, ... until the plateau)
    int input_tokens = 1024;
    int output_tokens = 256;
    std::optional<int> requests;      ///< a level; default 4 x concurrency, at least 8
    std::optional<Millis> duration;   ///< a level lasts this long instead of a number of requests
    int max_concurrency = 256;        ///< where auto stops at the latest
};

struct Capture {
    int warmup_steps = 5;
    int steps = 20;
    int concurrency = 1;
    int input_tokens = 128;
    int output_tokens = 64;
    Millis stop_limit{std::chrono::minutes{60}};   ///< stop_profile may take this long
};

enum class Traces { fetch, excerpt, leave };

struct Phase {
    std::string name;
    std::string service;   ///< a key of Plan::services
    Measure measure = Measure::throughput;
    std::vector<MethodKind> methods;   ///< the ladder, best fidelity first
    Load load;
    std::optional<Millis> slo_ttft_p99;
    std::optional<Millis> slo_tpot_p95;
    Capture capture;
    Traces traces = Traces::fetch;
    Millis time_limit{std::chrono::hours{4}};
};

struct Limits {
    Millis load{std::chrono::minutes{90}};      ///< a model load is given up after this
    Millis stall{std::chrono::minutes{15}};     ///< no sign of progress for this long: stalled
    Millis command{std::chrono::seconds{60}};   ///< one remote command
};

struct Restore {
    double probe_within = 0.25;   ///< the probe after may differ from the one before by this share
    Millis time_limit{std::chrono::hours{2}};
    bool verify_probe = true;
};

struct Plan {
    std::string name;
    std::string description;
    std::map<std::string, Host> hosts;
    std::map<std::string, Service> services;
    Policy policy;
    std::vector<Phase> phases;
    Limits limits;
    Restore restore;
};

[[nodiscard]] std::string_view to_string(ServerKind kind);
[[nodiscard]] std::string_view to_string(Restart restart);
[[nodiscard]] std::string_view to_string(Measure measure);
[[nodiscard]] std::string_view to_string(MethodKind method);
[[nodiscard]] std::string_view to_string(Traces traces);

}   // namespace campaign::plans
