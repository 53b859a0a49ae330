#include "instruments/trace/kineto.hpp"

#include <algorithm>
#include <map>

#include "base/json.hpp"
#include "instruments/trace/document.hpp"
#include "instruments/trace/event.hpp"

namespace campaign::trace {
namespace {

std::optional<Kind> kind_of(const Token& category) {   // the second spelling is that of 2021
    if (category.is("kernel") || category.is("Kernel")) return Kind::kernel;
    if (category.is("gpu_memcpy") || category.is("Memcpy")) return Kind::memcpy;
    if (category.is("gpu_memset") || category.is("Memset")) return Kind::memset;
    return std::nullopt;
}

bool is_launch(const Token& category) {
    return category.is("cuda_runtime") || category.is("cuda_driver") || category.is("Runtime") || category.is("hip_runtime");
}

/// Correlation ids are numbers; a trace may write anything. What is no number of 64 bits gets one of its own.
class Correlations {
public:
    std::int64_t key(const Token& token) {
        if (token.kind == Token::Kind::absent || token.kind == Token::Kind::null) return no_launch;
        if (const auto number = integer(token); number && *number > last_of_others) return *number;
        const auto fresh = no_launch + 1 + static_cast<std::int64_t>(others_.size());
        return others_.emplace(identity(token), fresh).first->second;
    }

private:
    static constexpr std::int64_t last_of_others = no_launch + (std::int64_t{1} << 40U);
    std::map<std::string, std::int64_t> others_;
};

/// The events of one list.
class Kept final : public EventSink {
public:
    explicit Kept(Recording& recording) : now_{recording} {}

    void event(const EventFacts* facts) override {
        ++now_.events;
        if (facts != nullptr && facts->phase.is("X")) keep(*facts);
    }
    void another_list() override {
        if (!has_first_) first_ = std::move(now_);
        has_first_ = true;
        now_ = Recording{};
    }
    void first_list_counts() override {
        if (has_first_) now_ = std::move(first_);
        has_first_ = false;
    }

private:
    void keep(const EventFacts& event) {
        if (const std::optional<Kind> kind = kind_of(event.category)) {
            work(event, *kind);
        } else if (is_launch(event.category)) {
            const std::optional<Nanoseconds> start = time_of(event.start);
            const std::int64_t key = correlations_.key(event.correlation);
            if (!start || key == no_launch) return;
            const bool graph = label(event.name).find("GraphLaunch") != std::string::npos;
            now_.launches[key] = Launch{*start, name_of(event.process, true), graph};
        } else if (event.category.is("user_annotation") || event.category.is("gpu_user_annotation")) {
            const std::optional<Nanoseconds> start = time_of(event.start);
            const std::optional<Nanoseconds> took = time_of(event.duration);
            Nanoseconds end = 0;
            if (!start || !took || __builtin_add_overflow(*start, *took, &end)) return;
            const bool on_gpu = event.category.raw.starts_with('g');
            now_.annotations.push_back(
                Annotation{*start, end, name_of(event.name, false), name_of(event.process, !on_gpu), on_gpu});
        }
    }
    void work(const EventFacts& event, Kind kind) {
        const std::optional<Nanoseconds> start = time_of(event.start);
        const std::optional<Nanoseconds> took = time_of(event.duration);
        Nanoseconds end = 0;
        if (!start || !took || __builtin_add_overflow(*start, *took, &end)) {
            ++now_.without_time;
            return;
        }
        if (*took < 0) ++now_.negative;
        if (kind == Kind::kernel) ++now_.kernels;
        GpuEvent kept;
        kept.start = *start;
        kept.end = std::max(*start, end);
        kept.launch = correlations_.key(event.correlation);
        kept.name = name_of(event.name, false);
        kept.device = name_of(event.device.kind == Token::Kind::absent ? event.process : event.device, false);
        kept.stream = name_of(event.stream.kind == Token::Kind::absent ? event.thread : event.stream, false);
        kept.kind = kind;
        now_.gpu.push_back(kept);
    }
    /// Most are plain: then nothing is copied. `strict`: 7 and "7" are two.
    std::uint32_t name_of(const Token& token, bool strict) {
        if (token.kind == Token::Kind::integer && token.raw != "-0") return now_.names.id(token.raw);
        if (token.kind == Token::Kind::text && !token.escaped && !strict && valid_utf8(token.raw))
            return now_.names.id(token.raw);
        return now_.names.id(strict ? identity(token) : label(token));
    }

    Recording& now_;
    Recording first_;
    bool has_first_ = false;
    Correlations correlations_;
};

void read_header(Recording& recording, const Document& document) {
    recording.is_object = !document.bare_list() || !document.is_json();   // what is salvaged is a list of events in any case
    recording.header = document.header();
    const auto info = recording.header.find("distributedInfo");
    if (info == recording.header.end()) return;
    const Result<json::value> parsed = parse_json(info->second, "distributedInfo");
    if (!parsed) return;
    recording.rank = int_at(*parsed, "rank");
    recording.world_size = int_at(*parsed, "world_size");
}

std::string_view fault_of(std::string_view note) {
    if (note == "gzip_truncated") return "the gzip stream is cut off";
    if (note == "gzip_bad_crc") return "the gzip checksum does not fit the content";
    if (note == "gzip_corrupt") return "the gzip stream is damaged";
    if (note == "read_error") return "the file could not be read to its end";
    return {};
}

void judge(Recording& recording, const Document& document, const ByteSource& source) {
    std::vector<std::string>& notes = recording.notes;
    std::vector<std::string>& faults = recording.faults;
    for (const std::string& note : source.notes()) {
        notes.push_back(note);
        if (const std::string_view fault = fault_of(note); !fault.empty()) faults.emplace_back(fault);
    }
    if (document.byte_order_mark()) notes.emplace_back("bom");
    if (!document.valid_utf8()) notes.emplace_back("invalid_utf8");
    if (!document.is_json()) notes.emplace_back("invalid_json");
    if (document.is_json() && document.control_chars()) notes.emplace_back("control_char_in_string");
    if (document.header_lost()) notes.emplace_back("header_lost");
    if (!document.is_json() && document.found_events() && !document.events_closed()) notes.emplace_back("truncated");
    recording.bad_events = document.bad_events();
    if (recording.bad_events > 0) notes.push_back("bad_events=" + std::to_string(recording.bad_events));
    if (document.gave_up()) notes.emplace_back("gave_up_within_broken_events");
    if (recording.without_time > 0) notes.push_back("gpu_event_without_time=" + std::to_string(recording.without_time));
    if (document.nonfinite()) notes.emplace_back("nonfinite_number");

    if (document.bytes() == 0) {
        faults.emplace_back("the file is empty");
    } else if (!document.found_events()) {
        faults.emplace_back("there is no traceEvents list: this is no trace of the torch profiler");
    } else if (!document.events_closed()) {
        faults.emplace_back("the list of events is cut off");
    } else if (!document.is_json()) {
        faults.emplace_back(document.bad_events() > 0 ? "some events are damaged"
                                                      : "the JSON is damaged outside of its events");
    }
    if (recording.kernels == 0 && document.found_events()) faults.emplace_back("it holds no kernel");
}

}   // namespace

Recording read_kineto(ByteSource& source, std::size_t window) {
    Recording recording;
    Kept kept{recording};
    Document document{source, window};
    document.read(kept);
    recording.format = "kineto";
    recording.bytes = document.bytes();
    read_header(recording, document);
    judge(recording, document, source);
    return recording;
}

}   // namespace campaign::trace
