#include "daemon/methods/lease.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "daemon/methods/run_campaign.hpp"

namespace campaign::methods {
namespace {

constexpr std::chrono::seconds look_every{15};
constexpr std::chrono::hours longest_wait{24};

std::string folder_of(const ServiceLink& link) {
    return link.service.process ? link.where.work_dir + "/leases" : std::string{host::unit_leases};
}

/// A unit's lease lies in /run; a process's beside its other files, where the server's user may write.
bool as_root(const ServiceLink& link) {
    return !link.service.process || link.where.sudo;
}

std::string token_of(const Campaign& campaign) {
    return tag_of(campaign, "lease");
}

Error held_by_another(const ServiceLink& link, const host::Lease& other) {
    return Error{ErrorKind::conflict, link.unit() + " on " + link.where.name + " is held by " + host::in_words(other),
                 "one campaign at a time changes a unit", "lease " + folder_of(link) + "/" + host::lease_name(link.unit()),
                 "wait for it; if its daemon is gone for good: campaignctl restore there, or remove the lease by hand"};
}

/// When this campaign means to be done at the latest.
WallTime latest_end(const Campaign& campaign) {
    Millis sum = campaign.plan.restore.time_limit + 2 * campaign.plan.limits.load;
    for (const plans::Phase& phase : campaign.plan.phases) sum += phase.time_limit;
    return campaign.world.clock.wall() + sum;
}

class TakeLease final : public ServiceStep {
public:
    using ServiceStep::ServiceStep;
    [[nodiscard]] std::string name() const override { return "take-lease"; }
    [[nodiscard]] std::string title() const override { return "take the lease on " + on_host(); }
    [[nodiscard]] Effect effect() const override { return Effect::converge; }
    [[nodiscard]] std::string command() const override {
        return "ln PART " + folder_of(link()) + "/" + host::lease_name(unit());
    }
    [[nodiscard]] std::vector<engine::Undo> undos() const override {
        engine::Undo undo;
        undo.kind = lease_undo;
        undo.data["service"] = service_;
        return {undo};
    }
    [[nodiscard]] json::object example() const override { return json::object{{"held", true}}; }

    Async<Outcome> act(Scope& scope, const json::object&) override {
        const MonoTime until = scope.clock().mono() + longest_wait;
        for (;;) {
            host::Lease wanted = ours();
            const Result<std::optional<host::Lease>> stands =
                co_await host::take_lease(*link().host, folder_of(link()), std::move(wanted), as_root(link()));
            if (!stands) co_return without(stands.error());
            json::object facts;
            if (!*stands) {
                facts["held"] = true;
                co_return Outcome::done(std::move(facts), folder_of(link()) + "/" + host::lease_name(unit()) + " is ours");
            }
            const Error other = held_by_another(link(), **stands);
            if (scope.clock().mono() > until) co_return Outcome::from(other);
            co_await set_state(campaign_, "queued", "waits: " + other.what, nullptr);
            co_await scope.clock().sleep_for(look_every);
        }
    }

private:
    [[nodiscard]] host::Lease ours() const {
        host::Lease lease;
        lease.token = token_of(campaign_);
        lease.holder = campaign_.world.holder;
        lease.campaign = campaign_.row.name;
        lease.unit = unit();
        for (const plans::Phase& phase : campaign_.plan.phases) {
            if (phase.service == service_) lease.why += (lease.why.empty() ? "" : ", ") + phase.name;
        }
        lease.since = format_time(campaign_.world.clock.wall());
        lease.until = format_time(latest_end(campaign_));
        return lease;
    }

