#include "storage/journal.hpp"
#include "storage/open.hpp"

namespace campaign::storage {
namespace {

constexpr std::string_view campaign_columns_newest =
    "SELECT "
    "id,name,plan_text,plan_sha256,state,state_detail,submitted_by,submitted,ended,cancel_requested,cancel_by,error_json,"
    "engine_version FROM campaigns ORDER BY id DESC";
constexpr std::string_view campaign_columns_open =
    "SELECT "
    "id,name,plan_text,plan_sha256,state,state_detail,submitted_by,submitted,ended,cancel_requested,cancel_by,error_json,"
    "engine_version FROM campaigns WHERE ended IS NULL ORDER BY id";
constexpr std::string_view campaign_by_id =
    "SELECT "
    "id,name,plan_text,plan_sha256,state,state_detail,submitted_by,submitted,ended,cancel_requested,cancel_by,error_json,"
    "engine_version FROM campaigns WHERE id=?1";
constexpr std::string_view campaign_by_its_name =
    "SELECT "
    "id,name,plan_text,plan_sha256,state,state_detail,submitted_by,submitted,ended,cancel_requested,cancel_by,error_json,"
    "engine_version FROM campaigns WHERE name=?1";
constexpr std::string_view steps_of =
    "SELECT "
    "id,campaign,number,path,input_hash,input_json,effect,state,intent_at,ended_at,host,command,before_json,outcome_json,"
    "evidence,attempts,resolved_by FROM steps WHERE campaign=?1 ORDER BY id";
constexpr std::string_view step_by_id =
    "SELECT "
    "id,campaign,number,path,input_hash,input_json,effect,state,intent_at,ended_at,host,command,before_json,outcome_json,"
    "evidence,attempts,resolved_by FROM steps WHERE id=?1";

CampaignRow campaign_from(const Use& use) {
    CampaignRow row;
    row.id = use.integer(0);
    row.name = use.text(1);
    row.plan_text = use.text(2);
    row.plan_sha256 = use.text(3);
    row.state = use.text(4);
    row.state_detail = use.text(5);
    row.submitted_by = use.text(6);
    row.submitted = use.integer(7);
    row.ended = use.optional_integer(8);
    row.cancel_requested = use.integer(9) != 0;
    row.cancel_by = use.text(10);
    row.error_json = use.text(11);
    row.engine_version = use.text(12);
    return row;
}

StepRow step_from(const Use& use) {
    StepRow row;
    row.id = use.integer(0);
    row.campaign = use.integer(1);
    row.number = static_cast<int>(use.integer(2));
    row.path = use.text(3);
    row.input_hash = use.text(4);
    row.input_json = use.text(5);
    row.effect = static_cast<Effect>(use.integer(6));
    row.state = static_cast<StepState>(use.integer(7));
    row.intent_at = use.integer(8);
    row.ended_at = use.optional_integer(9);
    row.host = use.text(10);
    row.command = use.text(11);
    row.before_json = use.text(12);
    row.outcome_json = use.text(13);
    row.evidence = use.text(14);
    row.attempts = static_cast<int>(use.integer(15));
    row.resolved_by = use.text(16);
    return row;
}

EventRow event_from(const Use& use) {
    EventRow row;
    row.seq = use.integer(0);
    row.campaign = use.integer(1);
    row.at = use.integer(2);
    row.kind = use.text(3);
    row.data_json = use.text(4);
    return row;
}

class ReaderFile final : public Reader {
public:
    explicit ReaderFile(Database database) : db_{std::move(database)} {}

