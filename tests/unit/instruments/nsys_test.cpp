#include "instruments/trace/nsys.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "composed_trace.hpp"
#include "instruments/trace/trace.hpp"

namespace campaign::trace {
namespace {

using namespace campaign::testing;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* tables = R"sql(
CREATE TABLE StringIds (id INTEGER, value TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER,
  globalPid INTEGER, demangledName INTEGER);
INSERT INTO StringIds VALUES (1, 'nvjet_tst_64x8'), (2, 'void vllm::cross_device_reduce_1stage<half, 8>()'),
  (3, 'cudaGraphLaunch_v10000'), (4, 'execute_context_0(0)_generation_8(8)'), (9, 'API_KEY=secret-of-the-host');
)sql";
constexpr long long process = 4711LL << 24;

class NsysExport : public InFolder {
protected:
    std::filesystem::path made(const std::string& rows) {
        const std::filesystem::path file = folder_ / "t.sqlite";
        sqlite3* database = nullptr;
        EXPECT_EQ(sqlite3_open(file.c_str(), &database), SQLITE_OK);
        char* error = nullptr;
        EXPECT_EQ(sqlite3_exec(database, (tables + rows).c_str(), nullptr, nullptr, &error), SQLITE_OK) << error;
        sqlite3_close(database);
        return file;
    }
    static std::string row(int start, int end, int correlation, int name) {
        return "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (" + std::to_string(start) + "," + std::to_string(end) +
               ",0,7," + std::to_string(correlation) + "," + std::to_string(process) + "," + std::to_string(name) + ");";
    }
};

TEST_F(NsysExport, AnswersFromBusyTimeAndSaysThatStepsWereNotSeparated) {
    const std::vector<std::filesystem::path> files{made(row(0, 600000, 1, 2) + row(600000, 1000000, 2, 1))};
    const json::object analysis = analyze(files);
    EXPECT_EQ(analysis.at("answer").as_string(), "all-reduce: 600 µs of 1.00 ms of busy time over 1 operations (60.0 %)");
    EXPECT_TRUE(analysis.at("cannot_answer").is_null());
    EXPECT_THAT(json::serialize(analysis.at("notes")), HasSubstr("steps were not separated"));
    EXPECT_TRUE(analysis.at("ranks").as_array().at(0).at("decode_step_us").is_null());
}

TEST_F(NsysExport, TakesStepsFromNvtxRangesWhereTheServerWroteThem) {
    const std::string thread = std::to_string(process + 5);
    const Recording recording =
        *read_trace(made("CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, "
                         "correlationId INTEGER, nameId INTEGER);"
                         "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, textId "
                         "INTEGER, globalTid INTEGER);"
                         "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (150, 160, " +
                         thread +
                         ", 1, 3);"
                         "INSERT INTO NVTX_EVENTS VALUES (100, 200, 59, NULL, 4, " +
                         thread + "), (100, NULL, 59, 'execute_x', NULL, " + thread + ");" + row(900, 1000, 1, 1)));
    ASSERT_EQ(recording.annotations.size(), 1U);
    EXPECT_EQ(recording.names.text(recording.annotations[0].name), "execute_context_0(0)_generation_8(8)");
    EXPECT_TRUE(recording.launches.begin()->second.graph);
    const std::vector<std::filesystem::path> files{folder_ / "t.sqlite"};
    EXPECT_EQ(analyze(files).at("answer").as_string(), "gemm: 100 ns of 100 ns a decode step over 1 operations (100.0 %)");
}

TEST_F(NsysExport, OfWholeGraphsSaysHowToSeeInside) {
    const std::vector<std::filesystem::path> files{
        made("CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, "
             "correlationId INTEGER, globalPid INTEGER, graphId INTEGER);"
             "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (10, 900, 0, 7, 3, 5, 2);")};
    EXPECT_THAT(std::string{analyze(files).at("cannot_answer").as_string()}, HasSubstr("--cuda-graph-trace=node"));
}

TEST_F(NsysExport, TextsThatNoKernelNamesAreNeverRead) {
    const std::filesystem::path file = made(row(0, 100, 1, 1));
    const Recording recording = *read_trace(file);
    for (std::uint32_t id = 0; id < recording.names.size(); ++id)
        EXPECT_THAT(recording.names.text(id), ::testing::Not(HasSubstr("secret")));
}

TEST_F(NsysExport, WithoutKernelsOrDamagedIsNotComplete) {
    EXPECT_EQ(check(made("")).at("why").as_string(), "it holds no kernel");
    const std::filesystem::path cut = put("cut.sqlite", std::string("SQLite format 3\0garbage", 23));
    EXPECT_FALSE(check(cut).at("complete").as_bool());
    EXPECT_THAT(std::string{check(cut).at("why").as_string()}, HasSubstr("the database is damaged"));
}

TEST_F(NsysExport, WholeOneIsComplete) {
    EXPECT_THAT(read_trace(made(row(0, 100, 1, 1)))->faults, IsEmpty());
}

}   // namespace
}   // namespace campaign::trace
