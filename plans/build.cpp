#include <algorithm>
#include <charconv>
#include <set>

#include "base/text.hpp"
#include "plans/check.hpp"
#include "plans/secrets.hpp"

namespace campaign::plans {
namespace {

/// A group of keys in which only good values are found; absent groups have none.
class Keys {
public:
    explicit Keys(PlanNode* node)
        : node_{node != nullptr && node->good && node->kind == PlanNode::Kind::map ? node : nullptr} {}

    [[nodiscard]] PlanNode* at(std::string_view key) const {
        PlanNode* found = node_ == nullptr ? nullptr : node_->find(key);
        return found != nullptr && found->good ? found : nullptr;
    }
    /// There in any state, or written as something that is nearly it.
    [[nodiscard]] bool mentions(std::string_view key) const {
        if (node_ == nullptr) return false;
        const std::vector<std::string> wanted{std::string{key}};
        return std::ranges::any_of(node_->entries, [&](const auto& entry) {
            return entry.key.text == key || (!entry.value.good && did_you_mean(entry.key.text, wanted).has_value());
        });
    }
    [[nodiscard]] PlanNode::Place place_of(std::string_view key) const {
        const PlanNode* label = node_ == nullptr ? nullptr : node_->key(key);
        return label == nullptr ? PlanNode::Place{} : label->place;
    }
    [[nodiscard]] Keys in(std::string_view key) const { return Keys{at(key)}; }

    void read(std::string_view key, std::string& out) const {
        if (const PlanNode* node = at(key)) out = node->text;
    }
    void read(std::string_view key, std::optional<std::string>& out) const {
        if (const PlanNode* node = at(key)) out = node->text;
    }
    void read(std::string_view key, int& out) const {
        if (const PlanNode* node = at(key)) out = number(*node);
    }
    void read(std::string_view key, std::optional<int>& out) const {
        if (const PlanNode* node = at(key)) out = number(*node);
    }
    void read(std::string_view key, bool& out) const {
        if (const PlanNode* node = at(key)) out = node->text == "true";
    }
    void read(std::string_view key, Millis& out) const {
        if (const PlanNode* node = at(key)) out = parse_duration(node->text).value_or(out);
    }
    void read(std::string_view key, std::optional<Millis>& out) const {
        if (const PlanNode* node = at(key)) out = parse_duration(node->text);
    }
    void read(std::string_view key, std::vector<int>& out) const {
        const PlanNode* node = at(key);
        if (node == nullptr || node->text == "auto") return;
        if (node->kind == PlanNode::Kind::scalar) out = {number(*node)};
        for (const PlanNode& item : node->items) out.push_back(number(item));
    }
    template <class Word, std::size_t N>
    void read(std::string_view key, Word& out, const Word (&all)[N]) const {
        if (const PlanNode* node = at(key)) word(node->text, out, all);
    }
    template <class Word, std::size_t N>
    static void word(std::string_view text, Word& out, const Word (&all)[N]) {
        for (const Word one : all)
            if (to_string(one) == text) out = one;
    }
    static int number(const PlanNode& node) {
        int value = 0;
        std::from_chars(node.text.data(), node.text.data() + node.text.size(), value);
        return value;
    }

private:
    PlanNode* node_;
};

constexpr ServerKind servers[]{ServerKind::automatic, ServerKind::vllm,   ServerKind::sglang,
                               ServerKind::llamacpp,  ServerKind::trtllm, ServerKind::generic};
constexpr Restart restarts[]{Restart::never, Restart::ask, Restart::window, Restart::allow};
constexpr Measure measures[]{Measure::warm_up, Measure::throughput, Measure::decode_step};
constexpr MethodKind all_methods[]{MethodKind::torch_profile, MethodKind::nsys, MethodKind::macro};
constexpr Traces all_traces[]{Traces::fetch, Traces::excerpt, Traces::leave};

class Reader {
public:
    Reader(PlanNode& root, Findings& findings, bool whole) : top_{&root}, findings_{findings}, whole_{whole} {}

