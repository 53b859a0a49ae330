#pragma once
// What happened: every campaign, step, decision, undo, observation and artifact, in one SQLite file.
//
// The daemon is the only writer. Writes go through Writer (one thread, group commit, synchronous=FULL); the API reads
// through a Reader of its own (WAL snapshot). Times are microseconds since 1970 UTC; JSON columns hold text.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace campaign::storage {

using Micros = std::int64_t;
using Id = std::int64_t;

enum class StepState { intent, done, failed, in_doubt };
enum class Effect { observe, converge, transition };
enum class UndoState { pending, done, failed };
[[nodiscard]] std::string_view to_string(StepState state);
[[nodiscard]] std::string_view to_string(Effect effect);
[[nodiscard]] std::string_view to_string(UndoState state);

struct CampaignRow {
    Id id = 0;
    std::string name;        ///< unique; the plan's name, or name-2, name-3 ... for later submissions
    std::string plan_text;   ///< frozen
    std::string plan_sha256;
    std::string state;          ///< the engine's word: queued running waiting restoring done failed cancelled in_doubt
    std::string state_detail;   ///< one sentence for people
    std::string submitted_by;
    Micros submitted = 0;
    std::optional<Micros> ended;
    bool cancel_requested = false;
    std::string cancel_by;
    std::string error_json;   ///< of a failed campaign; "" else
    std::string engine_version;
};

struct PhaseRow {
    Id id = 0;
    Id campaign = 0;
    int ordinal = 0;
    std::string name;
    std::string state;    ///< pending running done pivoted failed skipped deferred
    std::string method;   ///< the one chosen last
    int method_version = 0;
    std::optional<Micros> began;
    std::optional<Micros> ended;
    std::string summary_json;   ///< what it found, for status and report
};

struct StepRow {
    Id id = 0;
    Id campaign = 0;
    int number = 0;     ///< counted in its campaign from 1: the N of label sN; given by the journal
    std::string path;   ///< "where-does-decode-go/torch-profile/3/restart-unit"; unique in a campaign
    std::string input_hash;
    std::string input_json;
    Effect effect = Effect::observe;
    StepState state = StepState::intent;
    Micros intent_at = 0;
    std::optional<Micros> ended_at;
    std::string host;
    std::string command;       ///< as an operator could type it; "" when there is none
    std::string before_json;   ///< evidence taken before acting (InvocationID, cursor, nonce)
    std::string outcome_json;
    std::string evidence;      ///< one line
    int attempts = 1;          ///< how often it was begun
    std::string resolved_by;   ///< who settled an in-doubt step
};

struct UndoRow {
    Id id = 0;
    Id campaign = 0;
    Id step = 0;
    std::string kind;
    std::string data_json;   ///< everything that carrying it out needs
    UndoState state = UndoState::pending;
    Micros registered = 0;
    std::optional<Micros> finished;
    std::string evidence;
};

struct DecisionRow {
    Id id = 0;
    Id campaign = 0;
    std::string phase;
    std::string label;   ///< "D2": unique in a campaign
    Micros at = 0;
    std::string question;
    std::string chosen;   ///< method, or "" when none
    std::string policy;
    std::string candidates_json;   ///< every candidate with capability evidence, downtime, verdict, reason
    std::string cannot_show;
    std::string state;   ///< final | open (waits for an approval) | superseded | expired
};

struct ApprovalRow {
    Id id = 0;
    Id campaign = 0;
    std::string decision;    ///< label
    std::string candidate;   ///< method
    std::string by;
    Micros at = 0;
    Micros expires = 0;
};

struct ArtifactRow {
    Id id = 0;
    Id campaign = 0;
    Id step = 0;
    std::string kind;   ///< "trace", "load-result", "log", "analysis", ...
    std::string name;   ///< file name as it was on the host, made safe
    std::string sha256;
    std::uint64_t size = 0;
    std::string origin;        ///< "gpu07:/var/lib/.../rank0.json.gz"
    std::string detail_json;   ///< rank, completeness, ...
    Micros at = 0;
};

struct ObservationRow {
    Id id = 0;
    Id campaign = 0;
    Id step = 0;
    Micros at = 0;
    std::string kind;   ///< "probe", "log", "progress", "state"
    std::string data_json;
};

/// One model load, also one that was given up.
struct LoadRow {
    Id id = 0;
    Id campaign = 0;
    std::string host;
    std::string service;
    std::string model;
    std::string mode;   ///< production | profiler | nsys
    Micros began = 0;
    double seconds = 0;   ///< to ready, or how long it survived
    bool finished = false;
    std::string outcome;   ///< ready failed stalled cancelled
};

struct EventRow {
    Id seq = 0;   ///< strictly rising over the whole journal: the live events' id
    Id campaign = 0;
    Micros at = 0;
    std::string kind;   ///< campaign step decision approval undo artifact progress production note
    std::string data_json;
};

/// A connection that may write. Used on one thread. Every call fails with: disk_full, io, conflict (a constraint), bug.
/// After the first sign of a damaged file begin() refuses: nothing more is written into it.
class Journal {
public:
    /// Opens or makes the database. Refuses, each with its own text: a network file system, a newer schema, another process
    /// that has it open (names its pid), a damaged file. Migrates an older schema forward after copying the file.
    [[nodiscard]] static Result<std::unique_ptr<Journal>> open(const std::filesystem::path& file);
    virtual ~Journal() = default;

