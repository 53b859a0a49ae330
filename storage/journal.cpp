#include "storage/journal.hpp"

#include <array>

#include "base/json.hpp"
#include "storage/open.hpp"

namespace campaign::storage {

std::string_view to_string(StepState state) {
    static constexpr std::array<std::string_view, 4> words{"intent", "done", "failed", "in_doubt"};
    return words[static_cast<std::size_t>(state)];
}

std::string_view to_string(Effect effect) {
    static constexpr std::array<std::string_view, 3> words{"observe", "converge", "transition"};
    return words[static_cast<std::size_t>(effect)];
}

std::string_view to_string(UndoState state) {
    static constexpr std::array<std::string_view, 3> words{"pending", "done", "failed"};
    return words[static_cast<std::size_t>(state)];
}

namespace {

class JournalFile final : public Journal {
public:
    explicit JournalFile(Opened opened) : lock_{std::move(opened.lock)}, db_{std::move(opened.database)} {}

    Result<Id> add_campaign(const CampaignRow& row) override {
        std::string name = row.name;
        for (int copy = 2;; ++copy) {
            Result<Use> query = db_.prepare("SELECT 1 FROM campaigns WHERE name=?1");
            if (!query) return query.error();
            query->bind(name);
            const Result<bool> taken = query->step();
            if (!taken) return taken.error();
            if (!*taken) break;
            name = row.name + "-" + std::to_string(copy);
        }
        return insert(
            "INSERT INTO "
            "campaigns(name,plan_text,plan_sha256,state,state_detail,submitted_by,submitted,ended,engine_version) "
            "VALUES(?,?,?,?,?,?,?,?,?)",
            [&](Use& use) {
                use.bind(name)
                    .bind(row.plan_text)
                    .bind(row.plan_sha256)
                    .bind(row.state)
                    .bind(row.state_detail)
                    .bind(row.submitted_by);
                use.bind(row.submitted).bind(row.ended).bind(row.engine_version);
            });
    }

    Result<void> set_campaign_state(Id campaign, const std::string& state, const std::string& detail,
                                    std::optional<Micros> ended, const std::string& error_json) override {
        return change("UPDATE campaigns SET state=?1,state_detail=?2,ended=?3,error_json=?4 WHERE id=?5", "campaign",
                      [&](Use& use) { use.bind(state).bind(detail).bind(ended).bind(error_json).bind(campaign); });
    }

    Result<void> request_cancel(Id campaign, const std::string& by) override {
        return change("UPDATE campaigns SET cancel_requested=1,cancel_by=?1 WHERE id=?2", "campaign",
                      [&](Use& use) { use.bind(by).bind(campaign); });
    }

    Result<Id> put_phase(const PhaseRow& row) override {
        Result<Use> use = db_.prepare(
            "INSERT INTO phases(campaign,ordinal,name,state,method,method_version,began,ended,summary_json) "
            "VALUES(?,?,?,?,?,?,?,?,?) "
            "ON CONFLICT(campaign,ordinal) DO UPDATE SET "
            "name=excluded.name,state=excluded.state,method=excluded.method,method_version=excluded.method_version,"
            "began=excluded.began,ended=excluded.ended,summary_json=excluded.summary_json RETURNING id");
        if (!use) return use.error();
        use->bind(row.campaign).bind(row.ordinal).bind(row.name).bind(row.state).bind(row.method).bind(row.method_version);
        use->bind(row.began).bind(row.ended).bind(row.summary_json);
        const Result<bool> got = use->step();
        if (!got) return got.error();
        const Id id = use->integer(0);
        if (Result<void> rest = use->run(); !rest) return rest.error();
        return id;
    }

    Result<int> step_number(Id step) override {
        Result<Use> use = db_.prepare("SELECT number FROM steps WHERE id=?1");
        if (!use) return use.error();
        use->bind(step);
        const Result<bool> got = use->step();
        if (!got) return got.error();
        if (!*got) return Error{ErrorKind::not_found, "no step " + std::to_string(step), "", "", ""};
        return static_cast<int>(use->integer(0));
    }

