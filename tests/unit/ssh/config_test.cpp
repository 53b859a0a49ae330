#include "adapters/ssh/config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "adapters/ssh/link.hpp"

namespace campaign::ssh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const ConfigEnvironment environment{"/home/op", "/run/agent"};

SshTarget target() {
    SshTarget result;
    result.name = "gpu1";
    result.alias = "gpu1";
    return result;
}

const std::string answer = R"(host gpu1
user op
hostname 10.0.0.7
port 2222
identitiesonly no
identityfile ~/.ssh/id_ed25519
identityfile /keys/%r@%h
proxyusefdpass no
connecttimeout none
globalknownhostsfile /etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2
userknownhostsfile /home/op/.ssh/known_hosts /home/op/.ssh/known_hosts2
)";

TEST(SshConfig, TakesWhatSshSaysAboutTheHost) {
    const auto config = parse_config(answer, target(), environment);
    ASSERT_TRUE(config);
    EXPECT_EQ(config->hostname, "10.0.0.7");
    EXPECT_EQ(config->port, 2222);
    EXPECT_EQ(config->user, "op");
    EXPECT_THAT(config->identity_files, ElementsAre("/home/op/.ssh/id_ed25519", "/keys/op@10.0.0.7"));
    EXPECT_THAT(config->known_hosts, ElementsAre("/home/op/.ssh/known_hosts", "/home/op/.ssh/known_hosts2",
                                                 "/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"));
    EXPECT_EQ(config->agent, "/run/agent");
    EXPECT_EQ(config->connect_timeout_s, 10);
    EXPECT_THAT(config->jumps, IsEmpty());
}

TEST(SshConfig, AKeyAndAKnownHostsFileOfThePlanAreTheOnlyOnes) {
    SshTarget wanted = target();
    wanted.key_file = "/keys/campaign";
    wanted.known_hosts = "/etc/campaignd/known_hosts";
    const auto config = parse_config(answer, wanted, environment);
    ASSERT_TRUE(config);
    EXPECT_THAT(config->identity_files, ElementsAre("/keys/campaign"));
    EXPECT_THAT(config->known_hosts, ElementsAre("/etc/campaignd/known_hosts"));
    EXPECT_FALSE(config->agent);
}

TEST(SshConfig, AgentSettingsAreHeeded) {
    EXPECT_FALSE(parse_config(answer + "identityagent none\n", target(), environment)->agent);
    EXPECT_FALSE(parse_config(answer + "identitiesonly yes\n", target(), environment)->agent);
    EXPECT_EQ(parse_config(answer + "identityagent ~/a.sock\n", target(), environment)->agent, "/home/op/a.sock");
    EXPECT_EQ(parse_config(answer + "identityagent SSH_AUTH_SOCK\n", target(), environment)->agent, "/run/agent");
    EXPECT_FALSE(parse_config(answer, target(), ConfigEnvironment{"/home/op", ""})->agent);
}

TEST(SshConfig, WhatWeCannotHonourIsRefusedWithItsLine) {
    for (const std::string line :
         {"proxycommand nc %h %p", "certificatefile ~/.ssh/id-cert.pub", "pkcs11provider /lib/p11.so"}) {
        const auto config = parse_config(answer + line + "\n", target(), environment);
        ASSERT_FALSE(config) << line;
        EXPECT_EQ(config.error().kind, ErrorKind::unavailable);
        EXPECT_EQ(config.error().evidence, line);
        EXPECT_FALSE(config.error().next.empty());
    }
    EXPECT_TRUE(parse_config(answer + "proxycommand none\nproxyjump none\n", target(), environment));
}

TEST(SshConfig, JumpsAliasesTimeAndFamilyAreTaken) {
    const auto config = parse_config(
        answer + "proxyjump a@b:3,c\nhostkeyalias farm\nconnecttimeout 4\naddressfamily inet6\n", target(), environment);
    ASSERT_TRUE(config);
    EXPECT_THAT(config->jumps, ElementsAre("a@b:3", "c"));
    EXPECT_EQ(config->host_key_name, "farm");
    EXPECT_EQ(config->connect_timeout_s, 4);
    EXPECT_EQ(config->family, 6);
}

TEST(SshConfig, AnAnswerWithoutAHostIsNoAnswer) {
    for (const std::string& text :
         {std::string{}, std::string{"garbage"}, std::string(100'000, 'x'), std::string{"hostname x\nport 0\nuser u"}}) {
        const auto config = parse_config(text, target(), environment);
        ASSERT_FALSE(config);
        EXPECT_EQ(config.error().kind, ErrorKind::protocol);
    }
}

TEST(SshConfig, TheQuestionCarriesWhatThePlanSays) {
    SshTarget wanted = target();
    wanted.user = "op";
    wanted.port = 2222;
    wanted.jump = "bastion";
    wanted.config_file = "/etc/campaignd/ssh_config";
    EXPECT_THAT(config_question(wanted).value(), ElementsAre("ssh", "-G", "-F", "/etc/campaignd/ssh_config", "-l", "op",
                                                             "-p", "2222", "-J", "bastion", "--", "gpu1"));
}

TEST(SshConfig, NoWordOfAPlanBecomesAnOption) {
    SshTarget alias = target();
    alias.alias = "-oProxyCommand=id";
    SshTarget user = target();
    user.user = "-oProxyCommand=id";
    SshTarget jump = target();
    jump.jump = "-x";
    for (const SshTarget& wrong : {alias, user, jump}) {
        const auto question = config_question(wrong);
        ASSERT_FALSE(question);
        EXPECT_EQ(question.error().kind, ErrorKind::usage);
    }
}

TEST(SshConfig, AJumpIsReadAsProxyJumpWritesIt) {
    const auto full = jump_target(target(), "ssh://op@bastion:2222");
    ASSERT_TRUE(full);
    EXPECT_EQ(full->alias, "bastion");
    EXPECT_EQ(full->user, "op");
    EXPECT_EQ(full->port, 2222);
    const auto six = jump_target(target(), "[fe80::1]:22");
    ASSERT_TRUE(six);
    EXPECT_EQ(six->alias, "fe80::1");
    EXPECT_EQ(six->port, 22);
    EXPECT_EQ(jump_target(target(), "fe80::1")->alias, "fe80::1");
    EXPECT_FALSE(jump_target(target(), "bastion")->port);
    for (const char* wrong : {"", "op@", "bastion:x", "bastion:70000", "[fe80::1"}) {
        EXPECT_FALSE(jump_target(target(), wrong)) << wrong;
    }
}

TEST(SshBackoff, GrowsToHalfAMinuteAndNeverVanishes) {
    EXPECT_EQ(backoff(0, 0.5).count(), 0);
    EXPECT_EQ(backoff(1, 0).count(), 500);
    EXPECT_EQ(backoff(1, 1).count(), 1000);
    EXPECT_EQ(backoff(3, 0).count(), 2000);
    EXPECT_EQ(backoff(1000, 1).count(), 30'000);
}

}   // namespace
}   // namespace campaign::ssh
