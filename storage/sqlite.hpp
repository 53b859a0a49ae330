#pragma once
// SQLite as values: a database and statements that clean up after themselves, errors as Error. Used on one thread at a time.

#include <sqlite3.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace campaign::storage {

/// What all statements of one connection share.
struct Connection {
    sqlite3* db = nullptr;
    std::string file;
    std::optional<Error> damage;   ///< the first sign of a damaged file: SQLite itself would still take some writes

    [[nodiscard]] Error error(int code);
};

/// A prepared statement in use; reset when it goes.
class Use {
public:
    Use(Connection& connection, sqlite3_stmt* statement) : connection_{&connection}, statement_{statement} {}
    ~Use();
    Use(Use&& other) noexcept;
    Use& operator=(Use&&) = delete;
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

    Use& bind(std::int64_t value);
    Use& bind(std::string_view text);
    Use& bind(const std::optional<std::int64_t>& value);
    Use& bind_real(double value);

    /// true: there is a row; false: the end.
    [[nodiscard]] Result<bool> step();
    /// To the end; rows are ignored.
    [[nodiscard]] Result<void> run();

    [[nodiscard]] std::int64_t integer(int column) const;
    [[nodiscard]] std::optional<std::int64_t> optional_integer(int column) const;
    [[nodiscard]] double real(int column) const;
    [[nodiscard]] std::string text(int column) const;

private:
    Connection* connection_;
    sqlite3_stmt* statement_;
    int next_ = 1;
};

class Database {
public:
    enum class Mode { write, read };
    [[nodiscard]] static Result<Database> open(const std::filesystem::path& file, Mode mode);
    ~Database();
    Database(Database&& other) noexcept;
    Database& operator=(Database&&) = delete;
    Database(const Database&) = delete;
    Database& operator=(const Database&) = delete;

    /// Statements are kept by their text: SQL comes from literals, values are bound.
    [[nodiscard]] Result<Use> prepare(std::string_view sql);
    /// One statement without values, kept too.
    [[nodiscard]] Result<void> run(std::string_view sql);
    /// Several statements, not kept.
    [[nodiscard]] Result<void> execute(const std::string& sql);
    [[nodiscard]] std::int64_t last_id() const { return sqlite3_last_insert_rowid(connection_->db); }
    [[nodiscard]] int changes() const { return sqlite3_changes(connection_->db); }
    [[nodiscard]] bool in_transaction() const { return sqlite3_get_autocommit(connection_->db) == 0; }
    [[nodiscard]] const std::optional<Error>& damage() const { return connection_->damage; }
    /// Pages that this connection wrote since the last call.
    [[nodiscard]] std::size_t take_pages_written();
    /// Moves the log into the database and begins it anew; gives up at once where a reader still needs it.
    void checkpoint();
    /// Closing changes nothing on disk.
    void leave_untouched();

private:
    explicit Database(std::unique_ptr<Connection> connection) : connection_{std::move(connection)} {}
    std::unique_ptr<Connection> connection_;
    std::map<std::string, sqlite3_stmt*, std::less<>> statements_;
};

[[nodiscard]] Error sqlite_error(sqlite3* db, int code, const std::string& file);

}   // namespace campaign::storage
