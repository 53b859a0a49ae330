// Tables and columns as nsys 2024.5 to 2026.2 export them (schema 3.13 to 3.25). Tables exist only where they hold rows.

#include "instruments/trace/nsys.hpp"

#include <sqlite3.h>

#include <array>
#include <fstream>
#include <memory>

#include "base/text.hpp"

namespace campaign::trace {
namespace {

struct CloseDatabase {
    void operator()(sqlite3* database) const { sqlite3_close(database); }
};
struct CloseStatement {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

class Database {
public:
    explicit Database(sqlite3* handle) : handle_{handle} {}

    [[nodiscard]] bool has_table(const std::string& table) {
        return has("SELECT 1 FROM sqlite_master WHERE name=?1", table, "");
    }
    [[nodiscard]] bool has_column(const std::string& table, const std::string& column) {
        return has("SELECT 1 FROM pragma_table_info(?1) WHERE name=?2", table, column);
    }
    /// Calls `row` for each row of the constant query; a damaged file ends it and is remembered.
    template <class Row>
    void each(const std::string& query, Row row) {
        sqlite3_stmt* raw = nullptr;
        if (sqlite3_prepare_v2(handle_.get(), query.c_str(), -1, &raw, nullptr) != SQLITE_OK) return remember();
        const std::unique_ptr<sqlite3_stmt, CloseStatement> statement{raw};
        int code = SQLITE_ROW;
        while ((code = sqlite3_step(raw)) == SQLITE_ROW) row(raw);
        if (code != SQLITE_DONE) remember();
    }
    [[nodiscard]] const std::string& fault() const { return fault_; }

private:
    void remember() {
        if (fault_.empty()) fault_ = sqlite3_errmsg(handle_.get());
    }
    bool has(const char* query, const std::string& first, const std::string& second) {
        sqlite3_stmt* raw = nullptr;
        if (sqlite3_prepare_v2(handle_.get(), query, -1, &raw, nullptr) != SQLITE_OK) {
            remember();
            return false;
        }
        const std::unique_ptr<sqlite3_stmt, CloseStatement> statement{raw};
        sqlite3_bind_text(raw, 1, first.c_str(), -1, SQLITE_TRANSIENT);
        if (!second.empty()) sqlite3_bind_text(raw, 2, second.c_str(), -1, SQLITE_TRANSIENT);
        return sqlite3_step(raw) == SQLITE_ROW;
    }

    std::unique_ptr<sqlite3, CloseDatabase> handle_;
    std::string fault_;
};

std::string_view text_of(sqlite3_stmt* row, int column) {
    const unsigned char* text = sqlite3_column_text(row, column);
    if (text == nullptr) return {};
    return {reinterpret_cast<const char*>(text), static_cast<std::size_t>(sqlite3_column_bytes(row, column))};
}

/// globalPid and globalTid hold the process in bits 24 to 47. Correlation ids are unique within a process only.
std::int64_t process_of(std::int64_t global) {
    return (global >> 24) & 0xFFFFFF;
}
/// Of a row: NULL is a value of its own, not 0.
std::int64_t launch_key(sqlite3_stmt* row, int global, int correlation) {
    const auto absent = [row](int column) { return sqlite3_column_type(row, column) == SQLITE_NULL; };
    const std::int64_t process = absent(global) ? 0x1000000 : process_of(sqlite3_column_int64(row, global));
    const std::int64_t id = absent(correlation) ? 0xFFFFFFFFFLL : sqlite3_column_int64(row, correlation) & 0xFFFFFFFFFLL;
    return (process << 36) | id;
}
/// A number as a label; NULL is "None".
std::string_view label_of(sqlite3_stmt* row, int column) {
    return sqlite3_column_type(row, column) == SQLITE_NULL ? "None" : text_of(row, column);
}
std::string process_label(sqlite3_stmt* row, int column) {
    if (sqlite3_column_type(row, column) == SQLITE_NULL) return "None";
    return std::to_string(process_of(sqlite3_column_int64(row, column)));
}

class Export {
public:
    explicit Export(sqlite3* handle) : database_{handle} {}

