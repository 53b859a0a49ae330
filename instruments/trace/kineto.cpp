#include "instruments/trace/kineto.hpp"

#include <algorithm>

#include "base/json.hpp"
#include "instruments/trace/document.hpp"
#include "instruments/trace/event.hpp"

namespace campaign::trace {
namespace {

std::optional<Kind> kind_of(std::string_view category) {   // the second spelling is that of 2021
    if (category == "kernel" || category == "Kernel") return Kind::kernel;
    if (category == "gpu_memcpy" || category == "Memcpy") return Kind::memcpy;
    if (category == "gpu_memset" || category == "Memset") return Kind::memset;
    return std::nullopt;
}

bool is_launch(std::string_view category) {
    return category == "cuda_runtime" || category == "cuda_driver" || category == "Runtime" || category == "hip_runtime";
}

void keep(Recording& recording, const EventFacts& event) {
    if (event.phase != "X") return;
    const std::optional<Nanoseconds> start = nanoseconds_from_microseconds(event.start);
    const std::optional<Nanoseconds> took = nanoseconds_from_microseconds(event.duration);
    if (const std::optional<Kind> kind = kind_of(event.category)) {
        Nanoseconds end = 0;
        if (!start || !took || __builtin_add_overflow(*start, *took, &end)) {
            ++recording.without_time;
            return;
        }
        if (*took < 0) ++recording.negative;
        if (*kind == Kind::kernel) ++recording.kernels;
        GpuEvent kept;
        kept.start = *start;
        kept.end = std::max(*start, end);
        kept.launch = event.correlation.value_or(no_launch);
        kept.name = recording.names.id(event.name);
        kept.device = recording.names.id(event.device.empty() ? event.process : event.device);
        kept.kind = *kind;
        recording.gpu.push_back(kept);
    } else if (is_launch(event.category)) {
        if (!start || !event.correlation) return;
        const bool graph = event.name.find("GraphLaunch") != std::string::npos;
        recording.launches[*event.correlation] = Launch{*start, recording.names.id(event.process), graph};
    } else if (event.category == "user_annotation" || event.category == "gpu_user_annotation") {
        Nanoseconds end = 0;
        if (!start || !took || __builtin_add_overflow(*start, *took, &end)) return;
        recording.annotations.push_back(Annotation{*start, end, recording.names.id(event.name),
                                                   recording.names.id(event.process), event.category.starts_with('g')});
    }
}

void read_header(Recording& recording, const Document& document) {
    const auto info = document.header().find("distributedInfo");
    if (info == document.header().end()) return;
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
    if (document.syntax_error()) notes.emplace_back("invalid_json");
    if (document.header_lost()) notes.emplace_back("header_lost");
    if (document.found_events() && !document.events_closed()) notes.emplace_back("truncated");
    recording.bad_events = document.bad_events();
    if (recording.bad_events > 0) notes.push_back("bad_events=" + std::to_string(recording.bad_events));
    if (document.gave_up()) notes.emplace_back("gave_up_within_broken_events");
    if (recording.without_time > 0) notes.push_back("gpu_event_without_time=" + std::to_string(recording.without_time));

    if (document.bytes() == 0) {
        faults.emplace_back("the file is empty");
    } else if (!document.found_events()) {
        faults.emplace_back("there is no traceEvents list: this is no trace of the torch profiler");
    } else if (!document.events_closed()) {
        faults.emplace_back("the list of events is cut off");
    } else if (!document.closed()) {
        faults.emplace_back("the JSON is not closed");
    }
    if (recording.kernels == 0 && document.found_events()) faults.emplace_back("it holds no kernel");
}

}   // namespace

Recording read_kineto(ByteSource& source, std::size_t window) {
    Recording recording;
    recording.format = "kineto";
    Document document{source, window};
    bool nonfinite = false;
    bool control_chars = false;
    bool bad_utf8 = false;
    while (const std::optional<std::string_view> text = document.next_event()) {
        const std::optional<EventFacts> event = read_event(*text);
        if (!event) {
            document.reject();
            continue;
        }
        ++recording.events;
        nonfinite = nonfinite || event->nonfinite;
        control_chars = control_chars || event->control_chars;
        bad_utf8 = bad_utf8 || !valid_utf8(*text);
        keep(recording, *event);
    }
    if (nonfinite) recording.notes.emplace_back("nonfinite_number");
    if (control_chars) recording.notes.emplace_back("control_char_in_string");
    if (bad_utf8) recording.notes.emplace_back("invalid_utf8");
    read_header(recording, document);
    judge(recording, document, source);
    return recording;
}

}   // namespace campaign::trace
