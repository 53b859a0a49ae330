#include "instruments/load/target.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <fstream>

#include "base/text.hpp"

namespace campaign::load {
namespace asio = boost::asio;

Result<std::vector<Endpoint>> resolve(asio::io_context& io, const Spec& spec) {
    std::vector<Endpoint> out;
    if (spec.unix_socket) {
        if (spec.unix_socket->size() > 107) {
            return Error{ErrorKind::invalid, "the socket's path is longer than 107 bytes", "",
                         printable(*spec.unix_socket, 200), ""};
        }
        out.emplace_back(asio::local::stream_protocol::endpoint(*spec.unix_socket));
        return out;
    }
    using asio::ip::tcp;
    boost::system::error_code failed;
    const auto address = asio::ip::make_address(spec.url.host, failed);
    if (!failed) {
        out.emplace_back(tcp::endpoint(address, spec.url.port));
        return out;
    }
    if (spec.url.host == "localhost") {   // by RFC 6761; needs no name service
        out.emplace_back(tcp::endpoint(asio::ip::address_v4::loopback(), spec.url.port));
        out.emplace_back(tcp::endpoint(asio::ip::address_v6::loopback(), spec.url.port));
        return out;
    }
    tcp::resolver resolver(io);
    const auto found = resolver.resolve(spec.url.host, std::to_string(spec.url.port), failed);
    for (const auto& entry : found) out.emplace_back(entry.endpoint());
    if (failed || out.empty()) {
        return Error{ErrorKind::unreachable, "the name " + printable(spec.url.host, 200) + " could not be resolved",
                     failed.message(), "", "check the name, or give an address"};
    }
    return out;
}

std::uint64_t raise_file_limit() {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
    if (limit.rlim_cur < limit.rlim_max) {
        rlimit wanted = limit;
        wanted.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &wanted) == 0) limit = wanted;
    }
    return limit.rlim_cur;
}

Result<std::string> read_api_key(const Spec& spec) {
    if (!spec.api_key_file) return std::string{};
    std::ifstream file(*spec.api_key_file, std::ios::binary);
    std::string text(8193, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
    const std::string_view key = trim(text);
    const bool usable =
        !key.empty() && key.size() <= 8192 && std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < 127; });
    if (usable) return std::string(key);
    return Error{ErrorKind::invalid, "the file of the API key is not usable",
                 "it must hold one line of printable characters", printable(*spec.api_key_file, 300),
                 "check api_key_file and its permissions"};
}

}   // namespace campaign::load
