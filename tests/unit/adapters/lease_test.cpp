// Leases on a host, with the real scripts run by a real sh.
#include "adapters/host/lease.hpp"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "sh_host.hpp"

namespace campaign::host {
namespace {

using test::await;

Lease of(const std::string& campaign, const std::string& token) {
    Lease lease;
    lease.token = token;
    lease.holder = "campaignd on mon1";
    lease.campaign = campaign;
    lease.unit = "vllm.service";
    lease.why = "deep";
    lease.since = "2026-12-01T22:14:00Z";
    lease.until = "2026-12-02T01:00:00Z";
    return lease;
}

struct Leases : ::testing::Test {
    test::TempFolder temp;
    test::ShHost host{temp.path()};
    std::string folder = (temp.path() / "leases").string();

    std::optional<Lease> take(const Lease& lease) {
        auto stands = await(take_lease(host, folder, lease, true));
        EXPECT_TRUE(stands) << describe(stands.error());
        return stands ? *stands : std::nullopt;
    }
    bool release(const std::string& token) {
        auto released = await(release_lease(host, folder, "vllm.service", token, true));
        EXPECT_TRUE(released) << describe(released.error());
        return released && *released;
    }
    std::optional<Lease> seen() {
        auto now = await(read_lease(host, folder, "vllm.service"));
        EXPECT_TRUE(now) << describe(now.error());
        return now ? *now : std::nullopt;
    }
    std::size_t files() {
        std::size_t count = 0;
        for (const auto& entry : std::filesystem::directory_iterator{folder}) count += entry.is_regular_file() ? 1 : 0;
        return count;
    }
};

}   // namespace

TEST_F(Leases, OneTakesItAndTheOtherLearnsWhoHasIt) {
    EXPECT_FALSE(seen());
    EXPECT_FALSE(take(of("k24", "t1")));
    const auto stands = take(of("k25", "t2"));
    ASSERT_TRUE(stands);
    EXPECT_EQ(
        in_words(*stands),
        "campaign k24 of campaignd on mon1 (deep), since 2026-12-01T22:14:00Z, until 2026-12-02T01:00:00Z at the latest");
    ASSERT_TRUE(seen());
    EXPECT_EQ(seen()->token, "t1");
    EXPECT_EQ(files(), 1U) << "no part file stays";
}

TEST_F(Leases, ItsHolderTakesItAnewAndNobodyElseGivesItBack) {
    EXPECT_FALSE(take(of("k24", "t1")));
    Lease longer = of("k24", "t1");
    longer.until = "2026-12-02T09:00:00Z";
    EXPECT_FALSE(take(longer));
    EXPECT_EQ(seen()->until, "2026-12-02T09:00:00Z");
    EXPECT_FALSE(release("t2"));
    EXPECT_TRUE(seen());
    EXPECT_TRUE(release("t1"));
    EXPECT_FALSE(release("t1")) << "giving back twice is no error";
    EXPECT_FALSE(seen());
    EXPECT_FALSE(take(of("k25", "t2")));
    EXPECT_EQ(files(), 1U);
}

TEST_F(Leases, WhatCannotBeReadIsHeldAllTheSame) {
    for (const char* text : {"", "\n", "nonsense", "t9\n{\"holder\": 1", "t9\n[]\n"}) {
        test::spill(std::filesystem::path{folder} / lease_name("vllm.service"), text);
        const auto stands = take(of("k25", "t2"));
        ASSERT_TRUE(stands) << text;
        EXPECT_EQ(in_words(*stands), "somebody unknown: the lease on the host cannot be read") << text;
    }
}

TEST_F(Leases, AFolderThatCannotBeMadeIsAnError) {
    folder = (temp.path() / "stdin").string() + "/leases";   // a file is in the way
    const auto stands = await(take_lease(host, folder, of("k24", "t1"), true));
    ASSERT_FALSE(stands);
    EXPECT_EQ(stands.error().what, "gpu1: cannot take the lease on vllm.service");
}

TEST(LeaseName, IsOneFileForEveryUnit) {
    struct Row {
        const char* unit;
        const char* name;
    };
    for (const Row& row : {Row{"vllm@0.service", "vllm@0.service.lease"}, Row{"a/b", "a%2fb.lease"}, Row{"..", "...lease"},
                           Row{"dev-\\x2d.service", "dev-%5cx2d.service.lease"}, Row{"a%b", "a%25b.lease"}})
        EXPECT_EQ(lease_name(row.unit), row.name);
}

TEST(LeaseWords, AreMadePrintable) {
    Lease lease;
    lease.campaign = "k\x1b[31m";
    lease.holder = "h\n";
    EXPECT_EQ(in_words(lease).find('\x1b'), std::string::npos);
    EXPECT_EQ(in_words(lease).find('\n'), std::string::npos);
}

}   // namespace campaign::host
