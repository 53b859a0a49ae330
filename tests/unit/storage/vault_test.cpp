#include "storage/vault.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/sha256.hpp"
#include "scratch.hpp"

using namespace campaign;
using namespace campaign::storage;
using campaign::storage::test::Scratch;
using campaign::storage::test::slurp;
using campaign::storage::test::spill;

namespace {

struct Box {
    Scratch scratch;
    Vault vault = Vault::open(scratch / "vault").value();
};

}   // namespace

TEST(Vault, KeepsBytesUnderTheirHash) {
    Box box;
    const Stored stored = box.vault.put("hello").value();
    EXPECT_EQ(stored.sha256, sha256("hello"));
    EXPECT_EQ(stored.size, 5U);
    EXPECT_EQ(slurp(box.vault.find(stored.sha256).value()), "hello");
    EXPECT_EQ(box.vault.put("hello").value().sha256, stored.sha256);
}

TEST(Vault, TakesAFileInOnlyWithTheHashItShouldHave) {
    Box box;
    spill(box.scratch / "in", "trace");
    const auto wrong = box.vault.take(box.scratch / "in", std::string(64, '0'));
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().kind, ErrorKind::conflict);
    spill(box.scratch / "in", "trace");
    EXPECT_EQ(box.vault.take(box.scratch / "in", sha256("trace")).value().sha256, sha256("trace"));
    EXPECT_FALSE(std::filesystem::exists(box.scratch / "in"));
}

TEST(Vault, NoticesAndMendsAnArtifactWhoseBytesChanged) {
    Box box;
    const Stored stored = box.vault.put("hello").value();
    const auto place = box.vault.find(stored.sha256).value();
    std::filesystem::permissions(place, std::filesystem::perms::owner_all);
    spill(place, "hellO");
    const auto checked = box.vault.verify(stored.sha256);
    ASSERT_FALSE(checked);
    EXPECT_NE(checked.error().what.find("is damaged"), std::string::npos);
    ASSERT_TRUE(box.vault.put("hello"));
    EXPECT_TRUE(box.vault.verify(stored.sha256));
}

TEST(Vault, FindsNothingThatIsNoHash) {
    Box box;
    for (const char* name : {"", "../../etc/passwd", "ABC", "zz"})
        EXPECT_EQ(box.vault.find(name).error().kind, ErrorKind::invalid) << name;
    EXPECT_EQ(box.vault.find(std::string(64, '0')).error().kind, ErrorKind::not_found);
}

TEST(Vault, FollowsNoSymbolicLink) {
    Box box;
    std::filesystem::create_symlink("/etc", box.scratch.path() / "vault" / sha256("hello").substr(0, 2));
    EXPECT_EQ(box.vault.put("hello").error().kind, ErrorKind::refused);
    spill(box.scratch / "real", "x");
    std::filesystem::create_symlink(box.scratch / "real", box.scratch / "link");
    EXPECT_EQ(box.vault.take(box.scratch / "link", "").error().kind, ErrorKind::refused);
}

TEST(Vault, RemovesWhatAWriteThatNeverEndedLeft) {
    Box box;
    spill(box.scratch.path() / "vault" / "tmp-1-1", "half");
    ASSERT_TRUE(Vault::open(box.scratch / "vault"));
    EXPECT_FALSE(std::filesystem::exists(box.scratch.path() / "vault" / "tmp-1-1"));
}

TEST(Vault, AnIncomingFolderIsTheSameAtTheNextCall) {
    Box box;
    const auto folder = box.vault.incoming("trace-1").value();
    spill(folder / "part", "half");
    EXPECT_EQ(box.vault.incoming("trace-1").value(), folder);
    EXPECT_EQ(slurp(folder / "part"), "half");
}

TEST(SafeName, LeavesNothingThatCouldLeaveTheVault) {
    for (const auto& [name, safe] :
         std::vector<std::pair<std::string, std::string>>{{"trace.json.gz", "trace.json.gz"},
                                                          {"../../etc/passwd", "_.._.._etc_passwd"},
                                                          {"", "_"},
                                                          {".hidden", "_.hidden"},
                                                          {"a\x1b[31mb\n", "a__31mb_"},
                                                          {"a b", "a_b"}}) {
        EXPECT_EQ(Vault::safe_name(name), safe);
    }
    EXPECT_EQ(Vault::safe_name(std::string(500, 'x')).size(), 200U);
}
