#pragma once
// All that the journal and the vault have on one campaign, read once, with the footnotes of the document made from it.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "storage/journal.hpp"
#include "storage/vault.hpp"

namespace campaign::report {

struct Event {
    storage::Micros at = 0;
    std::string kind;
    json::value data;
};

class Record {
public:
    /// Fails with not_found for an unknown campaign, else as Reader does. Events of kind step and wait are left out.
    [[nodiscard]] static Result<Record> load(storage::Reader& reader, const storage::Vault& vault, storage::Id campaign);

    storage::CampaignRow campaign;
    std::vector<storage::PhaseRow> phases;
    std::map<storage::Id, storage::StepRow> steps;
    std::vector<storage::ArtifactRow> artifacts;
    std::vector<storage::DecisionRow> decisions;
    std::vector<Event> events;

    /// The last production event of each service.
    [[nodiscard]] std::map<std::string, json::value> last_production() const;
    /// The phase whose step brought the artifact; "" when that is not known.
    [[nodiscard]] std::string phase_of(const storage::ArtifactRow& artifact) const;

    /// An artifact's JSON, only if its bytes still have their hash; nullptr is noted among damaged().
    [[nodiscard]] const json::value* content(const storage::ArtifactRow& artifact);
    [[nodiscard]] const std::vector<std::string>& damaged() const { return damaged_; }

    /// "[^3]": step, command, artifact and SHA-256 then stand at the end of the document.
    [[nodiscard]] std::string source(const storage::ArtifactRow& artifact);
    [[nodiscard]] std::string source(const storage::StepRow& step);
    [[nodiscard]] const std::vector<std::string>& footnotes() const { return footnotes_; }

private:
    explicit Record(const storage::Vault& vault) : vault_{&vault} {}
    [[nodiscard]] Result<json::value> read(const storage::ArtifactRow& artifact) const;
    std::string footnote(std::string text);

    const storage::Vault* vault_;
    std::map<std::string, std::optional<json::value>> contents_;   // by hash
    std::vector<std::string> damaged_;
    std::vector<std::string> footnotes_;
};

/// The `value` of a step's outcome, or its `error`; null when there is none.
[[nodiscard]] json::value outcome_of(const storage::StepRow& step, std::string_view member);
/// JSON of the journal's own: what cannot be read is null.
[[nodiscard]] json::value parsed(const std::string& text);
/// "step s12 (`how-fast/macro/5/collect-result`)"
[[nodiscard]] std::string step_name(const storage::StepRow& step);

}   // namespace campaign::report
