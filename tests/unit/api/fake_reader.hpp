#pragma once
// A journal in memory, as the views and the server read it.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "storage/journal.hpp"

namespace campaign::api::test {

inline storage::Micros at(const std::string& clock) {
    return parse_time("2026-12-01T" + clock + "Z").value().time_since_epoch().count();
}

class FakeReader final : public storage::Reader {
public:
    std::vector<storage::CampaignRow> campaign_rows;   // oldest first
    std::vector<storage::PhaseRow> phase_rows;
    std::vector<storage::StepRow> step_rows;
    std::vector<storage::UndoRow> undo_rows;
    std::vector<storage::DecisionRow> decision_rows;
    std::vector<storage::ApprovalRow> approval_rows;
    std::vector<storage::ArtifactRow> artifact_rows;
    std::vector<storage::EventRow> event_rows;
    std::size_t events_read = 0;   // rows handed out by events()

    storage::CampaignRow& add_campaign(std::string name, std::string state) {
        storage::CampaignRow row;
        row.id = static_cast<storage::Id>(campaign_rows.size()) + 1;
        row.name = std::move(name);
        row.state = std::move(state);
        row.submitted_by = "ana";
        row.submitted = at("20:05:00");
        campaign_rows.push_back(row);
        return campaign_rows.back();
    }
    void add_event(storage::Id campaign, std::string clock, std::string kind, std::string data) {
        storage::EventRow row;
        row.seq = event_rows.empty() ? 1 : event_rows.back().seq + 1;
        row.campaign = campaign;
        row.at = at(clock);
        row.kind = std::move(kind);
        row.data_json = std::move(data);
        event_rows.push_back(std::move(row));
    }

    Result<std::vector<storage::CampaignRow>> campaigns() override {
        return std::vector<storage::CampaignRow>{campaign_rows.rbegin(), campaign_rows.rend()};
    }
    Result<std::vector<storage::CampaignRow>> unfinished() override { return std::vector<storage::CampaignRow>{}; }
    Result<std::optional<storage::CampaignRow>> campaign(storage::Id id) override {
        return first(campaign_rows, [id](const auto& row) { return row.id == id; });
    }
    Result<std::optional<storage::CampaignRow>> campaign_by_name(const std::string& name) override {
        return first(campaign_rows, [&name](const auto& row) { return row.name == name; });
    }
    Result<std::vector<storage::PhaseRow>> phases(storage::Id id) override { return of(phase_rows, id); }
    Result<std::vector<storage::StepRow>> steps(storage::Id id) override { return of(step_rows, id); }
    Result<std::optional<storage::StepRow>> step(storage::Id id) override {
        return first(step_rows, [id](const auto& row) { return row.id == id; });
    }
    Result<std::vector<storage::UndoRow>> undos(storage::Id id) override { return of(undo_rows, id); }
    Result<std::vector<storage::DecisionRow>> decisions(storage::Id id) override { return of(decision_rows, id); }
    Result<std::vector<storage::ApprovalRow>> approvals(storage::Id id) override { return of(approval_rows, id); }
    Result<std::vector<storage::ArtifactRow>> artifacts(storage::Id id) override { return of(artifact_rows, id); }
    Result<std::vector<storage::ObservationRow>> observations(storage::Id, storage::Id, std::size_t) override {
        return std::vector<storage::ObservationRow>{};
    }
    Result<std::vector<storage::LoadRow>> loads(const std::string&, const std::string&) override {
        return std::vector<storage::LoadRow>{};
    }
    Result<std::vector<storage::EventRow>> events(storage::Id campaign, storage::Id after, std::size_t limit) override {
        std::vector<storage::EventRow> rows;
        const auto from = std::upper_bound(event_rows.begin(), event_rows.end(), after,
                                           [](storage::Id seq, const storage::EventRow& row) { return seq < row.seq; });
        for (auto row = from; row != event_rows.end() && rows.size() < limit; ++row) {
            if (campaign == 0 || row->campaign == campaign) rows.push_back(*row);
        }
        events_read += rows.size();
        return rows;
    }
    Result<std::optional<storage::EventRow>> latest_event(storage::Id campaign, const std::string& kind,
                                                          const std::string& subject) override {
        for (auto row = event_rows.rbegin(); row != event_rows.rend(); ++row) {
            const bool named = subject.empty() || row->data_json.find("\"" + subject + "\"") != std::string::npos;
            if (row->campaign == campaign && row->kind == kind && named) return std::optional{*row};
        }
        return std::optional<storage::EventRow>{};
    }
    Result<storage::Id> last_event() override { return event_rows.empty() ? storage::Id{0} : event_rows.back().seq; }

private:
    template <class Row>
    static std::vector<Row> of(const std::vector<Row>& rows, storage::Id campaign) {
        std::vector<Row> found;
        for (const Row& row : rows) {
            if (row.campaign == campaign) found.push_back(row);
        }
        return found;
    }
    template <class Row, class Test>
    static std::optional<Row> first(const std::vector<Row>& rows, Test test) {
        const auto found = std::find_if(rows.begin(), rows.end(), test);
        return found == rows.end() ? std::nullopt : std::optional<Row>{*found};
    }
};

}   // namespace campaign::api::test
