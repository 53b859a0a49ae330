#pragma once
// Work of ours on a host: campaign-agent copied there, run as a detached job, its result fetched into the vault.

#include <optional>
#include <string>

#include "daemon/methods/service_step.hpp"

namespace campaign::methods {

/// Where our files lie on a host.
struct WorkPlace {
    std::string agent;   ///< path of campaign-agent there; its name holds the hash
    std::string jobs;    ///< folder of this campaign's jobs
};
[[nodiscard]] WorkPlace work_place(Campaign& campaign, const std::string& service);

struct LoadRequest {
    std::string label;   ///< "sweep", "warm-up", "capture": part of the job's name
    json::object spec;   ///< campaign.load-spec/1 without url, unix_socket and api_key_file
    Millis limit;        ///< the job is ended after this
};

struct LoadDone {
    json::value result;   ///< campaign.load/1
    std::string sha256;   ///< of the artifact
};

/// Load from the target host itself, beside the server: send-agent, write-spec, start-job, await-job, collect, clear-job.
/// The job survives a lost link and our own death, and is met again.
Async<Result<LoadDone>> run_load(Track& track, std::string service, LoadRequest request);

}   // namespace campaign::methods
