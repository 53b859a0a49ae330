// Traces as crashes, full disks and careless writers leave them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "composed_trace.hpp"
#include "instruments/trace/kineto.hpp"
#include "instruments/trace/trace.hpp"
#include "instruments/trace/utf8.hpp"

namespace campaign::trace {
namespace {

using namespace campaign::testing;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class BrokenTrace : public InFolder {
protected:
    Recording read(std::string_view content) { return *read_trace(put("t", content)); }
    Recording read_in_windows(std::string_view content, std::size_t window) {
        Result<ByteSource> source = ByteSource::open(put("t", content));
        return read_kineto(*source, window);
    }
};

TEST_F(BrokenTrace, WholeOneIsCompletePlainAndAsGzip) {
    for (const std::string& content : {two_decode_steps(), gzip(two_decode_steps())}) {
        const Recording recording = read(content);
        EXPECT_THAT(recording.faults, IsEmpty());
        EXPECT_THAT(recording.notes, IsEmpty());
        EXPECT_EQ(recording.kernels, 7U);
        EXPECT_EQ(recording.events, 17U);
    }
}

TEST_F(BrokenTrace, CutAnywhereIsNeverCalledCompleteAndNeverCrashes) {
    const std::string whole = two_decode_steps();
    std::uint64_t kernels = 0;
    for (std::size_t size = 0; size < whole.size(); ++size) {
        const Recording recording = read(whole.substr(0, size));
        EXPECT_FALSE(recording.faults.empty()) << "cut after " << size;
        EXPECT_GE(recording.kernels, kernels) << "cut after " << size;   // every event that was whole is kept
        kernels = recording.kernels;
    }
    EXPECT_EQ(kernels, 7U);
}

TEST_F(BrokenTrace, CutGzipSaysSoAndKeepsWhatInflated) {
    const std::string whole = gzip(two_decode_steps());
    for (std::size_t size = 2; size < whole.size(); size += 7)
        EXPECT_FALSE(read(whole.substr(0, size)).faults.empty()) << size;
    EXPECT_THAT(read(whole.substr(0, whole.size() - 4)).notes, Contains("gzip_truncated"));
    EXPECT_EQ(read(whole.substr(0, whole.size() - 4)).kernels, 7U);
}

TEST_F(BrokenTrace, GzipWithAnotherChecksumIsNotWhole) {
    std::string content = gzip(two_decode_steps());
    content[content.size() - 8] = static_cast<char>(content[content.size() - 8] ^ 1);
    EXPECT_THAT(read(content).notes, Contains("gzip_bad_crc"));
    EXPECT_THAT(read(content).faults, ElementsAre("the gzip checksum does not fit the content"));
}

TEST_F(BrokenTrace, GzipMembersOneAfterTheOtherAreOneStream) {
    const std::string whole = two_decode_steps();
    const Recording recording = read(gzip(whole.substr(0, 700)) + gzip(whole.substr(700)));
    EXPECT_EQ(recording.kernels, 7U);
    EXPECT_THAT(recording.faults, IsEmpty());
}

TEST_F(BrokenTrace, BytesBehindTheGzipStreamAreNotedAndHarmless) {
    EXPECT_THAT(read(gzip(two_decode_steps()) + "leftover of an older file").notes, ElementsAre("gzip_trailing_garbage"));
    EXPECT_THAT(read(gzip(two_decode_steps()) + std::string(512, '\0')).notes, IsEmpty());
}

TEST_F(BrokenTrace, AnEventThatCannotBeReadCostsOnlyItself) {
    for (const char* const broken : {R"({"ph": "X", "cat": "kernel", "ts": 7,757576})", R"({"ph": "X", "name": "a"b"})",
                                     R"({"ph": "X" "cat": 1})", R"({"ph": nan})", R"({"ph": "X", "args": {"a" 1}})"}) {
        const Recording recording = read(document(kernel("a", 1, 1, 1) + "," + std::string{broken} + "," +
                                                  kernel("b", 3, 1, 2) + "," + kernel("c", 5, 1, 3)));
        EXPECT_EQ(recording.kernels, 3U) << broken;
        EXPECT_GE(recording.bad_events, 1U) << broken;
    }
}