    Plan read() {
        top_.read("campaign", plan_.name);
        top_.read("description", plan_.description);
        hosts();
        policy();
        services();
        phases();
        const Keys limits = top_.in("limits");
        limits.read("load", plan_.limits.load);
        limits.read("stall", plan_.limits.stall);
        limits.read("command", plan_.limits.command);
        not_zero(limits, {"load", "stall", "command"});
        const Keys restore = top_.in("restore");
        restore.read("time_limit", plan_.restore.time_limit);
        not_zero(restore, {"time_limit"});
        if (const PlanNode* probe = restore.at("probe")) {
            if (probe->text == "off") {
                plan_.restore.verify_probe = false;
            } else {
                int percent = 0;
                std::from_chars(probe->text.data() + 7, probe->text.data() + probe->text.size(), percent);
                plan_.restore.probe_within = percent / 100.0;
            }
        }
        return std::move(plan_);
    }

private:
    Diagnostic& contradiction(std::string code, const PlanNode::Place& where, std::string message) {
        return findings_.add(std::move(code), where, std::move(message));
    }

    void not_zero(const Keys& keys, std::initializer_list<std::string_view> names) {
        for (const std::string_view name : names) {
            const PlanNode* node = keys.at(name);
            if (node != nullptr && parse_duration(node->text) == Millis{0})
                contradiction("P019", node->place, "`" + std::string{name} + "` of nothing: it would end before it began");
        }
    }

    void unknown_name(const PlanNode& node, std::string_view what, const std::vector<std::string>& known) {
        Diagnostic& wrong =
            findings_.add("P017", node.place, "no " + std::string{what} + " is named `" + shown(node.text) + "`");
        if (const auto near = did_you_mean(node.text, known)) wrong.hint = "did you mean `" + *near + "`?";
        std::string all;
        for (const std::string& name : known) all += (all.empty() ? "" : ", ") + shown(name);
        if (!known.empty()) wrong.note = "the plan's " + std::string{what} + "s: " + printable(all, 300);
    }

    /// Names under `hosts` or `services`, also of those that are wrong inside.
    std::vector<std::string> names(std::string_view key) const {
        std::vector<std::string> out;
        if (const PlanNode* node = top_.at(key))
            for (const auto& [label, value] : node->entries) out.push_back(label.text);
        return out;
    }

    void hosts() {
        PlanNode* node = top_.at("hosts");
        if (node == nullptr) return;
        for (auto& [label, value] : node->entries) {
            const Keys keys{&value};
            Host host;
            host.name = label.text;
            keys.read("ssh", host.ssh);
            keys.read("local", host.local);
            keys.read("user", host.user);
            keys.read("port", host.port);
            keys.read("key_file", host.key_file);
            keys.read("jump", host.jump);
            keys.read("known_hosts", host.known_hosts);
            keys.read("work_dir", host.work_dir);
            keys.read("sudo", host.sudo);
            if (host.local) {
                for (const std::string_view key : {"user", "port", "key_file", "jump", "known_hosts"}) {
                    if (keys.at(key) != nullptr)
                        contradiction("P018", keys.place_of(key),
                                      "`" + std::string{key} + "` is for ssh, and `" + shown(label.text) + "` is local")
                            .hint = "remove one of the two";
                }
            }
            if (host.jump && (*host.jump == host.ssh || *host.jump == host.name))
                contradiction("P017", keys.at("jump")->place, "`" + shown(label.text) + "` jumps through itself");
            plan_.hosts.emplace(host.name, std::move(host));
        }
        // A jump host may be one of the plan's own; ssh is told it as ProxyJump has it.
        for (auto& [name, host] : plan_.hosts) {
            if (!host.jump) continue;
            const auto through = plan_.hosts.find(*host.jump);
            if (through == plan_.hosts.end() || through->first == name) continue;
            if (through->second.local) {
                PlanNode* label = node->find(name);
                contradiction("P017", label->find("jump")->place,
                              "`" + shown(*host.jump) + "` is local: nothing is reached through it");
            } else if (!through->second.ssh.empty()) {
                jump_through(*node, name, host, through->second);
            }
        }
    }