    Result<Id> begin_step(const StepRow& row) override {
        {
            Result<Use> known = db_.prepare("SELECT id,state,input_hash FROM steps WHERE campaign=?1 AND path=?2");
            if (!known) return known.error();
            known->bind(row.campaign).bind(row.path);
            const Result<bool> there = known->step();
            if (!there) return there.error();
            if (*there) {
                const Id id = known->integer(0);
                const auto state = static_cast<StepState>(known->integer(1));
                if (state == StepState::done || state == StepState::failed) {
                    return Error{ErrorKind::conflict, "step " + row.path + " has an outcome already",
                                 "it is " + std::string{to_string(state)}, "", ""};
                }
                if (known->text(2) != row.input_hash)
                    return Error{ErrorKind::conflict, "step " + row.path + " is on record with another input", "", "", ""};
                if (Result<void> again = change("UPDATE steps SET attempts=attempts+1,state=0 WHERE id=?1", "step",
                                                [&](Use& use) { use.bind(id); });
                    !again)
                    return again.error();
                return id;
            }
        }
        return insert(
            "INSERT INTO "
            "steps(campaign,number,path,input_hash,input_json,effect,state,intent_at,host,command,before_json,outcome_json,"
            "evidence,attempts) "
            "VALUES(?1,(SELECT coalesce(max(number),0)+1 FROM steps WHERE campaign=?1),?2,?3,?4,?5,?6,?7,?8,?9,?10,'','',1)",
            [&](Use& use) {
                use.bind(row.campaign)
                    .bind(row.path)
                    .bind(row.input_hash)
                    .bind(row.input_json)
                    .bind(static_cast<std::int64_t>(row.effect));
                use.bind(static_cast<std::int64_t>(StepState::intent))
                    .bind(row.intent_at)
                    .bind(row.host)
                    .bind(row.command)
                    .bind(row.before_json);
            });
    }

    Result<void> end_step(Id step, StepState state, const std::string& outcome_json, const std::string& evidence,
                          Micros at) override {
        return change("UPDATE steps SET state=?1,outcome_json=?2,evidence=?3,ended_at=?4 WHERE id=?5", "step",
                      [&](Use& use) {
                          use.bind(static_cast<std::int64_t>(state)).bind(outcome_json).bind(evidence).bind(at).bind(step);
                      });
    }

    Result<void> resolve_step(Id step, StepState state, const std::string& outcome_json, const std::string& evidence,
                              const std::string& by, Micros at) override {
        return change(
            "UPDATE steps SET state=?1,outcome_json=?2,evidence=?3,resolved_by=?4,ended_at=?5 WHERE id=?6", "step",
            [&](Use& use) {
                use.bind(static_cast<std::int64_t>(state)).bind(outcome_json).bind(evidence).bind(by).bind(at).bind(step);
            });
    }

    Result<void> forget_steps(Id campaign, const std::string& path_prefix) override {
        Result<Use> use = db_.prepare(
            "UPDATE steps SET path=path||'@'||id WHERE campaign=?1 AND substr(path,1,length(?2))=?2 AND instr(path,'@')=0");
        if (!use) return use.error();
        use->bind(campaign).bind(path_prefix);
        return use->run();
    }

    Result<Id> add_undo(const UndoRow& row) override {
        return insert("INSERT INTO undos(campaign,step,kind,data_json,state,registered) VALUES(?,?,?,?,?,?)", [&](Use& use) {
            use.bind(row.campaign)
                .bind(row.step)
                .bind(row.kind)
                .bind(row.data_json)
                .bind(static_cast<std::int64_t>(row.state))
                .bind(row.registered);
        });
    }

    Result<void> end_undo(Id undo, UndoState state, const std::string& evidence, Micros at) override {
        return change("UPDATE undos SET state=?1,evidence=?2,finished=?3 WHERE id=?4", "undo",
                      [&](Use& use) { use.bind(static_cast<std::int64_t>(state)).bind(evidence).bind(at).bind(undo); });
    }

    Result<Id> add_decision(const DecisionRow& row) override {
        std::string label = row.label;
        if (label.empty()) {
            Result<Use> count = db_.prepare("SELECT count(*) FROM decisions WHERE campaign=?1");
            if (!count) return count.error();
            count->bind(row.campaign);
            const Result<bool> got = count->step();
            if (!got) return got.error();
            label = "D" + std::to_string(count->integer(0) + 1);
        }
        return insert(
            "INSERT INTO decisions(campaign,phase,label,at,question,chosen,policy,candidates_json,cannot_show,state) "
            "VALUES(?,?,?,?,?,?,?,?,?,?)",
            [&](Use& use) {
                use.bind(row.campaign)
                    .bind(row.phase)
                    .bind(label)
                    .bind(row.at)
                    .bind(row.question)
                    .bind(row.chosen)
                    .bind(row.policy);
                use.bind(row.candidates_json).bind(row.cannot_show).bind(row.state);
            });
    }

    Result<void> set_decision_state(Id decision, const std::string& state) override {
        return change("UPDATE decisions SET state=?1 WHERE id=?2", "decision",
                      [&](Use& use) { use.bind(state).bind(decision); });
    }

    Result<Id> add_approval(const ApprovalRow& row) override {
        return insert(
            "INSERT INTO approvals(campaign,decision,candidate,by_whom,at,expires) VALUES(?,?,?,?,?,?)", [&](Use& use) {
                use.bind(row.campaign).bind(row.decision).bind(row.candidate).bind(row.by).bind(row.at).bind(row.expires);
            });
    }

