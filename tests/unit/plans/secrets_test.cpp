#include "plans/secrets.hpp"

#include <gtest/gtest.h>

#include "plans/parse.hpp"

namespace campaign::plans {
namespace {

std::string hidden(std::string_view line) {
    return shown(line, 200);
}

TEST(Secrets, TokensOfKnownFormsAreFoundWhereverTheyStand) {
    EXPECT_EQ(hidden("x: hf_abcdefABCDEF12345678 # y"), "x: *********************** # y");
    EXPECT_EQ(hidden("sk-abc123def"), "************");
    EXPECT_EQ(hidden("Authorization: Bearer abcdef"), "Authorization: Bearer ******");
    EXPECT_EQ(hidden("http://u:pw1234@host/"), "http://u:******@host/");
    EXPECT_EQ(hidden("[vllm, --api-key, abc]"), "[vllm, --api-key, ***]");
    EXPECT_EQ(hidden("vllm serve --hf-token=abc --port 1"), "vllm serve --hf-token=*** --port 1");
    EXPECT_EQ(hidden("-----BEGIN RSA PRIVATE KEY-----"), std::string(31, '*'));
}

TEST(Secrets, OrdinaryWordsThatLookAlikeStay) {
    for (const std::string_view line :
         {"/data/hf_models/kimi", "sk-learn", "task-force", "bearer bonds", "http://127.0.0.1:8000",
          "vllm serve --api-key $KEY", "--token-budget 4096", "ssh://git@host:22/x", "HF_HUB_OFFLINE"})
        EXPECT_EQ(hidden(line), line);
}

TEST(Secrets, VariablesAreJudgedByTheirWords) {
    for (const std::string_view name :
         {"HF_TOKEN", "OPENAI_API_KEY", "DB_PASSWORD", "SECRET", "aws_secret_access_key", "APIKEY"})
        EXPECT_TRUE(names_a_secret(name)) << name;
    for (const std::string_view name :
         {"TOKENIZERS_PARALLELISM", "KEY_FILE", "HF_TOKEN_PATH", "MAX_TOKENS", "MONKEYS", "PATH"})
        EXPECT_FALSE(names_a_secret(name)) << name;
}

TEST(Secrets, AnErrorBesideASecretHidesItToo) {
    const std::string yaml = "campaign: c\nservices:\n  kimi: {api_key: geheim123, port: \"x\n";
    const auto result = parse(yaml);
    const std::string text = render(std::get<Diagnostics>(result), "p.yaml", yaml);
    EXPECT_NE(text.find("P002"), std::string::npos);
    EXPECT_EQ(text.find("geheim"), std::string::npos) << text;
}

TEST(Secrets, AFileThatIsNoTextHidesThemToo) {
    const std::string yaml{"api_key: geheim123 \0\n", 21};
    const auto result = parse(yaml);
    const std::string text = render(std::get<Diagnostics>(result), "p.yaml", yaml);
    EXPECT_NE(text.find("P005"), std::string::npos);
    EXPECT_EQ(text.find("geheim"), std::string::npos) << text;
}

}   // namespace
}   // namespace campaign::plans