    void jump_through(PlanNode& hosts, const std::string& name, Host& host, const Host& through) {
        if (through.key_file || through.known_hosts || through.jump) {
            Diagnostic& wrong = contradiction("P018", hosts.find(name)->find("jump")->place,
                                              "`" + shown(through.name) + "` has a key, known_hosts or jump of its own");
            wrong.hint = "name it in the ssh configuration, and jump through that alias";
            wrong.note = "a jump carries only user, host and port";
            return;
        }
        std::string spelled;
        if (through.user) spelled = *through.user + "@";
        spelled += through.ssh;
        if (through.port) spelled += ":" + std::to_string(*through.port);
        host.jump = std::move(spelled);
    }

    void policy() {
        const Keys keys = top_.in("policy");
        Policy& policy = plan_.policy;
        keys.read("restart", policy.restart, restarts);
        keys.read("window", policy.window);
        keys.read("max_downtime", policy.max_downtime);
        keys.read("approval_expires", policy.approval_expires);
        const std::string word{to_string(policy.restart)};
        if (policy.window && !(keys.mentions("restart") && keys.at("restart") == nullptr) &&
            (policy.restart == Restart::never || policy.restart == Restart::allow)) {
            Diagnostic& wrong = contradiction("P018", keys.place_of("window"), "a window, but `restart` is `" + word + "`");
            wrong.hint = "write `restart: window`, or `restart: ask`";
            wrong.note = policy.restart == Restart::never ? "nothing is ever restarted, in the window or outside"
                                                          : "restarts would be allowed at any time";
        }
        if (policy.window && policy.window->substr(0, 5) == policy.window->substr(6, 5))
            contradiction("P018", keys.at("window")->place, "the window is empty: it ends when it begins");
        const PlanNode* restart = keys.at("restart");
        if (restart == nullptr || policy.restart == Restart::never) return;
        if (policy.restart == Restart::window && !keys.mentions("window"))
            contradiction("P018", restart->place, "`restart` is `window`, but there is no `window`").hint =
                "add window: \"22:00-06:00 Europe/Zurich\"";
        const bool misread = keys.mentions("max_downtime") && keys.at("max_downtime") == nullptr;
        if (policy.max_downtime == Millis{0} && !misread) {
            const PlanNode* limit = keys.at("max_downtime");
            Diagnostic& wrong = contradiction("P018", limit == nullptr ? restart->place : limit->place,
                                              "`restart` is `" + word + "`, but `max_downtime` allows no downtime");
            wrong.hint = limit == nullptr ? "add `max_downtime`, as in 90m" : "give a limit, or write `restart: never`";
            if (limit == nullptr) wrong.note = "without it the limit is 0: no restart would be allowed";
        }
    }

    void services() {
        PlanNode* node = top_.at("services");
        if (node == nullptr) return;
        const std::vector<std::string> known = names("hosts");
        const Keys policy = top_.in("policy");
        for (auto& [label, value] : node->entries) {
            const Keys keys{&value};
            Service service;
            service.name = label.text;
            keys.read("host", service.host);
            keys.read("unit", service.unit);
            keys.read("url", service.url);
            if (service.url.ends_with('/')) service.url.pop_back();
            keys.read("server", service.server, servers);
            keys.read("model", service.model);
            keys.read("profiler_dir", service.profiler_dir);
            keys.read("load_time", service.load_time);
            if (PlanNode* node_of = keys.at("process")) service.process = process(Keys{node_of});
            if (PlanNode* secret = keys.at("api_key")) {
                SecretRef reference;
                Keys{secret}.read("file", reference.file);
                Keys{secret}.read("credential", reference.credential);
                service.api_key = reference;
            }
            const PlanNode* host = keys.at("host");
            if (host != nullptr && whole_ && !known.empty() && std::ranges::find(known, host->text) == known.end())
                unknown_name(*host, "host", known);
            if (const PlanNode* url = keys.at("url")) port(*url);
            if (service.load_time) load_time(service, *keys.at("load_time"), policy);
            plan_.services.emplace(service.name, std::move(service));
        }
    }

