// What the operator sees, word for word.
#include <gtest/gtest.h>

#include "plans/parse.hpp"

namespace campaign::plans {
namespace {

const std::string sound = R"(campaign: k25
hosts:
  gpu03: {ssh: gpu03}
services:
  vllm-k25: {host: gpu03, unit: vllm-k25.service, url: "http://127.0.0.1:8000"}
phases:
  - {name: deep, measure: decode-step}
)";

std::string refused(const std::string& yaml) {
    const auto result = parse(yaml);
    if (std::holds_alternative<Plan>(result)) return "accepted";
    return render(std::get<Diagnostics>(result), "k25.yaml", yaml);
}

TEST(Render, ShowsAllErrorsInTheOrderOfTheFileWithLineCaretHintAndNote) {
    EXPECT_EQ(refused(sound + R"(restore: {probe: off}
policy:
  max_downtme: 80m
limits:
  load: 90m
description: "decode step
# and
# three
# more
)"),
              R"(error[P012]: unknown key `max_downtme` in `policy`
  --> k25.yaml:10:3
 9 | policy:
10 |   max_downtme: 80m
   |   ^^^^^^^^^^^ did you mean `max_downtime`?
   = without it the limit is 0: no restart would be allowed
error[P002]: quote is never closed
  --> k25.yaml:13:14
13 | description: "decode step
   |              ^ opened here; swallows the 3 lines up to the end of file
2 errors; plan refused       campaignctl explain P012
)");
}

TEST(Render, CountsColumnsInCharactersAndPlacesTheCaretByDisplayWidth) {
    EXPECT_EQ(refused(sound + "policy: {\"日本\": 1, restrt: never}\n"),
              R"(error[P012]: unknown key `日本` in `policy`
  --> k25.yaml:8:10
8 | policy: {"日本": 1, restrt: never}
  |          ^^^^^^
  = keys of the policy: restart, window, max_downtime, approval_expires
error[P012]: unknown key `restrt` in `policy`
  --> k25.yaml:8:19
8 | policy: {"日本": 1, restrt: never}
  |                     ^^^^^^ did you mean `restart`?
  = without it no restart would be allowed
2 errors; plan refused       campaignctl explain P012
)");
}

TEST(Render, AContradictionIsShownAtTheValueThatCausesIt) {
    EXPECT_EQ(refused(sound + "policy:\n  restart: ask\n"),
              R"(error[P018]: `restart` is `ask`, but `max_downtime` allows no downtime
  --> k25.yaml:9:12
8 | policy:
9 |   restart: ask
  |            ^^^ add `max_downtime`, as in 90m
  = without it the limit is 0: no restart would be allowed
1 error; plan refused       campaignctl explain P018
)");
}

TEST(Render, ASecretIsStarredOut) {
    EXPECT_EQ(refused(sound + "description: use hf_abcdefghij0123456789\n"),
              R"(error[P021]: a Hugging Face token is written in the plan
  --> k25.yaml:8:18
8 | description: use ***********************
  |                  ^^^^^^^^^^^^^^^^^^^^^^^ plans hold no secrets
  = whoever reads the plan has it now: replace the secret, and refer to a file or credential
1 error; plan refused       campaignctl explain P021
)");
}

TEST(Render, WhatConcernsTheWholeFileHasNoLine) {
    EXPECT_EQ(refused(std::string(10'000'000, 'x')),
              R"(error[P006]: the file has 10.0 MB; a plan has at most 1 MiB
  --> k25.yaml
  = is this the right file?
1 error; plan refused       campaignctl explain P006
)");
}

TEST(Render, EscapeSequencesOfThePlanDoNotReachTheTerminal) {
    const std::string text = refused(sound + "policy: {\"\\e[31mred\": 1}\n");
    EXPECT_NE(text.find("error[P012]: unknown key `red`"), std::string::npos) << text;
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(Render, ALongLineIsShownAroundThePlace) {
    const std::string text =
        refused(sound + "limits: {load: 90m, " + std::string(300, ' ') + "stal: 1m" + std::string(300, ' ') + "}\n");
    EXPECT_NE(text.find("  | " + std::string(83, ' ') + "^^^^ did you mean `stall`?"), std::string::npos) << text;
    std::size_t longest = 0;
    for (std::size_t begin = 0; begin < text.size(); begin = text.find('\n', begin) + 1)
        longest = std::max(longest, text.find('\n', begin) - begin);
    EXPECT_LT(longest, 200U);
}

TEST(ExplainCode, SaysWhatIsWrongAndHowItIsRight) {
    EXPECT_EQ(explain_code("P015"), R"(P015: not a duration

Durations carry their unit: ms, s, m, h or d. They may be put together: 1h30m.

  wrong
    max_downtime: 90
  right
    max_downtime: 90m
)");
}

}   // namespace
}   // namespace campaign::plans
