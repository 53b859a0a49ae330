#include "instruments/agent/write_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

namespace campaign::agent {
namespace {

Error failure(const std::filesystem::path& target, int code) {
    const bool full = code == ENOSPC || code == EDQUOT;
    return Error{full ? ErrorKind::disk_full : ErrorKind::io, "cannot write " + target.string(), std::strerror(code), "",
                 full ? "make room on that file system" : ""};
}

bool write_all(int fd, std::string_view content) {
    while (!content.empty()) {
        const ssize_t written = ::write(fd, content.data(), content.size());
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        content.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
}

}   // namespace

Result<void> write_whole(const std::filesystem::path& target, std::string_view content) {
    std::string temporary = target.string() + ".XXXXXX";
    const int fd = ::mkostemp(temporary.data(), O_CLOEXEC);
    if (fd < 0) return failure(target, errno);
    constexpr mode_t readable = 0644;
    const bool written = write_all(fd, content) && ::fchmod(fd, readable) == 0 && ::fsync(fd) == 0;
    int code = errno;
    ::close(fd);
    if (written && std::rename(temporary.c_str(), target.c_str()) != 0)
        code = errno;
    else if (written)
        code = 0;
    if (code != 0) {
        ::unlink(temporary.c_str());
        return failure(target, code);
    }
    const std::filesystem::path folder = target.has_parent_path() ? target.parent_path() : std::filesystem::path{"."};
    if (const int place = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); place >= 0) {
        ::fsync(place);
        ::close(place);
    }
    return {};
}

}   // namespace campaign::agent
