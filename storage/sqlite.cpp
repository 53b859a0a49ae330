#include "storage/sqlite.hpp"

#include <utility>

namespace campaign::storage {

Error sqlite_error(sqlite3* db, int code, const std::string& file) {
    const int extended = db != nullptr ? sqlite3_extended_errcode(db) : code;
    const std::string why = db != nullptr ? sqlite3_errmsg(db) : sqlite3_errstr(code);
    const std::string seen = "SQLite " + std::to_string(extended);
    switch (code & 0xff) {
        case SQLITE_FULL: return {ErrorKind::disk_full, "no space left for " + file, why, seen, "make room on that disk"};
        case SQLITE_CONSTRAINT: return {ErrorKind::conflict, "the journal " + file + " refuses this", why, seen, ""};
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB:
            return {ErrorKind::io, file + " is damaged", why, seen,
                    "keep the file with its -wal and -shm; copies made before a migration lie beside it as *.before-*"};
        case SQLITE_BUSY: return {ErrorKind::conflict, file + " is locked by another process", why, seen, ""};
        default: return {ErrorKind::io, "the journal " + file + " failed", why, seen, ""};
    }
}

Use::~Use() {
    if (statement_ != nullptr) {
        sqlite3_reset(statement_);
        sqlite3_clear_bindings(statement_);
    }
}

Use::Use(Use&& other) noexcept
    : db_{other.db_},
      statement_{std::exchange(other.statement_, nullptr)},
      file_{std::move(other.file_)},
      next_{other.next_} {}

Use& Use::bind(std::int64_t value) {
    sqlite3_bind_int64(statement_, next_++, value);
    return *this;
}

Use& Use::bind(std::string_view text) {
    sqlite3_bind_text64(statement_, next_++, text.data() == nullptr ? "" : text.data(), text.size(), SQLITE_TRANSIENT,
                        SQLITE_UTF8);
    return *this;
}

Use& Use::bind(const std::optional<std::int64_t>& value) {
    if (value) return bind(*value);
    sqlite3_bind_null(statement_, next_++);
    return *this;
}

Use& Use::bind_real(double value) {
    sqlite3_bind_double(statement_, next_++, value);
    return *this;
}

Result<bool> Use::step() {
    const int code = sqlite3_step(statement_);
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    return sqlite_error(db_, code, file_);
}

Result<void> Use::run() {
    for (;;) {
        const Result<bool> more = step();
        if (!more) return more.error();
        if (!*more) return {};
    }
}

std::int64_t Use::integer(int column) const {
    return sqlite3_column_int64(statement_, column);
}

std::optional<std::int64_t> Use::optional_integer(int column) const {
    if (sqlite3_column_type(statement_, column) == SQLITE_NULL) return std::nullopt;
    return integer(column);
}

double Use::real(int column) const {
    return sqlite3_column_double(statement_, column);
}

std::string Use::text(int column) const {
    const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_, column));
    const int size = sqlite3_column_bytes(statement_, column);
    return bytes == nullptr ? std::string{} : std::string{bytes, static_cast<std::size_t>(size)};
}

Result<Database> Database::open(const std::filesystem::path& file, Mode mode) {
    sqlite3* db = nullptr;
    const int flags = (mode == Mode::write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY) |
                      SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    const int code = sqlite3_open_v2(file.c_str(), &db, flags, nullptr);
    if (code != SQLITE_OK) {
        Error error = sqlite_error(db, code, file.string());
        sqlite3_close_v2(db);
        return error;
    }
    sqlite3_busy_timeout(db, 5000);   // before anything else: switching to WAL does not wait by itself
    return Database{db, file.string()};
}

Database::~Database() {
    for (auto& [sql, statement] : statements_) sqlite3_finalize(statement);
    if (db_ != nullptr) sqlite3_close_v2(db_);
}

Database::Database(Database&& other) noexcept
    : db_{std::exchange(other.db_, nullptr)},
      file_{std::move(other.file_)},
      statements_{std::exchange(other.statements_, {})} {}

Result<Use> Database::prepare(std::string_view sql) {
    const auto known = statements_.find(sql);
    if (known != statements_.end()) return Use{db_, known->second, file_};
    sqlite3_stmt* statement = nullptr;
    const int code =
        sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
    if (code != SQLITE_OK) return sqlite_error(db_, code, file_);
    statements_.emplace(std::string{sql}, statement);
    return Use{db_, statement, file_};
}

Result<void> Database::execute(const std::string& sql) {
    const int code = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) return sqlite_error(db_, code, file_);
    return {};
}

}   // namespace campaign::storage
