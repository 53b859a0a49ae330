#include "daemon/methods/preflight.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/text.hpp"

namespace campaign::methods {
namespace {

/// One look at the machine itself. Every line is KEY=VALUE; nothing here needs rights.
constexpr const char* host_script = R"sh(
printf 'boot_id=%s\n' "$(cat /proc/sys/kernel/random/boot_id)"
printf 'uptime_s=%s\n' "$(cut -d' ' -f1 /proc/uptime)"
printf 'kernel=%s\n' "$(uname -r)"
printf 'user=%s\n' "$(id -un)"
printf 'cores=%s\n' "$(nproc)"
printf 'load=%s\n' "$(cut -d' ' -f1 /proc/loadavg)"
printf 'systemd=%s\n' "$(systemctl --version 2>/dev/null | head -n 1)"
printf 'nsys=%s\n' "$(command -v nsys 2>/dev/null)"
d=$1; while [ ! -d "$d" ]; do d=$(dirname "$d"); done
printf 'free_kib=%s\n' "$(df -Pk "$d" | awk 'NR==2 {print $4}')"
printf 'run_free_kib=%s\n' "$(df -Pk /run | awk 'NR==2 {print $4}')"
printf 'gpus=%s\n' "$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | tr '\n' ';')"
)sh";

class LookAtHost final : public ServiceStep {
public:
    using ServiceStep::ServiceStep;
    [[nodiscard]] std::string name() const override { return "look-at-host"; }
    [[nodiscard]] std::string title() const override { return "look at " + host(); }
    [[nodiscard]] Effect effect() const override { return Effect::observe; }
    [[nodiscard]] std::string command() const override { return link().host->shown(look()); }
    [[nodiscard]] json::object input() const override {
        json::object object = ServiceStep::input();
        object["work_dir"] = campaign_.plan.hosts.at(host()).work_dir;
        return object;
    }

    Async<Outcome> act(Scope&, const json::object&) override {
        host::Command command = look();
        const Result<host::Finished> finished = co_await link().host->run(std::move(command));
        if (!finished) co_return Outcome::from(finished.error());
        json::object facts;
        for (const std::string& line : split(finished->output, '\n')) {
            const std::size_t at = line.find('=');
            if (at != std::string::npos) facts[line.substr(0, at)] = printable(line.substr(at + 1), 300);
        }
        if (!facts.contains("boot_id")) {
            co_return Outcome::from(
                Error{ErrorKind::protocol, host() + " did not say what it is", "", printable(finished->errors, 300), ""});
        }
        if (link().where.sudo) {
            host::Command right;
            right.argv = {"true"};
            right.as_root = true;
            right.deadline = campaign_.plan.limits.command;
            const Result<host::Finished> may = co_await link().host->run(std::move(right));
            if (!may) co_return Outcome::from(may.error());
            if (may->exit_code != 0) {
                co_return Outcome::from(Error{ErrorKind::refused, host() + " does not let us use sudo without a password",
                                              "the plan says sudo: true for this host", printable(may->errors, 300),
                                              "give the user a sudoers rule, or name a user that needs none"});
            }
        }
        std::string seen = "boot " + string_at(facts, "boot_id").value_or("").substr(0, 8) + ", " +
                           string_at(facts, "systemd").value_or("no systemd");
        co_return Outcome::done(std::move(facts), std::move(seen));
    }

private:
    [[nodiscard]] host::Command look() const {
        host::Command command;
        command.argv = {"sh", "-c", host_script, "sh", campaign_.plan.hosts.at(host()).work_dir};
        command.deadline = campaign_.plan.limits.command;
        return command;
    }
};

/// Which server this is, whether it is healthy, what it serves and what it can do: by requests that start nothing.
class FindServer final : public ServiceStep {
public:
    FindServer(Campaign& campaign, std::string service, host::Baseline baseline)
        : ServiceStep{campaign, std::move(service)}, baseline_{std::move(baseline)} {}
    [[nodiscard]] std::string name() const override { return "find-server"; }
    [[nodiscard]] std::string title() const override { return "find out what " + on_host() + " can do"; }
    [[nodiscard]] Effect effect() const override { return Effect::observe; }
    [[nodiscard]] json::object input() const override {
        json::object object = ServiceStep::input();
        object["url"] = link().service.url;
        return object;
    }

