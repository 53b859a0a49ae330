#include "storage/open.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace campaign::storage {

std::optional<std::string_view> network_file_system(unsigned long magic) {
    static constexpr std::array<std::pair<unsigned long, std::string_view>, 8> known{{{NFS_SUPER_MAGIC, "NFS"},
                                                                                      {0x517B, "SMB"},
                                                                                      {0xFE534D42, "SMB2"},
                                                                                      {0xFF534D42, "CIFS"},
                                                                                      {V9FS_MAGIC, "9p"},
                                                                                      {0x00C36400, "Ceph"},
                                                                                      {AFS_SUPER_MAGIC, "AFS"},
                                                                                      {0x0BD00BD0, "Lustre"}}};
    for (const auto& [number, name] : known) {
        if (number == magic) return name;
    }
    return std::nullopt;
}

namespace {

Error os_error(const std::string& what, const std::filesystem::path& path, const char* next = "") {
    const int code = errno;
    const bool full = code == ENOSPC || code == EDQUOT;
    return {full ? ErrorKind::disk_full : ErrorKind::io, what + " " + path.string(), std::strerror(code), "",
            full ? "make room on that disk" : next};
}

std::filesystem::path folder_of(const std::filesystem::path& file) {
    return file.has_parent_path() ? file.parent_path() : std::filesystem::path{"."};
}

/// SQLite's locks and its shared memory do not hold across machines.
Result<void> local_disk(const std::filesystem::path& folder) {
    struct statfs info {};
    if (::statfs(folder.c_str(), &info) != 0) return os_error("cannot look at", folder);
    const auto name = network_file_system(static_cast<std::uint32_t>(info.f_type));
    if (!name) return {};
    return Error{ErrorKind::refused, "the journal cannot lie on " + folder.string(),
                 std::string{*name} + " is a network file system: its locks do not protect a database", "",
                 "name a folder on a local disk with --state-dir"};
}

Result<void> sync_path(const std::filesystem::path& path) {
    const Fd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    if (!fd || ::fsync(fd.get()) != 0) return os_error("cannot sync", path);
    return {};
}

/// Nobody else's to read from its first byte on; -wal and -shm take their mode from it. `made` if it was not there.
Result<bool> make_private(const std::filesystem::path& file) {
    const Fd made{::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600)};
    if (made) return true;
    if (errno != EEXIST) return os_error("cannot make", file, "check the owner of the state folder");
    // Looked at by name: closing a descriptor of it would let go the locks that another connection of this process holds.
    struct stat info {};
    if (::lstat(file.c_str(), &info) != 0) return os_error("cannot look at", file);
    if (!S_ISREG(info.st_mode))
        return Error{ErrorKind::refused, file.string() + " is no regular file", "", "", "remove it, or name another folder"};
    if ((info.st_mode & 077U) != 0 && ::chmod(file.c_str(), 0600) != 0)
        return os_error("cannot make private", file, "it must belong to the user that runs campaignd");
    return false;
}

/// One process a journal: taken before SQLite opens the file, and the owner's pid stands in it for whoever comes second.
Result<Fd> take_lock(const std::filesystem::path& file) {
    const std::filesystem::path path = file.string() + ".lock";
    Fd lock{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)};
    if (!lock) return os_error("cannot make", path, "check the owner of the state folder");
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
        std::array<char, 32> owner{};
        const ssize_t got = ::pread(lock.get(), owner.data(), owner.size() - 1, 0);
        const std::string pid = got > 0 ? std::string{owner.data(), static_cast<std::size_t>(got)} : std::string{"unknown"};
        return Error{ErrorKind::conflict, file.string() + " is in use by another campaignd",
                     "process " + pid + " has it open", path.string(),
                     "end that one first, or give this one its own --state-dir"};
    }
    const std::string pid = std::to_string(::getpid());
    if (::ftruncate(lock.get(), 0) != 0 ||
        ::pwrite(lock.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
        return os_error("cannot write", path);
    }
    return lock;
}

Result<std::string> pragma(Database& database, const std::string& name) {
    Result<Use> query = database.prepare("PRAGMA " + name);
    if (!query) return query.error();
    const Result<bool> row = query->step();
    if (!row) return row.error();
    return *row ? query->text(0) : std::string{};
}

/// A pragma that was mistyped or refused is silently accepted: so each is read back.
Result<void> set_and_check(Database& database, const std::string& name, const std::string& value, const std::string& reads) {
    if (Result<void> set = database.execute("PRAGMA " + name + "=" + value); !set) return set;
    const Result<std::string> now = pragma(database, name);
    if (!now) return now.error();
    if (*now != reads)
        return Error{ErrorKind::io, "SQLite did not take " + name + "=" + value, "it says " + *now, "",
                     "is the disk writable, and does it support shared memory?"};
    return {};
}

