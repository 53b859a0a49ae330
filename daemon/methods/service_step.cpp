#include "daemon/methods/service_step.hpp"

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/sha256.hpp"
#include "base/text.hpp"

namespace campaign::methods {
namespace {

/// A secret by its reference, read at use and never kept.
Result<std::string> read_secret(const plans::SecretRef& reference) {
    std::filesystem::path file;
    if (reference.file) {
        file = *reference.file;
    } else {
        const char* folder = std::getenv("CREDENTIALS_DIRECTORY");
        if (folder == nullptr) {
            return Error{ErrorKind::not_found, "credential " + reference.credential.value_or("") + " is not there",
                         "CREDENTIALS_DIRECTORY is not set: the daemon was not started by systemd with LoadCredential=", "",
                         "put the key into a file below /etc/campaignd/keys.d and restart campaignd"};
        }
        // LoadCredential=keys:/etc/campaignd/keys.d gives each file of that folder as keys_NAME.
        const std::string name = reference.credential.value_or("");
        file = std::filesystem::path{folder} / ("keys_" + name);
        std::error_code ignored;
        if (!std::filesystem::exists(file, ignored)) file = std::filesystem::path{folder} / name;
    }
    std::ifstream stream{file};
    if (!stream)
        return Error{ErrorKind::not_found, "the key file " + file.string() + " cannot be read", "", "",
                     "check its path and owner"};
    std::string key(std::size_t{8192}, '\0');
    stream.read(key.data(), static_cast<std::streamsize>(key.size()));
    key.resize(static_cast<std::size_t>(stream.gcount()));
    return std::string{trim(key)};
}

}   // namespace

Address address_of(const std::string& url) {
    Address address;
    const std::size_t scheme_end = url.find("://");
    address.scheme = url.substr(0, scheme_end);
    std::string rest = scheme_end == std::string::npos ? url : url.substr(scheme_end + 3);
    rest = rest.substr(0, rest.find('/'));
    address.port = address.scheme == "https" ? 443 : 80;
    const std::size_t colon = rest.rfind(':');
    if (colon != std::string::npos && rest.find(']', colon) == std::string::npos) {
        std::from_chars(rest.data() + colon + 1, rest.data() + rest.size(), address.port);
        rest.resize(colon);
    }
    if (rest.size() > 2 && rest.front() == '[') rest = rest.substr(1, rest.size() - 2);
    address.host = rest;
    return address;
}

Async<Result<servers::Endpoint>> endpoint(ServiceLink& link) {
    servers::Endpoint at;
    at.base_url = link.service.url;
    const Address address = address_of(link.service.url);
    const Result<host::Reach> reach = co_await link.host->reach(address.host, address.port);
    if (!reach) co_return reach.error();
    at.unix_socket = reach->unix_socket;
    if (link.service.api_key) {
        const Result<std::string> key = read_secret(*link.service.api_key);
        if (!key) co_return key.error();
        at.api_key = *key;
    }
    co_return at;
}

std::string tag_of(const Campaign& campaign, const std::string& path) {
    return campaign.row.name + "-" +
           sha256(campaign.row.plan_sha256 + "\n" + std::to_string(campaign.row.submitted) + "\n" + path).substr(0, 10);
}

}   // namespace campaign::methods
