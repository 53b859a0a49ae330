#pragma once
// SQLite as values: a database and statements that clean up after themselves, errors as Error. Used on one thread at a time.

#include <sqlite3.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace campaign::storage {

/// A prepared statement in use; reset when it goes.
class Use {
public:
    Use(sqlite3* db, sqlite3_stmt* statement, std::string file) : db_{db}, statement_{statement}, file_{std::move(file)} {}
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
    sqlite3* db_;
    sqlite3_stmt* statement_;
    std::string file_;
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

    /// The SQL is a literal of ours: statements are kept by its address and text.
    [[nodiscard]] Result<Use> prepare(std::string_view sql);
    [[nodiscard]] Result<void> execute(const std::string& sql);
    [[nodiscard]] std::int64_t last_id() const { return sqlite3_last_insert_rowid(db_); }
    [[nodiscard]] bool in_transaction() const { return sqlite3_get_autocommit(db_) == 0; }
    [[nodiscard]] sqlite3* raw() const { return db_; }

private:
    Database(sqlite3* db, std::string file) : db_{db}, file_{std::move(file)} {}
    sqlite3* db_;
    std::string file_;
    std::map<std::string, sqlite3_stmt*, std::less<>> statements_;
};

[[nodiscard]] Error sqlite_error(sqlite3* db, int code, const std::string& file);

}   // namespace campaign::storage
