#include "instruments/startup/startup.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <chrono>

#include "base/text.hpp"
#include "instruments/startup/message.hpp"
#include "instruments/startup/patterns.hpp"

namespace campaign::startup {
namespace {

constexpr std::size_t longest_line = std::size_t{64} << 10;

std::optional<int> number_before(std::string_view text, std::size_t end) {
    std::size_t begin = end;
    while (begin > 0 && std::isdigit(static_cast<unsigned char>(text[begin - 1])) != 0) --begin;
    int value = 0;
    if (begin == end || std::from_chars(text.data() + begin, text.data() + end, value).ec != std::errc{})
        return std::nullopt;
    return value;
}

/// "07:31" or "1:02:03" to seconds.
std::optional<double> clock_seconds(std::string_view text) {
    double total = 0;
    for (const std::string& part : split(text, ':')) {
        int value = 0;
        if (part.empty() || std::from_chars(part.data(), part.data() + part.size(), value).ec != std::errc{})
            return std::nullopt;
        total = total * 60 + value;
    }
    return total;
}

/// A redrawn bar: " 42%|..| 69/163 [07:31<10:14, ...]" or "42% Completed | 69/163 [...]".
struct Bar {
    int percent = 0;
    std::optional<int> done;
    std::optional<int> total;
    std::optional<double> left_s;
};

std::optional<Bar> bar_in(std::string_view line) {
    const std::size_t sign = line.find('%');
    if (sign == std::string_view::npos) return std::nullopt;
    const auto percent = number_before(line, sign);
    if (!percent || *percent > 100) return std::nullopt;
    const std::string_view rest = line.substr(sign + 1);
    if (!rest.starts_with('|') && !rest.starts_with(" Completed |")) return std::nullopt;
    Bar bar;
    bar.percent = *percent;
    const std::size_t open = rest.find('[');
    const std::size_t slash = rest.rfind('/', open);
    if (open != std::string_view::npos && slash != std::string_view::npos) {
        bar.done = number_before(rest, slash);
        int total = 0;
        if (std::from_chars(rest.data() + slash + 1, rest.data() + open, total).ec == std::errc{}) bar.total = total;
        const std::size_t less = rest.find('<', open);
        const std::size_t comma = rest.find(',', open);
        if (less != std::string_view::npos && comma != std::string_view::npos && less < comma)
            bar.left_s = clock_seconds(rest.substr(less + 1, comma - less - 1));
    }
    return bar;
}

/// The same 60-second remark over and over is no progress.
bool is_repetition(std::string_view line) {
    return line.find("No available shared memory broadcast block found") != std::string_view::npos;
}

std::string version_in(std::string_view line, std::string_view after) {
    const std::size_t at = line.find(after);
    if (at == std::string_view::npos) return {};
    std::string_view rest = trim(line.substr(at + after.size()));
    if (rest.starts_with('v') || rest.starts_with('(')) rest.remove_prefix(1);
    if (rest.starts_with('v')) rest.remove_prefix(1);
    std::size_t end = 0;
    while (end < rest.size() && (std::isalnum(static_cast<unsigned char>(rest[end])) != 0 || rest[end] == '.' ||
                                 rest[end] == '+' || rest[end] == '-'))
        ++end;
    return std::string{rest.substr(0, end)};
}

}   // namespace

std::string_view to_string(Phase phase) {
    static constexpr std::array<std::string_view, 12> words{"none",    "start",     "config",   "distributed_init",
                                                            "weights", "compile",   "kv_cache", "warmup",
                                                            "graphs",  "api_start", "ready",    "serving"};
    return words[static_cast<std::size_t>(phase)];
}

std::string_view to_string(Outcome outcome) {
    static constexpr std::array<std::string_view, 5> words{"loading", "ready", "failed", "stalled", "stopped"};
    return words[static_cast<std::size_t>(outcome)];
}

std::string sglang_release_of(const Stamp& began, int year) {
    struct Release {
        int day;   ///< as 20250407
        std::string_view version;
    };
    // Days of the releases' announcements; from 0.5 on there are too many lines of development to go by the day.
    static constexpr std::array<Release, 11> releases{{{20241204, "0.4.0"},
                                                       {20241225, "0.4.1"},
                                                       {20250127, "0.4.2"},
                                                       {20250214, "0.4.3"},
                                                       {20250313, "0.4.4"},
                                                       {20250407, "0.4.5"},
                                                       {20250427, "0.4.6"},
                                                       {20250610, "0.4.7"},
                                                       {20250624, "0.4.8"},
                                                       {20250707, "0.4.9"},
                                                       {20250731, "0.4.10"}}};
    constexpr int first_of_the_next = 20250824;
    const std::optional<double> at = began.relative() ? std::nullopt : began.seconds(year);
    if (!at) return {};
    using namespace std::chrono;
    const year_month_day date{floor<days>(sys_seconds{seconds{static_cast<std::int64_t>(*at)}})};
    const int day = static_cast<int>(date.year()) * 10000 + static_cast<int>(static_cast<unsigned>(date.month())) * 100 +
                    static_cast<int>(static_cast<unsigned>(date.day()));
    std::string found;
    for (const Release& release : releases)
        if (day >= release.day && day < first_of_the_next) found = release.version;
    return found;
}

std::string as_utf8(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size();) {
        const auto lead = static_cast<unsigned char>(text[i]);
        const std::size_t length = lead < 0x80                   ? 1
                                   : lead >= 0xC2 && lead < 0xE0 ? 2
                                   : lead >= 0xE0 && lead < 0xF0 ? 3
                                   : lead >= 0xF0 && lead < 0xF5 ? 4
                                                                 : 0;
        bool whole = length > 0 && i + length <= text.size();
        for (std::size_t k = 1; whole && k < length; ++k) whole = (static_cast<unsigned char>(text[i + k]) & 0xC0U) == 0x80U;
        if (whole) {
            out += text.substr(i, length);
            i += length;
        } else {
            out += "\xEF\xBF\xBD";
            ++i;
        }
    }
    return out;
}

