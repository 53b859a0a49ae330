#include "storage/vault.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

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

    /// How many files lie in the vault, wherever in it.
    [[nodiscard]] long files() const {
        const std::filesystem::recursive_directory_iterator all{scratch / "vault"};
        return std::count_if(begin(all), end(all), [](const auto& entry) { return entry.is_regular_file(); });
    }
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
    EXPECT_EQ(slurp(box.scratch / "in"), "trace") << "what was gathered stays where it was";
    const Stored stored = box.vault.take(box.scratch / "in", sha256("trace")).value();
    EXPECT_EQ(stored.sha256, sha256("trace"));
    EXPECT_EQ(stored.size, 5U);
    EXPECT_FALSE(std::filesystem::exists(box.scratch / "in"));
    spill(box.scratch / "again", "trace");
    EXPECT_EQ(box.vault.take(box.scratch / "again", "").value().sha256, stored.sha256);
    EXPECT_EQ(box.files(), 1);
}

TEST(Vault, CopiesAFileFromAnotherFileSystem) {
    Box box;
    const std::filesystem::path other = "/dev/shm/campaign-vault-" + std::to_string(::getpid());
    spill(other, "far");
    const auto stored = box.vault.take(other, sha256("far"));
    ASSERT_TRUE(stored) << describe(stored.error());
    EXPECT_FALSE(std::filesystem::exists(other));
    EXPECT_EQ(slurp(box.vault.find(stored->sha256).value()), "far");
}

TEST(Vault, AWriteThatTheDiskRefusesLeavesNothing) {
    Box box;
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{100, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    const auto stored = box.vault.put(std::string(1000, 'x'));
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    std::signal(SIGXFSZ, ignored);
    ASSERT_FALSE(stored);
    EXPECT_EQ(stored.error().kind, ErrorKind::io);
    EXPECT_EQ(stored.error().why, "File too large");
    EXPECT_EQ(box.files(), 0);
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
    EXPECT_EQ(box.vault.find(sha256("hello")).error().kind, ErrorKind::refused);
    std::filesystem::create_directory(box.scratch / "outside");
    std::filesystem::create_symlink(box.scratch / "outside", box.scratch.path() / "vault" / "incoming" / "trace-1");
    EXPECT_EQ(box.vault.incoming("trace-1").error().kind, ErrorKind::refused);
    spill(box.scratch / "real", "x");
    std::filesystem::create_symlink(box.scratch / "real", box.scratch / "link");
    EXPECT_EQ(box.vault.take(box.scratch / "link", "").error().kind, ErrorKind::refused);
}

TEST(Vault, AnArtifactIsNotWritableInItsPlace) {
    Box box;
    struct stat info {};
    ASSERT_EQ(::stat(box.vault.find(box.vault.put("hello").value().sha256).value().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777U, 0440U);
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
