#include "ctl/render.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.hpp"
#include "base/text.hpp"
#include "screens.hpp"

namespace campaign::ctl {
namespace {

using testing::HasSubstr;
using testing::Not;

json::value screen(const char* text) {
    return parse_json(text, "screen").value();
}

TEST(StatusScreen, ShowsProductionCampaignsAndWhatIsNeededOnOneScreen) {
    EXPECT_EQ(render_status(screen(test::status_three), Style{}),
              R"(campaignd 0.3.0   Tue 1 Dec 22:49:31 UTC   3 campaigns, 1 NEEDS YOU
PRODUCTION
  ~ gpu03 vllm-k25    DOWN       by plan since 22:27; restarted with
                                 --profiler-config
  = gpu05 vllm-glm5   AS WAS     verified 21:14
  ! gpu07 vllm-k25    UNKNOWN    since 22:31; no contact for 18 min; the undo
                                 stays on record until the host answers
CAMPAIGNS
  ! deep-k25  gpu07  in doubt  was it carried out: restart vllm-k25.service?
  > k25       gpu03  running   3/3 deep: model loading 61 %, ready about 23:03
  = glm5      gpu05  done      report ready, 214 numbers, 21:14
NEEDS YOU
  deep-k25: was it carried out: restart vllm-k25.service?
    campaignctl status deep-k25
LAST DECISION
  22:26  k25: torch-profile for deep, over nsys (impossible), macro (not
         needed); approved by ana
)");
}

TEST(CampaignScreen, ALoadSaysHowFarItIsAndUntilWhenItIsWaitedFor) {
    EXPECT_EQ(render_campaign(screen(test::campaign_loading), Style{}),
              R"(k25 > running   3/3 deep   gpu03 vllm-k25   began 20:05, 2 h 45 min ago
production  DOWN by plan since 22:27; 3 undos on record
            restarted with --profiler-config
PHASES
  = 1 macro  20:05-20:58  macro          plateau 1536 tok/s at 128  s12-s31
  ~ 2 quick  20:58-21:40  macro          pivoted: the deeper methods need a
                                         restart  s32-s40
  > 3 deep   22:26-       torch-profile  s41 drop-in =  s42 restart =
                                         s43 await-ready >
WAITS FOR   model ready: weights, shard 34 of 56
  [##########################................]  61 %   22 min of about 36 min
  expect   23:03-23:05  from 9 loads here (p50 35.8 min, p90 37.9 min)
  next     health probe 22:58:00; last log line 4 s ago
  gives up stalled if no progress by 23:09, failed at once if the unit dies
  log      Loading safetensors checkpoint shards:  61% Completed | 34/56
DECIDED     D2 22:26 torch-profile for deep, down 68-77 min, approved by ana
            22:25
            not nsys: no binary on the host
NEEDS YOU   nothing
)");
}

TEST(CampaignScreen, ADoubtOffersEachAnswerWithWhatItDoes) {
    EXPECT_EQ(render_campaign(screen(test::campaign_in_doubt), Style{}),
              R"(deep-k25 ! in doubt   1/1 deep   gpu07 vllm-k25   began 22:05, 45 min ago
IN DOUBT    s42 restart vllm-k25.service on gpu07
  sent      22:31:07, 18 min ago
  lost      link closed before an answer
  evidence  12 tries, last 22:48, the host does not answer
production  UNKNOWN since 22:31; 3 undos on record
            no contact for 18 min
PHASES
  > 1 deep  22:26-       torch-profile  s41 drop-in =  s42 restart !
NEEDS YOU   was it carried out: restart vllm-k25.service?
            nothing is sent again until the host or you answer. If you know:
  campaignctl resume deep-k25                 look again now
  campaignctl resume deep-k25 --as done       it was carried out; go on
  campaignctl resume deep-k25 --as not-done   it was not; send it once more
  campaignctl cancel deep-k25                 stop; restore once reachable
)");
}

TEST(CampaignScreen, AFailureNamesItsCauseAndThatProductionIsBack) {
    EXPECT_EQ(render_campaign(screen(test::campaign_failed), Style{}),
              R"(k25 x FAILED   2/2 deep   gpu03 vllm-k25   20:05-23:25
            the model could not be loaded with the profiler
failed step s43 deep/torch-profile/3/await-ready, 22:27-22:49
  why       out of memory while loading shard 40 of 56
  seen      22:48:55 "CUDA out of memory" s43/unit.log:2113
production  RESTORED 23:25, verified; down 58 min in all
            = drop-in = argv and environment = active = health = model = one
            token
PHASES
  = 1 macro  20:05-20:58  macro          plateau 1536 tok/s at 128  s12-s31
  x 2 deep   22:26-22:49  torch-profile  failed: no number is reported  s41-s43
kept        38 artifacts   campaignctl artifacts k25
  campaignctl report k25                      what was measured
)");
}

TEST(CampaignScreen, AnApprovalThatIsWaitedForIsOneCommandAway) {
    EXPECT_EQ(render_campaign(screen(test::campaign_waiting), Style{}),
              R"(k25 ! waiting   2/2 deep   gpu03 vllm-k25   began 20:05, 55 min ago
            nothing else is left to do
production  AS WAS since 20:05
            never touched
PHASES
  = 1 macro  20:05-20:58  macro  plateau 1536 tok/s at 128  s12-s31
  ! 2 deep   20:58-       macro  deferred: torch-profile and nsys need an
                                 approval
DECIDED     D2 20:06 macro for deep, no downtime
            not torch-profile: needs approval; not nsys: needs approval
            cannot show: kernel names, SM occupancy
NEEDS YOU   approve torch-profile (down 68-77 min), or let it be
  campaignctl approve k25 D2 torch-profile
)");
}

TEST(DecisionScreen, ShowsWhyEachLoserLostAndHowToGoDeeper) {
    EXPECT_EQ(render_decision(screen(test::decision_pivoted), Style{}),
              R"(D2  20:06  where does a decode step go   policy: no downtime is allowed
  METHOD         DOWN     VERDICT
  torch-http     0        impossible: the server was started without
                          --profiler-config (argv s07, routes s08)
                          shows kernels
  torch-profile  72 min   deferred: needs approval
                          shows kernels by name, per step
  nsys           unknown  forbidden: it would take production down for about 1 h
                          12 min, the plan allows 0 ms in all
  macro          0        CHOSEN: works without downtime
                          shows totals
cannot show  kernel names, SM occupancy, memory bandwidth
go deeper    campaignctl approve k25 D2 torch-profile
)");
}

TEST(ExplainScreen, ListsCostsThenEveryCommandAndDropIn) {
    EXPECT_EQ(render_explain(screen(test::explained), Style{}, true), R"(k25:   facts read from the hosts, nothing changed
  PHASE  METHOD         DOWN       CHANGES ON HOST
  macro  macro          0          1 transient unit
      if impossible: stop
  deep   torch-profile  68-77 min  1 drop-in, 2 restarts
      if impossible: macro
      downtime: 9 loads on record here
      not nsys: impossible, no binary on the host
total  down 68-77 min of 1 h 20 min allowed
asks   1 approval (deep)
unknown  how long one load takes after the driver upgrade
warning  2 of 5 starts that the unit allows in its interval are used
COMMANDS   (* changes production)
* deep / restart   gpu03   transition
      sudo -n systemctl restart -- vllm-k25.service
  macro / look   gpu03   observe
      systemctl show --property=ActiveState,SubState,InvocationID,ExecMainStartTimestampMonotonic -- vllm-k25.service
DROP-IN    gpu03:/run/systemd/system/vllm-k25.service.d/60-campaignd.conf
      [Service]
      ExecStart=
      ExecStart=/usr/bin/vllm serve
)");
}

TEST(WatchScreen, TheLiveLinesAreTwo) {
    EXPECT_EQ(render_live(screen(test::campaign_loading), Style{}), R"(k25 > running   3/3 deep
  [##################............]  model loading 61 %, ready about 23:03
)");
}

std::vector<std::string> every_screen(const Style& style) {
    std::vector<std::string> screens{render_status(screen(test::status_three), style),
                                     render_decision(screen(test::decision_pivoted), style),
                                     render_explain(screen(test::explained), style, false)};
    for (const char* campaign :
         {test::campaign_loading, test::campaign_in_doubt, test::campaign_failed, test::campaign_waiting}) {
        screens.push_back(render_campaign(screen(campaign), style));
        screens.push_back(render_live(screen(campaign), style));
    }
    return screens;
}

TEST(Screens, AreAsciiWithinTheWidthAndWithoutEscapes) {
    for (const std::size_t width : {80U, 100U, 132U}) {
        for (const std::string& text : every_screen(Style{width, false})) {
            for (const std::string& line : split(text, '\n')) {
                EXPECT_LE(line.size(), width) << line;
                for (const char c : line) EXPECT_TRUE(c >= ' ' && c <= '~') << line;
            }
        }
    }
}

TEST(Screens, ColourChangesNoWord) {
    const std::vector<std::string> plain = every_screen(Style{80, false});
    const std::vector<std::string> coloured = every_screen(Style{80, true});
    for (std::size_t i = 0; i < plain.size(); ++i) {
        std::string bare;
        for (std::size_t at = 0; at < coloured[i].size(); ++at) {
            if (coloured[i][at] == '\x1b') {
                at = coloured[i].find('m', at);
                continue;
            }
            bare += coloured[i][at];
        }
        EXPECT_EQ(bare, plain[i]);
    }
    EXPECT_THAT(coloured[0], HasSubstr("\x1b["));
}

TEST(Screens, WhatAHostSaidCannotMoveTheCursor) {
    json::value status = screen(test::status_three);
    status.as_object()["production"].as_array()[0].as_object()["detail"] = "\x1b[2J\x1b]0;title\a gone\r\nnext";
    const std::string text = render_status(status, Style{});
    EXPECT_THAT(text, Not(HasSubstr("\x1b")));
    EXPECT_THAT(text, Not(HasSubstr("\r")));
    EXPECT_THAT(text, HasSubstr("gone"));
}

TEST(Screens, AnAnswerWithoutItsMembersIsStillAScreen) {
    for (const char* text :
         {"{}", R"({"production":7,"campaigns":[{}],"needs":[{}],"phases":[{}],"steps":[null],"wait":{},"decisions":[{}]})",
          R"({"wait":{"expected_s":["x",1],"elapsed_s":1,"percent":-5},"production":[{}],"over":true})"}) {
        const json::value odd = screen(text);
        EXPECT_FALSE(render_status(odd, Style{}).empty());
        EXPECT_FALSE(render_campaign(odd, Style{}).empty());
        EXPECT_FALSE(render_decision(odd, Style{}).empty());
        EXPECT_FALSE(render_explain(odd, Style{}, true).empty());
        EXPECT_FALSE(render_artifacts(odd, Style{}).empty());
        EXPECT_FALSE(render_live(odd, Style{}).empty());
        EXPECT_FALSE(render_event(odd, Style{}).empty());
    }
}

TEST(CampaignScreen, ALoadBeyondItsUsualEndIsLate) {
    json::value campaign = screen(test::campaign_loading);
    campaign.as_object()["now"] = "2026-12-01T23:09:24.000Z";   // 20 min later: 2,514 s after it began
    EXPECT_THAT(render_campaign(campaign, Style{}), HasSubstr("  expect   late by 4 min (p90 of loads here is 37.9 min)\n"));
}

TEST(CampaignScreen, WithoutHistoryThereIsNoGuess) {
    json::value campaign = screen(test::campaign_loading);
    campaign.as_object()["wait"].as_object()["expected_s"] = nullptr;
    const std::string text = render_campaign(campaign, Style{});
    EXPECT_THAT(text, HasSubstr("  expect   unknown: no load of this model is on record here\n"));
    EXPECT_THAT(text, Not(HasSubstr("of about")));
}

TEST(CampaignScreen, ProductionThatIsNotBackIsLoud) {
    json::value campaign = screen(test::campaign_failed);
    campaign.as_object()["production"].as_array()[0].as_object()["state"] = "changed";
    const std::string text = render_campaign(campaign, Style{});
    EXPECT_THAT(text, HasSubstr("production  CHANGED since 23:25"));
    EXPECT_THAT(text, HasSubstr("PRODUCTION  is not as it was found\n  campaignctl restore k25"));
}

std::string line_of(const std::string& kind, const std::string& data) {
    const std::string event =
        R"({"seq":1,"at":"2026-12-01T22:49:02.000Z","campaign":"k25","kind":")" + kind + R"(","data":)" + data + "}";
    return render_event(parse_json(event, "event").value(), Style{});
}

TEST(EventLine, SaysOneThingInWords) {
    EXPECT_EQ(
        line_of("step",
                R"({"label":"s42","title":"restart vllm-k25.service","state":"done","detail":"InvocationID 5d1e -> a07b"})"),
        "22:49:02 = s42 restart vllm-k25.service: InvocationID 5d1e -> a07b");
    EXPECT_EQ(
        line_of(
            "wait",
            R"({"for":"model ready","phase":"weights","shards":[34,56],"percent":61,"elapsed_s":1320,"expected_s":[2148,2274]})"),
        "22:49:02 > loading phase=weights shard=34/56 pct=61 elapsed=1320s eta=23:02");
    EXPECT_EQ(line_of("wait", R"({"for":"model ready","elapsed_s":2300,"expected_s":[2148,2274]})"),
              "22:49:02 > loading elapsed=2300s late=26s");
    EXPECT_EQ(line_of("campaign", R"({"state":"in_doubt","detail":"was it carried out?"})"),
              "22:49:02 ! campaign in doubt: was it carried out?");
    EXPECT_EQ(line_of("production", R"({"host":"gpu03","unit":"vllm-k25.service","state":"down","detail":"restarted"})"),
              "22:49:02 ~ production gpu03 vllm-k25 DOWN: restarted");
    EXPECT_EQ(
        line_of("level",
                R"({"concurrency":64,"output_throughput":1200.4,"ttft_p50_ms":41.25,"tpot_p50_ms":12.4,"state":"done"})"),
        "22:49:02 = level c=64 1200 tok/s, TTFT p50 41.25 ms, TPOT p50 12.40 ms");
    EXPECT_EQ(line_of("artifact", R"({"subject":"rank0.json.gz","kind":"trace","size":212000000,"sha256":"90d1e5aabbcc"})"),
              "22:49:02 = kept trace rank0.json.gz 212 MB sha256 90d1e5aa");
    EXPECT_EQ(
        line_of("need", R"({"subject":"D2","what":"approve it","command":"campaignctl approve k25 D2 x","state":"open"})"),
        "22:49:02 ! NEEDS YOU: approve it   campaignctl approve k25 D2 x");
    EXPECT_EQ(line_of("undo", R"({"subject":"service-as-found","state":"pending"})"),
              "22:49:02 ~ undo service-as-found on record");
    EXPECT_EQ(line_of("approval", R"({"subject":"D2","candidate":"nsys","by":"ana","state":"given"})"),
              "22:49:02 = D2 nsys approved by ana");
    EXPECT_EQ(line_of("a-later-kind", R"({"x":1})"), "22:49:02   a-later-kind");
    EXPECT_EQ(render_event(parse_json(R"({"resync":17})", "event").value(), Style{}),
              "-- this reader fell behind; events up to 17 were left out");
}

TEST(ErrorScreen, SaysWhatWhySeenAndNext) {
    const Error error{ErrorKind::refused, "gpu07 refused the restart", "5 starts are all that it allows",
                      "exit 1, start-limit-hit", "wait until 22:31"};
    EXPECT_EQ(render_error(error, Style{}),
              "error: gpu07 refused the restart: 5 starts are all that it allows\n"
              "  seen    exit 1, start-limit-hit\n"
              "  next    wait until 22:31\n");
}

TEST(ArtifactsScreen, IsATable) {
    const json::value list =
        parse_json(
            R"({"artifacts":[{"id":"a31","step":"s31","kind":"load-result","size":1200000,"sha256":"77ab0c1299","name":"bench.json"}]})",
            "list")
            .value();
    EXPECT_EQ(render_artifacts(list, Style{}),
              "ID   STEP  KIND         SIZE      SHA256    NAME\n"
              "a31  s31   load-result  1.2 MB    77ab0c12  bench.json\n");
    EXPECT_EQ(render_artifacts(json::object{}, Style{}), "no artifacts yet\n");
}

}   // namespace
}   // namespace campaign::ctl
