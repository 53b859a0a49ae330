#pragma once
// How the result of a remote command is known for certain: a frame around its output, with its own exit status.
//
// A login shell may print before the command, a connection may end after it, and "exit 255" or "no status" can mean
// anything. So each command runs under a constant sh script that prints
//
//   NONCE " begin" LF   ...output...   NONCE " end " STATUS LF
//
// on standard output, and the same frame (without a status) on standard error. The nonce is fresh and random. What lies
// outside the frame is noise: kept for the evidence, else ignored. Only the trailer says that the command ended. No terminal
// is involved. The marks need no line of their own: a line feed held back as the possible start of one would keep a
// follower's line waiting for the next. Everything here is pure: bytes in, values out.

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/host/host.hpp"

namespace campaign::host {

/// The longest command line that goes through a login shell: sshd hands it over as one word, and Linux allows 128 KiB a
/// word.
inline constexpr std::size_t longest_command_line = 120'000;

/// The command with its frame, as argv: sh -c SCRIPT sh NONCE INPUT ROOT argv... (`has_input` false: stdin is /dev/null.)
/// With `sudo` the command runs through `sudo -n --` unless we are root there already; the frame on standard error then
/// opens only once that right was given. Fails with usage where argv is empty, holds a NUL or its first word begins with
/// '-'.
[[nodiscard]] Result<std::vector<std::string>> framed_argv(const std::vector<std::string>& argv, std::string_view nonce,
                                                           bool has_input, bool sudo);

/// Head and tail of a stream: the first half of `limit` and the last half; what lies between is counted only.
class Kept {
public:
    explicit Kept(std::size_t limit) : limit_{limit} {}
    void add(std::string_view bytes);
    /// Everything, or the head and the tail put together when there was more than `limit`.
    [[nodiscard]] std::string text() const;
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

private:
    std::size_t limit_;
    std::uint64_t bytes_ = 0;
    std::string head_;
    std::string tail_;
};

/// One framed stream, fed in pieces of any size.
class Frame {
public:
    explicit Frame(std::string_view nonce);

    /// Passes what lies inside the frame to `inside`, in order.
    void feed(std::string_view bytes, const std::function<void(std::string_view)>& inside);
    /// The stream is over: what was held back as a possible trailer was none.
    void finish(const std::function<void(std::string_view)>& inside);

    [[nodiscard]] bool begun() const { return state_ != State::before; }
    [[nodiscard]] bool ended() const { return state_ == State::after; }
    /// Of the trailer. Only when ended; the frame on standard error has none.
    [[nodiscard]] std::optional<int> status() const { return status_; }
    /// Outside the frame, at most 64 KiB.
    [[nodiscard]] std::string noise() const { return noise_.text(); }

private:
    enum class State { before, inside, trailer, after };
    State state_ = State::before;
    std::string begin_;
    std::string end_;
    std::string pending_;
    std::optional<int> status_;
    Kept noise_{64u << 10};
};

/// How the transport saw a command end, beside the frame.
struct Ending {
    std::string host;
    std::string shown;   ///< the command
    std::chrono::nanoseconds after{0};
    std::optional<int> exit_status;      ///< of the wrapping shell
    std::optional<std::string> signal;   ///< that ended the wrapping shell, without "SIG"
    std::string lost;                    ///< why nothing more can come: "closed by peer", ...; empty: the stream ended
    bool deadline = false;               ///< its time was over
};

/// Told of the bytes of standard output instead of keeping them; false ends the command.
using Sink = std::function<bool(std::string_view)>;

/// Both streams of one framed command, and what they amount to.
class Framed {
public:
    Framed(std::string_view nonce, bool sudo, std::size_t keep_output, std::size_t keep_errors, Sink sink = {});

    void output(std::string_view bytes);
    void errors(std::string_view bytes);

    /// Nothing that matters can come any more.
    [[nodiscard]] bool complete() const { return output_.ended() && errors_.ended(); }
    /// The command has ended; its standard error may still be on the way.
    [[nodiscard]] bool ended() const { return output_.ended(); }
    /// The sink wants no more.
    [[nodiscard]] bool stopped() const { return stopped_; }
    /// Bytes seen so far, noise included.
    [[nodiscard]] std::uint64_t seen() const { return seen_; }

    /// A trailer: finished with its status. (Without the right to be root: refused.) No trailer: refused if the frame never
    /// opened and the shell ended by itself, so that the command never started; in_doubt else.
    [[nodiscard]] Result<Finished> verdict(const Ending& ending);

private:
    void keep(std::string_view bytes);

    bool sudo_;
    Frame output_;
    Frame errors_;
    Kept kept_output_;
    Kept kept_errors_;
    Sink sink_;
    bool stopped_ = false;
    std::uint64_t seen_ = 0;
};

/// Lines out of pieces. A line longer than `longest` is handed on cut there; the rest of it is dropped.
class Lines {
public:
    explicit Lines(std::size_t longest = 1u << 20) : longest_{longest} {}
    /// Stops early, and says false, when `on_line` does.
    bool feed(std::string_view bytes, const OnLine& on_line);

private:
    std::size_t longest_;
    std::string partial_;
};

}   // namespace campaign::host
