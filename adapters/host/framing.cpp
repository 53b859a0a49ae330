#include "adapters/host/framing.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"

namespace campaign::host {

namespace {

/// $1 nonce, $2 "in" when there is input, $3 "root" to run through sudo; then the command.
/// The sub-shell keeps a command that is a shell builtin, or that ends the shell, from taking the trailer along.
constexpr std::string_view wrapper = R"sh(n=$1 i=$2 r=$3; shift 3
[ "$i" = in ] || exec </dev/null
printf '%s begin\n' "$n"
if [ "$r" = root ] && [ "$(id -u)" != 0 ]; then
(exec sudo -n -- sh -c 'printf "%s begin\n" "$0" >&2; exec "$@"' "$n" "$@")
else
printf '%s begin\n' "$n" >&2
(exec "$@")
fi
s=$?
printf '%s end \n' "$n" >&2
printf '%s end %s\n' "$n" "$s"
exit "$s"
)sh";

constexpr std::size_t longest_status = 8;

std::string evidence_of(std::string_view text) {
    return printable(trim(text), 500);
}

}   // namespace

Result<std::vector<std::string>> framed_argv(const std::vector<std::string>& argv, std::string_view nonce, bool has_input,
                                             bool sudo) {
    if (argv.empty() || argv.front().empty() || argv.front().front() == '-') {
        return Error{ErrorKind::usage, "a command without a program", "its first word is empty or an option", "", ""};
    }
    for (const std::string& word : argv) {
        if (word.find('\0') != std::string::npos) {
            return Error{ErrorKind::usage, "a command word holds a NUL byte", "no program can be given one",
                         printable(word, 200), ""};
        }
    }
    std::vector<std::string> framed{
        "sh", "-c", std::string{wrapper}, "sh", std::string{nonce}, has_input ? "in" : "null", sudo ? "root" : "user"};
    framed.insert(framed.end(), argv.begin(), argv.end());
    return framed;
}

void Kept::add(std::string_view bytes) {
    bytes_ += bytes.size();
    const std::size_t half = limit_ / 2;
    if (head_.size() < limit_ - half) {
        const std::size_t taken = std::min(bytes.size(), limit_ - half - head_.size());
        head_.append(bytes.substr(0, taken));
        bytes.remove_prefix(taken);
    }
    if (bytes.size() >= half) {
        tail_.assign(bytes.substr(bytes.size() - half));
        return;
    }
    tail_.append(bytes);
    // Trimmed only when it has doubled, so that many small pieces do not move it each time.
    if (tail_.size() > 2 * half) tail_.erase(0, tail_.size() - half);
}

std::string Kept::text() const {
    const std::size_t half = limit_ / 2;
    const std::size_t surplus = tail_.size() > half ? tail_.size() - half : 0;
    return head_ + tail_.substr(surplus);
}

Frame::Frame(std::string_view nonce) : begin_{std::string{nonce} + " begin\n"}, end_{std::string{nonce} + " end "} {}

void Frame::feed(std::string_view bytes, const std::function<void(std::string_view)>& inside) {
    if (state_ == State::after) {
        noise_.add(bytes);
        return;
    }
    pending_.append(bytes);
    if (state_ == State::before) {
        const std::size_t at = pending_.find(begin_);
        if (at == std::string::npos) {
            if (pending_.size() < begin_.size()) return;
            const std::size_t sure = pending_.size() - (begin_.size() - 1);
            noise_.add(std::string_view{pending_}.substr(0, sure));
            pending_.erase(0, sure);
            return;
        }
        noise_.add(std::string_view{pending_}.substr(0, at));
        pending_.erase(0, at + begin_.size());
        state_ = State::inside;
    }
    if (state_ == State::inside) {
        const std::size_t at = pending_.find(end_);
        if (at == std::string::npos) {
            // Only a tail that a trailer could begin with is held back: a follower's line must not wait for the next one.
            std::size_t held = std::min(pending_.size(), end_.size() - 1);
            const std::string_view all{pending_};
            while (held > 0 && all.substr(all.size() - held) != std::string_view{end_}.substr(0, held)) --held;
            const std::size_t sure = pending_.size() - held;
            if (sure > 0) inside(all.substr(0, sure));
            pending_.erase(0, sure);
            return;
        }
        if (at > 0) inside(std::string_view{pending_}.substr(0, at));
        pending_.erase(0, at + end_.size());
        state_ = State::trailer;
    }
    const std::size_t line_end = pending_.find('\n');
    if (line_end == std::string::npos && pending_.size() <= longest_status) return;
    const std::string_view digits = std::string_view{pending_}.substr(0, std::min(line_end, longest_status));
    if (!digits.empty() && std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; })) {
        int value = 0;
        for (const char digit : digits) value = value * 10 + (digit - '0');
        status_ = value;
    }
    if (line_end != std::string::npos) noise_.add(std::string_view{pending_}.substr(line_end + 1));
    pending_.clear();
    state_ = State::after;
}

