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

#include "storage/schema.hpp"

namespace campaign::storage {
namespace {

/// SQLite's locks and its shared memory do not hold across machines.
Result<void> local_disk(const std::filesystem::path& folder) {
    struct statfs info {};
    if (::statfs(folder.c_str(), &info) != 0)
        return Error{ErrorKind::io, "cannot look at " + folder.string(), std::strerror(errno), "", ""};
    static constexpr std::array<std::pair<unsigned long, const char*>, 8> network{{{NFS_SUPER_MAGIC, "NFS"},
                                                                                   {0x517B, "SMB"},
                                                                                   {0xFE534D42, "SMB2"},
                                                                                   {0xFF534D42, "CIFS"},
                                                                                   {V9FS_MAGIC, "9p"},
                                                                                   {0x00C36400, "Ceph"},
                                                                                   {AFS_SUPER_MAGIC, "AFS"},
                                                                                   {0x0BD00BD0, "Lustre"}}};
    for (const auto& [magic, name] : network) {
        if (static_cast<unsigned long>(info.f_type) != magic) continue;
        return Error{ErrorKind::refused, "the journal cannot lie on " + folder.string(),
                     std::string{name} + " is a network file system: its locks do not protect a database", "",
                     "name a folder on a local disk with --state-dir"};
    }
    return {};
}

/// One process a journal: taken before SQLite opens the file, and the owner's pid stands in it for whoever comes second.
Result<Fd> take_lock(const std::filesystem::path& file) {
    const std::filesystem::path path = file.string() + ".lock";
    Fd lock{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)};
    if (!lock)
        return Error{ErrorKind::io, "cannot make " + path.string(), std::strerror(errno), "",
                     "check the owner of the state folder"};
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
        return Error{errno == ENOSPC ? ErrorKind::disk_full : ErrorKind::io, "cannot write " + path.string(),
                     std::strerror(errno), "", ""};
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

Result<void> migrate(Database& database, const std::filesystem::path& file) {
    const Result<std::string> found = pragma(database, "user_version");
    if (!found) return found.error();
    const int version = std::atoi(found->c_str());
    if (version > schema_version) {
        return Error{ErrorKind::refused, file.string() + " was written by a newer campaignd",
                     "its schema is version " + *found + ", this program knows up to " + std::to_string(schema_version), "",
                     "install that version again, or restore the copy made before the upgrade"};
    }
    if (version == schema_version) return {};
    const Result<std::string> tables = [&]() -> Result<std::string> {
        Result<Use> query = database.prepare("SELECT count(*) FROM sqlite_schema");
        if (!query) return query.error();
        const Result<bool> row = query->step();
        if (!row) return row.error();
        return query->text(0);
    }();
    if (!tables) return tables.error();
    if (*tables != "0") {   // never change what cannot be had back
        const std::string copy = file.string() + ".before-" + std::to_string(schema_version);
        std::error_code ignored;
        std::filesystem::remove(copy, ignored);
        Result<Use> backup = database.prepare("VACUUM INTO ?1");
        if (!backup) return backup.error();
        backup->bind(copy);
        if (Result<void> copied = backup->run(); !copied) return copied;
    }
    for (int next = version; next < schema_version; ++next) {
        const std::string sql = std::string{"BEGIN IMMEDIATE;"} + migrations()[static_cast<std::size_t>(next)] +
                                "PRAGMA user_version=" + std::to_string(next + 1) + ";COMMIT;";
        if (Result<void> done = database.execute(sql); !done) {
            if (database.in_transaction()) (void)database.execute("ROLLBACK");
            return done;
        }
    }
    return {};
}

}   // namespace

Result<Opened> open_for_writing(const std::filesystem::path& file) {
    const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : std::filesystem::path{"."};
    if (Result<void> local = local_disk(folder); !local) return local.error();
    Result<Fd> lock = take_lock(file);
    if (!lock) return lock.error();
    const mode_t old_mask = ::umask(0077);   // the journal, -wal and -shm are nobody else's to read
    Result<Database> database = Database::open(file, Database::Mode::write);
    ::umask(old_mask);
    if (!database) return database.error();
    ::chmod(file.c_str(), 0600);
    const Result<std::string> version = pragma(*database, "user_version");
    if (!version) return version.error();
    if (std::atoi(version->c_str()) > schema_version)
        return migrate(*database, file).error();   // refused before anything is written
    if (Result<void> set = set_and_check(*database, "journal_mode", "WAL", "wal"); !set) return set.error();
    if (Result<void> set = set_and_check(*database, "synchronous", "FULL", "2"); !set) return set.error();
    if (Result<void> set = set_and_check(*database, "foreign_keys", "ON", "1"); !set) return set.error();
    if (Result<void> set = set_and_check(*database, "wal_autocheckpoint", "300", "300"); !set) return set.error();
    if (Result<void> set = set_and_check(*database, "journal_size_limit", "16777216", "16777216"); !set) return set.error();
    if (Result<void> migrated = migrate(*database, file); !migrated) return migrated.error();
    if (Result<void> set =
            set_and_check(*database, "application_id", std::to_string(application_id), std::to_string(application_id));
        !set)
        return set.error();
    return Opened{std::move(*lock), std::move(*database)};
}

Result<Database> open_for_reading(const std::filesystem::path& file) {
    Result<Database> database = Database::open(file, Database::Mode::read);
    if (!database) return database.error();
    if (Result<void> set = database->execute("PRAGMA query_only=ON"); !set) return set.error();
    return database;
}

}   // namespace campaign::storage
