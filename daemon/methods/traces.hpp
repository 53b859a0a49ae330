#pragma once
// Trace files on a host: proven finished, fetched, checked, analysed, and cleaned up.

#include <string>
#include <vector>

#include "daemon/methods/service_step.hpp"

namespace campaign::methods {

/// Files that are in the folder now: what a later look is compared with.
class ListTraces final : public ServiceStep {
public:
    ListTraces(Campaign& campaign, std::string service, std::string folder)
        : ServiceStep{campaign, std::move(service)}, folder_{std::move(folder)} {}
    [[nodiscard]] std::string name() const override { return "list-traces"; }
    [[nodiscard]] std::string title() const override { return "list " + folder_ + " on " + host(); }
    [[nodiscard]] Effect effect() const override { return Effect::observe; }
    [[nodiscard]] json::object input() const override;
    Async<Outcome> act(Scope& scope, const json::object& before) override;

private:
    std::string folder_;
};

struct TraceFile {
    std::string path;
    std::uint64_t size = 0;
    int rank = -1;
};

/// Waits until each expected rank has a new trace that no process has open for writing and whose size stands still. done:
/// the files, complete or with the missing ranks named; failed: none came.
class AwaitTraces final : public ServiceStep {
public:
    AwaitTraces(Campaign& campaign, std::string service, std::string kind, std::string folder, json::array already,
                int ranks, Millis limit)
        : ServiceStep{campaign, std::move(service)},
          kind_{std::move(kind)},
          folder_{std::move(folder)},
          already_(std::move(already)),
          ranks_{ranks},
          limit_{limit} {}
    [[nodiscard]] std::string name() const override { return "await-traces"; }
    [[nodiscard]] std::string title() const override { return "wait until the traces in " + folder_ + " are whole"; }
    [[nodiscard]] Effect effect() const override { return Effect::observe; }
    [[nodiscard]] json::object input() const override;
    [[nodiscard]] json::object example() const override;
    Async<Outcome> act(Scope& scope, const json::object& before) override;

private:
    std::string kind_;
    std::string folder_;
    json::array already_;
    int ranks_;
    Millis limit_;
};
[[nodiscard]] std::vector<TraceFile> trace_files(const Outcome& awaited);

/// Fetches the traces (as plans::Traces says), checks and analyses them, removes from the host what is safe in the vault.
/// Gives the analysis (campaign.trace/1) and its artifact.
struct Analysed {
    json::value analysis;
    std::string sha256;
    json::array traces;   ///< {rank, name, sha256, size, complete, where}
};
Async<Result<Analysed>> gather(Track& track, std::string service, std::vector<TraceFile> files, plans::Traces how);

}   // namespace campaign::methods