    /// An answer that may still come is waited for; a host that says no is no reason not to look and measure.
    static Outcome without(const Error& error) {
        if (error.kind == ErrorKind::unreachable || error.kind == ErrorKind::in_doubt || error.kind == ErrorKind::timed_out)
            return Outcome::from(error);
        json::object facts;
        facts["held"] = false;
        facts["why"] = describe(error);
        return Outcome::done(std::move(facts), "no lease, so nothing may be changed: " + error.what + ": " + error.why);
    }
};

class ConfirmLease final : public ServiceStep {
public:
    using ServiceStep::ServiceStep;
    [[nodiscard]] std::string name() const override { return "confirm-lease"; }
    [[nodiscard]] std::string title() const override { return "see that the lease on " + on_host() + " is ours"; }
    [[nodiscard]] Effect effect() const override { return Effect::observe; }
    Async<Outcome> act(Scope&, const json::object&) override {
        const Result<std::optional<host::Lease>> now = co_await host::read_lease(*link().host, folder_of(link()), unit());
        if (!now) co_return Outcome::from(now.error());
        if (*now && (**now).token == token_of(campaign_)) co_return Outcome::done({}, "the lease is ours");
        if (*now) co_return Outcome::from(held_by_another(link(), **now));
        co_return Outcome::from(Error{ErrorKind::refused, on_host() + " is not changed without its lease",
                                      "the lease could not be taken, or was removed since, by a reboot or by a person",
                                      folder_of(link()) + "/" + host::lease_name(unit()) + " is not there",
                                      "the user of the host needs the right to write it; then submit the plan again"});
    }
};

class ReleaseLease final : public ServiceStep {
public:
    using ServiceStep::ServiceStep;
    [[nodiscard]] std::string name() const override { return "release-lease"; }
    [[nodiscard]] std::string title() const override { return "give back the lease on " + on_host(); }
    [[nodiscard]] Effect effect() const override { return Effect::converge; }
    [[nodiscard]] std::string command() const override {
        return "rm " + folder_of(link()) + "/" + host::lease_name(unit()) + " (only with our token)";
    }
    Async<Outcome> act(Scope&, const json::object&) override {
        const Result<bool> released =
            co_await host::release_lease(*link().host, folder_of(link()), unit(), token_of(campaign_), as_root(link()));
        if (!released) co_return Outcome::from(released.error());
        co_return Outcome::done({}, *released ? "given back" : "it was not ours: nothing was touched");
    }
};

}   // namespace

Async<Result<void>> take_lease(Campaign& campaign, std::string service) {
    Track track{campaign, "lease/" + service, "preflight"};
    TakeLease take{campaign, service};
    const Outcome taken = co_await track.perform(take);
    if (!taken) co_return taken.error;
    if (campaign.rehearsal == nullptr && campaign.row.state == "queued")
        co_await set_state(campaign, "running", "preflight", nullptr);
    co_return Result<void>{};
}

Async<Result<void>> confirm_lease(Campaign& campaign, std::string service, std::string purpose) {
    Track track{campaign, "lease/" + service + "/" + purpose, "session"};
    ConfirmLease confirm{campaign, std::move(service)};
    const Outcome ours = co_await track.perform(confirm);
    if (!ours) co_return ours.error;
    co_return Result<void>{};
}

Async<Result<void>> release_leases(Campaign& campaign) {
    const Result<std::vector<storage::UndoRow>> undos = campaign.world.journal.reader().undos(campaign.row.id);
    if (!undos) co_return undos.error();
    for (const storage::UndoRow& undo : *undos) {
        if (undo.kind != lease_undo || undo.state == storage::UndoState::done) continue;
        const Result<json::value> data = parse_json(undo.data_json, "undo record");
        if (!data) co_return data.error();
        const std::string service = string_at(*data, "service").value_or("");
        Track track{campaign, "lease/" + service + "/back", "restore"};
        ReleaseLease release{campaign, service};
        const Outcome released = co_await track.perform(release);
        if (!released) co_return released.error;
        const storage::Id id = undo.id;
        const std::string evidence = released.evidence;
        const storage::Micros now = engine::micros(campaign.world.clock.wall());
        storage::Writer::Work work = [id, evidence, now](storage::Journal& journal) -> Result<void> {
            return journal.end_undo(id, storage::UndoState::done, evidence, now);
        };
        const Result<void> written = co_await campaign.world.journal.write(std::move(work));
        if (!written) throw engine::EngineStop{written.error()};
        json::object event;
        event["subject"] = lease_undo;
        event["state"] = "done";
        event["detail"] = evidence;
        co_await engine::write_event(campaign, "undo", std::move(event));
    }
    co_return Result<void>{};
}

Async<Result<std::optional<host::Lease>>> see_lease(Campaign& campaign, std::string service) {
    ServiceLink& link = campaign.link(service);
    co_return co_await host::read_lease(*link.host, folder_of(link), link.unit());
}

}   // namespace campaign::methods