    // Writing. Returned ids are the new rows'.
    virtual Result<Id> add_campaign(const CampaignRow& row) = 0;
    virtual Result<void> set_campaign_state(Id campaign, const std::string& state, const std::string& detail,
                                            std::optional<Micros> ended, const std::string& error_json) = 0;
    virtual Result<void> request_cancel(Id campaign, const std::string& by) = 0;
    virtual Result<Id> put_phase(const PhaseRow& row) = 0;   ///< insert or update by (campaign, ordinal)
    virtual Result<int> step_number(Id step) = 0;            ///< the N of label sN, counted in its campaign from 1
    virtual Result<Id> begin_step(
        const StepRow& row) = 0;   ///< intent; an existing intent of that path counts another attempt
    virtual Result<void> end_step(Id step, StepState state, const std::string& outcome_json, const std::string& evidence,
                                  Micros at) = 0;
    virtual Result<void> resolve_step(Id step, StepState state, const std::string& outcome_json, const std::string& evidence,
                                      const std::string& by, Micros at) = 0;
    virtual Result<void> forget_steps(
        Id campaign, const std::string& path_prefix) = 0;   ///< renames them aside (PATH@N): kept, not replayed
    virtual Result<Id> add_undo(const UndoRow& row) = 0;
    virtual Result<void> end_undo(Id undo, UndoState state, const std::string& evidence, Micros at) = 0;
    virtual Result<Id> add_decision(const DecisionRow& row) = 0;   ///< the label is given by the journal when empty
    virtual Result<void> set_decision_state(Id decision, const std::string& state) = 0;
    virtual Result<Id> add_approval(const ApprovalRow& row) = 0;
    virtual Result<Id> add_artifact(const ArtifactRow& row) = 0;   ///< the same (step, name, sha256) twice is one row
    virtual Result<Id> add_observation(const ObservationRow& row) = 0;
    virtual Result<Id> add_load(const LoadRow& row) = 0;
    virtual Result<Id> add_event(const EventRow& row) = 0;
    virtual Result<void> audit(const std::string& who, const std::string& act, const std::string& detail, Micros at) = 0;

    // One transaction around several of the above; Writer does this.
    virtual Result<void> begin() = 0;
    virtual Result<void> commit() = 0;
    virtual void rollback() = 0;
    /// False within begin() and commit() means that SQLite took everything back by itself, as it does on a full disk.
    [[nodiscard]] virtual bool in_transaction() const = 0;
    // A piece of a transaction that can be taken back alone.
    virtual Result<void> savepoint() = 0;
    virtual Result<void> release() = 0;
    virtual Result<void> undo_savepoint() = 0;
    /// The log has grown enough since the last checkpoint.
    [[nodiscard]] virtual bool checkpoint_due() const = 0;
    /// Moves the log into the database, so that it stays small; harmless at any time outside a transaction, never waits.
    virtual void checkpoint() = 0;
};

/// A read-only connection: a consistent view a call. Used on one thread.
class Reader {
public:
    [[nodiscard]] static Result<std::unique_ptr<Reader>> open(const std::filesystem::path& file);
    virtual ~Reader() = default;

    virtual Result<std::vector<CampaignRow>> campaigns() = 0;    ///< newest first
    virtual Result<std::vector<CampaignRow>> unfinished() = 0;   ///< oldest first
    virtual Result<std::optional<CampaignRow>> campaign(Id id) = 0;
    virtual Result<std::optional<CampaignRow>> campaign_by_name(const std::string& name) = 0;
    virtual Result<std::vector<PhaseRow>> phases(Id campaign) = 0;
    virtual Result<std::vector<StepRow>> steps(Id campaign) = 0;   ///< in order of first intent; one range scan
    virtual Result<std::optional<StepRow>> step(Id step) = 0;
    virtual Result<std::vector<UndoRow>> undos(Id campaign) = 0;   ///< in order of registration
    virtual Result<std::vector<DecisionRow>> decisions(Id campaign) = 0;
    virtual Result<std::vector<ApprovalRow>> approvals(Id campaign) = 0;
    virtual Result<std::vector<ArtifactRow>> artifacts(Id campaign) = 0;
    virtual Result<std::vector<ObservationRow>> observations(Id campaign, Id step, std::size_t limit) = 0;   ///< step 0: all
    virtual Result<std::vector<LoadRow>> loads(const std::string& host,
                                               const std::string& service) = 0;   ///< newest first, at most 50
    virtual Result<std::vector<EventRow>> events(Id campaign, Id after, std::size_t limit) = 0;   ///< campaign 0: all
    /// The newest event of a kind in a campaign, of the one subject (data's "subject" member) where that is not empty.
    virtual Result<std::optional<EventRow>> latest_event(Id campaign, const std::string& kind,
                                                         const std::string& subject) = 0;
    virtual Result<Id> last_event() = 0;
};

/// The one writer: a thread that takes all queued work, runs each piece in a savepoint, commits once, then tells each.
class Writer {
public:
    using Work = std::function<Result<void>(Journal&)>;
    using Done = std::function<void(Result<void>)>;   ///< called on the writer's thread, after the commit is on disk

    explicit Writer(std::unique_ptr<Journal> journal);
    ~Writer();   ///< runs what is queued, then ends
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;

    void submit(Work work, Done done);

private:
    struct State;
    std::unique_ptr<State> state_;
};

}   // namespace campaign::storage
