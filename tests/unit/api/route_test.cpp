#include "daemon/api/route.hpp"

#include <gtest/gtest.h>

namespace campaign::api {
namespace {

Route route_of(std::string_view method, std::string_view path) {
    return route(method, path).value().route;
}

TEST(ApiRoute, KnowsEveryRequestOfTheDocument) {
    EXPECT_EQ(route_of("GET", "/v1/version"), Route::version);
    EXPECT_EQ(route_of("GET", "/v1/status"), Route::status);
    EXPECT_EQ(route_of("GET", "/v1/campaigns/k25"), Route::campaign);
    EXPECT_EQ(route_of("POST", "/v1/campaigns"), Route::submit);
    EXPECT_EQ(route_of("POST", "/v1/campaigns/k25/approve"), Route::approve);
    EXPECT_EQ(route_of("POST", "/v1/campaigns/k25/cancel"), Route::cancel);
    EXPECT_EQ(route_of("POST", "/v1/campaigns/k25/resume"), Route::resume);
    EXPECT_EQ(route_of("POST", "/v1/campaigns/k25/restore"), Route::restore);
    EXPECT_EQ(route_of("GET", "/v1/campaigns/k25/artifacts"), Route::artifacts);
    EXPECT_EQ(route_of("GET", "/v1/campaigns/k25/report"), Route::report);
    EXPECT_EQ(route_of("GET", "/v1/artifacts/abc"), Route::artifact);
    EXPECT_EQ(route_of("POST", "/v1/explain"), Route::explain);
    EXPECT_EQ(route_of("GET", "/v1/events"), Route::all_events);
}

TEST(ApiRoute, TakesNamesAndQueriesApart) {
    const Target decision = route("GET", "/v1/campaigns/k25/decisions/D2").value();
    EXPECT_EQ(decision.name, "k25");
    EXPECT_EQ(decision.detail, "D2");
    const Target events = route("GET", "/v1/campaigns/a%20b/events?after=17&follow=1").value();
    EXPECT_EQ(events.name, "a b");
    EXPECT_EQ(events.after, 17);
    EXPECT_TRUE(events.follow);
}

TEST(ApiRoute, AnEscapedSlashStaysInsideItsSegment) {
    EXPECT_EQ(route("GET", "/v1/campaigns/..%2f..%2fetc").value().name, "../../etc");
    EXPECT_EQ(percent_decode("%41%7e").value(), "A~");
}

TEST(ApiRoute, AWrongMethodIsToldTheRightOne) {
    const auto wrong = route("GET", "/v1/campaigns/k25/cancel");
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().kind, ErrorKind::usage);
    EXPECT_EQ(wrong.error().next, "use POST");
}

class BadTarget : public testing::TestWithParam<const char*> {};

TEST_P(BadTarget, IsRefused) {
    EXPECT_FALSE(route("GET", GetParam())) << GetParam();
}

INSTANTIATE_TEST_SUITE_P(ApiRoute, BadTarget,
                         testing::Values("", "/", "/v2/status", "/v1/status/", "/v1/campaigns/", "/v1/campaigns//events",
                                         "/v1/campaigns/a%00b", "/v1/campaigns/a%2", "/v1/campaigns/a%zz", "/v1/status?x=1",
                                         "/v1/campaigns/k/events?after=-1", "/v1/campaigns/k/events?after=1x",
                                         "/v1/campaigns/k/events?after=99999999999999999999",
                                         "/v1/campaigns/k/events?follow=yes"));

}   // namespace
}   // namespace campaign::api
