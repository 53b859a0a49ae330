#pragma once
// What is kept of a trace: compact records of the device's work and of what says to which step it belongs.

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "instruments/trace/time_digits.hpp"

namespace campaign::trace {

/// Each text once; its number is its place.
class Names {
public:
    std::uint32_t id(std::string_view text) {
        if (const auto found = ids_.find(text); found != ids_.end()) return found->second;
        const auto fresh = static_cast<std::uint32_t>(texts_.size());
        texts_.emplace_back(text);
        ids_.emplace(texts_.back(), fresh);
        return fresh;
    }
    [[nodiscard]] const std::string& text(std::uint32_t id) const { return texts_[id]; }
    [[nodiscard]] std::size_t size() const { return texts_.size(); }

private:
    std::deque<std::string> texts_;   // never moves what the map's keys look at
    std::unordered_map<std::string_view, std::uint32_t> ids_;
};

enum class Kind : std::uint8_t { kernel, memcpy, memset };

inline constexpr std::int64_t no_launch = std::numeric_limits<std::int64_t>::min();

struct GpuEvent {
    Nanoseconds start = 0;
    Nanoseconds end = 0;               ///< never before start
    std::int64_t launch = no_launch;   ///< key of the launching call
    std::uint32_t name = 0;
    std::uint32_t device = 0;   ///< a name: "0"
    std::uint32_t stream = 0;   ///< a name: "7"; of its device
    Kind kind = Kind::kernel;

    [[nodiscard]] Nanoseconds duration() const { return end - start; }
};

/// A runtime or driver call that put work on a device.
struct Launch {
    Nanoseconds at = 0;
    std::uint32_t process = 0;   ///< a name
    bool graph = false;          ///< it replays a whole graph
};

struct Annotation {
    Nanoseconds start = 0;
    Nanoseconds end = 0;
    std::uint32_t name = 0;
    std::uint32_t process = 0;   ///< the process; of an annotation on the device: the device. A name.
    bool on_gpu = false;
};

struct Recording {
    std::string format;   ///< "kineto" or "nsys-sqlite"
    Names names;
    std::vector<GpuEvent> gpu;
    std::unordered_map<std::int64_t, Launch> launches;
    std::vector<Annotation> annotations;
    bool is_object = true;   ///< Kineto: the document is an object; false: a bare list of events
    std::map<std::string, std::string, std::less<>> header;   ///< Kineto: some members beside the events, as JSON text
    std::uint64_t bytes = 0;                                  ///< Kineto: of the text, inflated
    std::optional<std::int64_t> rank;
    std::optional<std::int64_t> world_size;
    std::uint64_t events = 0;   ///< of any sort, those not kept too
    std::uint64_t kernels = 0;
    std::uint64_t bad_events = 0;      ///< skipped: they could not be read
    std::uint64_t without_time = 0;    ///< device work without a readable time
    std::uint64_t negative = 0;        ///< durations below 0, counted as 0
    std::vector<std::string> notes;    ///< in the reference's words: "gzip_truncated", "bad_events=2"
    std::vector<std::string> faults;   ///< why the file is not whole, for people; empty: it is
};

}   // namespace campaign::trace
