#include <ostream>
#include <vector>

#include "base/text.hpp"
#include "instruments/agent/analysis_table.hpp"
#include "instruments/agent/commands.hpp"
#include "instruments/agent/each_command.hpp"
#include "instruments/agent/write_file.hpp"
#include "instruments/trace/trace.hpp"

namespace campaign::agent {
namespace {

using Files = std::vector<std::filesystem::path>;

/// No device and no answer: the analysis failed, and says why.
bool nothing_read(const json::object& analysis) {
    return analysis.at("ranks").as_array().empty();
}

}   // namespace

int analyze_command(Words words, std::ostream& out, std::ostream& err) {
    std::filesystem::path target;
    bool as_json = false;
    Files files;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (words[i] == "--out") {
            if (++i == words.size()) return wrong_usage(err, "analyze --out needs a file");
            target = words[i];
        } else if (words[i] == "--json") {
            as_json = true;
        } else if (words[i] != "-" && words[i].starts_with('-')) {
            return wrong_usage(err, "analyze knows no option " + words[i]);
        } else {
            files.emplace_back(words[i]);
        }
    }
    if (files.empty()) return wrong_usage(err, "analyze needs at least one trace file");

    json::object full;
    json::object analysis;
    if (as_json) {
        trace::Analysis both = trace::analyze_in_full(files);
        full = std::move(both.full);
        analysis = std::move(both.brief);
    } else {
        analysis = trace::analyze(files);
    }
    if (!target.empty()) {
        if (const Result<void> written = write_whole(target, pretty(analysis) + "\n"); !written) {
            err << describe(written.error()) << '\n';
            return failed;
        }
    }
    if (as_json) {
        out << pretty(full) << '\n';
    } else {
        out << for_people(analysis);
    }
    return nothing_read(analysis) ? failed : as_asked;
}

int check_command(Words words, std::ostream& out, std::ostream& err) {
    if (words.empty()) return wrong_usage(err, "check needs at least one trace file");
    bool all_whole = true;
    for (const std::string& file : words) {
        const json::object verdict = trace::check(file);
        all_whole = all_whole && verdict.at("complete").as_bool();
        out << json::serialize(verdict) << '\n' << std::flush;
    }
    return all_whole ? as_asked : failed;
}

}   // namespace campaign::agent
