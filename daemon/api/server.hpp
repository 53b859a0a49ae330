#pragma once
// The daemon's only door: HTTP/1.1 with JSON on a Unix socket.

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/fd.hpp"
#include "daemon/api/actions.hpp"
#include "storage/journal.hpp"

namespace campaign::api {

struct ServerOptions {
    std::filesystem::path socket = "/run/campaignd/api.sock";
    unsigned mode = 0660;
    std::string version;                           ///< of campaignd
    std::string journal;                           ///< path of the database, for GET /v1/version
    std::uint64_t body_limit = 10 * 1024 * 1024;   ///< bytes of one request's body
    std::uint32_t header_limit = 16 * 1024;
    std::size_t max_connections = 256;                                             ///< more are answered 503 and closed
    std::size_t max_watchers = 100;                                                ///< of max_connections
    std::int64_t resync_after = 10'000;                                            ///< events that a watcher may fall behind
    std::chrono::steady_clock::duration request_limit{std::chrono::seconds{30}};   ///< to send a whole request
    std::chrono::steady_clock::duration idle_limit{std::chrono::seconds{60}};      ///< between two requests
    std::chrono::steady_clock::duration write_limit{std::chrono::seconds{30}};     ///< a client may stop reading, also a
                                                                                   ///< watcher when it is not following
    std::chrono::steady_clock::duration watcher_limit{std::chrono::hours{1}};      ///< a watcher may stop reading
    std::chrono::steady_clock::duration heartbeat{std::chrono::seconds{15}};       ///< blank lines to a waiting watcher
};

/// Runs on one thread, the executor's. Reads the journal by its own Reader; memory is bounded by the connections: a watcher
/// owns one page of events, and goes on from its position in the journal when its socket takes more.
class Server {
public:
    /// Where an artifact's bytes lie (Vault::find).
    using FindArtifact = std::function<Result<std::filesystem::path>(std::string_view sha256)>;

    /// The references live as long as the server's last connection (until the executor's context has run out of work).
    Server(boost::asio::any_io_executor executor, const Clock& clock, storage::Reader& reader, Actions& actions,
           FindArtifact find_artifact, ServerOptions options);
    ~Server();   ///< as close()
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    /// Listens and serves from now on. `adopted` is a listening socket that systemd kept for us; without it the path is
    /// bound. A socket file that nobody listens on is replaced. Fails with `conflict` when somebody does, or when the path
    /// is another kind of file; `usage` for a path too long; `io`, `refused` and `not_found` for the folder.
    [[nodiscard]] Result<void> open(Fd adopted = Fd{});
    /// A descriptor of the listening socket, for systemd's store; -1 before open.
    [[nodiscard]] int listener() const;
    /// Wakes the watchers. From any thread, after each committed batch of events; many calls cost one wake-up.
    void notify();
    /// Accepts no more, ends every connection; removes the socket file that open() made.
    void close();

    [[nodiscard]] std::size_t connections() const;

private:
    struct State;
    std::shared_ptr<State> state_;
};

/// HTTP status of an error: 400, 403, 404, 409 or 500.
[[nodiscard]] unsigned http_status(const Error& error);

}   // namespace campaign::api
