#include "daemon/main/transport.hpp"

#include "adapters/local/local.hpp"
#include "adapters/process/process.hpp"
#include "adapters/servers/server.hpp"
#include "adapters/ssh/ssh.hpp"
#include "adapters/systemd/systemd.hpp"

namespace campaign::daemon {

SystemTransport::SystemTransport(boost::asio::any_io_executor executor, Clock& clock, Random& random,
                                 std::optional<std::filesystem::path> ssh_config)
    : executor_{std::move(executor)}, clock_{clock}, random_{random}, ssh_config_{std::move(ssh_config)} {}

std::shared_ptr<host::Host> SystemTransport::here() {
    if (here_ == nullptr) here_ = local::make_local_host(executor_, clock_, random_, "here", false);
    return here_;
}

std::shared_ptr<host::Host> SystemTransport::open(const plans::Host& host) {
    if (host.local) return local::make_local_host(executor_, clock_, random_, host.name, host.sudo);
    ssh::SshTarget target;
    target.name = host.name;
    target.alias = host.ssh;
    target.user = host.user;
    target.port = host.port;
    target.key_file = host.key_file;
    target.jump = host.jump;
    target.known_hosts = host.known_hosts;
    if (ssh_config_) target.config_file = ssh_config_->string();
    target.sudo = host.sudo;
    return ssh::make_ssh_host(executor_, clock_, random_, std::move(target));
}

std::unique_ptr<host::ServiceManager> SystemTransport::manager(std::shared_ptr<host::Host> host, const plans::Host& where,
                                                               const plans::Service& service) {
    if (!service.process) return systemd::make_manager(std::move(host), servers::detect_kind);
    process::ProcessSpec spec;
    spec.name = service.name;
    spec.command = service.process->command;
    spec.environment = service.process->environment;
    spec.directory = service.process->directory;
    spec.log = service.process->log;
    spec.state_dir = where.work_dir + "/process";
    std::map<std::string, process::ProcessSpec> specs;
    specs.emplace(service.name, std::move(spec));
    return process::make_manager(std::move(host), clock_, std::move(specs));
}

}   // namespace campaign::daemon
