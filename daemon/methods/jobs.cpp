#include "daemon/methods/jobs.hpp"

#include <algorithm>
#include <cstdlib>

#include "adapters/host/files.hpp"
#include "base/files.hpp"
#include "base/text.hpp"

namespace campaign::methods {
namespace {

class SendAgent final : public ServiceStep {
public:
    SendAgent(Campaign& campaign, std::string service, std::string target)
        : ServiceStep{campaign, std::move(service)}, target_{std::move(target)} {}
    [[nodiscard]] std::string name() const override { return "send-agent"; }
    [[nodiscard]] std::string title() const override { return "copy campaign-agent to " + host(); }
    [[nodiscard]] Effect effect() const override { return Effect::converge; }
    [[nodiscard]] std::string command() const override { return "copy campaign-agent to " + host() + ":" + target_; }
    Async<Outcome> act(Scope& scope, const json::object&) override {
        const Result<host::Fetched> sent = co_await link().host->send(scope.world().agent, target_, 0755, link().where.sudo);
        if (!sent) co_return Outcome::from(sent.error());
        json::object facts;
        facts["sha256"] = sent->sha256;
        facts["bytes"] = sent->bytes;
        co_return Outcome::done(std::move(facts), target_ + ", sha256 " + sent->sha256.substr(0, 12));
    }

private:
    std::string target_;
};

class WriteSpec final : public ServiceStep {
public:
    WriteSpec(Campaign& campaign, std::string service, std::string path, std::string content)
        : ServiceStep{campaign, std::move(service)}, path_{std::move(path)}, content_{std::move(content)} {}
    [[nodiscard]] std::string name() const override { return "write-spec"; }
    [[nodiscard]] std::string title() const override { return "write the load specification on " + host(); }
    [[nodiscard]] Effect effect() const override { return Effect::converge; }
    [[nodiscard]] std::string command() const override { return "write " + path_ + ": " + content_; }
    [[nodiscard]] json::object input() const override {
        json::object object = ServiceStep::input();
        object["path"] = path_;
        object["content"] = content_;
        return object;
    }
    Async<Outcome> act(Scope&, const json::object&) override {
        std::string path = path_;
        std::string content = content_;
        const bool as_root = link().where.sudo;
        const Result<host::WrittenFile> written =
            co_await host::write_file(*link().host, std::move(path), std::move(content), 0644, as_root);
        if (!written) co_return Outcome::from(written.error());
        json::object facts;
        facts["sha256"] = written->sha256;
        co_return Outcome::done(std::move(facts), path_ + ", sha256 " + written->sha256.substr(0, 12));
    }

private:
    std::string path_;
    std::string content_;
};

/// A job on the service's host. It is a transition: a second start would load the server twice.
class JobStep : public ServiceStep {
public:
    JobStep(Campaign& campaign, std::string service, host::Job job)
        : ServiceStep{campaign, std::move(service)}, job_{std::move(job)} {}
    [[nodiscard]] json::object input() const override {
        json::object object = ServiceStep::input();
        object["job"] = job_.name;
        json::array argv;
        for (const std::string& word : job_.argv) argv.emplace_back(word);
        object["argv"] = std::move(argv);
        return object;
    }

protected:
    host::Job job_;
};

class StartJob final : public JobStep {
public:
    using JobStep::JobStep;
    [[nodiscard]] std::string name() const override { return "start-job"; }
    [[nodiscard]] std::string title() const override { return "start " + job_.name + " on " + host(); }
    [[nodiscard]] Effect effect() const override { return Effect::transition; }
    [[nodiscard]] std::string command() const override {
        host::Command command;
        command.argv = job_.argv;
        return link().host->shown(command);
    }
    Async<Outcome> act(Scope&, const json::object&) override {
        host::Job job = job_;
        const Result<void> started = co_await link().manager->start_job(std::move(job));
        if (!started && started.error().kind != ErrorKind::conflict) co_return Outcome::from(started.error());
        json::object facts;
        facts["met_again"] = !started;
        co_return Outcome::done(std::move(facts), started ? "started" : "it was there already: met again");
    }
    Async<Confirmation> confirm(Scope&, const json::object&) override {
        Confirmation seen;
        host::Job job = job_;
        const Result<host::JobState> state = co_await link().manager->job_state(std::move(job));
        if (!state) {
            seen.evidence = "no answer from " + host() + ": " + state.error().what;
            co_return seen;
        }
        const bool there = state->is != host::JobState::Is::absent;
        seen.is = there ? Confirmation::Is::done : Confirmation::Is::not_done;
        seen.evidence = there ? "the job is there" : "there is no such job and no result of it";
        seen.value["met_again"] = there;
        co_return seen;
    }
};

class AwaitJob final : public JobStep {
public:
    AwaitJob(Campaign& campaign, std::string service, host::Job job, Millis limit)
        : JobStep{campaign, std::move(service), std::move(job)}, limit_{limit} {}
    [[nodiscard]] std::string name() const override { return "await-job"; }
    [[nodiscard]] std::string title() const override { return "wait for " + job_.name + " on " + host(); }
    [[nodiscard]] Effect effect() const override { return Effect::observe; }
    Async<Outcome> act(Scope& scope, const json::object&) override {
        const MonoTime began = scope.clock().mono();
        const MonoTime until = began + limit_ + std::chrono::minutes{1};
        std::string shown;
        std::size_t levels = 0;
        for (int polls = 0;; ++polls) {
            host::Job job = job_;
            const Result<host::JobState> state = co_await link().manager->job_state(std::move(job));
            if (!state && state.error().kind != ErrorKind::unreachable && state.error().kind != ErrorKind::in_doubt)
                co_return Outcome::from(state.error());
            if (state && state->is == host::JobState::Is::absent) {
                Error error{ErrorKind::failed, job_.name + " is gone from " + host(),
                            "its unit and its result vanished; the host may have been rebooted", "", ""};
                co_return Outcome::from(std::move(error));
            }
            if (state && state->is == host::JobState::Is::ended) {
                json::object facts;
                facts["exit_code"] = state->exit_code ? json::value(*state->exit_code) : json::value(nullptr);
                facts["output_file"] = state->output_file;
                facts["errors_file"] = state->errors_file;
                co_return Outcome::done(
                    std::move(facts),
                    "ended" + (state->exit_code ? " with status " + std::to_string(*state->exit_code) : std::string{}));
            }
            if (scope.clock().mono() > until) {
                Error error{ErrorKind::timed_out, job_.name + " did not end within " + format_span(limit_), "", "", ""};
                co_return Outcome::from(std::move(error));
            }
            if (state && !state->output_file.empty()) co_await show_progress(scope, state->output_file, shown, levels);
            json::object waiting;
            waiting["subject"] = job_.name;
            waiting["for"] = "load job on " + host();
            waiting["elapsed_s"] = std::chrono::duration<double>(scope.clock().mono() - began).count();
            waiting["line"] = shown;
            waiting["state"] = "waiting";
            if (polls % 5 == 0) co_await scope.event("wait", std::move(waiting));
            co_await scope.clock().sleep_for(polls < 10 ? std::chrono::milliseconds{500} : std::chrono::milliseconds{2000});
        }
    }

private:
    /// What the job says of itself, one JSON object a line: each level that ended is an event, the last line is shown.
    Async<void> show_progress(Scope& scope, std::string file, std::string& shown, std::size_t& levels) {
        host::Command command;
        command.argv = {"sh", "-c", R"sh(grep -a '"level_end"' -- "$1"; tail -n 1 -- "$1")sh", "sh", file};
        command.deadline = campaign_.plan.limits.command;
        command.as_root = link().where.sudo;
        const Result<host::Finished> said = co_await link().host->run(std::move(command));
        if (!said) co_return;
        const std::vector<std::string> lines = split(trim(said->output), '\n');
        std::size_t seen = 0;
        for (const std::string& line : lines) {
            const Result<json::value> progress = parse_json(line, "progress line");
            if (!progress || string_at(*progress, "event") != "level_end") continue;
            if (&line == &lines.back() && lines.size() > 1 && line == lines[lines.size() - 2])
                break;   // the last line once more
            if (++seen <= levels) continue;
            json::object data = progress->get_object();
            data["subject"] = scope.phase();
            data["state"] = "done";
            co_await scope.event("level", std::move(data));
        }
        levels = std::max(levels, seen);
        if (!lines.empty()) shown = printable(lines.back(), 300);
    }

