#include "daemon/engine/scope.hpp"

#include "daemon/engine/perform.hpp"

namespace campaign::engine {

storage::Micros micros(WallTime when) {
    return when.time_since_epoch().count();
}
WallTime wall_time(storage::Micros when) {
    return WallTime{std::chrono::microseconds{when}};
}

Campaign::Campaign(World& world_, storage::CampaignRow row_, plans::Plan plan_)
    : world{world_}, row{std::move(row_)}, plan{std::move(plan_)} {}

ServiceLink& Campaign::link(const std::string& service) {
    auto& slot = links_[service];
    if (slot == nullptr) {
        slot = std::make_unique<ServiceLink>();
        slot->service = plan.services.at(service);
        slot->where = plan.hosts.at(slot->service.host);
        for (const auto& [name, other] : links_) {   // one connection a host, however many services it has
            if (other != nullptr && other->host != nullptr && other->where.name == slot->where.name)
                slot->host = other->host;
        }
        if (slot->host == nullptr) slot->host = world.transport.open(slot->where);
        slot->manager = world.transport.manager(slot->host, slot->where, slot->service);
    }
    return *slot;
}

Async<void> write_event(Campaign& campaign, std::string kind, json::object data) {
    storage::EventRow row;
    row.campaign = campaign.row.id;
    row.at = micros(campaign.world.clock.wall());
    row.kind = std::move(kind);
    row.data_json = json::serialize(data);
    storage::Writer::Work work = [row](storage::Journal& journal) -> Result<void> {
        const auto added = journal.add_event(row);
        if (!added) return added.error();
        return {};
    };
    const Result<void> written = co_await campaign.world.journal.write(std::move(work));
    if (!written) throw EngineStop{written.error()};
}

Async<void> Scope::event(std::string kind, json::object data) {
    return write_event(campaign_, std::move(kind), std::move(data));
}

Async<void> Scope::observe(std::string kind, json::object data) {
    storage::ObservationRow row;
    row.campaign = campaign_.row.id;
    row.step = step_;
    row.at = micros(clock().wall());
    row.kind = std::move(kind);
    row.data_json = json::serialize(data);
    storage::Writer::Work work = [row](storage::Journal& journal) -> Result<void> {
        const auto added = journal.add_observation(row);
        if (!added) return added.error();
        return {};
    };
    const Result<void> written = co_await world().journal.write(std::move(work));
    if (!written) throw EngineStop{written.error()};
}

Async<Result<std::string>> Scope::keep(std::string kind, std::string name, std::string bytes, std::string origin,
                                       json::object detail) {
    const Result<storage::Stored> stored = world().vault.put(bytes);
    if (!stored) co_return stored.error();
    co_return co_await record(std::move(kind), std::move(name), *stored, std::move(origin), std::move(detail));
}

Async<Result<std::string>> Scope::keep_file(std::string kind, std::string name, std::filesystem::path file,
                                            std::string expected_sha256, std::string origin, json::object detail) {
    const Result<storage::Stored> stored = world().vault.take(file, expected_sha256);
    if (!stored) co_return stored.error();
    co_return co_await record(std::move(kind), std::move(name), *stored, std::move(origin), std::move(detail));
}

Async<Result<std::string>> Scope::record(std::string kind, std::string name, storage::Stored stored, std::string origin,
                                         json::object detail) {
    storage::ArtifactRow row;
    row.campaign = campaign_.row.id;
    row.step = step_;
    row.kind = std::move(kind);
    row.name = storage::Vault::safe_name(name);
    row.sha256 = stored.sha256;
    row.size = stored.size;
    row.origin = std::move(origin);
    row.detail_json = json::serialize(detail);
    row.at = micros(clock().wall());
    json::object data;
    data["subject"] = row.name;
    data["sha256"] = row.sha256;
    data["size"] = row.size;
    data["kind"] = row.kind;
    storage::EventRow happened;
    happened.campaign = row.campaign;
    happened.at = row.at;
    happened.kind = "artifact";
    happened.data_json = json::serialize(data);
    storage::Writer::Work work = [row, happened](storage::Journal& journal) -> Result<void> {
        const auto added = journal.add_artifact(row);
        if (!added) return added.error();
        const auto noted = journal.add_event(happened);
        if (!noted) return noted.error();
        return {};
    };
    const Result<void> written = co_await world().journal.write(std::move(work));
    if (!written) co_return written.error();
    co_return stored.sha256;
}

}   // namespace campaign::engine
