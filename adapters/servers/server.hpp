#pragma once
// What campaignd needs to know of an inference server, one flavour a file.

#include <boost/json.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adapters/http/http.hpp"

namespace campaign::servers {

/// Where the server is, and what opens it.
struct Endpoint {
    std::string base_url;   ///< "http://127.0.0.1:8000", no trailing slash
    std::optional<std::string> unix_socket;
    std::optional<std::string> api_key;   ///< never logged, never recorded
};

enum class Ability { yes, no, unknown };
[[nodiscard]] std::string_view to_string(Ability ability);

/// What was found out without changing anything.
struct Capabilities {
    std::string kind;                  ///< "vllm"
    std::string version;               ///< "" when not told
    std::vector<std::string> models;   ///< served names
    std::optional<int> max_model_len;
    Ability profiler = Ability::unknown;   ///< start_profile and stop_profile would work now
    std::string profiler_evidence;         ///< "GET /start_profile answered 404; argv has no --profiler-config"
    std::string profiler_cause;            ///< the root cause when `no`: "the server was started without --profiler-config"
    int tensor_parallel = 1;               ///< from argv; world size = tp*pp*dp
    int world_size = 1;
};
[[nodiscard]] boost::json::object to_json(const Capabilities& capabilities);

enum class Health { ready, loading, down, dead };

/// What a profiler restart needs.
struct ProfilerSetting {
    std::vector<std::string> arguments;
    std::map<std::string, std::string> environment;
    std::vector<std::string> removes;   ///< options that stand in the present command line and must go: never two settings
};

struct Token {
    bool generated = false;
    Millis took{0};
    std::string model;
    std::string evidence;
};

class Server {
public:
    virtual ~Server() = default;
    [[nodiscard]] virtual std::string kind() const = 0;
    /// ready: 200. loading: refused or 503 while it loads. dead: 5xx. down: no route.
    virtual Async<Result<Health>> health(const Endpoint& at) = 0;
    virtual Async<Result<std::vector<std::string>>> models(const Endpoint& at) = 0;
    /// Sends only requests that cannot start anything. `argv` and `environment` (names) are the running process's.
    virtual Async<Result<Capabilities>> capabilities(const Endpoint& at, const std::vector<std::string>& argv,
                                                     const std::vector<std::string>& environment_names) = 0;
    /// One generated token: the proof that the engine, not only the API, lives.
    virtual Async<Result<Token>> one_token(const Endpoint& at, std::string model) = 0;

    /// Pure: flags and variables by version, both where unsure; `argv` is the present command line.
    [[nodiscard]] virtual Result<ProfilerSetting> profiler_setting(const std::string& version, const std::string& trace_dir,
                                                                   const std::vector<std::string>& argv) const = 0;
    /// The same for a capture by nsys: cudaProfilerApi ranges.
    [[nodiscard]] virtual Result<ProfilerSetting> nsys_setting(const std::string& version,
                                                               const std::vector<std::string>& argv) const = 0;

    /// `tag` is put into the request so that the server's access log proves whose it was.
    virtual Async<Result<http::Response>> start_profile(const Endpoint& at, std::string tag) = 0;
    virtual Async<Result<http::Response>> stop_profile(const Endpoint& at, std::string tag, Millis limit) = 0;
    /// Does this line of the server's log prove that the request with `tag` was carried out (start or stop)?
    enum class Proof { nothing, arrived, done, failed };
    [[nodiscard]] virtual Proof profile_log_proof(std::string_view line, bool start, std::string_view tag) const = 0;

    /// Is this a worker's trace file, and of which rank? nullopt: no trace.
    struct TraceName {
        std::optional<int> rank;
        bool frontend = false;   ///< the API process's own
    };
    [[nodiscard]] virtual std::optional<TraceName> trace_name(std::string_view file) const = 0;
};

/// By the plan's word or, for "auto", by argv and HTTP. Unsupported kinds are an error of kind unavailable that says so.
[[nodiscard]] std::string detect_kind(const std::vector<std::string>& argv);
[[nodiscard]] Result<std::unique_ptr<Server>> make_server(const std::string& kind, http::Client& client);

}   // namespace campaign::servers