    void port(const PlanNode& url) {
        const std::size_t colon = url.text.rfind(':');
        int number = 0;
        const auto [end, fault] = std::from_chars(url.text.data() + colon + 1, url.text.data() + url.text.size(), number);
        if (fault == std::errc{} && (number < 1 || number > 65535))
            contradiction("P022", url.place, "no such port").hint = "from 1 to 65535";
    }

    void load_time(const Service& service, const PlanNode& where, const Keys& policy) {
        const Millis once = *service.load_time;
        if (once > plan_limit_load()) {
            Diagnostic& wrong = contradiction(
                "P019", where.place, "the load takes longer than `limits.load`: it would be given up before its end");
            wrong.note = "limits.load is " + format_span(plan_limit_load());
        }
        if (plan_.policy.restart == Restart::never || policy.at("max_downtime") == nullptr ||
            plan_.policy.max_downtime == Millis{0})
            return;
        if (2 * once <= plan_.policy.max_downtime) return;
        Diagnostic& wrong = contradiction("P018", policy.at("max_downtime")->place,
                                          "`max_downtime` is less than two loads of `" + shown(service.name) + "`");
        wrong.hint = "at least " + format_span(2 * once);
        wrong.note =
            "production is restarted twice, with the profiler and back, and loads " + format_span(once) + " each time";
    }

    Millis plan_limit_load() const {
        Millis limit = plan_.limits.load;
        top_.in("limits").read("load", limit);
        return limit;
    }

    static Process process(const Keys& keys) {
        Process out;
        if (const PlanNode* command = keys.at("command"))
            for (const PlanNode& item : command->items) out.command.push_back(item.text);
        if (const PlanNode* environment = keys.at("environment"))
            for (const auto& [label, value] : environment->entries)
                if (value.good) out.environment[label.text] = value.text;
        keys.read("directory", out.directory);
        keys.read("log", out.log);
        return out;
    }

    void phases() {
        PlanNode* node = top_.at("phases");
        if (node == nullptr) return;
        const std::vector<std::string> known = names("services");
        std::set<std::string> seen;
        for (PlanNode& item : node->items) {
            const Keys keys{&item};
            Phase phase;
            keys.read("name", phase.name);
            if (const PlanNode* name = keys.at("name"); name != nullptr && !seen.insert(name->text).second)
                contradiction("P008", name->place, "a second phase is named `" + shown(name->text) + "`").hint =
                    "give each phase a name of its own";
            keys.read("service", phase.service);
            if (const PlanNode* service = keys.at("service")) {
                if (whole_ && !known.empty() && std::ranges::find(known, service->text) == known.end())
                    unknown_name(*service, "service", known);
            } else if (!keys.mentions("service") && known.size() == 1) {
                phase.service = known.front();
            } else if (!keys.mentions("service") && known.size() > 1 && whole_ && item.kind == PlanNode::Kind::map) {
                Diagnostic& wrong = findings_.add("P011", keys.at("name") != nullptr ? keys.at("name")->place : item.place,
                                                  "`service` is missing: the plan has " + std::to_string(known.size()));
                std::string all;
                for (const std::string& one : known) all += (all.empty() ? "" : ", ") + shown(one);
                wrong.hint = "one of " + printable(all, 300);
            }
            keys.read("measure", phase.measure, measures);
            details(keys, phase);
            ladder(keys, phase);
            plan_.phases.push_back(std::move(phase));
        }
    }

