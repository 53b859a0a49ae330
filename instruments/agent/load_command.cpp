#include <ostream>

#include "base/files.hpp"
#include "base/json.hpp"
#include "instruments/agent/commands.hpp"
#include "instruments/agent/each_command.hpp"
#include "instruments/agent/write_file.hpp"
#include "instruments/load/load.hpp"

namespace campaign::agent {
namespace {

constexpr std::size_t largest_spec = std::size_t{1} << 20U;

/// What was asked for could not even begin: the reason still belongs in the result file, where the caller looks.
json::object refusal(const Error& error) {
    return {{"schema", "campaign.load/1"},
            {"tool", "campaign-agent " CAMPAIGN_VERSION},
            {"complete", false},
            {"levels", json::array{}},
            {"error", to_json(error)}};
}

}   // namespace

int load_command(Words words, std::ostream& out, std::ostream& err, const std::atomic<bool>& stop) {
    if (words.size() != 2) return wrong_usage(err, "load needs a specification and a result file");
    json::object result;
    const Result<std::string> text = read_text(words[0], largest_spec);
    const Result<load::Spec> spec = text ? load::parse_spec(*text) : Result<load::Spec>{text.error()};
    if (spec) {
        const auto progress = [&out](const json::object& event) { out << json::serialize(event) << '\n' << std::flush; };
        result = load::run(*spec, progress, stop);
    } else {
        err << describe(spec.error()) << '\n';
        result = refusal(spec.error());
    }
    if (const Result<void> written = write_whole(words[1], pretty(result) + "\n"); !written) {
        err << describe(written.error()) << '\n';
        return failed;
    }
    const json::value* const complete = result.if_contains("complete");
    return complete != nullptr && complete->is_bool() && complete->as_bool() ? as_asked : failed;
}

}   // namespace campaign::agent
