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
#include "base/text.hpp"

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

Error link_error(const fs::path& path) {
    return {ErrorKind::refused, path.string() + " is a symbolic link", "the vault follows none", "", "remove it"};
}

/// A folder of the vault's own, made where needed; never one that a link leads to.
Result<Fd> own_folder(const fs::path& folder) {
    if (::mkdir(folder.c_str(), 0750) != 0 && errno != EEXIST) return disk_error("cannot make", folder);
    Fd fd{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
    if (fd) return fd;
    if (errno == ELOOP || errno == ENOTDIR) {
        struct stat info {};
        if (::lstat(folder.c_str(), &info) == 0 && S_ISLNK(info.st_mode)) return link_error(folder);
    }
    return disk_error("cannot open", folder);
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
    fs::create_directories(root, error);
    if (error) return Error{ErrorKind::io, "cannot make the vault " + root.string(), error.message(), "", ""};
    if (::chmod(root.c_str(), 0750) != 0) return disk_error("cannot make private", root);
    if (const Result<Fd> incoming = own_folder(root / "incoming"); !incoming) return incoming.error();
    for (const auto& entry : fs::directory_iterator{root, error}) {
        std::error_code ignored;
        if (entry.path().filename().string().starts_with("tmp-"))
            fs::remove(entry.path(), ignored);   // a write that never ended
    }
    if (error) return Error{ErrorKind::io, "cannot read the vault " + root.string(), error.message(), "", ""};
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
    return settle(temporary, expected, temporary);
}

Result<Stored> Vault::take(const fs::path& file, std::string_view expected) const {
    struct stat info {};
    if (::lstat(file.c_str(), &info) != 0) return disk_error("cannot look at", file);
    if (!S_ISREG(info.st_mode)) return Error{ErrorKind::refused, file.string() + " is no regular file", "", "", ""};
    const fs::path temporary = root_ / temporary_name();
    Guard guard{temporary};
    const bool moved = ::rename(file.c_str(), temporary.c_str()) == 0;
    if (!moved) {
        if (errno != EXDEV) return disk_error("cannot take", file);
        if (Result<void> copied = copy_bytes(file, temporary); !copied) return copied.error();
    }
    Result<Stored> stored = settle(temporary, expected, file);
    if (stored && !moved) ::unlink(file.c_str());
    if (!stored && moved && ::rename(temporary.c_str(), file.c_str()) != 0) guard.keep();
    return stored;
}

/// Hashes a file of the vault by reading it back and puts it in its place; `name` is what errors call it.
Result<Stored> Vault::settle(const fs::path& temporary, std::string_view expected, const fs::path& name) const {
    Stored stored;
    {
        struct stat info {};
        const Fd fd{::open(temporary.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
        if (!fd || ::fsync(fd.get()) != 0 || ::fstat(fd.get(), &info) != 0) return disk_error("cannot sync", name);
        stored.size = static_cast<std::uint64_t>(info.st_size);
    }
    const Result<std::string> hash = sha256_file(temporary);   // read back: what counts is what the disk gives
    if (!hash) return hash.error();
    if (!expected.empty() && *hash != expected) {
        return Error{ErrorKind::conflict, name.string() + " is not what it should be", "its SHA-256 differs",
                     "expected " + printable(expected, 80) + ", read " + *hash, ""};
    }
    stored.sha256 = *hash;
    const fs::path folder = root_ / hash->substr(0, 2);
    const Result<Fd> own = own_folder(folder);
    if (!own) return own.error();
    if (!verify(*hash)) {   // not there yet, or no longer whole
        if (::chmod(temporary.c_str(), 0440) != 0) return disk_error("cannot protect", name);
        if (::renameat(AT_FDCWD, temporary.c_str(), own->get(), hash->c_str()) != 0)
            return disk_error("cannot put in place", folder / *hash);
    }
    // Also for one that was there: whoever put it may not have come to this line.
    if (::fsync(own->get()) != 0) return disk_error("cannot sync", folder);
    const Fd root{::open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (!root || ::fsync(root.get()) != 0) return disk_error("cannot sync", root_);
    return stored;
}

Result<fs::path> Vault::find(std::string_view hash) const {
    if (!is_hash(hash))
        return Error{ErrorKind::invalid, "that is no SHA-256", "", printable(hash, 80), "64 lower-case hexadecimal digits"};
    const fs::path folder = root_ / std::string{hash.substr(0, 2)};
    const fs::path place = folder / std::string{hash};
    struct stat info {};
    if (::lstat(folder.c_str(), &info) == 0 && S_ISLNK(info.st_mode)) return link_error(folder);
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
    if (const Result<Fd> parent = own_folder(root_ / "incoming"); !parent) return parent.error();
    fs::path folder = root_ / "incoming" / safe_name(name);
    if (const Result<Fd> own = own_folder(folder); !own) return own.error();
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
