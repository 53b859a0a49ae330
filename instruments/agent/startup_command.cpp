#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <fstream>
#include <iostream>
#include <thread>

#include "base/fd.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "instruments/agent/commands.hpp"
#include "instruments/agent/each_command.hpp"
#include "instruments/startup/patterns.hpp"
#include "instruments/startup/startup.hpp"

namespace campaign::agent {
namespace {

/// No sign of life for this long is a stall, by the log alone. Healthy silences of several minutes exist (compilation,
/// autotuning, weights repacked), so it is a choice, not a fact.
constexpr double stall_s = 15 * 60;

template <class T>
json::value or_null(const std::optional<T>& value) {
    return value ? json::value(*value) : json::value(nullptr);
}

json::value or_null(const std::string& text, std::size_t limit) {
    return text.empty() ? json::value(nullptr) : json::value(printable(text, limit));
}

/// What the log says, at a time.
struct Seen {
    startup::Progress state;
    startup::Outcome outcome = startup::Outcome::loading;   ///< stalled is a matter of the time
    std::optional<double> load_s;
    std::optional<double> quiet_s;   ///< since the last line that was progress
    std::string version;
    bool version_by_date = false;
};

struct Asked {
    bool as_json = false;
    bool follow = false;
    std::optional<double> now;   ///< Unix seconds
    int year = 0;                ///< of times that carry none; 0: the file's own, or this one
    std::string file;
};

int year_of(double unix_seconds) {
    using namespace std::chrono;
    const sys_days day{floor<days>(sys_seconds{seconds{static_cast<std::int64_t>(unix_seconds)}})};
    return static_cast<int>(year_month_day{day}.year());
}

/// `modified`: when the file was last written, if it is one. The age of the last progress is counted from there where the
/// log's own clock cannot be tied to ours (a relative clock, another zone).
Seen see(const startup::Progress& state, double now, int year, std::optional<double> modified) {
    Seen seen;
    seen.state = state;
    seen.outcome = state.outcome;
    seen.version = state.version;
    if (state.outcome == startup::Outcome::ready) seen.load_s = seconds_between(state.began, state.became_ready, year);
    const std::optional<double> behind =
        state.silent_end ? std::optional{0.0} : seconds_between(state.progressed, state.last, year);
    const std::optional<double> absolute = state.progressed.relative() ? std::nullopt : state.progressed.seconds(year);
    if (modified && behind) {
        seen.quiet_s = now - *modified + *behind;
    } else if (absolute) {
        seen.quiet_s = now - *absolute;
    }
    if (state.outcome == startup::Outcome::loading && state.runs > 0 && seen.quiet_s.value_or(0) >= stall_s)
        seen.outcome = startup::Outcome::stalled;
    if (seen.version.empty() && state.server == "sglang") {
        seen.version = startup::sglang_release_of(state.began, year);
        seen.version_by_date = !seen.version.empty();
    }
    return seen;
}

json::object to_json(const Seen& seen) {
    const startup::Progress& state = seen.state;
    json::object object;
    object["schema"] = "campaign.startup/1";
    object["server"] = or_null(state.server, 40);
    object["engine_version"] = or_null(seen.version, 100);
    if (seen.version_by_date) object["engine_version_from"] = "the log names none; the newest release on its day";
    object["outcome"] = startup::to_string(seen.outcome);
    object["phase"] = startup::to_string(state.phase);
    object["progress_percent"] = or_null(state.percent);
    object["shards_done"] = or_null(state.shards_done);
    object["shards_total"] = or_null(state.shards_total);
    object["phase_left_s"] = or_null(state.phase_left_s);
    object["failure_kind"] = or_null(state.failure_kind, 40);
    // As it stands in the log: whoever compares needs the bytes (JSON escapes what a terminal would not like).
    const std::string& line = state.evidence.empty() ? state.last_line : state.evidence;
    object["evidence_line"] = line.empty() ? json::value(nullptr) : json::value(startup::as_utf8(line));
    object["evidence_line_number"] = state.evidence_line == 0 ? json::value(nullptr) : json::value(state.evidence_line);
    object["last_line"] = printable(state.last_line);
    object["load_seconds"] = or_null(seen.load_s);
    object["last_activity_seconds"] = or_null(seen.quiet_s);
    object["runs"] = state.runs;
    object["restarts"] = state.restarts;
    object["restart_pending"] = state.restart_pending;
    object["exit_status"] = or_null(state.exit_status);
    object["was_ready"] = state.was_ready;
    object["profiler_armed"] = state.profiler_armed;
    object["degraded"] = state.degraded;
    json::array warnings;
    for (const std::string& warning : state.warnings) warnings.emplace_back(warning);
    object["warnings"] = std::move(warnings);
    object["patterns_version"] = startup::patterns_version;
    return object;
}

std::string span(double seconds) {
    return format_span(std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds)));
}

