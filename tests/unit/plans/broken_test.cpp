// Every plan in broken/ is refused with exactly the codes, places and hints that expected.json records.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/json.hpp"
#include "plans/parse.hpp"

namespace campaign::plans {
namespace {

std::string contents(const std::filesystem::path& path) {
    std::ifstream in{path, std::ios::binary};
    return {std::istreambuf_iterator<char>{in}, {}};
}

std::string line_for(std::string_view code, std::int64_t line, std::int64_t column, std::int64_t width,
                     std::string_view hint) {
    return std::string{code} + " " + std::to_string(line) + ":" + std::to_string(column) + "+" + std::to_string(width) +
           " " + std::string{hint} + "\n";
}

json::object table() {
    return json::parse(contents(PLANS_TABLE)).as_object();
}

TEST(BrokenPlans, AreRefusedWithTheRecordedCodesPlacesAndHints) {
    const json::object expected = table();
    ASSERT_GE(expected.size(), 100U);
    for (const auto& [name, entry] : expected) {
        std::string wanted;
        for (const json::value& one : entry.at("found").as_array())
            wanted += line_for(one.at("code").as_string(), one.at("line").as_int64(), one.at("column").as_int64(),
                               one.at("width").as_int64(), string_at(one, "hint").value_or(""));
        const std::string yaml = contents(std::filesystem::path{PLANS_BROKEN} / (std::string{name} + ".yaml"));
        const auto result = parse(yaml);
        const auto* found = std::get_if<Diagnostics>(&result);
        ASSERT_NE(found, nullptr) << name << " is accepted";
        std::string seen;
        for (const Diagnostic& one : *found) seen += line_for(one.code, one.line, one.column, one.width, one.hint);
        EXPECT_EQ(seen, wanted) << name;
        EXPECT_FALSE(seen.empty()) << name;
    }
}

TEST(BrokenPlans, RenderWithoutControlCharactersAndPointAtALineThatExists) {
    for (const auto& entry : table()) {
        const std::string yaml = contents(std::filesystem::path{PLANS_BROKEN} / (std::string{entry.key()} + ".yaml"));
        const auto result = parse(yaml);
        const auto& found = std::get<Diagnostics>(result);
        const std::string text = render(found, "p.yaml", yaml);
        EXPECT_EQ(text.find('\x1b'), std::string::npos) << entry.key();
        EXPECT_EQ(text.find('\0'), std::string::npos) << entry.key();
        EXPECT_NE(text.find("plan refused"), std::string::npos) << entry.key();
        const auto lines = std::count(yaml.begin(), yaml.end(), '\n') + 1;
        for (const Diagnostic& one : found) EXPECT_LE(one.line, lines) << entry.key();
    }
}

TEST(BrokenPlans, EveryCodeThatIsReportedIsExplained) {
    for (const auto& entry : table())
        for (const json::value& one : entry.value().at("found").as_array())
            EXPECT_NE(explain_code(one.at("code").as_string()), "") << one.at("code");
    EXPECT_EQ(explain_code("P999"), "");
}

TEST(BrokenPlans, TheSecretsInThemAreNeverRepeated) {
    for (const auto& entry : table()) {
        const std::string yaml = contents(std::filesystem::path{PLANS_BROKEN} / (std::string{entry.key()} + ".yaml"));
        const auto result = parse(yaml);
        const auto& found = std::get<Diagnostics>(result);
        std::string all = render(found, "p.yaml", yaml);
        for (const Diagnostic& one : found) all += one.message + one.hint + one.note;
        for (const std::string_view secret : {"geheim", "abcDEF123", "abc123def", "abcdef123456", "b3BlbnNz"})
            EXPECT_EQ(all.find(secret), std::string::npos) << entry.key() << "\n" << all;
    }
}

}   // namespace
}   // namespace campaign::plans