    void details(const Keys& keys, Phase& phase) {
        const Keys load = keys.in("load");
        load.read("concurrency", phase.load.concurrency);
        load.read("input_tokens", phase.load.input_tokens);
        load.read("output_tokens", phase.load.output_tokens);
        load.read("requests", phase.load.requests);
        load.read("duration", phase.load.duration);
        load.read("max_concurrency", phase.load.max_concurrency);
        const Keys slo = keys.in("slo");
        slo.read("ttft_p99", phase.slo_ttft_p99);
        slo.read("tpot_p95", phase.slo_tpot_p95);
        not_zero(slo, {"ttft_p99", "tpot_p95"});
        const Keys capture = keys.in("capture");
        capture.read("warmup", phase.capture.warmup_steps);
        capture.read("steps", phase.capture.steps);
        capture.read("concurrency", phase.capture.concurrency);
        capture.read("input_tokens", phase.capture.input_tokens);
        capture.read("output_tokens", phase.capture.output_tokens);
        capture.read("stop_limit", phase.capture.stop_limit);
        not_zero(capture, {"stop_limit"});
        not_zero(load, {"duration"});
        std::vector<int> at;
        keys.in("at").read("concurrency", at);
        if (!at.empty()) {
            if (keys.at("load") == nullptr || load.at("concurrency") == nullptr) phase.load.concurrency = at;
            if (capture.at("concurrency") == nullptr) phase.capture.concurrency = at.front();
        }
        keys.in("artifacts").read("traces", phase.traces, all_traces);
        keys.read("time_limit", phase.time_limit);
        not_zero(keys, {"time_limit"});
        const PlanNode* measure = keys.at("measure");
        if (measure == nullptr || phase.measure == Measure::decode_step) return;
        for (const std::string_view key : {"at", "capture"}) {
            if (keys.at(key) == nullptr) continue;
            Diagnostic& wrong = contradiction("P019", keys.place_of(key),
                                              "`" + std::string{key} + "` has no meaning in a " + measure->text + " phase");
            wrong.hint = key == "at" ? "write it as `load`" : "only decode-step phases take a profile";
        }
    }

    void ladder(const Keys& keys, Phase& phase) {
        const PlanNode* methods = keys.at("methods");
        const bool deep = phase.measure == Measure::decode_step;
        if (methods != nullptr) {
            for (const PlanNode& item : methods->items) {
                MethodKind method = MethodKind::macro;
                Keys::word(item.text, method, all_methods);
                phase.methods.push_back(method);
                if (method == MethodKind::macro || deep || keys.at("measure") == nullptr) continue;
                Diagnostic& wrong = contradiction(
                    "P019", item.place,
                    "`" + item.text + "` does not answer a " + std::string{to_string(phase.measure)} + " phase");
                wrong.hint = "write `measure: decode-step`, or leave `macro`";
                wrong.note = "a profiler slows the server: its numbers are no throughput";
            }
        } else if (!keys.mentions("methods")) {
            if (deep) phase.methods = {MethodKind::torch_profile, MethodKind::nsys};
            phase.methods.push_back(MethodKind::macro);
        }
        const bool restarts_it =
            std::ranges::any_of(phase.methods, [](MethodKind method) { return method != MethodKind::macro; });
        const auto service = plan_.services.find(phase.service);
        if (!deep || !restarts_it || plan_.policy.restart == Restart::never || service == plan_.services.end() ||
            !service->second.load_time)
            return;
        if (phase.time_limit >= *service->second.load_time || keys.at("time_limit") == nullptr) return;
        Diagnostic& wrong = contradiction("P019", keys.at("time_limit")->place,
                                          "`time_limit` is below the load time that the phase waits for");
        wrong.hint = "more than " + format_span(*service->second.load_time);
        wrong.note = "`" + service->second.name + "` loads " + format_span(*service->second.load_time) +
                     ", and the ladder needs a restart";
    }

    Keys top_;
    Findings& findings_;
    bool whole_;
    Plan plan_;
};

}   // namespace

Plan build(PlanNode& root, Findings& findings, bool whole) {
    return Reader{root, findings, whole}.read();
}

}   // namespace campaign::plans