    Result<std::vector<CampaignRow>> campaigns() override {
        return all<CampaignRow>(
            campaign_columns_newest, [](Use&) {}, campaign_from);
    }
    Result<std::vector<CampaignRow>> unfinished() override {
        return all<CampaignRow>(
            campaign_columns_open, [](Use&) {}, campaign_from);
    }
    Result<std::optional<CampaignRow>> campaign(Id id) override {
        return one<CampaignRow>(
            campaign_by_id, [id](Use& use) { use.bind(id); }, campaign_from);
    }
    Result<std::optional<CampaignRow>> campaign_by_name(const std::string& name) override {
        return one<CampaignRow>(
            campaign_by_its_name, [&name](Use& use) { use.bind(name); }, campaign_from);
    }
    Result<std::vector<PhaseRow>> phases(Id campaign) override {
        return all<PhaseRow>(
            "SELECT id,campaign,ordinal,name,state,method,method_version,began,ended,summary_json FROM phases WHERE "
            "campaign=?1 ORDER BY ordinal",
            [campaign](Use& use) { use.bind(campaign); },
            [](const Use& use) {
                PhaseRow row;
                row.id = use.integer(0);
                row.campaign = use.integer(1);
                row.ordinal = static_cast<int>(use.integer(2));
                row.name = use.text(3);
                row.state = use.text(4);
                row.method = use.text(5);
                row.method_version = static_cast<int>(use.integer(6));
                row.began = use.optional_integer(7);
                row.ended = use.optional_integer(8);
                row.summary_json = use.text(9);
                return row;
            });
    }
    Result<std::vector<StepRow>> steps(Id campaign) override {
        return all<StepRow>(
            steps_of, [campaign](Use& use) { use.bind(campaign); }, step_from);
    }
    Result<std::optional<StepRow>> step(Id step) override {
        return one<StepRow>(
            step_by_id, [step](Use& use) { use.bind(step); }, step_from);
    }
    Result<std::vector<UndoRow>> undos(Id campaign) override {
        return all<UndoRow>(
            "SELECT id,campaign,step,kind,data_json,state,registered,finished,evidence FROM undos WHERE campaign=?1 ORDER "
            "BY id",
            [campaign](Use& use) { use.bind(campaign); },
            [](const Use& use) {
                UndoRow row;
                row.id = use.integer(0);
                row.campaign = use.integer(1);
                row.step = use.integer(2);
                row.kind = use.text(3);
                row.data_json = use.text(4);
                row.state = static_cast<UndoState>(use.integer(5));
                row.registered = use.integer(6);
                row.finished = use.optional_integer(7);
                row.evidence = use.text(8);
                return row;
            });
    }
    Result<std::vector<DecisionRow>> decisions(Id campaign) override {
        return all<DecisionRow>(
            "SELECT id,campaign,phase,label,at,question,chosen,policy,candidates_json,cannot_show,state FROM decisions "
            "WHERE campaign=?1 ORDER BY id",
            [campaign](Use& use) { use.bind(campaign); },
            [](const Use& use) {
                DecisionRow row;
                row.id = use.integer(0);
                row.campaign = use.integer(1);
                row.phase = use.text(2);
                row.label = use.text(3);
                row.at = use.integer(4);
                row.question = use.text(5);
                row.chosen = use.text(6);
                row.policy = use.text(7);
                row.candidates_json = use.text(8);
                row.cannot_show = use.text(9);
                row.state = use.text(10);
                return row;
            });
    }
    Result<std::vector<ApprovalRow>> approvals(Id campaign) override {
        return all<ApprovalRow>(
            "SELECT id,campaign,decision,candidate,by_whom,at,expires FROM approvals WHERE campaign=?1 ORDER BY id",
            [campaign](Use& use) { use.bind(campaign); },
            [](const Use& use) {
                ApprovalRow row;
                row.id = use.integer(0);
                row.campaign = use.integer(1);
                row.decision = use.text(2);
                row.candidate = use.text(3);
                row.by = use.text(4);
                row.at = use.integer(5);
                row.expires = use.integer(6);
                return row;
            });
    }
    Result<std::vector<ArtifactRow>> artifacts(Id campaign) override {
        return all<ArtifactRow>(
            "SELECT id,campaign,step,kind,name,sha256,size,origin,detail_json,at FROM artifacts WHERE campaign=?1 ORDER BY "
            "id",
            [campaign](Use& use) { use.bind(campaign); },
            [](const Use& use) {
                ArtifactRow row;
                row.id = use.integer(0);
                row.campaign = use.integer(1);
                row.step = use.integer(2);
                row.kind = use.text(3);
                row.name = use.text(4);
                row.sha256 = use.text(5);
                row.size = static_cast<std::uint64_t>(use.integer(6));
                row.origin = use.text(7);
                row.detail_json = use.text(8);
                row.at = use.integer(9);
                return row;
            });
    }
    Result<std::vector<ObservationRow>> observations(Id campaign, Id step, std::size_t limit) override {
        return all<ObservationRow>(
            "SELECT id,campaign,step,at,kind,data_json FROM observations WHERE campaign=?1 AND (?2=0 OR step=?2) ORDER BY "
            "id LIMIT ?3",
            [&](Use& use) { use.bind(campaign).bind(step).bind(static_cast<std::int64_t>(limit)); },
            [](const Use& use) {
                ObservationRow row;
                row.id = use.integer(0);
                row.campaign = use.integer(1);
                row.step = use.integer(2);
                row.at = use.integer(3);
                row.kind = use.text(4);
                row.data_json = use.text(5);
                return row;
            });
    }
    Result<std::vector<LoadRow>> loads(const std::string& host, const std::string& service) override {
        return all<LoadRow>(
            "SELECT id,campaign,host,service,model,mode,began,seconds,finished,outcome FROM loads WHERE host=?1 AND "
            "service=?2 ORDER BY id DESC LIMIT 50",
            [&](Use& use) { use.bind(host).bind(service); },
            [](const Use& use) {
                LoadRow row;
                row.id = use.integer(0);
                row.campaign = use.integer(1);
                row.host = use.text(2);
                row.service = use.text(3);
                row.model = use.text(4);
                row.mode = use.text(5);
                row.began = use.integer(6);
                row.seconds = use.real(7);
                row.finished = use.integer(8) != 0;
                row.outcome = use.text(9);
                return row;
            });
    }
    Result<std::vector<EventRow>> events(Id campaign, Id after, std::size_t limit) override {
        const auto bound = static_cast<std::int64_t>(limit);
        if (campaign == 0) {
            return all<EventRow>(
                "SELECT seq,campaign,at,kind,data_json FROM events WHERE seq>?1 ORDER BY seq LIMIT ?2",
                [&](Use& use) { use.bind(after).bind(bound); }, event_from);
        }
        return all<EventRow>(
            "SELECT seq,campaign,at,kind,data_json FROM events WHERE campaign=?1 AND seq>?2 ORDER BY seq LIMIT ?3",
            [&](Use& use) { use.bind(campaign).bind(after).bind(bound); }, event_from);
    }
    Result<std::optional<EventRow>> latest_event(Id campaign, const std::string& kind, const std::string& subject) override {
        if (subject.empty()) {
            return one<EventRow>(
                "SELECT seq,campaign,at,kind,data_json FROM events WHERE campaign=?1 AND kind=?2 ORDER BY seq DESC LIMIT 1",
                [&](Use& use) { use.bind(campaign).bind(kind); }, event_from);
        }
        return one<EventRow>(
            "SELECT seq,campaign,at,kind,data_json FROM events WHERE campaign=?1 AND kind=?2 AND subject=?3 ORDER BY seq "
            "DESC LIMIT 1",
            [&](Use& use) { use.bind(campaign).bind(kind).bind(subject); }, event_from);
    }
    Result<Id> last_event() override {
        Result<Use> use = db_.prepare("SELECT coalesce(max(seq),0) FROM events");
        if (!use) return use.error();
        const Result<bool> got = use->step();
        if (!got) return got.error();
        return use->integer(0);
    }

private:
    template <class Row, class Bind, class From>
    Result<std::vector<Row>> all(std::string_view sql, Bind bind, From from) {
        Result<Use> use = db_.prepare(sql);
        if (!use) return use.error();
        bind(*use);
        std::vector<Row> rows;
        for (;;) {
            const Result<bool> more = use->step();
            if (!more) return more.error();
            if (!*more) return rows;
            rows.push_back(from(*use));
        }
    }
    template <class Row, class Bind, class From>
    Result<std::optional<Row>> one(std::string_view sql, Bind bind, From from) {
        Result<Use> use = db_.prepare(sql);
        if (!use) return use.error();
        bind(*use);
        const Result<bool> there = use->step();
        if (!there) return there.error();
        if (!*there) return std::optional<Row>{};
        return std::optional<Row>{from(*use)};
    }

    Database db_;
};

}   // namespace

Result<std::unique_ptr<Reader>> Reader::open(const std::filesystem::path& file) {
    Result<Database> database = open_for_reading(file);
    if (!database) return database.error();
    return std::unique_ptr<Reader>{std::make_unique<ReaderFile>(std::move(*database))};
}

}   // namespace campaign::storage