    Result<Id> add_artifact(const ArtifactRow& row) override {
        Result<Use> use = db_.prepare(
            "INSERT INTO artifacts(campaign,step,kind,name,sha256,size,origin,detail_json,at) VALUES(?,?,?,?,?,?,?,?,?) "
            "ON CONFLICT(step,name,sha256) DO UPDATE SET kind=excluded.kind RETURNING id");
        if (!use) return use.error();
        use->bind(row.campaign)
            .bind(row.step)
            .bind(row.kind)
            .bind(row.name)
            .bind(row.sha256)
            .bind(static_cast<std::int64_t>(row.size));
        use->bind(row.origin).bind(row.detail_json).bind(row.at);
        const Result<bool> got = use->step();
        if (!got) return got.error();
        const Id id = use->integer(0);
        if (Result<void> rest = use->run(); !rest) return rest.error();
        return id;
    }

    Result<Id> add_observation(const ObservationRow& row) override {
        return insert("INSERT INTO observations(campaign,step,at,kind,data_json) VALUES(?,?,?,?,?)", [&](Use& use) {
            use.bind(row.campaign).bind(row.step).bind(row.at).bind(row.kind).bind(row.data_json);
        });
    }

    Result<Id> add_load(const LoadRow& row) override {
        return insert(
            "INSERT INTO loads(campaign,host,service,model,mode,began,seconds,finished,outcome) VALUES(?,?,?,?,?,?,?,?,?)",
            [&](Use& use) {
                use.bind(row.campaign)
                    .bind(row.host)
                    .bind(row.service)
                    .bind(row.model)
                    .bind(row.mode)
                    .bind(row.began)
                    .bind_real(row.seconds);
                use.bind(std::int64_t{row.finished}).bind(row.outcome);
            });
    }

    Result<Id> add_event(const EventRow& row) override {
        std::string subject;
        if (const auto data = parse_json(row.data_json, "event"); data) subject = string_at(*data, "subject").value_or("");
        return insert("INSERT INTO events(campaign,at,kind,subject,data_json) VALUES(?,?,?,?,?)", [&](Use& use) {
            use.bind(row.campaign).bind(row.at).bind(row.kind).bind(subject).bind(row.data_json);
        });
    }

    Result<void> audit(const std::string& who, const std::string& act, const std::string& detail, Micros at) override {
        const Result<Id> added = insert("INSERT INTO audit(at,who,act,detail) VALUES(?,?,?,?)",
                                        [&](Use& use) { use.bind(at).bind(who).bind(act).bind(detail); });
        if (!added) return added.error();
        return {};
    }

    Result<void> begin() override {
        if (db_.damage()) return *db_.damage();   // SQLite would still take some writes into a damaged file
        return db_.run("BEGIN IMMEDIATE");
    }
    Result<void> commit() override {
        Result<void> done = db_.run("COMMIT");
        pages_ += db_.take_pages_written();
        return done;
    }
    void rollback() override {
        if (db_.in_transaction()) (void)db_.run("ROLLBACK");   // SQLite may have rolled back by itself
    }
    [[nodiscard]] bool in_transaction() const override { return db_.in_transaction(); }
    Result<void> savepoint() override { return db_.run("SAVEPOINT work"); }
    Result<void> release() override { return db_.run("RELEASE work"); }
    Result<void> undo_savepoint() override {
        if (Result<void> undone = db_.run("ROLLBACK TO work"); !undone) return undone;
        return db_.run("RELEASE work");
    }
    [[nodiscard]] bool checkpoint_due() const override { return pages_ >= 100; }
    void checkpoint() override {
        db_.checkpoint();
        (void)db_.take_pages_written();
        pages_ = 0;
    }

private:
    template <class Bind>
    Result<Id> insert(std::string_view sql, Bind bind) {
        Result<Use> use = db_.prepare(sql);
        if (!use) return use.error();
        bind(*use);
        if (Result<void> done = use->run(); !done) return done.error();
        return db_.last_id();
    }
    template <class Bind>
    Result<void> change(std::string_view sql, const char* what, Bind bind) {
        Result<Use> use = db_.prepare(sql);
        if (!use) return use.error();
        bind(*use);
        if (Result<void> done = use->run(); !done) return done;
        if (db_.changes() == 0) return Error{ErrorKind::not_found, std::string{"there is no such "} + what, "", "", ""};
        return {};
    }

    Fd lock_;   // first: let go after the database is closed
    Database db_;
    std::size_t pages_ = 0;   // in the log since the last checkpoint
};

}   // namespace

Result<std::unique_ptr<Journal>> Journal::open(const std::filesystem::path& file) {
    Result<Opened> opened = open_for_writing(file);
    if (!opened) return opened.error();
    return std::unique_ptr<Journal>{std::make_unique<JournalFile>(std::move(*opened))};
}

}   // namespace campaign::storage
