#pragma once
// Everything outside the engine, behind narrow seams: time, randomness, hosts, HTTP, the journal. A simulation brings its
// own.

#include <boost/asio/any_io_executor.hpp>
#include <filesystem>
#include <memory>

#include "adapters/host/host.hpp"
#include "adapters/host/service.hpp"
#include "adapters/http/http.hpp"
#include "base/clock.hpp"
#include "base/random.hpp"
#include "plans/plan.hpp"
#include "storage/journal.hpp"
#include "storage/vault.hpp"

namespace campaign::engine {

/// The journal as coroutines see it.
class JournalPort {
public:
    virtual ~JournalPort() = default;
    /// Returns when the work is on disk, or with why it is not. Never cancelled: what was begun is recorded.
    virtual Async<Result<void>> write(storage::Writer::Work work) = 0;
    virtual storage::Reader& reader() = 0;
};

/// How hosts and the managers of their services come to be.
class Transport {
public:
    virtual ~Transport() = default;
    virtual std::shared_ptr<host::Host> open(const plans::Host& host) = 0;
    virtual std::unique_ptr<host::ServiceManager> manager(std::shared_ptr<host::Host> host, const plans::Host& where,
                                                          const plans::Service& service) = 0;
    /// The daemon's own machine, for work on fetched files.
    virtual std::shared_ptr<host::Host> here() = 0;
};

struct World {
    Clock& clock;
    Random& random;
    JournalPort& journal;
    Transport& transport;
    http::Client& http;
    const storage::Vault& vault;
    std::filesystem::path agent;   ///< campaign-agent: copied to hosts, run beside the daemon
    std::string agent_sha256;
};

}   // namespace campaign::engine