Result<int> number_of(Database& database, const std::string& sql) {
    Result<Use> query = database.prepare(sql);
    if (!query) return query.error();
    const Result<bool> row = query->step();
    if (!row) return row.error();
    return *row ? static_cast<int>(query->integer(0)) : 0;
}

struct Found {
    int version = 0;
    bool empty = true;
};

/// Whose database it is and of which version; one that is not for us is left exactly as it was.
Result<Found> look(Database& database, const std::filesystem::path& file, int known) {
    const Result<int> tables = number_of(database, "SELECT count(*) FROM sqlite_schema");
    if (!tables) return tables.error();
    const Result<int> owner = number_of(database, "PRAGMA application_id");
    if (!owner) return owner.error();
    const Result<int> version = number_of(database, "PRAGMA user_version");
    if (!version) return version.error();
    if (*tables != 0 && *owner != application_id) {
        database.leave_untouched();
        return Error{ErrorKind::refused, file.string() + " is another program's database",
                     "its application id is " + std::to_string(*owner) + ", a journal has " + std::to_string(application_id),
                     "", "name another folder with --state-dir"};
    }
    if (*version > known) {
        database.leave_untouched();
        return Error{
            ErrorKind::refused, file.string() + " was written by a newer campaignd",
            "its schema is version " + std::to_string(*version) + ", this program knows up to " + std::to_string(known), "",
            "install that version again, or restore the copy made before the upgrade"};
    }
    return Found{*version, *tables == 0};
}

/// Never change what cannot be had back: the whole database as it is, on disk before the first change.
Result<void> copy_aside(Database& database, const std::filesystem::path& file, int version) {
    const std::filesystem::path copy = file.string() + ".before-" + std::to_string(version);
    std::error_code ignored;
    std::filesystem::remove(copy, ignored);   // of an upgrade that did not come to its end
    if (Result<bool> made = make_private(copy); !made) return made.error();
    {
        Result<Use> backup = database.prepare("VACUUM INTO ?1");
        if (!backup) return backup.error();
        backup->bind(copy.string());
        if (Result<void> copied = backup->run(); !copied) return copied;
    }
    if (Result<void> synced = sync_path(copy); !synced) return synced;
    return sync_path(folder_of(file));
}

/// All steps in one transaction: after a crash the file is of the old version or of the new one.
Result<void> migrate(Database& database, const std::filesystem::path& file, const Found& found,
                     std::span<const char* const> steps) {
    const int target = static_cast<int>(steps.size());
    if (found.version == target) return {};
    if (!found.empty) {
        if (Result<void> copied = copy_aside(database, file, target); !copied) return copied;
    }
    std::string sql = "BEGIN IMMEDIATE;";
    for (const char* step : steps.subspan(static_cast<std::size_t>(found.version))) sql += step;
    sql += ";PRAGMA application_id=" + std::to_string(application_id) + ";PRAGMA user_version=" + std::to_string(target) +
           ";COMMIT";
    Result<void> done = database.execute(sql);
    if (!done && database.in_transaction()) (void)database.execute("ROLLBACK");
    return done;
}

}   // namespace

Result<Opened> open_for_writing(const std::filesystem::path& file, std::span<const char* const> steps) {
    const std::filesystem::path folder = folder_of(file);
    if (Result<void> local = local_disk(folder); !local) return local.error();
    Result<Fd> lock = take_lock(file);
    if (!lock) return lock.error();
    const Result<bool> made = make_private(file);
    if (!made) return made.error();
    Result<Database> database = Database::open(file, Database::Mode::write);
    if (!database) return database.error();
    const Result<Found> found = look(*database, file, static_cast<int>(steps.size()));
    if (!found) return found.error();
    if (Result<void> set = set_and_check(*database, "journal_mode", "WAL", "wal"); !set) return set.error();
    if (Result<void> set = set_and_check(*database, "synchronous", "FULL", "2"); !set) return set.error();
    if (Result<void> set = set_and_check(*database, "foreign_keys", "ON", "1"); !set) return set.error();
    if (Result<void> set = set_and_check(*database, "wal_autocheckpoint", "300", "300"); !set) return set.error();
    if (Result<void> set = set_and_check(*database, "journal_size_limit", "16777216", "16777216"); !set) return set.error();
    if (Result<void> migrated = migrate(*database, file, *found, steps); !migrated) return migrated.error();
    if (*made) {
        if (Result<void> synced = sync_path(folder); !synced) return synced.error();
    }
    return Opened{std::move(*lock), std::move(*database)};
}

Result<Database> open_for_reading(const std::filesystem::path& file) {
    Result<Database> database = Database::open(file, Database::Mode::read);
    if (!database) return database.error();
    if (Result<void> set = database->execute("PRAGMA query_only=ON"); !set) return set.error();
    return database;
}

}   // namespace campaign::storage