TEST_F(BrokenTrace, AStringLeftOpenDoesNotSwallowTheRest) {
    const std::string open = R"({"ph": "X", "cat": "kernel", "name": "void f("quoted), "ts": 1, "dur": 1})";
    const Recording recording =
        read(document(kernel("a", 1, 1, 1) + "," + open + "," + kernel("b", 3, 1, 2) + "," + kernel("c", 5, 1, 3)));
    EXPECT_EQ(recording.kernels, 3U);
    EXPECT_EQ(recording.bad_events, 1U);
}

TEST_F(BrokenTrace, NumbersThatJsonDoesNotKnowArePassedOver) {
    const std::string odd =
        R"({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "ts": 1, "dur": 2, "args": {"x": NaN, "y": -Infinity}})";
    const Recording recording = read(document(odd));
    EXPECT_EQ(recording.kernels, 1U);
    EXPECT_THAT(recording.notes, ElementsAre("nonfinite_number"));
    EXPECT_THAT(recording.faults, IsEmpty());
}

TEST_F(BrokenTrace, BadUtf8InANameIsNotedAndMadePrintableInTheResult) {
    const std::filesystem::path file = put("t", document(kernel("gemm\xFF\xC0", 1, 5, 1)));
    EXPECT_THAT(read_trace(file)->notes, ElementsAre("invalid_utf8"));
    const std::vector<std::filesystem::path> files{file};
    EXPECT_TRUE(valid_utf8(json::serialize(analyze(files))));
}

TEST_F(BrokenTrace, ControlCharactersAreNotedAndDoNotReachTheResult) {
    const std::filesystem::path file = put("t", document(kernel("gemm\x1b[31m", 1, 5, 1)));
    EXPECT_THAT(read_trace(file)->notes, ElementsAre("control_char_in_string"));
    const std::vector<std::filesystem::path> files{file};
    EXPECT_EQ(json::serialize(analyze(files)).find("u001b"), std::string::npos);
}

TEST_F(BrokenTrace, DeviceWorkWithoutATimeIsCountedNotInvented) {
    const Recording recording =
        read(document(R"({"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": "N/A"},)" + kernel("a", 1, 1, 1)));
    EXPECT_EQ(recording.kernels, 1U);
    EXPECT_THAT(recording.notes, ElementsAre("gpu_event_without_time=1"));
}

TEST_F(BrokenTrace, ANegativeDurationCountsAsNothingAndIsSaid) {
    const Recording recording = read(document(kernel("a", 100, -20, 1)));
    EXPECT_EQ(recording.negative, 1U);
    EXPECT_EQ(recording.gpu.at(0).duration(), 0);
}

TEST_F(BrokenTrace, HeaderMembersCountBehindTheEventsToo) {
    const Recording recording =
        read(R"({"traceEvents": [)" + kernel("a", 1, 1, 1) + R"(], "distributedInfo": {"rank": 5, "world_size": 8}})");
    EXPECT_EQ(recording.rank, 5);
    EXPECT_EQ(recording.world_size, 8);
    EXPECT_THAT(recording.faults, IsEmpty());
}

TEST_F(BrokenTrace, ABareListOfEventsIsATraceOfTheOlderKind) {
    const Recording recording = read("[" + kernel("a", 1, 1, 1) + "]");
    EXPECT_EQ(recording.kernels, 1U);
    EXPECT_THAT(recording.faults, IsEmpty());
}

TEST_F(BrokenTrace, NestingWithoutEndNeedsNoStack) {
    const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
    const Recording recording = read(document(R"({"ph": "X", "args": {"d": )" + deep + "}}," + kernel("a", 1, 1, 1)));
    EXPECT_EQ(recording.kernels, 1U);
    EXPECT_THAT(recording.notes, IsEmpty());
}

TEST_F(BrokenTrace, IsReadTheSameInWindowsOfAnySize) {
    const std::string whole = two_decode_steps();
    const std::string stray =
        document(kernel("a", 1, 1, 1) + R"(, null, 12.5, "text", }, { )" + R"({"ph": "X", "n": nan} )" + "," +
                 kernel("b\\\"", 3, 1, 2) + "," + kernel("c", 5, 1, 3));
    for (const std::string& content :
         {whole, whole.substr(0, 1500), stray, gzip(stray), gzip(whole).substr(0, 300),
          std::string{R"({"a": {"b": "c"d"}, "traceEvents": [)"} + kernel("a", 1, 1, 1) + "]}"}) {
        const Recording want = read(content);
        EXPECT_GE(want.kernels, 1U);
        for (const std::size_t window : {1U, 2U, 3U, 7U, 64U, 1000U}) {
            const Recording got = read_in_windows(content, window);
            EXPECT_EQ(got.events, want.events) << window;
            EXPECT_EQ(got.kernels, want.kernels) << window;
            EXPECT_EQ(got.notes, want.notes) << window;
            EXPECT_EQ(got.faults, want.faults) << window;
        }
    }
}

