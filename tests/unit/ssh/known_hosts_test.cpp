#include "adapters/ssh/known_hosts.hpp"

#include <gtest/gtest.h>

namespace campaign::ssh {
namespace {

const std::string right = "AAAAC3NzaC1lZDI1NTE5AAAAIRIGHT";
const std::string wrong = "AAAAC3NzaC1lZDI1NTE5AAAAIWRONG";
const std::string name = "10.77.1.2";

TrustVerdict ask(const std::string& text, const std::string& who = name) {
    return judge({{"known_hosts", text}}, who, "ssh-ed25519", right);
}

struct Case {
    const char* about;
    std::string text;
    Trust trust;
};

class KnownHosts : public testing::TestWithParam<Case> {};

TEST_P(KnownHosts, AreReadAsSshdDescribesThem) {
    EXPECT_EQ(ask(GetParam().text).trust, GetParam().trust) << GetParam().text;
}

const std::string ed = " ssh-ed25519 ";
INSTANTIATE_TEST_SUITE_P(
    Table, KnownHosts,
    testing::Values(
        Case{"plain", name + ed + right + "\n", Trust::known},
        Case{"plain with a comment and tabs", name + "\tssh-ed25519\t" + right + "\troot@gpu1", Trust::known},
        Case{"several names", "gpu1,10.77.1.2,gpu1.lan" + ed + right, Trust::known},
        Case{"star", "10.77.*" + ed + right, Trust::known}, Case{"question mark", "10.77.?.2" + ed + right, Trust::known},
        Case{"star that does not cover", "10.78.*" + ed + right, Trust::unknown},
        Case{"one of two keys right", name + ed + wrong + "\n" + name + ed + right, Trust::known},
        Case{"other key of the same type", name + ed + wrong, Trust::changed},
        Case{"only another type", name + " ssh-rsa " + wrong, Trust::other_type},
        Case{"another type and a wrong one", name + " ssh-rsa " + wrong + "\n" + name + ed + wrong, Trust::changed},
        Case{"nothing", "", Trust::unknown}, Case{"comment", "# " + name + ed + right, Trust::unknown},
        Case{"another host", "10.77.1.3" + ed + right, Trust::unknown},
        Case{"broken line", name + " ssh-ed25519", Trust::unknown},
        Case{"broken line, then a good one", name + "\n" + name + ed + right, Trust::known},
        Case{"only a certificate authority", "@cert-authority *" + ed + wrong, Trust::certificate},
        Case{"certificate authority and the plain key", "@cert-authority 10.77.*" + ed + wrong + "\n" + name + ed + right,
             Trust::certificate},
        Case{"certificate authority of others", "@cert-authority *.lan" + ed + wrong + "\n" + name + ed + right,
             Trust::known},
        Case{"revoked and plain", name + ed + right + "\n@revoked *" + ed + right, Trust::revoked},
        Case{"another key revoked", "@revoked *" + ed + wrong + "\n" + name + ed + right, Trust::known},
        Case{"only revoked, another key", "@revoked *" + ed + wrong, Trust::unknown},
        Case{"an unknown marker is skipped", "@trusted " + name + ed + right, Trust::unknown},
        Case{"negated", "!10.77.1.2,10.77.*" + ed + right, Trust::unknown},
        Case{"negated after the match", "10.77.*,!10.77.1.2" + ed + right, Trust::unknown},
        Case{"another one negated", "10.77.*,!10.77.1.3" + ed + right, Trust::known},
        // ssh-keygen -H's line for 10.77.1.2, its salt "saltsaltsaltsaltsalt"
        Case{"hashed", "|1|c2FsdHNhbHRzYWx0c2FsdHNhbHQ=|DTGnlLqKQ4wPYOqEeyZjk6eXF64=" + ed + right, Trust::known},
        Case{"hashed, cut", "|1|c2FsdHNhbHRzYWx0" + ed + right, Trust::unknown}),
    [](const testing::TestParamInfo<Case>& one) { return "Case" + std::to_string(one.index); });

TEST(KnownHostsNames, AHashedNameIsFoundAndOthersAreNot) {
    const std::string line = "|1|F1E1KeoE/eEWhi10WpGv4OdiO6Y=|3988QV0VE8wmZL7suNrYQLITLCg= ssh-ed25519 " + right;
    EXPECT_EQ(ask(line, "192.168.1.61").trust, Trust::known);
    EXPECT_EQ(ask(line, "192.168.1.62").trust, Trust::unknown);
}

TEST(KnownHostsNames, APortOtherThan22IsPartOfTheName) {
    EXPECT_EQ(known_name("GPU1.lan", 22), "gpu1.lan");
    EXPECT_EQ(known_name("gpu1", 2222), "[gpu1]:2222");
    EXPECT_EQ(ask("[10.77.1.2]:2222" + ed + right, "[10.77.1.2]:2222").trust, Trust::known);
    EXPECT_EQ(ask(name + ed + right, "[10.77.1.2]:2222").trust, Trust::unknown);
}

TEST(KnownHostsNames, CaseDoesNotMatter) {
    EXPECT_EQ(ask("GPU1" + ed + right, "gpu1").trust, Trust::known);
}

TEST(KnownHostsNames, TheDecidingLineIsNamedAndKnownTypesAreListed) {
    const TrustVerdict verdict =
        judge({{"a", "# none\n"}, {"b", "x" + ed + right + "\n" + name + " ssh-rsa " + wrong + "\n" + name + ed + right}},
              name, "ssh-ed25519", right);
    EXPECT_EQ(verdict.trust, Trust::known);
    EXPECT_EQ(verdict.file, 1u);
    EXPECT_EQ(verdict.line, 3u);
    EXPECT_EQ(verdict.known_types, (std::vector<std::string>{"ssh-rsa", "ssh-ed25519"}));
}

TEST(KnownHostsNames, ARevocationInAnotherFileCounts) {
    const auto verdict = judge({{"a", name + ed + right}, {"b", "@revoked *" + ed + right}}, name, "ssh-ed25519", right);
    EXPECT_EQ(verdict.trust, Trust::revoked);
    EXPECT_EQ(verdict.file, 1u);
}

TEST(KnownHostsNames, APatternOfManyStarsEndsSoon) {
    std::string pattern;
    for (int i = 0; i < 5000; ++i) pattern += "*a";
    EXPECT_EQ(ask(pattern + "b" + ed + right, std::string(10'000, 'a')).trust, Trust::unknown);
}

}   // namespace
}   // namespace campaign::ssh
