#include "instruments/startup/startup.hpp"

#include <array>
#include <cctype>
#include <charconv>

#include "base/text.hpp"
#include "instruments/startup/patterns.hpp"

namespace campaign::startup {
namespace {

constexpr std::size_t longest_line = std::size_t{64} << 10;

std::optional<int> number_before(std::string_view text, std::size_t end) {
    std::size_t begin = end;
    while (begin > 0 && std::isdigit(static_cast<unsigned char>(text[begin - 1])) != 0) --begin;
    int value = 0;
    if (begin == end || std::from_chars(text.data() + begin, text.data() + end, value).ec != std::errc{}) return std::nullopt;
    return value;
}

/// "07:31" or "1:02:03" to seconds.
std::optional<double> clock_seconds(std::string_view text) {
    double total = 0;
    for (const std::string& part : split(text, ':')) {
        int value = 0;
        if (part.empty() || std::from_chars(part.data(), part.data() + part.size(), value).ec != std::errc{}) return std::nullopt;
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
        if (less != std::string_view::npos && comma != std::string_view::npos && less < comma) bar.left_s = clock_seconds(rest.substr(less + 1, comma - less - 1));
    }
    return bar;
}

/// The same 60-second remark over and over is no progress.
bool is_repetition(std::string_view line) { return line.find("No available shared memory broadcast block found") != std::string_view::npos; }

std::string version_in(std::string_view line, std::string_view after) {
    const std::size_t at = line.find(after);
    if (at == std::string_view::npos) return {};
    std::string_view rest = trim(line.substr(at + after.size()));
    if (rest.starts_with('v') || rest.starts_with('(')) rest.remove_prefix(1);
    if (rest.starts_with('v')) rest.remove_prefix(1);
    std::size_t end = 0;
    while (end < rest.size() && (std::isalnum(static_cast<unsigned char>(rest[end])) != 0 || rest[end] == '.' || rest[end] == '+' || rest[end] == '-')) ++end;
    return std::string{rest.substr(0, end)};
}

}  // namespace

std::string_view to_string(Phase phase) {
    static constexpr std::array<std::string_view, 12> words{"none", "start", "config", "distributed_init", "weights", "compile", "kv_cache", "warmup", "graphs", "api_start", "ready", "serving"};
    return words[static_cast<std::size_t>(phase)];
}

std::string_view to_string(Outcome outcome) {
    static constexpr std::array<std::string_view, 5> words{"loading", "ready", "failed", "stalled", "stopped"};
    return words[static_cast<std::size_t>(outcome)];
}

struct Reader::Machine {
    Progress progress;
    std::uint64_t activity = 0;
    std::uint64_t line_number = 1;
    std::string segment;      ///< of the line that is not whole yet, escapes removed
    bool cut = false;         ///< the segment was longer than is kept
    bool root_found = false;
    enum class Escape { none, begun, csi, osc } escape = Escape::none;

    void byte(char c) {
        switch (escape) {   // terminal escapes may be split anywhere
            case Escape::begun:
                escape = c == '[' ? Escape::csi : c == ']' ? Escape::osc : Escape::none;
                return;
            case Escape::csi:
                if (c >= '@' && c <= '~') escape = Escape::none;
                if (c != '\n') return;
                escape = Escape::none;
                break;
            case Escape::osc:
                if (c == '\a') escape = Escape::none;
                if (c != '\n') return;
                escape = Escape::none;
                break;
            case Escape::none: break;
        }
        if (c == '\x1b') {
            escape = Escape::begun;
        } else if (c == '\n') {
            end_segment();
            ++line_number;
        } else if (c == '\r') {
            end_segment();
        } else if (segment.size() < longest_line) {
            segment += c;
        } else {
            cut = true;
        }
    }

    void end_segment() {
        const std::string_view line = trim(segment);
        if (!line.empty()) read(line);
        segment.clear();
        cut = false;
    }

    void begin_run() {
        const int runs = progress.runs + 1;
        Progress next;
        next.runs = runs;
        next.server = "vllm";
        progress = std::move(next);
        root_found = false;
    }

    void read(std::string_view line) {
        if (is_repetition(line)) return;
        const bool starts = line.find("vLLM server version") != std::string_view::npos || line.find("vLLM API server version") != std::string_view::npos;
        if (starts && (progress.phase != Phase::start || progress.outcome != Outcome::loading)) begin_run();
        if (const std::string version = version_in(line, "server version"); !version.empty() && starts) progress.version = version;
        if (line.find("Started ") == 0 && line.find(".service") != std::string_view::npos) {
            // systemd began another run; the server's own first line counts it
            if (progress.outcome == Outcome::failed) progress.outcome = Outcome::loading;
        }
        if (failure(line)) return;
        if (line.find("/start_profile") != std::string_view::npos && line.find("Route:") != std::string_view::npos) progress.profiler_armed = true;
        if (line.find("Profiler with mode") != std::string_view::npos || line.find("Torch profiling enabled") != std::string_view::npos || line.find("Torch profiler enabled") != std::string_view::npos) progress.profiler_armed = true;
        if (progress.outcome == Outcome::failed) return;   // what a dying server says after its cause is no progress
        phase(line);
    }

    bool failure(std::string_view line) {
        for (const FailurePattern& pattern : failure_patterns()) {
            if (line.find(pattern.text) == std::string_view::npos) continue;
            if (pattern.root && line.find("WARNING") != std::string_view::npos) continue;   // a warning that quotes a cause is none
            if (progress.outcome == Outcome::ready && pattern.root && pattern.kind != "host_oom_killed") continue;   // a request's error, not the server's
            if (progress.outcome == Outcome::failed && (root_found || !pattern.root)) return true;
            progress.outcome = Outcome::failed;
            progress.failure_kind = pattern.kind;
            progress.evidence = std::string{line};
            progress.evidence_line = line_number;
            root_found = pattern.root;
            ++activity;
            return true;
        }
        return false;
    }

    void phase(std::string_view line) {
        bool moved = false;
        for (const PhasePattern& pattern : phase_patterns()) {
            if (line.find(pattern.text) == std::string_view::npos) continue;
            // "ready" must be uvicorn's own line, not a text that quotes it.
            if (pattern.phase == Phase::ready && line.size() > pattern.text.size() + 160) continue;
            if (pattern.phase < progress.phase && pattern.phase != Phase::weights) break;   // a rank that is behind
            if (progress.phase != pattern.phase) {
                if (pattern.phase < progress.phase && progress.phase >= Phase::api_start) break;
                progress.phase = pattern.phase;
                progress.percent.reset();
                progress.shards_done.reset();
                progress.shards_total.reset();
                progress.phase_left_s.reset();
            }
            moved = true;
            break;
        }
        if (const std::optional<Bar> bar = bar_in(line); bar && progress.phase != Phase::ready) {
            progress.percent = bar->percent;
            progress.shards_done = bar->done;
            progress.shards_total = bar->total;
            progress.phase_left_s = bar->left_s;
            moved = true;
        }
        progress.last_line = std::string{line.substr(0, 2000)};
        ++activity;
        if (moved && progress.phase == Phase::ready && progress.outcome != Outcome::ready) {
            progress.outcome = Outcome::ready;
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
    for (const char c : bytes) machine_->byte(c);
}

void Reader::finish() { machine_->end_segment(); }

const Progress& Reader::progress() const { return machine_->progress; }

std::uint64_t Reader::activity() const { return machine_->activity; }

}  // namespace campaign::startup
