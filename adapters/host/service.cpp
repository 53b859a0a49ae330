#include "adapters/host/service.hpp"

#include <limits>

#include "base/json.hpp"

namespace campaign::host {

namespace {

json::array list(const std::vector<std::string>& words) {
    json::array array;
    for (const std::string& word : words) array.emplace_back(word);
    return array;
}

json::object table(const std::map<std::string, std::string>& entries) {
    json::object object;
    for (const auto& [key, value] : entries) object[key] = value;
    return object;
}

std::vector<std::string> list_at(const json::value& object, std::string_view key) {
    std::vector<std::string> words;
    const json::value* found = member(object, key);
    if (found == nullptr || !found->is_array()) return words;
    for (const json::value& word : found->get_array()) {
        if (word.is_string()) words.emplace_back(word.get_string());
    }
    return words;
}

std::map<std::string, std::string> table_at(const json::value& object, std::string_view key) {
    std::map<std::string, std::string> entries;
    const json::value* found = member(object, key);
    if (found == nullptr || !found->is_object()) return entries;
    for (const auto& [name, value] : found->get_object()) {
        if (value.is_string()) entries.emplace(std::string{name}, std::string{value.get_string()});
    }
    return entries;
}

/// "infinity" is UINT64_MAX, which JSON numbers of other readers would round: written as null.
json::value span(std::uint64_t us) {
    return us == std::numeric_limits<std::uint64_t>::max() ? json::value(nullptr) : json::value(us);
}

std::uint64_t unsigned_at(const json::value& object, std::string_view key, std::uint64_t absent) {
    const json::value* found = member(object, key);
    if (found == nullptr) return absent;
    if (found->is_uint64()) return found->get_uint64();
    if (found->is_int64() && found->get_int64() >= 0) return static_cast<std::uint64_t>(found->get_int64());
    return absent;
}

int small_at(const json::value& object, std::string_view key) {
    return static_cast<int>(int_at(object, key).value_or(0));
}

ServiceState state_from_json(const json::value& value) {
    ServiceState state;
    state.boot_id = string_at(value, "boot_id").value_or("");
    state.exists = bool_at(value, "exists").value_or(false);
    state.loadable = bool_at(value, "loadable").value_or(false);
    state.load_state = string_at(value, "load_state").value_or("");
    state.active = string_at(value, "active").value_or("");
    state.sub = string_at(value, "sub").value_or("");
    state.result = string_at(value, "result").value_or("");
    state.invocation = string_at(value, "invocation").value_or("");
    state.main_pid = small_at(value, "main_pid");
    state.restarts = small_at(value, "restarts");
    if (const auto status = int_at(value, "exit_status")) state.exit_status = static_cast<int>(*status);
    state.entered_active_us = unsigned_at(value, "entered_active_us", 0);
    state.job_pending = bool_at(value, "job_pending").value_or(false);
    state.needs_reload = bool_at(value, "needs_reload").value_or(false);
    state.drop_ins = list_at(value, "drop_ins");
    return state;
}

}   // namespace

json::object to_json(const ServiceState& state) {
    json::object object{{"boot_id", state.boot_id},
                        {"exists", state.exists},
                        {"loadable", state.loadable},
                        {"load_state", state.load_state},
                        {"active", state.active},
                        {"sub", state.sub},
                        {"result", state.result},
                        {"invocation", state.invocation},
                        {"main_pid", state.main_pid},
                        {"restarts", state.restarts},
                        {"entered_active_us", state.entered_active_us},
                        {"job_pending", state.job_pending},
                        {"needs_reload", state.needs_reload},
                        {"drop_ins", list(state.drop_ins)}};
    if (state.exit_status) object["exit_status"] = *state.exit_status;
    return object;
}

json::object to_json(const Baseline& baseline) {
    json::array obstacles;
    for (const Obstacle& obstacle : baseline.obstacles) {
        obstacles.push_back(json::object{{"code", obstacle.code}, {"sentence", obstacle.sentence}, {"next", obstacle.next}});
    }
    return json::object{{"state", to_json(baseline.state)},
                        {"configured_argv", list(baseline.configured_argv)},
                        {"running_argv", list(baseline.running_argv)},
                        {"environment_hashes", table(baseline.environment_hashes)},
                        {"user", baseline.user},
                        {"fragment", baseline.fragment},
                        {"start_limit_burst", baseline.start_limit_burst},
                        {"start_limit_interval_us", span(baseline.start_limit_interval_us)},
                        {"start_timeout_us", span(baseline.start_timeout_us)},
                        {"stop_timeout_us", span(baseline.stop_timeout_us)},
                        {"server_pid", baseline.server_pid},
                        {"server_kind", baseline.server_kind},
                        {"how", baseline.how},
                        {"exec_path", baseline.exec_path},
                        {"exec_flags", list(baseline.exec_flags)},
                        {"unit_type", baseline.unit_type},
                        {"sandbox", table(baseline.sandbox)},
                        {"environment_files", list(baseline.environment_files)},
                        {"dependents", list(baseline.dependents)},
                        {"obstacles", std::move(obstacles)}};
}

Result<Baseline> baseline_from_json(const json::value& value) {
    const json::value* state = member(value, "state");
    const json::value* argv = member(value, "configured_argv");
    if (state == nullptr || !state->is_object() || argv == nullptr || !argv->is_array()) {
        return Error{ErrorKind::invalid, "the record of a service's baseline cannot be read",
                     "it lacks its state or its command line", "", ""};
    }
    constexpr std::uint64_t infinity = std::numeric_limits<std::uint64_t>::max();
    Baseline baseline;
    baseline.state = state_from_json(*state);
    baseline.configured_argv = list_at(value, "configured_argv");
    baseline.running_argv = list_at(value, "running_argv");
    baseline.environment_hashes = table_at(value, "environment_hashes");
    baseline.user = string_at(value, "user").value_or("");
    baseline.fragment = string_at(value, "fragment").value_or("");
    baseline.start_limit_burst = small_at(value, "start_limit_burst");
    baseline.start_limit_interval_us = unsigned_at(value, "start_limit_interval_us", infinity);
    baseline.start_timeout_us = unsigned_at(value, "start_timeout_us", infinity);
    baseline.stop_timeout_us = unsigned_at(value, "stop_timeout_us", infinity);
    baseline.server_pid = small_at(value, "server_pid");
    baseline.server_kind = string_at(value, "server_kind").value_or("");
    baseline.how = string_at(value, "how").value_or("");
    baseline.exec_path = string_at(value, "exec_path").value_or("");
    baseline.exec_flags = list_at(value, "exec_flags");
    baseline.unit_type = string_at(value, "unit_type").value_or("");
    baseline.sandbox = table_at(value, "sandbox");
    baseline.environment_files = list_at(value, "environment_files");
    baseline.dependents = list_at(value, "dependents");
    if (const json::value* obstacles = member(value, "obstacles"); obstacles != nullptr && obstacles->is_array()) {
        for (const json::value& entry : obstacles->get_array()) {
            baseline.obstacles.push_back({string_at(entry, "code").value_or(""), string_at(entry, "sentence").value_or(""),
                                          string_at(entry, "next").value_or("")});
        }
    }
    return baseline;
}

}   // namespace campaign::host