    Async<Outcome> act(Scope&, const json::object&) override {
        std::string kind{plans::to_string(link().service.server)};
        if (link().service.server == plans::ServerKind::automatic) kind = servers::detect_kind(baseline_.running_argv);
        const Result<std::unique_ptr<servers::Server>> server = servers::make_server(kind, campaign_.world.http);
        if (!server) co_return Outcome::from(server.error());
        const Result<servers::Endpoint> at = co_await endpoint(link());
        if (!at) co_return Outcome::from(at.error());
        const Result<servers::Health> health = co_await (**server).health(*at);
        if (!health || *health != servers::Health::ready) {
            const std::string how = !health                               ? describe(health.error())
                                    : *health == servers::Health::loading ? "it is still loading"
                                                                          : "it does not serve";
            Error error{ErrorKind::failed, "the server of " + on_host() + " is not healthy", how,
                        link().service.url + "/health", "bring it up, then submit the plan again"};
            co_return Outcome::from(std::move(error));
        }
        std::vector<std::string> names;
        for (const auto& [variable, hash] : baseline_.environment_hashes) names.push_back(variable);
        const Result<servers::Capabilities> found = co_await (**server).capabilities(*at, baseline_.running_argv, names);
        if (!found) co_return Outcome::from(found.error());
        const std::string wanted = link().service.model.value_or(found->models.empty() ? "" : found->models.front());
        if (wanted.empty() || std::find(found->models.begin(), found->models.end(), wanted) == found->models.end()) {
            std::string listed;
            for (const std::string& model : found->models) listed += (listed.empty() ? "" : ", ") + printable(model, 100);
            Error error{ErrorKind::failed, "the server of " + on_host() + " does not list the model " + wanted,
                        "it lists: " + listed, link().service.url + "/v1/models",
                        "name one of these as services." + service_ + ".model"};
            co_return Outcome::from(std::move(error));
        }
        json::object facts;
        facts["capabilities"] = servers::to_json(*found);
        facts["model"] = wanted;
        std::string seen = kind + " " + printable(found->version, 60) + " serves " + printable(wanted, 100) + "; profiler " +
                           std::string{servers::to_string(found->profiler)} + ": " +
                           printable(found->profiler_evidence, 300);
        co_return Outcome::done(std::move(facts), std::move(seen));
    }

private:
    host::Baseline baseline_;
};

class OneToken final : public ServiceStep {
public:
    OneToken(Campaign& campaign, std::string service, std::string kind, std::string model)
        : ServiceStep{campaign, std::move(service)}, kind_{std::move(kind)}, model_{std::move(model)} {}
    [[nodiscard]] std::string name() const override { return "one-token"; }
    [[nodiscard]] std::string title() const override { return "have " + on_host() + " generate one token"; }
    [[nodiscard]] Effect effect() const override { return Effect::observe; }
    [[nodiscard]] json::object input() const override {
        json::object object = ServiceStep::input();
        object["model"] = model_;
        return object;
    }
    Async<Outcome> act(Scope&, const json::object&) override {
        const Result<std::unique_ptr<servers::Server>> server = servers::make_server(kind_, campaign_.world.http);
        if (!server) co_return Outcome::from(server.error());
        const Result<servers::Endpoint> at = co_await endpoint(link());
        if (!at) co_return Outcome::from(at.error());
        const Result<servers::Token> token = co_await (**server).one_token(*at, model_);
        if (!token) co_return Outcome::from(token.error());
        json::object facts;
        facts["took_ms"] = token->took.count();
        if (!token->generated) {
            Error error{ErrorKind::failed, on_host() + " answers /health but generates nothing", "",
                        printable(token->evidence, 300), ""};
            co_return Outcome::from(std::move(error));
        }
        co_return Outcome::done(std::move(facts), "one token in " + format_span(token->took));
    }

private:
    std::string kind_;
    std::string model_;
};

}   // namespace

