#pragma once
// Real hosts: over ssh, or this machine itself.

#include <boost/asio/any_io_executor.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/random.hpp"
#include "daemon/engine/world.hpp"

namespace campaign::daemon {

class SystemTransport final : public engine::Transport {
public:
    /// `ssh_config`: instead of the user's own; empty: the usual files.
    SystemTransport(boost::asio::any_io_executor executor, Clock& clock, Random& random,
                    std::optional<std::filesystem::path> ssh_config);

    std::shared_ptr<host::Host> open(const plans::Host& host) override;
    std::unique_ptr<host::ServiceManager> manager(std::shared_ptr<host::Host> host, const plans::Host& where,
                                                  const plans::Service& service) override;
    std::shared_ptr<host::Host> here() override;

private:
    boost::asio::any_io_executor executor_;
    Clock& clock_;
    Random& random_;
    std::optional<std::filesystem::path> ssh_config_;
    std::shared_ptr<host::Host> here_;
};

}   // namespace campaign::daemon
