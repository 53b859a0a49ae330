#include "instruments/startup/startup.hpp"

#include <gtest/gtest.h>

namespace campaign::startup {
namespace {

Progress after(std::string_view log) {
    Reader reader;
    reader.feed(log);
    reader.finish();
    return reader.progress();
}

TEST(Startup, IsReadyAtUvicornsOwnLine) {
    const Progress state = after("INFO vLLM API server version 0.10.0\nINFO:     Application startup complete.\n");
    EXPECT_EQ(state.outcome, Outcome::ready);
    EXPECT_EQ(state.evidence_line, 2U);
}

}   // namespace
}   // namespace campaign::startup