struct Reader::Machine {
    Progress progress;
    std::uint64_t activity = 0;
    std::uint64_t line_number = 1;
    std::string segment;            ///< of the line that is not whole yet, escapes removed
    std::optional<Weight> weight;   ///< of the failure that stands
    /// A cause that did not end the start: the server went on. It stands again when something says that the start failed.
    struct Suspect {
        std::string kind;
        std::string evidence;
        std::uint64_t line = 0;
    };
    std::optional<Suspect> suspect;
    std::string line_container;
    bool stopping = false;   ///< it was told to stop: what dies now dies of that
    std::string container;   ///< whose lines count; empty: all
    enum class Escape { none, begun, csi, osc } escape = Escape::none;

    /// Whole stretches between LF, CR and ESC; a line that lies in one piece of the input is not copied.
    void feed(std::string_view bytes) {
        while (!bytes.empty()) {
            if (escape != Escape::none) {
                bytes = skip_escape(bytes);
                continue;
            }
            std::size_t at = 0;
            while (at < bytes.size() && bytes[at] != '\n' && bytes[at] != '\r' && bytes[at] != '\x1b') ++at;
            const std::string_view stretch = bytes.substr(0, at);
            if (at == bytes.size()) {
                keep(stretch);
                return;
            }
            const char c = bytes[at];
            if (c == '\x1b') {
                keep(stretch);
                escape = Escape::begun;
            } else if (segment.empty()) {
                end_of(stretch.substr(0, longest_line));
            } else {
                keep(stretch);
                end_segment();
            }
            if (c == '\n') {
                line_container.clear();
                ++line_number;
            }
            bytes.remove_prefix(at + 1);
        }
    }

    void keep(std::string_view stretch) {
        if (segment.size() < longest_line) segment += stretch.substr(0, longest_line - segment.size());
    }

