#include <cstdio>
#include <fstream>
#include <map>
#include <ostream>

#include "base/files.hpp"
#include "base/json.hpp"
#include "instruments/agent/commands.hpp"
#include "instruments/agent/each_command.hpp"
#include "instruments/agent/load_options.hpp"
#include "instruments/agent/load_table.hpp"
#include "instruments/agent/write_file.hpp"
#include "instruments/load/load.hpp"
#include "instruments/load/vllm.hpp"

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

bool complete(const json::object& result) {
    const json::value* const found = result.if_contains("complete");
    return found != nullptr && found->is_bool() && found->as_bool();
}

/// Records end in any order and are written in that of sending, each as soon as all before it have been.
class RequestsFile {
public:
    [[nodiscard]] Result<void> open(const std::string& path) {
        path_ = path;
        file_.open(path, std::ios::out | std::ios::trunc | std::ios::binary);
        if (!file_) return fault("cannot be written to");
        return {};
    }
    void add(const load::RequestRecord& record) {
        waiting_.emplace(record.index, json::serialize(load::to_json(record)));
        while (!waiting_.empty() && waiting_.begin()->first == next_) {
            file_ << waiting_.begin()->second << '\n';
            waiting_.erase(waiting_.begin());
            ++next_;
        }
    }
    /// Whatever still waits for one that never ended is written too.
    [[nodiscard]] Result<void> close() {
        for (const auto& [index, line] : waiting_) file_ << line << '\n';
        file_.close();
        if (!file_) return fault("was not written whole");
        return {};
    }

private:
    [[nodiscard]] Error fault(const std::string& what) const {
        return Error{ErrorKind::io, path_ + " " + what, "", "", "look whether the folder exists and the disk has room"};
    }

    std::string path_;
    std::ofstream file_;
    std::map<std::uint64_t, std::string> waiting_;
    std::uint64_t next_ = 0;
};

/// A result file of vLLM's for each level that ran, one a line as its --append-result does it.
std::string vllm_lines(const json::object& result) {
    std::string text;
    const json::value* const levels = result.if_contains("levels");
    if (levels == nullptr || !levels->is_array()) return text;
    for (const json::value& level : levels->get_array()) {
        if (level.is_object()) text += json::serialize(load::vllm_result(result, level.get_object())) + "\n";
    }
    return text;
}

int by_file(Words words, std::ostream& out, std::ostream& err, const std::atomic<bool>& stop) {
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
    return complete(result) ? as_asked : failed;
}

int by_options(Words words, std::ostream& out, std::ostream& err, const std::atomic<bool>& stop) {
    const Result<LoadAsked> asked = read_load_options(words);
    if (!asked) {
        err << describe(asked.error()) << '\n';
        return usage;
    }
    const Result<load::Spec> spec = load::parse_spec(json::serialize(asked->spec));
    if (!spec) {
        err << describe(spec.error()) << '\n';
        return usage;
    }
    RequestsFile requests;
    load::OnRecord on_record;
    if (!asked->requests_out.empty()) {
        if (const auto opened = requests.open(asked->requests_out); !opened) {
            err << describe(opened.error()) << '\n';
            return failed;
        }
        on_record = [&requests](const load::RequestRecord& record) { requests.add(record); };
    }
    const auto progress = [&err](const json::object& event) { err << progress_line(event) << std::flush; };
    const json::object result = load::run(*spec, progress, stop, on_record);
    // All that was gathered is brought out before anything is said to have failed.
    bool kept = true;
    const auto keep = [&](const Result<void>& written) {
        if (written) return;
        err << describe(written.error()) << '\n';
        kept = false;
    };
    if (!asked->requests_out.empty()) keep(requests.close());
    if (!asked->result_out.empty()) keep(write_whole(asked->result_out, pretty(result) + "\n"));
    if (!asked->vllm_out.empty()) keep(write_whole(asked->vllm_out, vllm_lines(result)));
    out << (asked->as_json ? pretty(result) + "\n" : load_table(result));
    if (const json::value* error = result.if_contains("error")) err << describe(error_from_json(*error)) << '\n';
    return kept && complete(result) && any_success(result) ? as_asked : failed;
}

}   // namespace

int load_command(Words words, std::ostream& out, std::ostream& err, const std::atomic<bool>& stop) {
    if (words.size() == 1 && (words[0] == "--help" || words[0] == "-h" || words[0] == "help")) {
        out << load_help();
        return as_asked;
    }
    const bool files = words.size() == 2 && !words[0].starts_with('-') && words[0].find("://") == std::string::npos &&
                       !words[1].starts_with('-');
    return files ? by_file(words, out, err, stop) : by_options(words, out, err, stop);
}

}   // namespace campaign::agent
