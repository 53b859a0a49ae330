#include "adapters/adapt/adapt.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "adapters/servers/server.hpp"
#include "adapters/servers/vllm_settings.hpp"
#include "adapters/systemd/command_line.hpp"
#include "base/text.hpp"

namespace campaign::adapt {
namespace {

using host::Baseline;
using host::Override;
using Words = std::vector<std::string>;

json::array list_of(const Words& words) {
    json::array list;
    for (const std::string& word : words) list.emplace_back(word);
    return list;
}

std::string usual_folder(const std::string& unit) {
    return "/var/lib/campaignd-profiles/" + unit.substr(0, unit.rfind('.'));
}

int number_of(const Words& argv, const std::vector<std::string_view>& names) {
    int value = 1;
    if (const auto text = servers::vllm::option(argv, names))
        std::from_chars(text->data(), text->data() + text->size(), value);
    return std::clamp(value, 1, 4096);
}

/// One trace file a worker. Workers that show their titles are counted; else the command line says how many there will be.
json::object ranks_hint(const std::string& server, const Words& argv, const systemd::UnitFacts& facts, bool nsys) {
    const int tensor = number_of(argv, {"--tensor-parallel-size", "-tp", "--tp-size", "--tp", "--tp_size"});
    const int pipeline = number_of(argv, {"--pipeline-parallel-size", "-pp", "--pp-size", "--pp", "--pp_size"});
    const int data = number_of(argv, {"--data-parallel-size", "-dp"});
    const auto workers =
        std::count_if(facts.processes.begin(), facts.processes.end(), [](const systemd::ProcessFact& process) {
            if (process.argv.size() != 1) return false;
            return process.argv[0].starts_with("VLLM::Worker") || process.argv[0].starts_with("sglang::scheduler");
        });
    json::object hint{{"tp", tensor}};
    if (pipeline > 1) hint["pp"] = pipeline;
    if (data > 1) hint["dp"] = data;
    std::int64_t expected = static_cast<std::int64_t>(tensor) * pipeline * data;
    std::string note = "by the command line";
    if (workers > 0) {
        expected = workers;
        note = std::to_string(workers) + " worker processes run on this host";
    }
    if (nsys || server == "llama-server") {
        expected = 1;
        note = nsys ? "nsys writes one report for all of them" : "one process";
    }
    hint["traces_expected"] = expected;
    hint["note"] = note;
    return hint;
}

json::object refusal(const std::string& unit, const Error& error) {
    const std::size_t colon = error.why.find(": ");
    std::string reason = colon == std::string::npos ? error.why : error.why.substr(colon + 2);
    if (reason.empty()) reason = error.what;
    if (reason.find(unit.substr(0, unit.find_first_of("@."))) == std::string::npos) reason = unit + ": " + reason;
    if (!error.next.empty()) reason += " " + error.next;
    json::object out{{"kind", "refuse"}, {"code", colon == std::string::npos ? "unusable" : error.why.substr(0, colon)}};
    out["reason"] = reason;
    constexpr std::string_view key_mark = "services.NAME.";
    const std::size_t key = error.next.find(key_mark);
    if (key == std::string::npos) {
        out["plan_key"] = nullptr;
    } else {
        const std::size_t end = error.next.find_first_of(" ),;", key);
        out["plan_key"] = error.next.substr(key, end == std::string::npos ? end : end - key);
    }
    return out;
}

/// Options out, with their values and dotted forms, as the drop-in leaves them out.
Words without(const Words& argv, const Words& options) {
    Words rest;
    for (std::size_t i = 0; i < argv.size(); ++i) {
        const std::string name = argv[i].substr(0, argv[i].find('='));
        const bool goes = std::any_of(options.begin(), options.end(), [&](const std::string& option) {
            return name == option || name.starts_with(option + ".");
        });
        if (!goes) {
            rest.push_back(argv[i]);
        } else if (name.size() == argv[i].size() && i + 1 < argv.size() && !argv[i + 1].starts_with("--")) {
            ++i;
        }
    }
    return rest;
}

Words names_of(const Baseline& baseline) {
    Words names;
    for (const auto& [name, hash] : baseline.environment_hashes) names.push_back(name);
    return names;
}

/// What the profiler needs of the server; nothing: it can profile as it runs.
Result<std::optional<servers::ProfilerSetting>> setting_for(const Baseline& baseline, const Ask& ask,
                                                            const std::string& folder) {
    using Maybe = std::optional<servers::ProfilerSetting>;
    if (ask.want == "nsys") {
        if (baseline.server_kind != "vllm") return Maybe{servers::ProfilerSetting{}};
        auto setting = servers::vllm::cuda_setting(ask.server_version, baseline.running_argv);
        if (!setting) return setting.error();
        return Maybe{*std::move(setting)};
    }
    if (baseline.server_kind == "sglang") return Maybe{};   // the request itself brings folder and activities
    if (baseline.server_kind != "vllm") {
        return Error{ErrorKind::refused, "no torch profiler",
                     "no-torch-profiler: The server has no torch profiler" +
                         (baseline.server_kind.empty() ? std::string{"that is known"} : " (" + baseline.server_kind + ")") +
                         ".",
                     "", "capture it with nsys instead"};
    }
    if (servers::vllm::torch_profiler_on(ask.server_version, baseline.running_argv, names_of(baseline))) return Maybe{};
    auto setting = servers::vllm::torch_setting(ask.server_version, folder, baseline.running_argv);
    if (!setting) return setting.error();
    return Maybe{*std::move(setting)};
}

/// The words that a script adds from its variable: split at blanks, so none may hold one.
Result<std::string> extra_words(const std::string& unit, const Ask& ask, const Words& arguments) {
    std::string value = ask.extra_args_value;
    for (const std::string& word : arguments) {
        if (word.find_first_of(" \t\n\"'\\$*?[") != std::string::npos) {
            return Error{
                ErrorKind::refused, unit + " cannot be restarted in another mode",
                "wrapper-extra-args: " + unit + " splits " + ask.extra_args_env + " at blanks, and an argument holds one.",
                "", "name the full command in the plan (services.NAME.command)"};
        }
        value += (value.empty() ? "" : " ") + word;
    }
    return value;
}

struct Decided {
    Override change;
    Words argv_after;
};

Result<Decided> decide(const std::string& unit, const Baseline& baseline, const Ask& ask, const std::string& folder,
                       const servers::ProfilerSetting& setting) {
    Decided decided;
    decided.change.writable = {folder};
    decided.change.environment = setting.environment;
    decided.change.removes = setting.removes;
    decided.argv_after = without(baseline.running_argv, setting.removes);
    decided.argv_after.insert(decided.argv_after.end(), setting.arguments.begin(), setting.arguments.end());
    if (ask.want == "nsys") {
        decided.change.prefix = {"/usr/local/bin/nsys", "profile", "-o", folder + "/campaign", "--trace=cuda,nvtx"};
        if (ask.delay_s > 0) decided.change.prefix.push_back("--delay=" + std::to_string(static_cast<int>(ask.delay_s)));
        if (ask.duration_s > 0)
            decided.change.prefix.push_back("--duration=" + std::to_string(static_cast<int>(ask.duration_s)));
    }
    if (!ask.extra_args_env.empty() && !setting.arguments.empty()) {
        const Result<std::string> value = extra_words(unit, ask, setting.arguments);
        if (!value) return value.error();
        decided.change.environment[ask.extra_args_env] = *value;
    } else {
        decided.change.arguments = setting.arguments;
    }
    return decided;
}

}   // namespace

json::object adapt(const std::string& unit, const systemd::UnitFacts& facts, const Ask& ask) {
    const systemd::KindOf kind_of = servers::detect_kind;
    const Baseline baseline = systemd::judge(unit, facts, kind_of);
    json::object out{{"schema", "campaign.adapt/1"}, {"unit", unit}};
    out["server"] = baseline.server_kind.empty() ? json::value(nullptr) : json::value(baseline.server_kind);
    out["how"] = baseline.how;
    out["server_pid"] = baseline.server_pid > 0 ? json::value(baseline.server_pid) : json::value(nullptr);
    out["server_argv"] = list_of(baseline.running_argv);
    out["effective_argv_after"] = nullptr;
    out["effective_env_after"] = nullptr;
    out["ranks_hint"] = ranks_hint(baseline.server_kind, baseline.running_argv, facts, ask.want == "nsys");
    json::array cautions;
    const auto refuse = [&](const Error& error) {
        out["adapt"] = refusal(unit, error);
        out["cautions"] = std::move(cautions);
        return out;
    };

    std::string folder = ask.profiler_dir.empty() ? usual_folder(unit) : ask.profiler_dir;
    auto setting = setting_for(baseline, ask, folder);
    if (!setting) return refuse(setting.error());
    if (!setting->has_value()) {
        out["adapt"] = json::object{{"kind", "none"}};
        out["effective_argv_after"] = list_of(baseline.running_argv);
        out["effective_env_after"] = json::object{};
        cautions.emplace_back("the server profiles as it runs: no restart");
        out["cautions"] = std::move(cautions);
        return out;
    }
    Result<host::Change> change = Error{};
    Result<Decided> decided = Error{};
    for (int attempt = 0; attempt < 2; ++attempt) {
        decided = decide(unit, baseline, ask, folder, **setting);
        if (!decided) return refuse(decided.error());
        change = systemd::render_drop_in(unit, baseline, decided->change, kind_of);
        // The plan's folder may be one that the service cannot use; the usual one is then taken, and that is said.
        const bool other_folder = !change && change.error().why.starts_with("folder: ") && folder != usual_folder(unit);
        if (!other_folder) break;
        cautions.emplace_back("not the plan's folder: " + change.error().why.substr(8));
        folder = usual_folder(unit);
        setting = setting_for(baseline, ask, folder);
        if (!setting || !setting->has_value()) break;
    }
    if (!change) return refuse(change.error());
    const bool only_variables =
        decided->change.arguments.empty() && decided->change.prefix.empty() && (*setting)->removes.empty();
    json::object adapted{{"kind", only_variables ? "env" : "drop-in"}, {"path", change->path}};
    json::array lines;
    for (const std::string& line : split(change->content, '\n'))
        if (!line.empty()) lines.emplace_back(line);
    adapted["lines"] = std::move(lines);
    adapted["sha256"] = change->sha256;
    adapted["prepare"] =
        json::array{json::object{{"mkdir", folder}, {"owner", baseline.user.empty() ? "root" : baseline.user}}};
    out["adapt"] = std::move(adapted);
    out["effective_argv_after"] = list_of(decided->argv_after);
    json::object variables;
    for (const auto& [name, value] : decided->change.environment) variables[name] = value;
    out["effective_env_after"] = std::move(variables);
    out["profiler_dir"] = folder;
    out["cautions"] = std::move(cautions);
    return out;
}

}   // namespace campaign::adapt