std::string sentence(const Seen& seen) {
    const startup::Progress& state = seen.state;
    std::string text{startup::to_string(seen.outcome)};
    if (!state.failure_kind.empty()) text += " (" + state.failure_kind + ")";
    text += ", phase " + std::string{startup::to_string(state.phase)};
    if (state.percent) text += " " + std::to_string(*state.percent) + " %";
    if (state.shards_done && state.shards_total)
        text += ", " + std::to_string(*state.shards_done) + " of " + std::to_string(*state.shards_total);
    if (state.phase_left_s && seen.outcome == startup::Outcome::loading)
        text += ", the phase's own bar says " + span(*state.phase_left_s) + " more";
    if (seen.load_s) text += ", loaded in " + span(*seen.load_s);
    if (!state.evidence.empty())
        text += "\n  seen    line " + std::to_string(state.evidence_line) + ": " + printable(state.evidence, 300);
    if (state.evidence.empty() && !state.last_line.empty()) text += "\n  last    " + printable(state.last_line, 300);
    if (seen.quiet_s && seen.outcome == startup::Outcome::stalled)
        text += "\n  quiet   no progress for " + span(*seen.quiet_s);
    if (!state.server.empty())
        text += "\n  server  " + printable(state.server, 40) +
                (seen.version.empty() ? "" : " " + printable(seen.version, 60)) +
                (seen.version_by_date ? " (by the log's date: it names no version)" : "");
    if (state.runs > 1 || state.restarts > 0)
        text += "\n  runs    " + std::to_string(state.runs) + ", restarts " + std::to_string(state.restarts) +
                (state.restart_pending ? ", the next one is waited for" : "");
    if (state.exit_status) text += "\n  exit    status " + std::to_string(*state.exit_status);
    for (const std::string& warning : state.warnings) text += "\n  warning " + warning;
    return text + "\n";
}

std::optional<Asked> parse(Words words, std::ostream& err) {
    Asked asked;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string& word = words[i];
        if (word == "--json") {
            asked.as_json = true;
        } else if (word == "--follow" || word == "-f") {
            asked.follow = true;
        } else if (word == "--now" || word == "--year") {
            double value = 0;
            const bool there = i + 1 < words.size();
            const std::string_view text = there ? std::string_view{words[i + 1]} : std::string_view{};
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
            const bool whole = there && error == std::errc{} && end == text.data() + text.size();
            if (!whole || value < 0 || (word == "--year" && (value < 1970 || value > 9999))) {
                (void)wrong_usage(err, word + (word == "--now" ? " needs Unix seconds" : " needs a year, as 2026"));
                return std::nullopt;
            }
            ++i;
            if (word == "--now") {
                asked.now = value;
            } else {
                asked.year = static_cast<int>(value);
            }
        } else if (word.size() > 1 && word.starts_with('-')) {
            (void)wrong_usage(err, "startup knows no option " + printable(word, 60));
            return std::nullopt;
        } else if (!asked.file.empty()) {
            (void)wrong_usage(err, "startup reads one log file");
            return std::nullopt;
        } else {
            asked.file = word;
        }
    }
    if (!asked.file.empty()) return asked;
    (void)wrong_usage(err, "startup needs one log file, or - for standard input");
    return std::nullopt;
}

