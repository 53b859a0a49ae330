#include "daemon/api/listen.hpp"

#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/text.hpp"

namespace campaign::api {
namespace {

Error from_errno(int code, const std::string& what, const std::string& next = "") {
    ErrorKind kind = ErrorKind::io;
    if (code == EACCES || code == EPERM) kind = ErrorKind::refused;
    if (code == ENOENT || code == ENOTDIR) kind = ErrorKind::not_found;
    if (code == ENOSPC || code == EDQUOT) kind = ErrorKind::disk_full;
    return Error{kind, what, std::strerror(code), "", next};
}

/// Makes room for a new socket file: only one that refuses connections may be removed.
Result<void> clear_stale(const std::filesystem::path& path, const sockaddr_un& address) {
    struct stat found {};
    if (::lstat(path.c_str(), &found) != 0) {
        if (errno == ENOENT) return {};
        return from_errno(errno, "cannot look at " + path.string());
    }
    if (!S_ISSOCK(found.st_mode)) {
        return Error{ErrorKind::conflict, path.string() + " is in the way",
                     "it is not a socket, so it was not made by campaignd", "",
                     "move it away, or name another path with --socket"};
    }
    const Fd probe{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    if (!probe) return from_errno(errno, "cannot make a socket");
    if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 || errno == EAGAIN) {
        return Error{ErrorKind::conflict, "another daemon answers on " + path.string(), "", "",
                     "stop it first (systemctl stop campaignd), or name another path with --socket"};
    }
    if (errno != ECONNREFUSED) return from_errno(errno, "cannot tell whether somebody listens on " + path.string());
    if (::unlink(path.c_str()) != 0 && errno != ENOENT)
        return from_errno(errno, "cannot remove the stale socket " + path.string());
    return {};
}

}   // namespace

Result<Fd> listen_unix(const std::filesystem::path& path, unsigned mode) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string text = path.string();
    if (text.empty() || text.size() >= sizeof address.sun_path) {
        return Error{ErrorKind::usage,
                     "the socket's path must have 1 to " + std::to_string(sizeof address.sun_path - 1) + " bytes",
                     "it has " + std::to_string(text.size()), printable(text), ""};
    }
    std::memcpy(address.sun_path, text.c_str(), text.size() + 1);
    if (const Result<void> clear = clear_stale(path, address); !clear) return clear.error();
    Fd listener{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    if (!listener) return from_errno(errno, "cannot make a socket");
    // The file takes its mode from the descriptor, less the umask; the second call gives back what the umask took.
    if (::fchmod(listener.get(), mode) != 0) return from_errno(errno, "cannot set the mode of the socket");
    if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        if (errno == EADDRINUSE) return Error{ErrorKind::conflict, "another daemon has just taken " + text, "", "", ""};
        return from_errno(errno, "cannot listen on " + text, "its folder must exist and be ours to write");
    }
    if (::chmod(text.c_str(), mode) != 0) return from_errno(errno, "cannot set the mode of " + text);
    if (::listen(listener.get(), 128) != 0) return from_errno(errno, "cannot listen on " + text);
    return listener;
}

Result<std::string> peer_name(int connection) {
    ucred peer{};
    socklen_t size = sizeof peer;
    if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
        return from_errno(errno, "the kernel does not say who connects");
    passwd entry{};
    passwd* found = nullptr;
    std::array<char, 4096> text{};
    if (::getpwuid_r(peer.uid, &entry, text.data(), text.size(), &found) == 0 && found != nullptr)
        return printable(found->pw_name, 100);
    return "uid " + std::to_string(peer.uid);
}

}   // namespace campaign::api
