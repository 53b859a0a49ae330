#pragma once
// What a step may use while it acts: the world, its own place in the journal, and ways to leave a trace of what it saw.

#include <map>
#include <memory>
#include <set>
#include <string>

#include "daemon/engine/step.hpp"
#include "daemon/engine/world.hpp"

namespace campaign::engine {

/// One service of a campaign with the connections that serve it; made once, kept while the campaign runs.
struct ServiceLink {
    plans::Service service;
    plans::Host where;
    std::shared_ptr<host::Host> host;
    std::unique_ptr<host::ServiceManager> manager;
    [[nodiscard]] const std::string& unit() const { return service.unit.empty() ? service.name : service.unit; }
};

/// A step that a rehearsal met.
struct Planned {
    std::string path;
    std::string title;
    std::string host;
    std::string command;
    Effect effect = Effect::observe;
};

/// A campaign's state in memory, all of it also in the journal.
struct Campaign {
    Campaign(World& world_, storage::CampaignRow row_, plans::Plan plan_);

    World& world;
    storage::CampaignRow row;
    plans::Plan plan;
    std::map<std::string, storage::StepRow> memo;   ///< by path
    std::set<std::string> marks;                    ///< changes of phases that are on record
    std::vector<Planned>* rehearsal = nullptr;      ///< set: nothing is done, each step is noted here
    bool stopping = false;                          ///< the daemon ends; nothing is decided any more

    /// The service's link; made at first use.
    ServiceLink& link(const std::string& service);

    // Set by whoever runs the campaign; each is called on the loop.
    std::function<Async<void>(std::string what)> await_word;   ///< until a person says something (approve, resume, cancel)

private:
    std::map<std::string, std::unique_ptr<ServiceLink>> links_;
};

class Scope {
public:
    Scope(Campaign& campaign, std::string path, storage::Id step, std::string phase)
        : campaign_{campaign}, path_{std::move(path)}, phase_{std::move(phase)}, step_{step} {}

    [[nodiscard]] Campaign& campaign() const { return campaign_; }
    [[nodiscard]] World& world() const { return campaign_.world; }
    [[nodiscard]] Clock& clock() const { return campaign_.world.clock; }
    [[nodiscard]] storage::Id step() const { return step_; }
    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] const std::string& phase() const { return phase_; }

    /// An event of docs/journal-events.md.
    Async<void> event(std::string kind, json::object data);
    /// An observation that belongs to this step.
    Async<void> observe(std::string kind, json::object data);
    /// Bytes into the vault and on record.
    Async<Result<std::string>> keep(std::string kind, std::string name, std::string bytes, std::string origin,
                                    json::object detail);
    /// A file into the vault and on record; the file is gone afterwards.
    Async<Result<std::string>> keep_file(std::string kind, std::string name, std::filesystem::path file,
                                         std::string expected_sha256, std::string origin, json::object detail);

private:
    Async<Result<std::string>> record(std::string kind, std::string name, storage::Stored stored, std::string origin,
                                      json::object detail);

    Campaign& campaign_;
    std::string path_;
    std::string phase_;
    storage::Id step_;
};

/// Wall time as the journal keeps it.
[[nodiscard]] storage::Micros micros(WallTime when);
[[nodiscard]] WallTime wall_time(storage::Micros when);

/// Writes one event outside any step.
Async<void> write_event(Campaign& campaign, std::string kind, json::object data);

}   // namespace campaign::engine
