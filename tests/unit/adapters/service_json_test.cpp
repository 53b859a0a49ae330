#include <gtest/gtest.h>

#include "adapters/host/service.hpp"
#include "base/json.hpp"

namespace campaign::host {
namespace {

TEST(BaselineJson, ComesBackAsItWas) {
    Baseline baseline;
    baseline.state.boot_id = "b";
    baseline.state.exists = true;
    baseline.state.loadable = true;
    baseline.state.load_state = "loaded";
    baseline.state.active = "active";
    baseline.state.invocation = "i";
    baseline.state.main_pid = 7;
    baseline.state.exit_status = 137;
    baseline.state.entered_active_us = 18'000'000'000'000'000'000u;
    baseline.state.drop_ins = {"/a.conf"};
    baseline.configured_argv = {"vllm", "serve", "${M}"};
    baseline.running_argv = {"python3", "vllm", "serve", "/m"};
    baseline.environment_hashes = {{"HF_TOKEN", std::string(64, 'a')}};
    baseline.start_timeout_us = UINT64_MAX;
    baseline.stop_timeout_us = 90'000'000;
    baseline.server_pid = 8;
    baseline.sandbox = {{"ProtectSystem", "strict"}};
    baseline.exec_flags = {"ignore-failure"};
    baseline.obstacles = {{"pending-edit", "changed", "restart it"}};
    const json::value text = *parse_json(json::serialize(to_json(baseline)), "baseline");
    const auto back = baseline_from_json(text);
    ASSERT_TRUE(back);
    EXPECT_EQ(canonical(to_json(*back)), canonical(to_json(baseline)));
    EXPECT_EQ(back->start_timeout_us, UINT64_MAX);
    EXPECT_EQ(back->state.entered_active_us, 18'000'000'000'000'000'000u);
    EXPECT_EQ(back->obstacles[0].code, "pending-edit");
    EXPECT_EQ(back->state.exit_status, 137);
}

TEST(BaselineJson, RefusesWhatIsNoBaseline) {
    for (const char* bad : {"{}", "[]", "null", R"({"state":{}})", R"({"configured_argv":[]})"}) {
        const json::value value = *parse_json(bad, "record");
        EXPECT_FALSE(baseline_from_json(value)) << bad;
    }
}

}   // namespace
}   // namespace campaign::host