void Frame::finish(const std::function<void(std::string_view)>& inside) {
    if (state_ == State::before) noise_.add(pending_);
    if (state_ == State::inside && !pending_.empty()) inside(pending_);
    pending_.clear();
}

Framed::Framed(std::string_view nonce, bool sudo, std::size_t keep_output, std::size_t keep_errors, Sink sink)
    : sudo_{sudo},
      output_{nonce},
      errors_{nonce},
      kept_output_{keep_output},
      kept_errors_{keep_errors},
      sink_{std::move(sink)} {}

void Framed::keep(std::string_view bytes) {
    if (!sink_) {
        kept_output_.add(bytes);
    } else if (!stopped_ && !sink_(bytes)) {
        stopped_ = true;
    }
}

void Framed::output(std::string_view bytes) {
    seen_ += bytes.size();
    output_.feed(bytes, [this](std::string_view inside) { keep(inside); });
}

void Framed::errors(std::string_view bytes) {
    seen_ += bytes.size();
    errors_.feed(bytes, [this](std::string_view inside) { kept_errors_.add(inside); });
}

Result<Finished> Framed::verdict(const Ending& ending) {
    output_.finish([this](std::string_view inside) { keep(inside); });
    errors_.finish([this](std::string_view inside) { kept_errors_.add(inside); });
    const std::string after = format_span(ending.after);
    if (output_.ended() && output_.status()) {
        if (sudo_ && !errors_.begun()) {
            const std::string said = evidence_of(errors_.noise());
            return Error{ErrorKind::refused, ending.host + " gives no right to act as root: " + ending.shown,
                         "sudo -n ended with " + std::to_string(*output_.status()) + "; the command was not started", said,
                         "allow it without a password in the host's sudoers, or connect as root"};
        }
        Finished finished;
        finished.exit_code = *output_.status();
        finished.output = kept_output_.text();
        finished.errors = kept_errors_.text();
        finished.output_bytes = kept_output_.bytes();
        finished.errors_bytes = kept_errors_.bytes();
        return finished;
    }
    std::string seen;
    if (ending.exit_status) seen = "the shell ended with " + std::to_string(*ending.exit_status);
    if (ending.signal) seen = "the shell was ended by SIG" + *ending.signal;
    const std::string said = evidence_of(output_.noise() + "\n" + errors_.noise() + "\n" + kept_errors_.text());
    const std::string evidence =
        seen + (seen.empty() || said.empty() ? "" : "; ") + (said.empty() ? "" : "it said: " + said);
    const bool by_itself = ending.lost.empty() && !ending.deadline && (ending.exit_status || ending.signal);
    if (!output_.begun() && by_itself) {
        return Error{ErrorKind::refused, ending.host + " did not start the command: " + ending.shown,
                     "the login shell ended before it", evidence,
                     "see that the account has an ordinary shell and no forced command"};
    }
    const std::string next = "look at what it was to do before it is done again";
    if (ending.deadline) {
        return Error{ErrorKind::in_doubt,
                     ending.host + " did not finish in time: " + ending.shown + " after " + after + "; outcome in doubt",
                     "its deadline passed; it may go on there", evidence, next};
    }
    if (!ending.lost.empty()) {
        return Error{ErrorKind::in_doubt,
                     "link to " + ending.host + " " + ending.lost + " during " + ending.shown + " after " + after +
                         "; outcome in doubt",
                     "no trailer came", evidence, next};
    }
    return Error{ErrorKind::in_doubt,
                 ending.host + " lost the end of " + ending.shown + " after " + after + "; outcome in doubt",
                 "the channel closed without a trailer", evidence, next};
}

bool Lines::feed(std::string_view bytes, const OnLine& on_line) {
    while (!bytes.empty()) {
        const std::size_t end = bytes.find('\n');
        const std::string_view piece = bytes.substr(0, end);
        const std::size_t room = longest_ - partial_.size();
        partial_.append(piece.substr(0, room));
        if (end == std::string_view::npos) return true;
        bytes.remove_prefix(end + 1);
        const std::string line = std::exchange(partial_, std::string{});
        if (!on_line(line)) return false;
    }
    return true;
}

}   // namespace campaign::host
