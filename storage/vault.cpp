#include "storage/vault.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/fd.hpp"
#include "base/sha256.hpp"

namespace campaign::storage {
namespace {

namespace fs = std::filesystem;

Error disk_error(const std::string& what, const fs::path& path) {
    const int code = errno;
    const ErrorKind kind = code == ENOSPC || code == EDQUOT ? ErrorKind::disk_full
                           : code == ENOENT                 ? ErrorKind::not_found
                                                            : ErrorKind::io;
    return Error{kind, what + " " + path.string(), std::strerror(code), "",
                 kind == ErrorKind::disk_full ? "make room on that disk" : ""};
}

bool is_hash(std::string_view text) {
    return text.size() == 64 &&
           std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

Result<void> sync_folder(const fs::path& folder) {
    const Fd fd{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (!fd || ::fsync(fd.get()) != 0) return disk_error("cannot sync", folder);
    return {};
}

/// A name that no other write of this process or another has.
std::string temporary_name() {
    static std::atomic<unsigned> count{0};
    return "tmp-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
}

Result<void> write_all(int fd, std::string_view bytes, const fs::path& path) {
    while (!bytes.empty()) {
        const ssize_t put = ::write(fd, bytes.data(), bytes.size());
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return disk_error("cannot write", path);
        bytes.remove_prefix(static_cast<std::size_t>(put));
    }
    return {};
}

Result<void> copy_bytes(const fs::path& from, const fs::path& to) {
    const Fd in{::open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
    if (!in) return disk_error("cannot read", from);
    const Fd out{::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640)};
    if (!out) return disk_error("cannot make", to);
    std::string buffer(std::size_t{1} << 20, '\0');
    for (;;) {
        const ssize_t got = ::read(in.get(), buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return disk_error("cannot read", from);
        if (got == 0) return {};
        if (Result<void> put = write_all(out.get(), {buffer.data(), static_cast<std::size_t>(got)}, to); !put) return put;
    }
}

/// Takes a file away again unless it was kept.
class Guard {
public:
    explicit Guard(fs::path path) : path_{std::move(path)} {}
    ~Guard() {
        if (!path_.empty()) ::unlink(path_.c_str());
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    void keep() { path_.clear(); }

private:
    fs::path path_;
};

}   // namespace

Result<Vault> Vault::open(const fs::path& root) {
    std::error_code error;
    fs::create_directories(root / "incoming", error);
    if (error) return Error{ErrorKind::io, "cannot make the vault " + root.string(), error.message(), "", ""};
    if (fs::is_symlink(root / "incoming"))
        return Error{ErrorKind::refused, (root / "incoming").string() + " is a symbolic link", "", "", "remove it"};
    ::chmod(root.c_str(), 0750);
    for (const auto& entry : fs::directory_iterator{root, error}) {
        if (entry.path().filename().string().starts_with("tmp-"))
            fs::remove(entry.path(), error);   // a write that never ended
    }
    return Vault{root};
}

Result<Stored> Vault::put(std::string_view bytes) const {
    const fs::path temporary = root_ / temporary_name();
    Guard guard{temporary};
    {
        const Fd fd{::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640)};
        if (!fd) return disk_error("cannot make", temporary);
        if (Result<void> written = write_all(fd.get(), bytes, temporary); !written) return written.error();
    }
    const std::string expected = campaign::sha256(bytes);
    const Result<Stored> stored = take(temporary, expected);
    if (stored) guard.keep();
    return stored;
}

Result<Stored> Vault::take(const fs::path& file, std::string_view expected) const {
    struct stat info {};
    if (::lstat(file.c_str(), &info) != 0) return disk_error("cannot look at", file);
    if (!S_ISREG(info.st_mode)) return Error{ErrorKind::refused, file.string() + " is no regular file", "", "", ""};
    const fs::path temporary = root_ / temporary_name();
    if (::rename(file.c_str(), temporary.c_str()) != 0) {
        if (errno != EXDEV) return disk_error("cannot take", file);
        if (Result<void> copied = copy_bytes(file, temporary); !copied) {
            ::unlink(temporary.c_str());
            return copied.error();
        }
        ::unlink(file.c_str());
    }
    Guard guard{temporary};
    {
        const Fd fd{::open(temporary.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
        if (!fd || ::fsync(fd.get()) != 0) return disk_error("cannot sync", temporary);
    }
    const Result<std::string> hash = sha256_file(temporary);   // read back: what counts is what the disk gives
    if (!hash) return hash.error();
    if (!expected.empty() && *hash != expected) {
        return Error{ErrorKind::conflict, file.string() + " is not what it should be", "its SHA-256 differs",
                     "expected " + std::string{expected} + ", read " + *hash, ""};
    }
    Stored stored{*hash, static_cast<std::uint64_t>(info.st_size)};
    const fs::path folder = root_ / hash->substr(0, 2);
    std::error_code error;
    if (fs::is_symlink(folder))
        return Error{ErrorKind::refused, folder.string() + " is a symbolic link", "", "", "remove it"};
    fs::create_directory(folder, error);
    if (error) return Error{ErrorKind::io, "cannot make " + folder.string(), error.message(), "", ""};
    const fs::path place = folder / *hash;
    if (verify(*hash)) return stored;   // there already, and whole
    ::chmod(temporary.c_str(), 0440);
    if (::rename(temporary.c_str(), place.c_str()) != 0) return disk_error("cannot put in place", place);
    guard.keep();
    if (Result<void> synced = sync_folder(folder); !synced) return synced.error();
    if (Result<void> synced = sync_folder(root_); !synced) return synced.error();
    return stored;
}

Result<fs::path> Vault::find(std::string_view hash) const {
    if (!is_hash(hash))
        return Error{ErrorKind::invalid, "that is no SHA-256", "", std::string{hash.substr(0, 80)},
                     "64 lower-case hexadecimal digits"};
    const fs::path place = root_ / std::string{hash.substr(0, 2)} / std::string{hash};
    struct stat info {};
    if (::lstat(place.c_str(), &info) != 0 || !S_ISREG(info.st_mode))
        return Error{ErrorKind::not_found, "there is no artifact " + std::string{hash}, "", "", ""};
    return place;
}

Result<void> Vault::verify(std::string_view hash) const {
    const Result<fs::path> place = find(hash);
    if (!place) return place.error();
    const Result<std::string> now = sha256_file(*place);
    if (!now) return now.error();
    if (*now != hash)
        return Error{ErrorKind::io, "artifact " + std::string{hash} + " is damaged", "its bytes changed on the disk",
                     "they hash to " + *now, ""};
    return {};
}

Result<fs::path> Vault::incoming(std::string_view name) const {
    const std::string safe = safe_name(name);
    fs::path folder = root_ / "incoming" / safe;
    std::error_code error;
    if (fs::is_symlink(folder))
        return Error{ErrorKind::refused, folder.string() + " is a symbolic link", "", "", "remove it"};
    fs::create_directories(folder, error);
    if (error) return Error{ErrorKind::io, "cannot make " + folder.string(), error.message(), "", ""};
    return folder;
}

std::string Vault::safe_name(std::string_view untrusted) {
    std::string name;
    for (const char c : untrusted) {
        const auto byte = static_cast<unsigned char>(c);
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                           std::string_view{"._-+=@,"}.find(c) != std::string_view::npos;
        name += plain && byte < 0x80 ? c : '_';
        if (name.size() == 200) break;
    }
    if (name.empty() || name.front() == '.') name.insert(0, "_");
    if (name.size() > 200) name.resize(200);
    return name;
}

}   // namespace campaign::storage
