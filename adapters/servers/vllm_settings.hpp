#pragma once
// What vLLM's command line, versions, log lines and file names mean. Pure.

#include "adapters/servers/server.hpp"

namespace campaign::servers::vllm {

/// Major and minor of "0.24.0", "v0.11.2.dev3+g1234"; nullopt for "dev" and "".
struct Version {
    int major = 0;
    int minor = 0;
    friend auto operator<=>(const Version&, const Version&) = default;
};
[[nodiscard]] std::optional<Version> parse_version(std::string_view text);

/// The value of an option by any of its names: "--name value", "--name=value"; '_' counts as '-'. The last one wins.
[[nodiscard]] std::optional<std::string> option(const std::vector<std::string>& argv,
                                                const std::vector<std::string_view>& names);
/// Is `--profiler-config` there, in one argument or dotted?
[[nodiscard]] bool has_profiler_option(const std::vector<std::string>& argv);

/// The server as it runs has a torch profiler: its options name one, or for a version that still reads them, its variables
/// do.
[[nodiscard]] bool torch_profiler_on(const std::string& version, const std::vector<std::string>& argv,
                                     const std::vector<std::string>& environment_names);

struct Parallelism {
    int tensor = 1;
    int pipeline = 1;
    int data = 1;
};
[[nodiscard]] Parallelism parallelism(const std::vector<std::string>& argv);

/// Why the profile routes are missing, in the words of the person who can change it.
[[nodiscard]] std::string profiler_cause(const std::string& version, const std::vector<std::string>& argv,
                                         const std::vector<std::string>& environment_names);

[[nodiscard]] Result<ProfilerSetting> torch_setting(const std::string& version, const std::string& trace_dir,
                                                    const std::vector<std::string>& argv);
[[nodiscard]] Result<ProfilerSetting> cuda_setting(const std::string& version, const std::vector<std::string>& argv);

[[nodiscard]] Server::Proof log_proof(std::string_view line, bool start, std::string_view tag);
[[nodiscard]] std::optional<Server::TraceName> trace_name(std::string_view file);

}   // namespace campaign::servers::vllm
