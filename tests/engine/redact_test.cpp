#include "daemon/engine/redact.hpp"

#include <gtest/gtest.h>

using campaign::engine::redact;

TEST(Redact, TakesOutTokensWhereverTheyStand) {
    EXPECT_EQ(redact("token hf_abcdefghijklmnop end"), "token [redacted] end");
    EXPECT_EQ(redact("Authorization: Bearer sk-12345678901234"), "Authorization: Bearer [redacted]");
    EXPECT_EQ(redact("args: --api-key s3cret-key --port 8000"), "args: --api-key [redacted] --port 8000");
    EXPECT_EQ(redact("HF_TOKEN=abcd1234"), "HF_TOKEN=[redacted]");
    EXPECT_EQ(redact("non-default args: {'api_key': ['s3cretkey'], 'port': 1}").find("s3cretkey"), std::string::npos);
    EXPECT_EQ(redact("https://user:pa55word@host/x"), "https://user:[redacted]@host/x");
}

TEST(Redact, LeavesOrdinaryLinesAlone) {
    for (const char* line : {"INFO 12-01 22:31:07 [loader.py:1] Loading weights took 12.3 seconds", "max_tokens=16",
                             "http://127.0.0.1:8000/health", "api_key=None", "Using key cache dtype auto", "tokens: 1234"}) {
        EXPECT_EQ(redact(line), line);
    }
}