    Recording read() {
        recording_.format = "nsys-sqlite";
        strings_ = database_.has_table("StringIds");
        work("CUPTI_ACTIVITY_KIND_KERNEL", Kind::kernel);
        work("CUPTI_ACTIVITY_KIND_MEMCPY", Kind::memcpy);
        work("CUPTI_ACTIVITY_KIND_MEMSET", Kind::memset);
        graphs();
        launches();
        for (const char* const table : {"NVTX_EVENTS", "NVTX_EVENTS_V3", "NVTX_EVENTS_V2"}) {
            if (!database_.has_table(table)) continue;
            annotations(table);
            break;
        }
        if (!database_.fault().empty())
            recording_.faults.push_back("the database is damaged: " + printable(database_.fault(), 200));
        if (recording_.kernels == 0) recording_.faults.emplace_back("it holds no kernel");
        return std::move(recording_);
    }

private:
    void work(const std::string& table, Kind kind) {
        if (!database_.has_table(table)) return;
        const bool kernel = kind == Kind::kernel && strings_;
        const std::string query = "SELECT w.start, w.end, w.deviceId, w.correlationId, w.globalPid, w.streamId, " +
                                  std::string{kernel ? "substr(s.value,1,16384)" : "''"} + " FROM " + table + " w" +
                                  (kernel ? " LEFT JOIN StringIds s ON s.id = w.demangledName" : "");
        const std::string_view plain = kind == Kind::memcpy ? "memcpy" : "memset";
        database_.each(query, [&](sqlite3_stmt* row) { add(row, kind, kind == Kind::kernel ? text_of(row, 6) : plain); });
    }
    void add(sqlite3_stmt* row, Kind kind, std::string_view name) {
        ++recording_.events;
        GpuEvent event;
        event.start = sqlite3_column_int64(row, 0);
        event.end = sqlite3_column_int64(row, 1);
        if (event.end < event.start) {
            ++recording_.negative;
            event.end = event.start;
        }
        event.launch = launch_key(row, 4, 3);
        event.device = recording_.names.id(label_of(row, 2));
        event.stream = recording_.names.id(label_of(row, 5));
        event.name = recording_.names.id(name);
        event.kind = kind;
        if (kind == Kind::kernel) ++recording_.kernels;
        recording_.gpu.push_back(event);
    }
    /// Replays recorded as a whole: one row, no kernels within. Where kernels are there too, they count.
    void graphs() {
        if (!database_.has_table("CUPTI_ACTIVITY_KIND_GRAPH_TRACE")) return;
        std::unordered_map<std::int64_t, bool> seen;
        for (const GpuEvent& event : recording_.gpu) seen[event.launch] = true;
        database_.each(
            "SELECT start, end, deviceId, correlationId, globalPid, streamId, 'CUDA Graph ' || coalesce(graphId, 'None') "
            "FROM "
            "CUPTI_ACTIVITY_KIND_GRAPH_TRACE WHERE start <> 0",
            [&](sqlite3_stmt* row) {
                if (!seen.contains(launch_key(row, 4, 3))) add(row, Kind::kernel, text_of(row, 6));
            });
    }
    void launches() {
        if (!database_.has_table("CUPTI_ACTIVITY_KIND_RUNTIME")) return;
        const std::string query = std::string{"SELECT r.start, r.correlationId, r.globalTid, "} +
                                  (strings_ ? "coalesce(instr(s.value, 'GraphLaunch') > 0, 0)" : "0") +
                                  " FROM CUPTI_ACTIVITY_KIND_RUNTIME r" +
                                  (strings_ ? " LEFT JOIN StringIds s ON s.id = r.nameId" : "");
        database_.each(query, [&](sqlite3_stmt* row) {
            recording_.launches[launch_key(row, 2, 1)] = Launch{
                sqlite3_column_int64(row, 0), recording_.names.id(process_label(row, 2)), sqlite3_column_int(row, 3) != 0};
        });
    }
    /// Only ranges that may be a server's steps; 59 is push/pop, 60 start/end.
    void annotations(const std::string& table) {
        const bool by_id = strings_ && database_.has_column(table, "textId");
        const std::string text = by_id ? "coalesce(nullif(n.text, ''), s.value)" : "n.text";
        const std::string query = "SELECT n.start, n.end, n.globalTid, substr(" + text + ",1,4096) FROM " + table + " n" +
                                  (by_id ? " LEFT JOIN StringIds s ON s.id = n.textId" : "") +
                                  " WHERE n.end IS NOT NULL AND n.eventType IN (59, 60) AND (" + text +
                                  " GLOB 'execute_*' OR " + text + " GLOB 'step[[]*' OR " + text + " GLOB 'ProfilerStep#*')";
        database_.each(query, [&](sqlite3_stmt* row) {
            Annotation kept;
            kept.start = sqlite3_column_int64(row, 0);
            kept.end = sqlite3_column_int64(row, 1);
            kept.name = recording_.names.id(text_of(row, 3));
            kept.process = recording_.names.id(process_label(row, 2));
            recording_.annotations.push_back(kept);
        });
    }

    Database database_;
    Recording recording_;
    bool strings_ = false;
};

}   // namespace

bool is_sqlite(const std::filesystem::path& file) {
    constexpr std::string_view magic = "SQLite format 3";
    std::array<char, 15> head{};
    std::ifstream stream{file, std::ios::binary};
    return stream.read(head.data(), head.size()) && std::string_view{head.data(), head.size()} == magic;
}

Result<Recording> read_nsys(const std::filesystem::path& file) {
    sqlite3* raw = nullptr;
    const int code = sqlite3_open_v2(file.c_str(), &raw, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, nullptr);
    if (code != SQLITE_OK) {
        const std::string why = raw == nullptr ? "no memory" : sqlite3_errmsg(raw);
        sqlite3_close(raw);
        return Error{ErrorKind::io, "cannot read " + file.string(), why, "", ""};
    }
    return Export{raw}.read();
}

}   // namespace campaign::trace