Async<Outcome> ReadBaseline::act(Scope&, const json::object&) {
    const Result<host::Baseline> baseline = co_await link().manager->baseline(unit());
    if (!baseline) co_return Outcome::from(baseline.error());
    if (!baseline->state.exists) {
        Error error{ErrorKind::not_found, unit() + " does not exist on " + host(), "",
                    "LoadState=" + printable(baseline->state.load_state, 60),
                    "name the unit as `systemctl list-units` on that host shows it"};
        co_return Outcome::from(std::move(error));
    }
    if (baseline->state.active != "active") {
        Error error{
            ErrorKind::conflict, on_host() + " is not active, so there is no production state to keep", "",
            "ActiveState=" + printable(baseline->state.active, 60) + " Result=" + printable(baseline->state.result, 60),
            "start the service, wait until it serves, then submit the plan again"};
        co_return Outcome::from(std::move(error));
    }
    json::object facts;
    facts["baseline"] = host::to_json(*baseline);
    std::string seen = "active, invocation " + baseline->state.invocation.substr(0, 8) + ", server pid " +
                       std::to_string(baseline->server_pid);
    co_return Outcome::done(std::move(facts), std::move(seen));
}

json::object ShortProbe::input() const {
    json::object object = ServiceStep::input();
    object["model"] = model_;
    object["output_tokens"] = 32;
    object["requests"] = 4;
    return object;
}

Async<Outcome> ShortProbe::act(Scope& scope, const json::object&) {
    const Result<host::Reach> reach = co_await [](ServiceLink& link) -> Async<Result<host::Reach>> {
        const Address address = address_of(link.service.url);
        co_return co_await link.host->reach(address.host, address.port);
    }(link());
    if (!reach) co_return Outcome::from(reach.error());
    const Result<std::filesystem::path> folder = scope.world().vault.incoming("probe-" + tag_of(campaign_, scope.path()));
    if (!folder) co_return Outcome::from(folder.error());
    json::object spec;
    spec["schema"] = "campaign.load-spec/1";
    spec["url"] = link().service.url;
    spec["unix_socket"] = reach->unix_socket ? json::value(*reach->unix_socket) : json::value(nullptr);
    spec["route"] = "completions";
    spec["model"] = model_;
    spec["api_key_file"] = link().service.api_key && link().service.api_key->file
                               ? json::value(*link().service.api_key->file)
                               : json::value(nullptr);
    spec["concurrency"] = json::array(1, json::value(1));
    spec["requests"] = 4;
    spec["input_tokens"] = 32;
    spec["output_tokens"] = 32;
    spec["ignore_eos"] = true;
    spec["seed"] = 1;
    spec["warmup_requests"] = 1;
    spec["request_timeout_s"] = 120;
    const std::filesystem::path spec_file = *folder / "probe.spec.json";
    const std::filesystem::path result_file = *folder / "probe.json";
    std::ofstream{spec_file} << json::serialize(spec);
    host::Command command;
    command.argv = {scope.world().agent.string(), "load", spec_file.string(), result_file.string()};
    command.deadline = std::chrono::minutes{10};
    const std::shared_ptr<host::Host> here = scope.world().transport.here();
    const Result<host::Finished> finished = co_await here->run(std::move(command));
    if (!finished) co_return Outcome::from(finished.error());
    std::ifstream stream{result_file};
    const std::string text{std::istreambuf_iterator<char>{stream}, {}};
    const Result<json::value> result = parse_json(text.empty() ? "{}" : text, "the probe's result");
    const json::value* levels = result ? member(*result, "levels") : nullptr;
    if (finished->exit_code != 0 || levels == nullptr || !levels->is_array() || levels->get_array().empty()) {
        std::error_code ignored;
        std::filesystem::remove_all(*folder, ignored);
        Error error{ErrorKind::failed, "the short probe of " + on_host() + " gave no result", "",
                    printable(finished->errors, 400), ""};
        co_return Outcome::from(std::move(error));
    }
    json::object facts;
    facts["level"] = levels->get_array().front();
    const json::value* tpot = member(levels->get_array().front(), "tpot_ms");
    const json::value* ttft = member(levels->get_array().front(), "ttft_ms");
    const std::optional<double> tpot_p50 = tpot != nullptr ? number_at(*tpot, "p50") : std::nullopt;
    const std::optional<double> ttft_p50 = ttft != nullptr ? number_at(*ttft, "p50") : std::nullopt;
    if (tpot_p50) facts["tpot_p50_ms"] = *tpot_p50;
    if (ttft_p50) facts["ttft_p50_ms"] = *ttft_p50;
    facts["tunnelled"] = reach->tunnelled;
    json::object detail;
    detail["purpose"] = name_;
    const Result<std::string> kept = co_await scope.keep_file("probe", name_ + ".json", result_file, "", "here", detail);
    std::error_code ignored;
    std::filesystem::remove_all(*folder, ignored);
    if (!kept) co_return Outcome::from(kept.error());
    facts["sha256"] = *kept;
    if (!tpot_p50) {
        Error error{ErrorKind::failed, "the short probe of " + on_host() + " measured no token times", "", "",
                    "campaignctl artifacts " + campaign_.row.name};
        co_return Outcome::from(std::move(error));
    }
    char text_out[96];
    std::snprintf(text_out, sizeof text_out, "TPOT p50 %.2f ms, TTFT p50 %.1f ms%s", *tpot_p50, ttft_p50.value_or(0),
                  reach->tunnelled ? " (through the ssh tunnel)" : "");
    co_return Outcome::done(std::move(facts), text_out);
}

