#include <array>
#include <fstream>
#include <iostream>

#include "base/json.hpp"
#include "base/text.hpp"
#include "instruments/agent/commands.hpp"
#include "instruments/agent/each_command.hpp"
#include "instruments/startup/startup.hpp"

namespace campaign::agent {
namespace {

template <class T>
json::value or_null(const std::optional<T>& value) {
    return value ? json::value(*value) : json::value(nullptr);
}

json::object to_json(const startup::Progress& state) {
    json::object object;
    object["server"] = printable(state.server, 40);
    object["version"] = printable(state.version, 100);
    object["phase"] = startup::to_string(state.phase);
    object["outcome"] = startup::to_string(state.outcome);
    object["percent"] = or_null(state.percent);
    object["shards_done"] = or_null(state.shards_done);
    object["shards_total"] = or_null(state.shards_total);
    object["phase_left_s"] = or_null(state.phase_left_s);
    object["failure_kind"] = state.failure_kind.empty() ? json::value(nullptr) : json::value(state.failure_kind);
    object["evidence"] = printable(state.evidence);
    object["evidence_line"] = state.evidence_line == 0 ? json::value(nullptr) : json::value(state.evidence_line);
    object["last_line"] = printable(state.last_line);
    object["runs"] = state.runs;
    object["restarts"] = state.restarts;
    object["restart_pending"] = state.restart_pending;
    object["was_ready"] = state.was_ready;
    object["profiler_armed"] = state.profiler_armed;
    json::array warnings;
    for (const std::string& warning : state.warnings) warnings.emplace_back(warning);
    object["warnings"] = std::move(warnings);
    return object;
}

std::string sentence(const startup::Progress& state) {
    std::string text{startup::to_string(state.outcome)};
    if (!state.failure_kind.empty()) text += " (" + state.failure_kind + ")";
    text += ", phase " + std::string{startup::to_string(state.phase)};
    if (state.percent) text += " " + std::to_string(*state.percent) + " %";
    if (state.shards_done && state.shards_total)
        text += ", " + std::to_string(*state.shards_done) + " of " + std::to_string(*state.shards_total);
    if (!state.evidence.empty())
        text += "\n  seen    line " + std::to_string(state.evidence_line) + ": " + printable(state.evidence, 300);
    if (state.evidence.empty() && !state.last_line.empty()) text += "\n  last    " + printable(state.last_line, 300);
    for (const std::string& warning : state.warnings) text += "\n  warning " + warning;
    return text + "\n";
}

void read_all(std::istream& in, startup::Reader& reader) {
    std::array<char, std::size_t{1} << 16U> piece{};
    while (in.read(piece.data(), piece.size()), in.gcount() > 0)
        reader.feed(std::string_view{piece.data(), static_cast<std::size_t>(in.gcount())});
    reader.finish();
}

}   // namespace

int startup_command(Words words, std::ostream& out, std::ostream& err) {
    const bool as_json = !words.empty() && words.front() == "--json";
    if (as_json) words = words.subspan(1);
    if (words.size() != 1) return wrong_usage(err, "startup needs one log file, or - for standard input");
    startup::Reader reader;
    if (words.front() == "-") {
        read_all(std::cin, reader);
    } else {
        std::ifstream file{words.front(), std::ios::binary};
        if (!file) {
            err << "cannot read " << printable(words.front(), 1000) << '\n';
            return failed;
        }
        read_all(file, reader);
    }
    out << (as_json ? json::serialize(to_json(reader.progress())) + "\n" : sentence(reader.progress()));
    return as_asked;
}

}   // namespace campaign::agent
