#include "daemon/methods/traces.hpp"

#include <algorithm>
#include <set>

#include "adapters/host/files.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "daemon/methods/jobs.hpp"

namespace campaign::methods {
namespace {

std::string base_name(const std::string& path) {
    return path.substr(path.rfind('/') + 1);
}

/// One rank's trace into the vault, with campaign-agent's word on whether it is whole.
class FetchTrace final : public ServiceStep {
public:
    FetchTrace(Campaign& campaign, std::string service, TraceFile file)
        : ServiceStep{campaign, std::move(service)}, file_{std::move(file)} {}
    [[nodiscard]] std::string name() const override { return "fetch-trace"; }
    [[nodiscard]] std::string title() const override { return "fetch " + base_name(file_.path) + " from " + host(); }
    [[nodiscard]] Effect effect() const override { return Effect::observe; }
    [[nodiscard]] std::string command() const override { return "copy " + host() + ":" + file_.path; }
    [[nodiscard]] json::object input() const override {
        json::object object = ServiceStep::input();
        object["path"] = file_.path;
        object["size"] = file_.size;
        return object;
    }
    Async<Outcome> act(Scope& scope, const json::object&) override {
        // The folder is the step's own, so that a fetch that was cut goes on where it stopped.
        const Result<std::filesystem::path> folder =
            scope.world().vault.incoming("trace-" + tag_of(campaign_, scope.path()));
        if (!folder) co_return Outcome::from(folder.error());
        const std::filesystem::path local = *folder / storage::Vault::safe_name(base_name(file_.path));
        std::string from = file_.path;
        std::filesystem::path to = local;
        host::OnBytes progress = [](std::uint64_t, std::uint64_t) {};
        const Result<host::Fetched> fetched =
            co_await link().host->fetch(std::move(from), std::move(to), std::move(progress));
        if (!fetched) co_return Outcome::from(fetched.error());

        host::Command check;
        check.argv = {scope.world().agent.string(), "check", local.string()};
        check.deadline = std::chrono::minutes{10};
        const std::shared_ptr<host::Host> here = scope.world().transport.here();
        const Result<host::Finished> checked = co_await here->run(std::move(check));
        if (!checked) co_return Outcome::from(checked.error());
        const Result<json::value> verdict =
            parse_json(trim(checked->output).empty() ? "{}" : trim(checked->output), "campaign-agent check");
        const bool complete = verdict && bool_at(*verdict, "complete").value_or(false);
        const std::string why = verdict ? string_at(*verdict, "why").value_or("") : printable(checked->errors, 200);
        json::object detail;
        detail["rank"] = file_.rank;
        detail["complete"] = complete;
        detail["check"] = verdict ? *verdict : json::value(nullptr);
        const Result<std::string> kept = co_await scope.keep_file("trace", base_name(file_.path), local, fetched->sha256,
                                                                  host() + ":" + file_.path, std::move(detail));
        if (!kept) co_return Outcome::from(kept.error());
        std::error_code ignored;
        std::filesystem::remove_all(*folder, ignored);
        json::object facts;
        facts["rank"] = file_.rank;
        facts["name"] = base_name(file_.path);
        facts["path"] = file_.path;
        facts["sha256"] = *kept;
        facts["size"] = fetched->bytes;
        facts["complete"] = complete;
        facts["where"] = "vault";
        co_return Outcome::done(std::move(facts), format_bytes(fetched->bytes) + ", sha256 " + kept->substr(0, 12) +
                                                      (complete ? ", whole" : ", NOT whole: " + printable(why, 200)));
    }

private:
    TraceFile file_;
};

/// The analysis beside the daemon, over files of the vault.
class AnalyzeHere final : public ServiceStep {
public:
    AnalyzeHere(Campaign& campaign, std::string service, json::array traces)
        : ServiceStep{campaign, std::move(service)}, traces_(std::move(traces)) {}
    [[nodiscard]] std::string name() const override { return "analyze"; }
    [[nodiscard]] std::string title() const override { return "analyse " + std::to_string(traces_.size()) + " traces"; }
    [[nodiscard]] Effect effect() const override { return Effect::observe; }
    [[nodiscard]] std::string command() const override { return "campaign-agent analyze --out analysis.json TRACES"; }
    [[nodiscard]] json::object input() const override {
        json::object object = ServiceStep::input();
        object["traces"] = traces_;
        return object;
    }
    Async<Outcome> act(Scope& scope, const json::object&) override {
        const Result<std::filesystem::path> folder =
            scope.world().vault.incoming("analysis-" + tag_of(campaign_, scope.path()));
        if (!folder) co_return Outcome::from(folder.error());
        const std::filesystem::path out = *folder / "analysis.json";
        host::Command command;
        command.argv = {scope.world().agent.string(), "analyze", "--out", out.string()};
        for (const json::value& trace : traces_) {
            const Result<std::filesystem::path> file = scope.world().vault.find(string_at(trace, "sha256").value_or(""));
            if (!file) co_return Outcome::from(file.error());
            // The vault names files by hash; the analysis wants to know ranks by name.
            const std::filesystem::path named =
                *folder / storage::Vault::safe_name(string_at(trace, "name").value_or("trace"));
            std::error_code error;
            std::filesystem::create_symlink(*file, named, error);
            command.argv.push_back((error ? *file : named).string());
        }
        command.deadline = std::chrono::minutes{30};
        const std::shared_ptr<host::Host> here = scope.world().transport.here();
        const Result<host::Finished> finished = co_await here->run(std::move(command));
        if (!finished) co_return Outcome::from(finished.error());
        const Result<std::string> text = read_text(out, std::size_t{64} << 20);
        if (finished->exit_code != 0 || !text) {
            std::error_code ignored;
            std::filesystem::remove_all(*folder, ignored);
            Error error{ErrorKind::failed, "the traces could not be analysed", "", printable(finished->errors, 400),
                        "campaignctl artifacts " + campaign_.row.name + " has the traces"};
            co_return Outcome::from(std::move(error));
        }
        json::object detail;
        detail["traces"] = traces_;
        const Result<std::string> kept =
            co_await scope.keep("analysis", "analysis.json", *text, "campaign-agent analyze", std::move(detail));
        if (!kept) co_return Outcome::from(kept.error());   // what was gathered stays where it lies
        std::error_code ignored;
        std::filesystem::remove_all(*folder, ignored);
        json::object facts;
        facts["sha256"] = *kept;
        const Result<json::value> analysis = parse_json(*text, "analysis");
        std::string answer =
            analysis ? string_at(*analysis, "answer").value_or(string_at(*analysis, "cannot_answer").value_or("no answer"))
                     : "no answer";
        facts["answer"] = answer;
        co_return Outcome::done(std::move(facts), printable(answer, 400));
    }

private:
    json::array traces_;
};

/// The analysis where the traces lie; only its result is fetched.
class AnalyzeThere final : public ServiceStep {
public:
    AnalyzeThere(Campaign& campaign, std::string service, std::string agent, std::string out, std::vector<std::string> files)
        : ServiceStep{campaign, std::move(service)},
          agent_{std::move(agent)},
          out_{std::move(out)},
          files_{std::move(files)} {}
    [[nodiscard]] std::string name() const override { return "analyze-there"; }
    [[nodiscard]] std::string title() const override {
        return "analyse " + std::to_string(files_.size()) + " traces on " + host();
    }
    [[nodiscard]] Effect effect() const override { return Effect::converge; }
    [[nodiscard]] std::string command() const override { return link().host->shown(analyze()); }
    [[nodiscard]] json::object input() const override {
        json::object object = ServiceStep::input();
        json::array files;
        for (const std::string& file : files_) files.emplace_back(file);
        object["files"] = std::move(files);
        return object;
    }
    Async<Outcome> act(Scope& scope, const json::object&) override {
        host::Command command = analyze();
        const Result<host::Finished> finished = co_await link().host->run(std::move(command));
        if (!finished) co_return Outcome::from(finished.error());
        if (finished->exit_code != 0) {
            Error error{ErrorKind::failed, "the traces could not be analysed on " + host(), "",
                        printable(finished->errors, 400), ""};
            co_return Outcome::from(std::move(error));
        }
        const Result<std::filesystem::path> folder =
            scope.world().vault.incoming("analysis-" + tag_of(campaign_, scope.path()));
        if (!folder) co_return Outcome::from(folder.error());
        const std::filesystem::path local = *folder / "analysis.json";
        std::string from = out_;
        std::filesystem::path to = local;
        host::OnBytes progress = [](std::uint64_t, std::uint64_t) {};
        const Result<host::Fetched> fetched =
            co_await link().host->fetch(std::move(from), std::move(to), std::move(progress));
        if (!fetched) co_return Outcome::from(fetched.error());
        const Result<std::string> text = read_text(local, std::size_t{64} << 20);
        if (!text) co_return Outcome::from(text.error());
        json::object detail;
        const Result<std::string> kept = co_await scope.keep_file("analysis", "analysis.json", local, fetched->sha256,
                                                                  host() + ":" + out_, std::move(detail));
        if (!kept) co_return Outcome::from(kept.error());   // what was gathered stays where it lies
        std::error_code ignored;
        std::filesystem::remove_all(*folder, ignored);
        std::string result_path = out_;
        std::string hash = fetched->sha256;
        const bool as_root = link().where.sudo;
        const Result<bool> removed =
            co_await host::remove_file(*link().host, std::move(result_path), std::move(hash), as_root);
        std::string emptied = out_folder();
        const Result<void> tidy = co_await host::remove_empty_dir(*link().host, std::move(emptied), as_root);
        if (!tidy) co_return Outcome::from(tidy.error());
        json::object facts;
        facts["sha256"] = *kept;
        facts["removed_there"] = removed && *removed;
        const Result<json::value> analysis = parse_json(*text, "analysis");
        std::string answer =
            analysis ? string_at(*analysis, "answer").value_or(string_at(*analysis, "cannot_answer").value_or("no answer"))
                     : "no answer";
        facts["answer"] = answer;
        co_return Outcome::done(std::move(facts), printable(answer, 400));
    }

private:
    [[nodiscard]] host::Command analyze() const {
        host::Command command;
        command.argv = {"sh",      "-c",         R"sh(mkdir -p -- "$1" && shift && exec nice "$@")sh",
                        "sh",      out_folder(), agent_,
                        "analyze", "--out",      out_};
        command.argv.insert(command.argv.end(), files_.begin(), files_.end());
        command.deadline = std::chrono::minutes{30};
        command.as_root = link().where.sudo;
        return command;
    }
    [[nodiscard]] std::string out_folder() const { return out_.substr(0, out_.rfind('/')); }
    std::string agent_;
    std::string out_;
    std::vector<std::string> files_;
};

/// What is in the vault need not lie on the host: removed by path and hash.
class RemoveFetched final : public ServiceStep {
public:
    RemoveFetched(Campaign& campaign, std::string service, json::array traces)
        : ServiceStep{campaign, std::move(service)}, traces_(std::move(traces)) {}
    [[nodiscard]] std::string name() const override { return "remove-fetched"; }
    [[nodiscard]] std::string title() const override {
        return "remove from " + host() + " the traces that are in the vault";
    }
    [[nodiscard]] Effect effect() const override { return Effect::converge; }
    [[nodiscard]] json::object input() const override {
        json::object object = ServiceStep::input();
        object["traces"] = traces_;
        return object;
    }
    Async<Outcome> act(Scope&, const json::object&) override {
        int removed = 0;
        std::string folder;
        for (const json::value& trace : traces_) {
            if (string_at(trace, "where") != "vault") continue;
            std::string path = string_at(trace, "path").value_or("");
            std::string hash = string_at(trace, "sha256").value_or("");
            folder = path.substr(0, path.rfind('/'));
            const bool as_root = link().where.sudo;
            const Result<bool> gone = co_await host::remove_file(*link().host, std::move(path), std::move(hash), as_root);
            if (!gone && gone.error().kind != ErrorKind::conflict) co_return Outcome::from(gone.error());
            if (gone && *gone) ++removed;
        }
        if (!folder.empty()) {
            const bool as_root = link().where.sudo;
            const Result<void> tidy = co_await host::remove_empty_dir(*link().host, folder, as_root);
            if (!tidy) co_return Outcome::from(tidy.error());
        }
        json::object facts;
        facts["removed"] = removed;
        co_return Outcome::done(std::move(facts), std::to_string(removed) + " files removed");
    }

private:
    json::array traces_;
};

}   // namespace

json::object ListTraces::input() const {
    json::object object = ServiceStep::input();
    object["folder"] = folder_;
    return object;
}

Async<Outcome> ListTraces::act(Scope&, const json::object&) {
    std::string folder = folder_;
    const bool as_root = link().where.sudo;
    const Result<std::vector<host::FileFact>> files = co_await host::list_files(*link().host, std::move(folder), as_root);
    if (!files) co_return Outcome::from(files.error());
    json::array paths;
    for (const host::FileFact& file : *files) paths.emplace_back(file.path);
    json::object facts;
    facts["files"] = std::move(paths);
    co_return Outcome::done(std::move(facts), std::to_string(files->size()) + " files");
}

json::object AwaitTraces::input() const {
    json::object object = ServiceStep::input();
    object["folder"] = folder_;
    object["already"] = already_;
    object["ranks"] = ranks_;
    return object;
}

json::object AwaitTraces::example() const {
    json::array files;
    for (int rank = 0; rank < ranks_; ++rank) {
        json::object file;
        file["rank"] = rank;
        file["path"] = folder_ + "/(trace of rank " + std::to_string(rank) + ")";
        files.push_back(std::move(file));
    }
    json::object object;
    object["files"] = std::move(files);
    return object;
}

Async<Outcome> AwaitTraces::act(Scope& scope, const json::object&) {
    const Result<std::unique_ptr<servers::Server>> server = servers::make_server(kind_, scope.world().http);
    if (!server) co_return Outcome::from(server.error());
    std::set<std::string> old;
    for (const json::value& path : already_) old.insert(std::string{path.as_string()});
    const MonoTime until = scope.clock().mono() + limit_;
    std::map<std::string, std::uint64_t> last_sizes;
    for (int polls = 0;; ++polls) {
        std::string folder = folder_;
        const bool as_root = link().where.sudo;
        const Result<std::vector<host::FileFact>> files =
            co_await host::list_files(*link().host, std::move(folder), as_root);
        if (!files) co_return Outcome::from(files.error());
        std::map<int, host::FileFact> by_rank;
        std::map<std::string, std::uint64_t> sizes;
        bool still = true;
        for (const host::FileFact& file : *files) {
            if (old.contains(file.path)) continue;
            const auto what = (**server).trace_name(base_name(file.path));
            if (!what || what->frontend) {
                // Something of the profiler's own that is still being written: a trace under its temporary name, perhaps.
                if (file.open_for_writing) still = false;
                continue;
            }
            sizes[file.path] = file.size;
            const auto before = last_sizes.find(file.path);
            if (file.open_for_writing || file.size == 0 || before == last_sizes.end() || before->second != file.size)
                still = false;
            by_rank[what->rank.value_or(static_cast<int>(by_rank.size()))] = file;
        }
        last_sizes = std::move(sizes);
        const bool all = static_cast<int>(by_rank.size()) >= ranks_;
        const bool late = scope.clock().mono() > until;
        if ((still && all) || late) {
            if (by_rank.empty()) {
                Error error{ErrorKind::failed, "stop_profile was answered, but no trace came into " + folder_,
                            "the profiler failed silently, or it wrote elsewhere",
                            std::to_string(files->size()) + " files there, none of them a new trace", ""};
                co_return Outcome::from(std::move(error));
            }
            json::array found;
            for (const auto& [rank, file] : by_rank) {
                json::object entry;
                entry["rank"] = rank;
                entry["path"] = file.path;
                entry["size"] = file.size;
                found.push_back(std::move(entry));
            }
            json::array missing;
            for (int rank = 0; rank < ranks_; ++rank) {
                if (!by_rank.contains(rank) && !all) missing.emplace_back(rank);
            }
            json::object facts;
            std::string seen = std::to_string(found.size()) + " of " + std::to_string(ranks_) + " ranks, no open writer";
            if (!still) seen += "; a file was still growing when the limit was reached";
            facts["files"] = std::move(found);
            facts["missing"] = std::move(missing);
            facts["settled"] = still;
            co_return Outcome::done(std::move(facts), std::move(seen));
        }
        json::object waiting;
        waiting["subject"] = folder_;
        waiting["for"] = "traces of " + std::to_string(ranks_) + " ranks to be whole";
        waiting["line"] = std::to_string(by_rank.size()) + " there" + (still ? "" : ", still being written");
        waiting["state"] = "waiting";
        if (polls % 5 == 0) co_await scope.event("wait", std::move(waiting));
        co_await scope.clock().sleep_for(std::chrono::seconds{1});
    }
}

std::vector<TraceFile> trace_files(const Outcome& awaited) {
    std::vector<TraceFile> files;
    const json::value* list = awaited.value.if_contains("files");
    if (list == nullptr || !list->is_array()) return files;
    for (const json::value& entry : list->get_array()) {
        TraceFile file;
        file.path = string_at(entry, "path").value_or("");
        file.size = static_cast<std::uint64_t>(int_at(entry, "size").value_or(0));
        file.rank = static_cast<int>(int_at(entry, "rank").value_or(-1));
        files.push_back(std::move(file));
    }
    return files;
}

Async<Result<Analysed>> gather(Track& track, std::string service, std::vector<TraceFile> files, plans::Traces how) {
    Campaign& campaign = track.campaign();
    Analysed result;
    std::vector<std::string> stay;
    for (const TraceFile& file : files) {
        const bool fetch = how == plans::Traces::fetch || (how == plans::Traces::excerpt && &file == &files.front());
        stay.push_back(file.path);
        if (!fetch) {
            json::object entry;
            entry["rank"] = file.rank;
            entry["name"] = base_name(file.path);
            entry["path"] = file.path;
            entry["size"] = file.size;
            entry["where"] = "left on the host";
            result.traces.push_back(std::move(entry));
            continue;
        }
        FetchTrace step{campaign, service, file};
        const Outcome fetched = co_await track.perform(step);
        if (!fetched) co_return fetched.error;
        result.traces.push_back(fetched.value);
    }
    Outcome analysed;
    if (how == plans::Traces::fetch) {
        AnalyzeHere step{campaign, service, result.traces};
        analysed = co_await track.perform(step);
    } else {
        const WorkPlace place = work_place(campaign, service);
        const std::string out = place.jobs + "/" + tag_of(campaign, track.phase() + "/analysis") + ".json";
        AnalyzeThere step{campaign, service, place.agent, out, stay};
        analysed = co_await track.perform(step);
    }
    if (!analysed) co_return analysed.error;
    RemoveFetched tidy{campaign, service, result.traces};
    const Outcome removed = co_await track.perform(tidy);
    if (!removed) co_return removed.error;
    if (campaign.rehearsal != nullptr) co_return result;
    result.sha256 = string_at(analysed.value, "sha256").value_or("");
    const Result<std::filesystem::path> file = campaign.world.vault.find(result.sha256);
    if (!file) co_return file.error();
    const Result<std::string> text = read_text(*file, std::size_t{64} << 20);
    if (!text) co_return text.error();
    const Result<json::value> analysis = parse_json(*text, "analysis");
    if (!analysis) co_return analysis.error();
    result.analysis = *analysis;
    co_return result;
}

}   // namespace campaign::methods
