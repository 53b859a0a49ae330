#include "base/files.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

#include "base/fd.hpp"

namespace campaign {

Result<std::string> read_text(const std::filesystem::path& file, std::size_t limit) {
    const Fd fd{::open(file.c_str(), O_RDONLY | O_CLOEXEC)};
    if (!fd)
        return Error{errno == ENOENT ? ErrorKind::not_found : ErrorKind::io, "cannot read " + file.string(),
                     std::strerror(errno), "", ""};
    std::string content;
    std::string chunk(std::size_t{64} << 10, '\0');
    for (;;) {
        const ssize_t got = ::read(fd.get(), chunk.data(), chunk.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return Error{ErrorKind::io, "cannot read " + file.string(), std::strerror(errno), "", ""};
        if (got == 0) return content;
        content.append(chunk, 0, static_cast<std::size_t>(got));
        if (content.size() > limit)
            return Error{ErrorKind::invalid, file.string() + " is too large",
                         "more than " + std::to_string(limit) + " bytes", "", ""};
    }
}

}   // namespace campaign
