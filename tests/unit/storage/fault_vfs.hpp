#pragma once
// SQLite's disk with counters and a fault: every write, sync and wait of a journal passes here.

#include <sqlite3.h>

#include <atomic>
#include <cstring>
#include <string>

namespace campaign::storage::test {

/// While it lives, files that SQLite opens go through it. What it counts and breaks is the write-ahead log and the database.
class FaultVfs {
public:
    FaultVfs() : real_{sqlite3_vfs_find(nullptr)} {
        current() = this;
        vfs_ = *real_;
        vfs_.zName = "faults";
        vfs_.szOsFile = static_cast<int>(sizeof(File)) + real_->szOsFile;
        vfs_.xOpen = open;
        vfs_.xSleep = [](sqlite3_vfs*, int micros) {
            ++current()->sleeps_;
            return current()->real_->xSleep(current()->real_, micros);
        };
        vfs_.pNext = nullptr;
        sqlite3_vfs_register(&vfs_, 1);
    }
    ~FaultVfs() {
        sqlite3_vfs_unregister(&vfs_);
        sqlite3_vfs_register(real_, 1);
        current() = nullptr;
    }
    FaultVfs(const FaultVfs&) = delete;
    FaultVfs& operator=(const FaultVfs&) = delete;

    /// The writes after the next `good` ones fail with `code`, until mend().
    void break_after(int good, int code) {
        code_ = code;
        good_ = good;
    }
    void mend() { code_ = SQLITE_OK; }
    [[nodiscard]] int log_syncs() const { return log_syncs_; }
    [[nodiscard]] int sleeps() const { return sleeps_; }
    [[nodiscard]] int refused() const { return refused_; }

private:
    struct File {
        sqlite3_file base;
        sqlite3_io_methods methods;
        bool log;
        [[nodiscard]] sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
    };
    static FaultVfs*& current() {
        static FaultVfs* instance = nullptr;
        return instance;
    }
    static sqlite3_file* real(sqlite3_file* file) { return reinterpret_cast<File*>(file)->real(); }

    static int open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out) {
        auto* mine = reinterpret_cast<File*>(file);
        mine->base.pMethods = nullptr;
        mine->log = (flags & SQLITE_OPEN_WAL) != 0;
        sqlite3_vfs* below = current()->real_;
        const int code = below->xOpen(below, name, mine->real(), flags, out);
        if (code != SQLITE_OK) return code;
        sqlite3_io_methods& to = mine->methods;
        to = {};
        to.iVersion = 2;   // without memory-mapped pages: every access passes here
        to.xClose = [](sqlite3_file* f) { return real(f)->pMethods->xClose(real(f)); };
        to.xRead = [](sqlite3_file* f, void* into, int n, sqlite3_int64 at) {
            return real(f)->pMethods->xRead(real(f), into, n, at);
        };
        to.xWrite = write;
        to.xTruncate = [](sqlite3_file* f, sqlite3_int64 size) { return real(f)->pMethods->xTruncate(real(f), size); };
        to.xSync = sync;
        to.xFileSize = [](sqlite3_file* f, sqlite3_int64* size) { return real(f)->pMethods->xFileSize(real(f), size); };
        to.xLock = [](sqlite3_file* f, int lock) { return real(f)->pMethods->xLock(real(f), lock); };
        to.xUnlock = [](sqlite3_file* f, int lock) { return real(f)->pMethods->xUnlock(real(f), lock); };
        to.xCheckReservedLock = [](sqlite3_file* f, int* held) {
            return real(f)->pMethods->xCheckReservedLock(real(f), held);
        };
        to.xFileControl = [](sqlite3_file* f, int what, void* value) {
            return real(f)->pMethods->xFileControl(real(f), what, value);
        };
        to.xSectorSize = [](sqlite3_file* f) { return real(f)->pMethods->xSectorSize(real(f)); };
        to.xDeviceCharacteristics = [](sqlite3_file* f) { return real(f)->pMethods->xDeviceCharacteristics(real(f)); };
        to.xShmMap = [](sqlite3_file* f, int page, int size, int extend, void volatile** at) {
            return real(f)->pMethods->xShmMap(real(f), page, size, extend, at);
        };
        to.xShmLock = [](sqlite3_file* f, int offset, int n, int lock) {
            return real(f)->pMethods->xShmLock(real(f), offset, n, lock);
        };
        to.xShmBarrier = [](sqlite3_file* f) { real(f)->pMethods->xShmBarrier(real(f)); };
        to.xShmUnmap = [](sqlite3_file* f, int remove) { return real(f)->pMethods->xShmUnmap(real(f), remove); };
        mine->base.pMethods = &mine->methods;
        return SQLITE_OK;
    }

    int fault() {
        if (code_ == SQLITE_OK || good_-- > 0) return SQLITE_OK;
        ++refused_;
        return code_;
    }
    static int write(sqlite3_file* file, const void* from, int n, sqlite3_int64 at) {
        if (const int code = current()->fault(); code != SQLITE_OK) return code;
        return real(file)->pMethods->xWrite(real(file), from, n, at);
    }
    static int sync(sqlite3_file* file, int flags) {
        if (reinterpret_cast<File*>(file)->log) ++current()->log_syncs_;
        return real(file)->pMethods->xSync(real(file), flags);
    }

    sqlite3_vfs* real_;
    sqlite3_vfs vfs_{};
    std::atomic<int> code_{SQLITE_OK};
    std::atomic<int> good_{0};
    std::atomic<int> log_syncs_{0};
    std::atomic<int> sleeps_{0};
    std::atomic<int> refused_{0};
};

}   // namespace campaign::storage::test
