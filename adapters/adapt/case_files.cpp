#include "adapters/adapt/case_files.hpp"

#include "base/files.hpp"
#include "base/sha256.hpp"

namespace campaign::adapt {
namespace {

constexpr std::size_t largest = std::size_t{16} << 20U;

Result<json::value> json_of(const std::filesystem::path& file) {
    const Result<std::string> text = read_text(file, largest);
    if (!text) return text.error();
    return parse_json(*text, file.string());
}

Error wrong(const std::filesystem::path& file, const std::string& why) {
    return Error{ErrorKind::invalid, file.string() + " is not what it should be", why, "",
                 "see `campaignctl adapt --help` for the files of a case"};
}

std::vector<std::string> words_of(const json::value* array) {
    std::vector<std::string> words;
    if (array == nullptr || !array->is_array()) return words;
    for (const json::value& word : array->get_array())
        if (word.is_string()) words.emplace_back(std::string_view{word.get_string()});
    return words;
}

Result<void> read_starts(const std::filesystem::path& file, systemd::UnitFacts& facts) {
    const Result<json::value> bus = json_of(file);
    if (!bus) return bus.error();
    const json::value* const starts = member(*bus, "ExecStartEx");
    if (starts == nullptr || !starts->is_array()) return wrong(file, "ExecStartEx is no list");
    for (const json::value& entry : starts->get_array()) {
        const json::array* const fields = entry.if_array();
        if (fields == nullptr || fields->size() < 3 || !(*fields)[0].is_string() || !(*fields)[1].is_array())
            return wrong(file, "an entry of ExecStartEx is not [path, [argv], [flags], ...]");
        facts.start.push_back(
            {std::string{std::string_view{(*fields)[0].get_string()}}, words_of(&(*fields)[1]), words_of(&(*fields)[2])});
    }
    return {};
}

/// The values of one variable are kept: the one that the plan names.
Result<void> read_processes(const std::filesystem::path& file, Case& found) {
    const Result<json::value> processes = json_of(file);
    if (!processes) return processes.error();
    if (!processes->is_array()) return wrong(file, "it is no list of processes");
    for (const json::value& entry : processes->get_array()) {
        systemd::ProcessFact process;
        process.pid = static_cast<int>(int_at(entry, "pid").value_or(0));
        process.parent = static_cast<int>(int_at(entry, "ppid").value_or(0));
        process.argv = words_of(member(entry, "argv"));
        if (const json::value* env = member(entry, "env"); env != nullptr && env->is_object()) {
            process.environment_read = !env->get_object().empty();
            for (const auto& [name, value] : env->get_object()) {
                if (!value.is_string()) continue;
                const std::string_view text{value.get_string()};
                process.environment_hashes[std::string{name}] = sha256(text);
                if (!found.ask.extra_args_env.empty() && std::string_view{name} == found.ask.extra_args_env)
                    found.ask.extra_args_value = text;
            }
        }
        found.facts.processes.push_back(std::move(process));
    }
    return {};
}

}   // namespace

Result<Case> read_case(const std::filesystem::path& folder) {
    Case found;
    const Result<std::string> show = read_text(folder / "show.txt", largest);
    if (!show) return show.error();
    found.facts.boot_id = "00000000-0000-0000-0000-000000000000";
    found.facts.properties = systemd::parse_show(*show);
    found.unit = systemd::property(found.facts.properties, "Id");
    if (!systemd::valid_unit(found.unit)) return wrong(folder / "show.txt", "Id= names no service unit");
    const Result<json::value> ask = json_of(folder / "ask.json");
    if (!ask) return ask.error();
    found.ask.want = string_at(*ask, "want").value_or("torch");
    if (found.ask.want != "torch" && found.ask.want != "nsys")
        return wrong(folder / "ask.json", "want is neither torch nor nsys");
    found.ask.server_version = string_at(*ask, "server_version").value_or("");
    found.ask.delay_s = number_at(*ask, "delay_s").value_or(0);
    found.ask.duration_s = number_at(*ask, "duration_s").value_or(0);
    if (const json::value* plan = member(*ask, "plan")) {
        found.ask.profiler_dir = string_at(*plan, "profiler_dir").value_or("");
        found.ask.extra_args_env = string_at(*plan, "extra_args_env").value_or("");
    }
    if (const auto starts = read_starts(folder / "bus.json", found.facts); !starts) return starts.error();
    if (const auto processes = read_processes(folder / "proc.json", found); !processes) return processes.error();
    return found;
}

}   // namespace campaign::adapt
