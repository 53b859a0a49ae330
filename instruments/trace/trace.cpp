#include "instruments/trace/trace.hpp"

#include <algorithm>
#include <map>

#include "base/sha256.hpp"
#include "base/text.hpp"
#include "instruments/trace/file_view.hpp"
#include "instruments/trace/kineto.hpp"
#include "instruments/trace/nsys.hpp"
#include "instruments/trace/ranks.hpp"
#include "instruments/trace/report.hpp"

namespace campaign::trace {
namespace {

std::uint64_t size_of(const std::filesystem::path& file) {
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(file, error);
    return error ? 0 : size;
}

json::array texts(const std::vector<std::string>& notes) {
    json::array list;
    for (const std::string& note : notes) list.emplace_back(printable(note, 500));
    return list;
}

std::string joined(const std::vector<std::string>& faults) {
    std::string text;
    for (const std::string& fault : faults) text += (text.empty() ? "" : "; ") + fault;
    return text;
}

/// What the files of one capture add up to.
struct Capture {
    Taxonomy taxonomy;
    json::array files;
    std::vector<RankSummary> devices;
    std::vector<std::optional<std::int64_t>> file_ranks;
    std::optional<std::int64_t> world_size;
    Held held;
    bool in_full = false;
    json::array views;
    std::map<std::int64_t, RankCollectives> collectives;

    void add(const std::filesystem::path& file) {
        json::object entry;
        entry["name"] = printable(file.filename().string(), 300);
        const Result<std::string> hash = sha256_file(file);
        entry["sha256"] = hash ? json::value(*hash) : json::value(nullptr);
        entry["bytes"] = size_of(file);
        const Result<Recording> recording = read_trace(file);
        if (!recording) {
            entry["rank"] = nullptr;
            entry["complete"] = false;
            entry["notes"] = texts({recording.error().what + ": " + recording.error().why});
            if (in_full) views.emplace_back(entry);
            files.emplace_back(std::move(entry));
            return;
        }
        const std::optional<std::int64_t> rank =
            recording->rank ? recording->rank : rank_from_name(file.filename().string());
        entry["rank"] = rank ? json::value(*rank) : json::value(nullptr);
        entry["complete"] = recording->faults.empty();
        std::vector<std::string> said = recording->faults;
        said.insert(said.end(), recording->notes.begin(), recording->notes.end());
        if (recording->negative > 0)
            said.push_back("negative durations, counted as 0: " + std::to_string(recording->negative));
        const Steps steps = assign_steps(*recording);
        add(*recording, steps, rank, said);
        entry["notes"] = texts(said);
        if (in_full) {
            json::object view = file_view(*recording, steps, taxonomy);
            view["name"] = entry["name"];
            view["sha256"] = entry["sha256"];
            view["bytes"] = entry["bytes"];
            view["complete"] = entry["complete"];
            view["said"] = entry["notes"];
            views.emplace_back(std::move(view));
            if (rank && !recording->gpu.empty()) collectives.insert_or_assign(*rank, collectives_of(*recording, taxonomy));
        }
        files.emplace_back(std::move(entry));
    }

    void add(const Recording& recording, const Steps& steps, std::optional<std::int64_t> rank,
             std::vector<std::string>& said) {
        file_ranks.push_back(rank);
        if (recording.world_size) world_size = std::max(world_size.value_or(0), *recording.world_size);
        held.nsys = held.nsys || recording.format == "nsys-sqlite";
        held.annotated = held.annotated || steps.family != StepFamily::none;
        held.marks_kinds =
            held.marks_kinds || steps.family == StepFamily::execute_context || steps.family == StepFamily::sglang;
        for (const auto& [key, launch] : recording.launches) held.graph_launches += launch.graph ? 1 : 0;
        if (steps.family != StepFamily::none && !recording.gpu.empty()) {
            const double lost = static_cast<double>(steps.unassigned) / static_cast<double>(recording.gpu.size());
            if (lost > 0.01)
                said.push_back(std::to_string(steps.unassigned) + " of " + std::to_string(recording.gpu.size()) +
                               " pieces of device work belong to no step");
        }
        if (steps.likely)
            said.emplace_back("decode steps are told by execute_new_0_…: a chunked prefill would look the same");
        for (DeviceSummary& device : summarize(recording, steps, taxonomy))
            devices.push_back(RankSummary{rank, std::move(device)});
    }
};

/// Takes the files' entries out of the capture.
json::object brief(Capture& capture) {
    std::stable_sort(capture.devices.begin(), capture.devices.end(),
                     [](const RankSummary& a, const RankSummary& b) { return a.rank < b.rank; });
    Answer answered = answer(capture.devices, capture.held);
    std::vector<std::string> notes = rank_notes(capture.file_ranks, capture.world_size);
    notes.insert(notes.end(), answered.notes.begin(), answered.notes.end());

    json::object result;
    result["schema"] = "campaign.trace/1";
    result["tool"] = "campaign-agent " CAMPAIGN_VERSION;
    result["taxonomy"] = taxonomy_version;
    result["files"] = std::move(capture.files);
    json::array ranks;
    for (const RankSummary& each : capture.devices) ranks.emplace_back(to_json(each));
    result["ranks"] = std::move(ranks);
    result["answer"] = answered.answer ? json::value(*answered.answer) : json::value(nullptr);
    result["cannot_answer"] = answered.cannot_answer ? json::value(*answered.cannot_answer) : json::value(nullptr);
    result["notes"] = texts(notes);
    return result;
}

}   // namespace

Result<Recording> read_trace(const std::filesystem::path& file) {
    if (is_sqlite(file)) return read_nsys(file);
    Result<ByteSource> source = ByteSource::open(file);
    if (!source) return source.error();
    return read_kineto(*source);
}

json::object check(const std::filesystem::path& file) {
    json::object verdict;
    verdict["file"] = printable(file.string(), 4096);
    const Result<Recording> recording = read_trace(file);
    verdict["complete"] = recording && recording->faults.empty();
    verdict["why"] = recording ? joined(recording->faults) : recording.error().what + ": " + recording.error().why;
    verdict["kernels"] = recording ? recording->kernels : 0;
    verdict["bytes"] = size_of(file);
    verdict["notes"] = recording ? texts(recording->notes) : json::array{};
    return verdict;
}

json::object analyze(std::span<const std::filesystem::path> files) {
    Capture capture;
    for (const std::filesystem::path& file : files) capture.add(file);
    return brief(capture);
}

Analysis analyze_in_full(std::span<const std::filesystem::path> files) {
    Capture capture;
    capture.in_full = true;
    for (const std::filesystem::path& file : files) capture.add(file);
    Analysis result;
    result.brief = brief(capture);
    json::object& full = result.full;
    full["schema"] = "campaign.analysis/1";
    for (const char* const same : {"tool", "taxonomy", "answer", "cannot_answer", "notes"}) full[same] = result.brief[same];
    full["files"] = std::move(capture.views);
    full["ranks"] = capture.collectives.size() > 1 ? json::value(compare_ranks(capture.collectives)) : json::value(nullptr);
    full["decode"] = result.brief["ranks"];
    return result;
}

}   // namespace campaign::trace
