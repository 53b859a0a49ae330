#include "daemon/api/digest.hpp"

#include <string_view>

#include "base/json.hpp"
#include "base/text.hpp"

namespace campaign::api {
namespace {

constexpr std::size_t page = 2000;

}   // namespace

json::value made_printable(const json::value& value) {
    if (const auto* text = value.if_string()) return json::value(printable(std::string_view{*text}));
    if (const auto* array = value.if_array()) {
        json::array out;
        out.reserve(array->size());
        for (const json::value& item : *array) out.push_back(made_printable(item));
        return out;
    }
    if (const auto* object = value.if_object()) {
        json::object out;
        for (const auto& entry : *object) out[printable(std::string_view{entry.key()}, 200)] = made_printable(entry.value());
        return out;
    }
    return value;
}

json::value column(const std::string& text) {
    if (text.empty()) return nullptr;
    const Result<json::value> parsed = parse_json(text, "a column of the journal");
    return parsed ? made_printable(*parsed) : json::value(nullptr);
}

Result<void> Digest::advance(storage::Reader& reader) {
    for (;;) {
        const Result<std::vector<storage::EventRow>> rows = reader.events(0, position_, page);
        if (!rows) return rows.error();
        for (const storage::EventRow& row : *rows) {
            take(row);
            position_ = row.seq;
        }
        if (rows->size() < page) return {};
    }
}

const CampaignDigest& Digest::of(storage::Id campaign) const {
    static const CampaignDigest nothing;
    const auto found = campaigns_.find(campaign);
    return found == campaigns_.end() ? nothing : found->second;
}

void Digest::take(const storage::EventRow& row) {
    const std::string& kind = row.kind;
    const bool wanted = kind == "production" || kind == "phase" || kind == "need" || kind == "wait" || kind == "level" ||
                        kind == "step" || kind == "note";
    if (!wanted) return;
    const json::value data = column(row.data_json);
    if (!data.is_object()) return;
    Seen seen{row.seq, row.campaign, row.at, data.get_object()};
    CampaignDigest& digest = campaigns_[row.campaign];
    const std::string subject = string_at(data, "subject").value_or("");
    if (kind == "production") {
        const auto before = digest.production.find(subject);
        const bool same =
            before != digest.production.end() && string_at(before->second.data, "state") == string_at(data, "state");
        if (!same) digest.production_since[subject] = row.at;
        digest.production[subject] = std::move(seen);
    } else if (kind == "phase") {
        digest.phases[subject] = std::move(seen);
    } else if (kind == "need") {
        if (string_at(data, "state") == "closed") {
            digest.needs.erase(subject);
        } else {
            digest.needs[subject] = std::move(seen);
        }
    } else if (kind == "wait") {
        digest.wait = std::move(seen);
    } else if (kind == "level") {
        digest.level = std::move(seen);
    } else if (kind == "step") {
        digest.step = std::move(seen);
    } else {
        digest.note = std::move(seen);
    }
}

}   // namespace campaign::api