TEST_F(BrokenTrace, EventsThatHoldEachOtherWithoutEndAreGivenUpAndTheRestIsKept) {
    std::string nested;
    for (int i = 0; i < 100'000; ++i) nested += R"({"ph":)";
    const Recording recording = read(document(kernel("a", 1, 1, 1) + "," + nested));
    EXPECT_EQ(recording.kernels, 1U);
    EXPECT_LT(recording.bad_events, 10'000U);
    EXPECT_THAT(recording.notes, Contains("gave_up_within_broken_events"));
    EXPECT_FALSE(recording.faults.empty());
}

TEST_F(BrokenTrace, AHeaderMemberLargerThanIsKeptDoesNotMakeTheTraceBroken) {
    const std::string frames = R"({"1": ")" + std::string(2 * Document::max_event, 'f') + "\"}";
    const Recording recording = read(R"({"traceEvents": [)" + kernel("a", 1, 1, 1) + R"(], "stackFrames": )" + frames +
                                     R"(, "distributedInfo": {"rank": 5}})");
    EXPECT_THAT(recording.faults, IsEmpty());
    EXPECT_THAT(recording.notes, IsEmpty());
    EXPECT_EQ(recording.rank, 5);
}

TEST_F(BrokenTrace, TheChecksumIsCheckedAlsoBehindWhatIsNoTrace) {
    std::string content = gzip("hello" + std::string(100'000, ' '));
    content[content.size() - 8] = static_cast<char>(content[content.size() - 8] ^ 1);
    EXPECT_THAT(read(content).notes, Contains("gzip_bad_crc"));
    EXPECT_THAT(read_in_windows(content, 3).notes, Contains("gzip_bad_crc"));
}

TEST_F(BrokenTrace, TextBehindTheDocumentIsSaid) {
    EXPECT_THAT(read(two_decode_steps() + "}").faults, ElementsAre("the JSON is damaged outside of its events"));
}

TEST_F(BrokenTrace, ANumberMayBeTheVeryLastThingBeforeTheBrace) {
    const Recording recording = read(R"({"traceEvents": [], "displayTimeUnit": "ms", "schemaVersion": 1})");
    EXPECT_THAT(recording.notes, IsEmpty());
    EXPECT_EQ(recording.header.at("schemaVersion"), "1");
}

TEST_F(BrokenTrace, BehindAMemberWithAWrongChecksumTheNextOneIsRead) {
    const std::string text = two_decode_steps();
    std::string first = gzip(text.substr(0, 700));
    first[first.size() - 7] = static_cast<char>(first[first.size() - 7] ^ 1);
    const Recording recording = read(first + gzip(text.substr(700)));
    EXPECT_THAT(recording.notes, ElementsAre("gzip_bad_crc"));
    EXPECT_EQ(recording.kernels, read(text).kernels);
}

TEST_F(BrokenTrace, CommasThatAreMissingOrTooManyMakeItNoJsonButLoseNoEvent) {
    const std::string event = R"({"ph":"X","cat":"kernel","name":"k","ts":1,"dur":2})";
    for (const std::string& between : {std::string{" "}, std::string{",,"}}) {
        const Recording recording = read(R"({"traceEvents":[)" + event + between + event + "]}");
        EXPECT_THAT(recording.notes, ElementsAre("invalid_json")) << between;
        EXPECT_EQ(recording.kernels, 2U) << between;
    }
}

TEST_F(BrokenTrace, OfTwoListsTheLastCountsInJsonAndTheFirstInWhatIsNone) {
    const std::string two = R"({"traceEvents":[{"ph":"X","cat":"kernel","name":"a","ts":1,"dur":2}],)"
                            R"("traceEvents":[{"ph":"X","cat":"kernel","name":"b","ts":1,"dur":2},{"ph":"i"}]})";
    EXPECT_EQ(read(two).events, 2U);
    EXPECT_EQ(read(two + "x").events, 1U);
}

TEST_F(BrokenTrace, CorrelationIdsOfEveryKindAreTold) {
    const auto kernel = [](const std::string& id) {
        return R"({"ph":"X","cat":"kernel","name":"k","ts":1,"dur":2,"args":{"correlation":)" + id + "}}";
    };
    const auto launch = [](const std::string& id) {
        return R"({"ph":"X","cat":"cuda_runtime","name":"l","ts":0,"dur":1,"args":{"correlation":)" + id + "}}";
    };
    const Recording recording = read("[" + launch("\"1\"") + "," + launch("36893488147419103232") + "," + kernel("1") + "," +
                                     kernel("\"1\"") + "," + kernel("36893488147419103232") + "," + kernel("null") + "]");
    ASSERT_EQ(recording.gpu.size(), 4U);
    EXPECT_FALSE(recording.launches.contains(recording.gpu[0].launch));
    EXPECT_TRUE(recording.launches.contains(recording.gpu[1].launch));
    EXPECT_TRUE(recording.launches.contains(recording.gpu[2].launch));
    EXPECT_EQ(recording.gpu[3].launch, no_launch);
}

TEST_F(BrokenTrace, WhatIsNoTraceIsSaidToBeNone) {
    const auto why = [this](std::string_view content) {
        return std::string{check(put("t", content)).at("why").as_string()};
    };
    EXPECT_EQ(why(""), "the file is empty");
    EXPECT_EQ(why("hello"), "there is no traceEvents list: this is no trace of the torch profiler");
    EXPECT_EQ(why(document("")), "it holds no kernel");
    EXPECT_FALSE(check(folder_ / "absent").at("complete").as_bool());
}

}   // namespace
}   // namespace campaign::trace