Async<Result<ServiceFacts>> preflight(Campaign& campaign, std::string service, bool look_only) {
    Track track{campaign, "preflight/" + service, "preflight"};
    ServiceFacts facts;
    facts.service = service;

    LookAtHost look{campaign, service};
    const Outcome machine = co_await track.perform(look);
    if (!machine) co_return machine.error;
    if (const auto nsys = string_at(machine.value, "nsys"); nsys && !nsys->empty()) facts.nsys = nsys;

    ReadBaseline read{campaign, service};
    const Outcome found = co_await track.perform(read);
    if (!found) co_return found.error;
    const json::value* baseline = found.value.if_contains("baseline");
    const Result<host::Baseline> parsed = host::baseline_from_json(baseline != nullptr ? *baseline : json::value(nullptr));
    if (!parsed) co_return parsed.error();
    facts.baseline = *parsed;

    FindServer find{campaign, service, facts.baseline};
    const Outcome server = co_await track.perform(find);
    if (!server) co_return server.error;
    if (const json::value* abilities = server.value.if_contains("capabilities"); abilities != nullptr) {
        facts.server_kind = string_at(*abilities, "kind").value_or("");
        facts.version = string_at(*abilities, "version").value_or("");
        const std::string profiler = string_at(*abilities, "profiler").value_or("unknown");
        facts.profiler = profiler == "yes"  ? servers::Ability::yes
                         : profiler == "no" ? servers::Ability::no
                                            : servers::Ability::unknown;
        facts.profiler_evidence = string_at(*abilities, "profiler_evidence").value_or("");
        facts.profiler_cause = string_at(*abilities, "profiler_cause").value_or("");
        facts.world_size = static_cast<int>(int_at(*abilities, "world_size").value_or(1));
    }
    facts.model = string_at(server.value, "model").value_or("");

    if (look_only) co_return facts;
    OneToken token{campaign, service, facts.server_kind, facts.model};
    const Outcome generated = co_await track.perform(token);
    if (!generated) co_return generated.error;

    ShortProbe probe{campaign, service, facts.model, "probe-before"};
    const Outcome measured = co_await track.perform(probe);
    if (!measured) co_return measured.error;
    facts.probe = measured.value;
    facts.probe_tpot_ms = number_at(measured.value, "tpot_p50_ms");
    co_return facts;
}

}   // namespace campaign::methods