    /// Terminal escapes may be split anywhere; a line end ends an unfinished one.
    std::string_view skip_escape(std::string_view bytes) {
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            const char c = bytes[i];
            if (c == '\n') {
                escape = Escape::none;
                return bytes.substr(i);
            }
            switch (escape) {
                case Escape::begun: escape = c == '[' ? Escape::csi : c == ']' ? Escape::osc : Escape::none; break;
                case Escape::csi:
                    if (c >= '@' && c <= '~') escape = Escape::none;
                    break;
                case Escape::osc:
                    if (c == '\a') escape = Escape::none;
                    break;
                case Escape::none: break;
            }
            if (escape == Escape::none) return bytes.substr(i + 1);
        }
        return {};
    }

    void end_of(std::string_view segment_text) {
        const std::string_view line = trim(segment_text);
        if (!line.empty()) read(line);
    }
    void end_segment() {
        end_of(segment);
        segment.clear();
    }

    void begin_run() {
        Progress next;
        next.runs = progress.runs + 1;
        next.restarts = progress.restarts;
        next.server = progress.server;
        next.last = progress.last;
        progress = std::move(next);
        stopping = false;
        weight.reset();
        suspect.reset();
    }

    void enter(Phase phase) {
        if (progress.phase == phase) return;
        progress.phase = phase;
        progress.percent.reset();
        progress.shards_done.reset();
        progress.shards_total.reset();
        progress.phase_left_s.reset();
    }

    void read(std::string_view line) {
        warn(line);
        Message message = message_of(line);
        if (!message.stamp.empty()) progress.last = message.stamp;
        if (is_repetition(line)) {
            progress.silent_end = false;
            return;
        }
        // A bar redrawn by CR has its container's name only once, at the begin of the line.
        if (message.container.empty()) message.container = line_container;
        line_container = message.container;
        if (message.by_systemd && systemd(message.text, line)) {
            if (progress.began.empty()) progress.began = message.stamp;
            return;
        }
        // In a log of several containers only that of the server counts: a gateway has a start of its own.
        if (!container.empty() && message.container != container) return;
        if (identify(message)) {
            if (progress.runs == 0 || progress.phase > Phase::start || progress.outcome != Outcome::loading) begin_run();
            version(message.text);
        }
        if (progress.began.empty()) progress.began = message.stamp;
        if (stopped(message.text)) return;
        if (failure(line)) return;
        if (message.text.find("/start_profile") != std::string_view::npos &&
            message.text.find("Route:") != std::string_view::npos)
            progress.profiler_armed = true;
        for (const std::string_view said : armed_patterns())
            if (message.text.find(said) != std::string_view::npos) progress.profiler_armed = true;
        // What a dying server says after its cause is no progress; one that reaches a later phase does not die.
        if (progress.outcome == Outcome::failed && !lives_on(message.text)) return;
        if (constexpr std::string_view build = "build: "; message.text.starts_with(build) && progress.version.empty()) {
            const std::string number = version_in(message.text, build);   // llama.cpp
            if (number.find_first_not_of("0123456789") == std::string::npos && !number.empty())
                progress.version = "b" + number;
        }
        phase(line, message);
    }

    void warn(std::string_view line) {
        std::vector<std::string>& known = progress.warnings;
        for (const WarningPattern& pattern : warning_patterns())
            if ((!pattern.profiling || progress.profiler_armed) && line.find(pattern.text) != std::string_view::npos &&
                std::find(known.begin(), known.end(), pattern.name) == known.end()) {
                known.emplace_back(pattern.name);
                if (pattern.degrades) progress.degraded = true;
            }
    }

    /// Told to stop, or gone without an error. What its processes say while they die is no failure.
    bool stopped(std::string_view text) {
        const bool clean = std::any_of(stop_patterns().begin(), stop_patterns().end(), [text](std::string_view said) {
            return text.starts_with(said) || (said.front() == '[' && text.find(said) != std::string_view::npos);
        });
        if (!clean) return stopping && progress.outcome == Outcome::stopped;
        if (text.starts_with("Finished server process [") && progress.outcome == Outcome::failed && progress.was_ready)
            progress.exit_status = 0;   // uvicorn's own end: the dead engine does not show in it
        if (progress.outcome == Outcome::failed || progress.runs == 0) return progress.outcome == Outcome::failed;
        stopping = true;
        if (progress.outcome != Outcome::stopped) {
            if (progress.was_ready) enter(Phase::serving);
            progress.outcome = Outcome::stopped;
            evidence_is(text);
        }
        return true;
    }

    void evidence_is(std::string_view line) {
        progress.evidence.assign(line.substr(0, longest_line));
        progress.evidence_line = line_number;
        ++activity;
    }

    bool lives_on(std::string_view text) {
        if (progress.was_ready) return false;
        const std::span<const PhasePattern> all = phase_patterns();
        if (std::none_of(all.begin(), all.end(),
                         [&](const PhasePattern& each) { return each.phase > progress.phase && fits(each, text); }))
            return false;
        if (weight == Weight::cause) suspect = Suspect{progress.failure_kind, progress.evidence, progress.evidence_line};
        progress.outcome = Outcome::loading;
        progress.failure_kind.clear();
        progress.evidence.clear();
        progress.evidence_line = 0;
        weight.reset();
        return true;
    }

    bool systemd(std::string_view text, std::string_view line) {
        if (text.starts_with("Started ") || text.starts_with("Starting ")) {
            if (text.find(".service") == std::string_view::npos) return false;
            if (progress.phase != Phase::none || progress.outcome != Outcome::loading) begin_run();
            return true;
        }
        constexpr std::string_view scheduled = "restart counter is at ";
        if (const std::size_t at = text.find(scheduled); at != std::string_view::npos) {
            const std::string_view rest = text.substr(at + scheduled.size());
            std::from_chars(rest.data(), rest.data() + rest.size(), progress.restarts);
            progress.restart_pending = true;
            return true;
        }
        if (text.starts_with("Stopping ") || text.find(": Stopping timed out") != std::string_view::npos) {
            stopping = progress.outcome != Outcome::failed;
            return true;
        }
        if (text.find(": Deactivated successfully") != std::string_view::npos || text.starts_with("Stopped ")) {
            if (progress.outcome == Outcome::failed || progress.runs == 0) return true;
            if (progress.outcome != Outcome::stopped) {
                if (progress.was_ready) enter(Phase::serving);
                progress.outcome = Outcome::stopped;
                evidence_is(line);
            }
            return true;
        }
        return ended(text, line);
    }

    /// "x.service: Main process exited, code=exited, status=1/FAILURE": the end of a run whose own words named no cause.
    bool ended(std::string_view text, std::string_view line) {
        if (const std::size_t at = text.find("Main process exited, code="); at != std::string_view::npos) {
            const bool killed = text.find("code=killed", at) != std::string_view::npos ||
                                text.find("code=dumped", at) != std::string_view::npos;
            int status = 0;
            const std::size_t equals = text.find("status=", at);
            if (equals != std::string_view::npos)
                std::from_chars(text.data() + equals + 7, text.data() + text.size(), status);
            progress.exit_status = killed ? 128 + status : status;
        }
        const bool result = text.find(": Failed with result '") != std::string_view::npos;
        const bool late = text.find("operation timed out. Terminating") != std::string_view::npos;
        const bool spawn = text.find("Failed at step ") != std::string_view::npos;
        if (!result && !late && !spawn)
            return progress.exit_status.has_value() && text.find("Main process exited") != std::string_view::npos;
        if (result && text.find("'oom-kill'") != std::string_view::npos) return false;   // a pattern has its kind
        if (stopping || progress.outcome == Outcome::failed) return true;
        if (spawn) return false;
        if (progress.was_ready) enter(Phase::serving);
        if (progress.runs == 0) progress.runs = 1;
        progress.outcome = Outcome::failed;
        evidence_is(line);
        weight = Weight::symptom;
        if (suspect && !progress.was_ready) stands(*suspect);
        return true;
    }

    /// The first line of a run: vLLM's "server version", also in the banner of letters drawn from blocks.
    static bool begins(std::string_view text) {
        if (text.find("vLLM server version") != std::string_view::npos ||
            text.find("vLLM API server version") != std::string_view::npos)
            return true;
        return text.find("  version ") != std::string_view::npos && text.find("\xE2\x96\x88") != std::string_view::npos;
    }
    bool identify(const Message& message) {
        if (!begins(message.text)) return false;
        progress.server = "vllm";
        container = message.container;
        return true;
    }
    void version(std::string_view text) {
        for (const std::string_view after : {"server version", "  version ", "LLM engine (v"})
            if (const std::string found = version_in(text, after); !found.empty()) {
                progress.version = found;
                return;
            }
    }

    bool failure(std::string_view line) {
        for (const FailurePattern& pattern : failure_patterns()) {
            if (line.find(pattern.text) == std::string_view::npos) continue;
            const bool cause = pattern.weight == Weight::cause;
            if (cause && line.find("WARNING") != std::string_view::npos) continue;   // a warning that quotes a cause is none
            // Once ready, a cause is that of a request, not of the server; only the host's word counts.
            if (progress.outcome == Outcome::ready && cause && pattern.kind != "host_oom_killed") continue;
            if (progress.outcome == Outcome::failed && weight && *weight >= pattern.weight) return true;
            if (progress.was_ready) {
                enter(Phase::serving);
            } else if (pattern.reached > progress.phase) {
                enter(pattern.reached);
            }
            if (pattern.kind == "bad_argument" && line.find("vllm") != std::string_view::npos) progress.server = "vllm";
            if (progress.runs == 0) progress.runs = 1;
            progress.outcome = Outcome::failed;
            progress.failure_kind = pattern.kind;
            progress.evidence = std::string{line};
            progress.evidence_line = line_number;
            weight = pattern.weight;
            if (!cause && suspect && !progress.was_ready) stands(*suspect);
            ++activity;
            return true;
        }
        return false;
    }

    void stands(const Suspect& cause) {
        progress.failure_kind = cause.kind;
        progress.evidence = cause.evidence;
        progress.evidence_line = cause.line;
        weight = Weight::cause;
    }

    /// Whether the pattern may speak: of the server whose log this is, and "ready" only of a server that is known.
    [[nodiscard]] bool fits(const PhasePattern& pattern, std::string_view text) const {
        if (pattern.whole ? text != pattern.text : text.find(pattern.text) == std::string_view::npos) return false;
        if (pattern.phase == Phase::ready) return progress.server == pattern.server;
        return pattern.server.empty() || progress.server.empty() || progress.server == pattern.server;
    }

    void phase(std::string_view line, const Message& message) {
        const bool before = progress.outcome == Outcome::ready;
        for (const PhasePattern& pattern : phase_patterns()) {
            if (!fits(pattern, message.text)) continue;
            if (progress.server.empty() && !pattern.server.empty()) {
                progress.server = pattern.server;
                container = message.container;
            }
            if (progress.version.empty() && pattern.phase == Phase::config) version(message.text);
            if (pattern.phase < progress.phase && (pattern.phase != Phase::weights || progress.phase >= Phase::api_start))
                break;   // a rank that is behind
            enter(pattern.phase);
            break;
        }
        if (const std::optional<Bar> bar = bar_in(line); bar && progress.phase != Phase::ready) {
            progress.percent = bar->percent;
            progress.shards_done = bar->done;
            progress.shards_total = bar->total;
            progress.phase_left_s = bar->left_s;
        }
        progress.last_line.assign(line.substr(0, 2000));
        progress.progressed = progress.last;
        progress.silent_end = true;
        ++activity;
        if (progress.phase == Phase::ready && !before) {
            progress.became_ready = progress.last;
            progress.outcome = Outcome::ready;
            progress.was_ready = true;
            progress.percent = 100;
            progress.evidence = std::string{line};
            progress.evidence_line = line_number;
        }
        if (progress.runs == 0) progress.runs = 1;
    }
};

Reader::Reader() : machine_{std::make_unique<Machine>()} {}
Reader::~Reader() = default;
Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&&) noexcept = default;

void Reader::feed(std::string_view bytes) {
    machine_->feed(bytes);
}

void Reader::finish() {
    machine_->end_segment();
}

const Progress& Reader::progress() const {
    return machine_->progress;
}

std::uint64_t Reader::activity() const {
    return machine_->activity;
}

}   // namespace campaign::startup
