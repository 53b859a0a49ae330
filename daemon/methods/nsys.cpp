// A decode window under Nsight Systems: kernels with CUDA-graph nodes, from outside the server. The server runs below
// `nsys launch` (session.cpp); collection is started and stopped here, and the report is exported and analysed on the host,
// since an nsys report holds the whole process environment and must not be copied.

#include <algorithm>

#include "adapters/host/files.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "daemon/methods/jobs.hpp"
#include "daemon/methods/method.hpp"
#include "daemon/methods/traces.hpp"

namespace campaign::methods {
namespace {

/// nsys as the service's user: its sessions belong to who launched them.
class NsysStep : public ServiceStep {
public:
    NsysStep(Campaign& campaign, std::string service, std::string nsys, std::string user, std::string session,
             std::string report)
        : ServiceStep{campaign, std::move(service)},
          nsys_{std::move(nsys)},
          user_{std::move(user)},
          session_{std::move(session)},
          report_{std::move(report)} {}
    [[nodiscard]] json::object input() const override {
        json::object object = ServiceStep::input();
        object["session"] = session_;
        object["report"] = report_;
        return object;
    }
    [[nodiscard]] std::string command() const override { return link().host->shown(nsys(arguments())); }

protected:
    [[nodiscard]] virtual std::vector<std::string> arguments() const = 0;
    [[nodiscard]] host::Command nsys(const std::vector<std::string>& words) const {
        host::Command command;
        if (!user_.empty() && user_ != "root") command.argv = {"runuser", "-u", user_, "--"};
        command.argv.push_back(nsys_);
        command.argv.insert(command.argv.end(), words.begin(), words.end());
        command.deadline = std::chrono::minutes{30};
        command.as_root = link().where.sudo;
        return command;
    }
    Async<Outcome> run_nsys() {
        host::Command command = nsys(arguments());
        const Result<host::Finished> finished = co_await link().host->run(std::move(command));
        if (!finished) co_return Outcome::from(finished.error());
        json::object facts;
        facts["exit_code"] = finished->exit_code;
        facts["report"] = report_;
        if (finished->exit_code != 0) {
            Error error{
                ErrorKind::failed, "nsys failed on " + host(), name(),
                "exit " + std::to_string(finished->exit_code) + ": " + printable(finished->errors + finished->output, 400),
                ""};
            co_return Outcome::from(std::move(error));
        }
        co_return Outcome::done(std::move(facts), printable(trim(finished->output), 200));
    }
    /// Is the session collecting? nullopt: it cannot be told.
    Async<std::optional<bool>> collecting() {
        const std::vector<std::string> words{"sessions", "list", "--show-header=false"};
        host::Command command = nsys(words);
        const Result<host::Finished> finished = co_await link().host->run(std::move(command));
        if (!finished || finished->exit_code != 0) co_return std::nullopt;
        for (const std::string& line : split(finished->output, '\n')) {
            if (line.find(session_) == std::string::npos) continue;
            co_return line.find("Collection") != std::string::npos&& line.find("Stopped") == std::string::npos;
        }
        co_return std::nullopt;
    }
    Async<std::optional<bool>> report_there() {
        host::Command command;
        command.argv = {"test", "-s", report_};
        command.as_root = link().where.sudo;
        const Result<host::Finished> finished = co_await link().host->run(std::move(command));
        if (!finished) co_return std::nullopt;
        co_return finished->exit_code == 0;
    }