    Millis limit_;
};

class Collect final : public JobStep {
public:
    Collect(Campaign& campaign, std::string service, host::Job job, std::string file, std::string label)
        : JobStep{campaign, std::move(service), std::move(job)}, file_{std::move(file)}, label_{std::move(label)} {}
    [[nodiscard]] std::string name() const override { return "collect-result"; }
    [[nodiscard]] std::string title() const override { return "fetch the result of " + job_.name; }
    [[nodiscard]] Effect effect() const override { return Effect::observe; }
    [[nodiscard]] std::string command() const override { return "copy " + host() + ":" + file_; }
    Async<Outcome> act(Scope& scope, const json::object&) override {
        const Result<std::filesystem::path> folder = scope.world().vault.incoming("job-" + tag_of(campaign_, scope.path()));
        if (!folder) co_return Outcome::from(folder.error());
        const std::filesystem::path local = *folder / "result.json";
        std::string from = file_;
        std::filesystem::path to = local;
        host::OnBytes progress = [](std::uint64_t, std::uint64_t) {};
        const Result<host::Fetched> fetched =
            co_await link().host->fetch(std::move(from), std::move(to), std::move(progress));
        if (!fetched) {
            Error error = fetched.error();
            if (error.kind == ErrorKind::not_found) {
                std::string errors_file = job_.directory + "/" + job_.name + ".err";
                const bool as_root = link().where.sudo;
                const Result<std::string> errors = co_await host::read_file(*link().host, std::move(errors_file), as_root);
                error =
                    Error{ErrorKind::failed, job_.name + " left no result", "", errors ? printable(*errors, 500) : "", ""};
            }
            std::error_code ignored;
            std::filesystem::remove_all(*folder, ignored);
            co_return Outcome::from(std::move(error));
        }
        json::object detail;
        detail["job"] = job_.name;
        const Result<std::string> kept = co_await scope.keep_file("load-result", label_ + ".json", local, fetched->sha256,
                                                                  host() + ":" + file_, std::move(detail));
        if (!kept) co_return Outcome::from(kept.error());   // what was gathered stays where it lies
        std::error_code ignored;
        std::filesystem::remove_all(*folder, ignored);
        json::object facts;
        facts["sha256"] = *kept;
        facts["bytes"] = fetched->bytes;
        co_return Outcome::done(std::move(facts), "sha256 " + *kept);
    }

private:
    std::string file_;
    std::string label_;
};

class ClearJob final : public JobStep {
public:
    using JobStep::JobStep;
    [[nodiscard]] std::string name() const override { return "clear-job"; }
    [[nodiscard]] std::string title() const override { return "remove what " + job_.name + " left on the host"; }
    [[nodiscard]] Effect effect() const override { return Effect::converge; }
    Async<Outcome> act(Scope&, const json::object&) override {
        host::Job job = job_;
        const Result<void> cleared = co_await link().manager->clear_job(std::move(job));
        if (!cleared) co_return Outcome::from(cleared.error());
        host::Command command;
        command.argv = {
            "sh", "-c",           R"sh(cd "$1" || exit 0; rm -f -- "$2".*; cd / && rmdir -- "$1" 2>/dev/null; exit 0)sh",
            "sh", job_.directory, job_.name};
        command.deadline = campaign_.plan.limits.command;
        command.as_root = link().where.sudo;
        const Result<host::Finished> removed = co_await link().host->run(std::move(command));
        if (!removed) co_return Outcome::from(removed.error());
        json::object facts;
        co_return Outcome::done(std::move(facts), "its unit and its files are gone from " + host());
    }
};

}   // namespace

WorkPlace work_place(Campaign& campaign, const std::string& service) {
    const plans::Host& where = campaign.plan.hosts.at(campaign.plan.services.at(service).host);
    WorkPlace place;
    place.agent = where.work_dir + "/bin/campaign-agent-" + campaign.world.agent_sha256.substr(0, 12);
    place.jobs = where.work_dir + "/jobs/" + campaign.row.name;
    return place;
}

Async<Result<LoadDone>> run_load(Track& track, std::string service, LoadRequest request) {
    Campaign& campaign = track.campaign();
    const ServiceLink& link = campaign.link(service);
    const WorkPlace place = work_place(campaign, service);

    SendAgent send{campaign, service, place.agent};
    const Outcome sent = co_await track.perform(send);
    if (!sent) co_return sent.error;

    host::Job job;
    job.name = tag_of(campaign, track.phase() + "/" + request.label);
    job.directory = place.jobs;
    job.limit = request.limit;
    const std::string spec_file = place.jobs + "/" + job.name + ".spec.json";
    const std::string result_file = place.jobs + "/" + job.name + ".result.json";
    job.argv = {place.agent, "load", spec_file, result_file};

    json::object spec = std::move(request.spec);
    spec["schema"] = "campaign.load-spec/1";
    spec["url"] = link.service.url;
    spec["unix_socket"] = nullptr;
    spec["api_key_file"] =
        link.service.api_key && link.service.api_key->file ? json::value(*link.service.api_key->file) : json::value(nullptr);
    WriteSpec write{campaign, service, spec_file, json::serialize(spec)};
    const Outcome written = co_await track.perform(write);
    if (!written) co_return written.error;

    StartJob start{campaign, service, job};
    const Outcome started = co_await track.perform(start);
    if (!started) co_return started.error;

    AwaitJob await{campaign, service, job, request.limit};
    const Outcome ended = co_await track.perform(await);
    if (!ended) co_return ended.error;

    Collect collect{campaign, service, job, result_file, request.label};
    const Outcome collected = co_await track.perform(collect);
    // A result that is on the host and could not be kept here (a full disk) is not cleared away there.
    if (!collected && collected.error.kind != ErrorKind::failed) co_return collected.error;

    ClearJob clear{campaign, service, job};
    const Outcome cleared = co_await track.perform(clear);
    if (!collected) co_return collected.error;
    if (!cleared) co_return cleared.error;

    LoadDone done;
    if (campaign.rehearsal != nullptr) co_return done;
    done.sha256 = string_at(collected.value, "sha256").value_or("");
    const Result<std::filesystem::path> file = campaign.world.vault.find(done.sha256);
    if (!file) co_return file.error();
    const Result<std::string> text = read_text(*file, std::size_t{64} << 20);
    if (!text) co_return text.error();
    const Result<json::value> result = parse_json(*text, "load result " + request.label);
    if (!result) co_return result.error();
    done.result = *result;
    co_return done;
}

}   // namespace campaign::methods