double clock_now() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::optional<double> modified_at(const std::string& file) {
    struct stat status {};
    if (file == "-" || ::stat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
    return static_cast<double>(status.st_mtim.tv_sec) + static_cast<double>(status.st_mtim.tv_nsec) / 1e9;
}

void tell(const Asked& asked, const startup::Progress& state, std::ostream& out) {
    const double now = asked.now.value_or(clock_now());
    const std::optional<double> modified = modified_at(asked.file);
    const int year = asked.year != 0 ? asked.year : year_of(modified.value_or(now));
    const Seen seen = see(state, now, year, modified);
    out << (asked.as_json ? json::serialize(to_json(seen)) + "\n" : sentence(seen)) << std::flush;
}

bool is_over(startup::Outcome outcome) {
    return outcome == startup::Outcome::ready || outcome == startup::Outcome::failed;
}

/// Tells the state whenever it changes, until the start is over. A file that became shorter was rotated in place
/// (copytruncate): what is there now is read from its beginning.
int follow(const Asked& asked, std::ostream& out, std::ostream& err) {
    startup::Reader reader;
    std::array<char, std::size_t{1} << 16U> piece{};
    const bool standard = asked.file == "-";
    const int file = standard ? STDIN_FILENO : ::open(asked.file.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        err << "cannot read " << printable(asked.file, 1000) << '\n';
        return failed;
    }
    const Fd held{standard ? -1 : file};
    off_t at = 0;
    std::string told;
    for (;;) {
        ssize_t got = ::read(file, piece.data(), piece.size());
        while (got > 0) {
            at += got;
            reader.feed(std::string_view{piece.data(), static_cast<std::size_t>(got)});
            got = ::read(file, piece.data(), piece.size());
        }
        if (got < 0 && errno != EINTR) {
            err << "cannot read " << printable(asked.file, 1000) << '\n';
            return failed;
        }
        const startup::Progress& state = reader.progress();
        const std::string now = std::string{startup::to_string(state.outcome)} +
                                std::string{startup::to_string(state.phase)} + std::to_string(state.percent.value_or(-1)) +
                                std::to_string(state.runs);
        if (now != told) tell(asked, state, out);
        told = now;
        if (is_over(state.outcome)) return state.outcome == startup::Outcome::ready ? as_asked : failed;
        struct stat status {};
        if (!standard && ::fstat(file, &status) == 0 && status.st_size < at) {
            ::lseek(file, 0, SEEK_SET);
            at = 0;
        }
        if (standard && got == 0) {
            reader.finish();
            tell(asked, reader.progress(), out);
            return as_asked;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{200});
    }
}

void read_all(std::istream& in, startup::Reader& reader) {
    std::array<char, std::size_t{1} << 16U> piece{};
    while (in.read(piece.data(), piece.size()), in.gcount() > 0)
        reader.feed(std::string_view{piece.data(), static_cast<std::size_t>(in.gcount())});
    reader.finish();
}

}   // namespace

int startup_command(Words words, std::ostream& out, std::ostream& err) {
    const std::optional<Asked> asked = parse(words, err);
    if (!asked) return usage;
    if (asked->follow) return follow(*asked, out, err);
    startup::Reader reader;
    if (asked->file == "-") {
        read_all(std::cin, reader);
    } else {
        std::ifstream file{asked->file, std::ios::binary};
        if (!file) {
            err << "cannot read " << printable(asked->file, 1000) << '\n';
            return failed;
        }
        read_all(file, reader);
    }
    tell(*asked, reader.progress(), out);
    return as_asked;
}

}   // namespace campaign::agent