    std::string nsys_;
    std::string user_;
    std::string session_;
    std::string report_;
};

class NsysStart final : public NsysStep {
public:
    using NsysStep::NsysStep;
    [[nodiscard]] std::string name() const override { return "nsys-start"; }
    [[nodiscard]] std::string title() const override { return "start the nsys collection of " + on_host(); }
    [[nodiscard]] Effect effect() const override { return Effect::transition; }
    [[nodiscard]] std::vector<std::string> arguments() const override {
        return {"start", "--session=" + session_, "--output=" + report_, "--force-overwrite=true", "--stop-on-exit=false"};
    }
    Async<Outcome> act(Scope&, const json::object&) override { return run_nsys(); }
    Async<Confirmation> confirm(Scope&, const json::object&) override {
        Confirmation seen;
        const std::optional<bool> on = co_await collecting();
        if (!on) {
            seen.evidence = "nsys sessions list does not tell";
            co_return seen;
        }
        seen.is = *on ? Confirmation::Is::done : Confirmation::Is::not_done;
        seen.evidence = *on ? "the session is collecting" : "the session is not collecting";
        co_return seen;
    }
};

class NsysStop final : public NsysStep {
public:
    using NsysStep::NsysStep;
    [[nodiscard]] std::string name() const override { return "nsys-stop"; }
    [[nodiscard]] std::string title() const override { return "stop the nsys collection of " + on_host(); }
    [[nodiscard]] Effect effect() const override { return Effect::transition; }
    [[nodiscard]] std::vector<std::string> arguments() const override { return {"stop", "--session=" + session_}; }
    Async<Outcome> act(Scope&, const json::object&) override { return run_nsys(); }
    Async<Confirmation> confirm(Scope&, const json::object&) override {
        Confirmation seen;
        const std::optional<bool> there = co_await report_there();
        const std::optional<bool> on = co_await collecting();
        if (there && *there && (!on || !*on)) {
            seen.is = Confirmation::Is::done;
            seen.evidence = report_ + " is there";
        } else if (on && *on) {
            seen.is = Confirmation::Is::not_done;
            seen.evidence = "the session is still collecting";
        } else {
            seen.evidence = "no report, and the session does not tell";
        }
        co_return seen;
    }
};

class NsysExport final : public NsysStep {
public:
    using NsysStep::NsysStep;
    [[nodiscard]] std::string name() const override { return "nsys-export"; }
    [[nodiscard]] std::string title() const override { return "export the nsys report on " + host(); }
    [[nodiscard]] Effect effect() const override { return Effect::converge; }
    [[nodiscard]] std::vector<std::string> arguments() const override {
        return {"export", "--type=sqlite", "--force-overwrite=true", "--output=" + report_ + ".sqlite", report_};
    }
    Async<Outcome> act(Scope&, const json::object&) override { return run_nsys(); }
};

/// The export is ours and only for the analysis; the report stays for who wants to open it on the host.
class RemoveExport final : public NsysStep {
public:
    using NsysStep::NsysStep;
    [[nodiscard]] std::string name() const override { return "remove-export"; }
    [[nodiscard]] std::string title() const override { return "remove the nsys export from " + host(); }
    [[nodiscard]] Effect effect() const override { return Effect::converge; }
    [[nodiscard]] std::vector<std::string> arguments() const override { return {}; }
    [[nodiscard]] std::string command() const override { return "rm -f " + report_ + ".sqlite"; }
    Async<Outcome> act(Scope&, const json::object&) override {
        host::Command command;
        command.argv = {"sh", "-c", R"sh(rm -f -- "$1.sqlite"; sha256sum "$1" | cut -d' ' -f1; stat -c %s "$1")sh", "sh",
                        report_};
        command.as_root = link().where.sudo;
        command.deadline = std::chrono::minutes{10};
        const Result<host::Finished> finished = co_await link().host->run(std::move(command));
        if (!finished) co_return Outcome::from(finished.error());
        const std::vector<std::string> words = split(trim(finished->output), '\n');
        json::object facts;
        facts["report"] = report_;
        facts["report_sha256"] = words.empty() ? "" : words.front();
        co_return Outcome::done(std::move(facts), report_ + " stays on the host: it holds the server's environment");
    }
};

}   // namespace

Async<Result<PhaseResult>> nsys_capture(Campaign& campaign, const plans::Phase& phase, const ServiceFacts& facts,
                                        const Session& session) {
    Track track{campaign, phase.name + "/nsys", phase.name};
    const std::string nsys = facts.nsys.value_or("nsys");
    const std::string user = facts.baseline.user;
    const std::string report = session.trace_dir + "/" + tag_of(campaign, phase.name + "/nsys") + ".nsys-rep";

    NsysStart start{campaign, facts.service, nsys, user, session.nsys_session, report};
    const Outcome started = co_await track.perform(start);
    if (!started) co_return started.error;

    LoadRequest load;
    load.label = "nsys-load";
    load.spec["route"] = "completions";
    load.spec["model"] = facts.model;
    load.spec["concurrency"] = json::array(1, json::value(phase.capture.concurrency));
    load.spec["requests"] = phase.capture.concurrency;
    load.spec["input_tokens"] = phase.capture.input_tokens;
    load.spec["output_tokens"] = std::max(phase.capture.output_tokens, phase.capture.steps + 2);
    load.spec["ignore_eos"] = true;
    load.spec["seed"] = 1;
    load.spec["request_timeout_s"] = 1800;
    load.spec["warmup_requests"] = 0;
    load.limit = phase.time_limit;
    const Result<LoadDone> loaded = co_await run_load(track, facts.service, std::move(load));

    NsysStop stop{campaign, facts.service, nsys, user, session.nsys_session, report};
    const Outcome stopped = co_await track.perform(stop);
    if (!stopped) co_return stopped.error;
    if (!loaded) co_return loaded.error();

    NsysExport export_report{campaign, facts.service, nsys, user, session.nsys_session, report};
    const Outcome exported = co_await track.perform(export_report);
    if (!exported) co_return exported.error;

    TraceFile file;
    file.path = report + ".sqlite";
    std::vector<TraceFile> files{file};
    Result<Analysed> analysed = co_await gather(track, facts.service, std::move(files), plans::Traces::leave);
    if (!analysed) co_return analysed.error();

    RemoveExport remove{campaign, facts.service, nsys, user, session.nsys_session, report};
    const Outcome removed = co_await track.perform(remove);
    if (!removed) co_return removed.error;

    PhaseResult result;
    result.summary["analysis_sha256"] = analysed->sha256;
    result.summary["load_sha256"] = loaded->sha256;
    result.summary["report"] = removed.value;
    const std::optional<std::string> answer = string_at(analysed->analysis, "answer");
    result.summary["answer"] = answer ? json::value(*answer) : json::value(nullptr);
    result.text = answer ? printable(*answer, 300)
                         : "the report cannot answer: " +
                               printable(string_at(analysed->analysis, "cannot_answer").value_or("no reason given"), 300);
    co_return result;
}

}   // namespace campaign::methods
