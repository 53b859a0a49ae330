#pragma once
// A machine where commands run: the seam between campaignd and every host, real or simulated.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"

namespace campaign::host {

struct Command {
    std::vector<std::string> argv;   ///< never a shell string; a constant script gets its operands as arguments
    std::string input;               ///< for its standard input; empty: /dev/null
    Millis deadline{std::chrono::seconds{60}};
    std::size_t keep_output = 4u << 20;    ///< bytes of stdout kept; the rest is counted
    std::size_t keep_errors = 64u << 10;   ///< the same of stderr
    bool as_root = false;                  ///< through `sudo -n` where the host is configured so
};

/// A command that certainly ended, with its own status.
struct Finished {
    int exit_code = 0;
    std::string output;
    std::string errors;
    std::uint64_t output_bytes = 0;   ///< all of it, also what was not kept
    std::uint64_t errors_bytes = 0;
};

/// Told of each line of a followed command; returns false to end the following.
using OnLine = std::function<bool(std::string_view line)>;
/// Told how far a transfer is.
using OnBytes = std::function<void(std::uint64_t done, std::uint64_t total)>;

struct Fetched {
    std::uint64_t bytes = 0;
    std::string sha256;   ///< computed on the host and here, and equal
};

/// Where an HTTP client reaches a server of this host.
struct Reach {
    std::optional<std::string> unix_socket;   ///< path to connect to instead of the URL's host and port
    bool tunnelled = false;                   ///< through ssh: latencies measured here are not the server's own
};

class Host {
public:
    virtual ~Host() = default;
    [[nodiscard]] virtual const std::string& name() const = 0;
    /// The command as an operator could type it, for records and `plan explain`.
    [[nodiscard]] virtual std::string shown(const Command& command) const = 0;

    /// Runs to its end. Error kinds: unreachable (certainly never started), in_doubt (it may have run, ended or not),
    /// timed_out never: an expired deadline of a started command is in_doubt. Cancellation throws operation_aborted; the
    /// remote command may go on.
    virtual Async<Result<Finished>> run(Command command) = 0;

    /// Runs a command that prints for ever (a log). Ends when on_line says so (its exit then does not matter, value is
    /// true), or the command ended by itself (false); unreachable or in_doubt when the link went: the caller decides to
    /// follow anew.
    virtual Async<Result<bool>> follow(Command command, OnLine on_line) = 0;

    /// Copies a file of the host to `to` (through `to`.part, resumed when that holds a proven prefix, fsynced, renamed).
    virtual Async<Result<Fetched>> fetch(std::string from, std::filesystem::path to, OnBytes progress) = 0;
    /// Copies a local file to the host with mode `mode`: part file, hash checked there, renamed. Does nothing when a file of
    /// that hash and mode is already in place.
    virtual Async<Result<Fetched>> send(std::filesystem::path from, std::string to, int mode, bool as_root) = 0;

    /// How a server that listens on `address`:`port` of the host itself is reached from here.
    virtual Async<Result<Reach>> reach(std::string address, int port) = 0;

    /// Drops the connection; the next call makes a new one. Harmless where there is none.
    virtual void disconnect() = 0;
};

/// Makes hosts by the name they have in a plan.
class Hosts {
public:
    virtual ~Hosts() = default;
    virtual std::shared_ptr<Host> get(const std::string& name) = 0;
};

}   // namespace campaign::host
