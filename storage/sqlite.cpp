#include "storage/sqlite.hpp"

#include <utility>

namespace campaign::storage {
namespace {

constexpr int patience_ms = 5000;   // for the lock that a checkpoint or another reader holds for a moment

}   // namespace

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

Error Connection::error(int code) {
    Error error = sqlite_error(db, code, file);
    const int primary = code & 0xff;
    if ((primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB) && !damage) damage = error;
    return error;
}

Use::~Use() {
    if (statement_ != nullptr) {
        sqlite3_reset(statement_);
        sqlite3_clear_bindings(statement_);
    }
}

Use::Use(Use&& other) noexcept
    : connection_{other.connection_}, statement_{std::exchange(other.statement_, nullptr)}, next_{other.next_} {}

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
    return connection_->error(code);
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
    auto connection = std::make_unique<Connection>();
    connection->file = file.string();
    const int flags = (mode == Mode::write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY) |
                      SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    const int code = sqlite3_open_v2(file.c_str(), &connection->db, flags, nullptr);
    if (code != SQLITE_OK) {
        Error error = connection->error(code);
        sqlite3_close_v2(connection->db);
        return error;
    }
    sqlite3_busy_timeout(connection->db, patience_ms);   // before anything else: switching to WAL does not wait by itself
    return Database{std::move(connection)};
}

Database::~Database() {
    for (auto& [sql, statement] : statements_) sqlite3_finalize(statement);
    if (connection_) sqlite3_close_v2(connection_->db);
}

Database::Database(Database&& other) noexcept
    : connection_{std::move(other.connection_)}, statements_{std::exchange(other.statements_, {})} {}

Result<Use> Database::prepare(std::string_view sql) {
    const auto known = statements_.find(sql);
    if (known != statements_.end()) return Use{*connection_, known->second};
    sqlite3_stmt* statement = nullptr;
    const int code = sqlite3_prepare_v3(connection_->db, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                                        &statement, nullptr);
    if (code != SQLITE_OK) return connection_->error(code);
    statements_.emplace(std::string{sql}, statement);
    return Use{*connection_, statement};
}

Result<void> Database::run(std::string_view sql) {
    Result<Use> use = prepare(sql);
    if (!use) return use.error();
    return use->run();
}

Result<void> Database::execute(const std::string& sql) {
    const int code = sqlite3_exec(connection_->db, sql.c_str(), nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) return connection_->error(code);
    return {};
}

std::size_t Database::take_pages_written() {
    int pages = 0;
    int highest = 0;
    sqlite3_db_status(connection_->db, SQLITE_DBSTATUS_CACHE_WRITE, &pages, &highest, 1);
    return static_cast<std::size_t>(pages);
}

void Database::checkpoint() {
    sqlite3_busy_timeout(connection_->db, 0);   // a reader that holds on must not hold up the next commit
    sqlite3_wal_checkpoint_v2(connection_->db, nullptr, SQLITE_CHECKPOINT_RESTART, nullptr, nullptr);
    sqlite3_busy_timeout(connection_->db, patience_ms);
}

void Database::leave_untouched() {
    sqlite3_db_config(connection_->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

}   // namespace campaign::storage
