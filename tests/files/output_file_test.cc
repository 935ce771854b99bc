#include "greynic/files/output_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <thread>

#include "greynic/files/json_file.h"

namespace greynic::files {
namespace {

namespace fs = std::filesystem;

class OutputFileIn : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/greynic_output_XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
  }
  void TearDown() override { fs::remove_all(folder_); }
  [[nodiscard]] fs::path operator/(const std::string& name) const { return folder_ / name; }
  [[nodiscard]] std::ptrdiff_t files() const {
    return std::distance(fs::directory_iterator(folder_), {});
  }

  fs::path folder_;
};

TEST_F(OutputFileIn, AFolderLeavesTheOldFileOrTheNewOne) {
  const fs::path path = *this / "a.json";
  ASSERT_TRUE(write_text(path, "one"));
  ASSERT_TRUE(write_text(path, "two"));
  EXPECT_EQ(read_text(path).value(), "two");
  {
    auto unfinished = OutputFile::open(path);
    ASSERT_TRUE(unfinished && unfinished->write("three"));
    EXPECT_EQ(read_text(path).value(), "two");
  }
  EXPECT_EQ(read_text(path).value(), "two");
  EXPECT_EQ(files(), 1);
  const auto refused = write_text(*this / "none/a.json", "x");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kBadInput);
  EXPECT_NE(refused.error().message.find("none/a.json"), std::string::npos);
  EXPECT_EQ(write_text(folder_, "x").error().code, ErrorCode::kBadInput);
}

TEST_F(OutputFileIn, AFolderKeepsWhoMayReadAFile) {
  const fs::path path = *this / "secret";
  ASSERT_TRUE(write_text(path, "one"));
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  ASSERT_TRUE(write_text(path, "two"));
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

// Claim: a link stays and what it names is written, also where that does not exist yet.
TEST_F(OutputFileIn, AFolderFollowsLinks) {
  ASSERT_TRUE(write_text(*this / "real", "old"));
  fs::create_directory(*this / "other");
  fs::create_symlink("real", *this / "link");
  fs::create_symlink("other/later", *this / "dangling");
  ASSERT_TRUE(write_text(*this / "link", "new"));
  ASSERT_TRUE(write_text(*this / "dangling", "made"));
  EXPECT_TRUE(fs::is_symlink(*this / "link") && fs::is_symlink(*this / "dangling"));
  EXPECT_EQ(read_text(*this / "real").value(), "new");
  EXPECT_EQ(read_text(*this / "other/later").value(), "made");
  fs::create_symlink("round", *this / "round");
  const auto refused = write_text(*this / "round", "x");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kBadInput) << refused.error().message;
}

// Claim: what is no regular file stays what it is, and what was to be written goes through it.
TEST_F(OutputFileIn, AFolderWritesThroughPipesAndDevices) {
  const fs::path pipe = *this / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::string arrived;
  std::thread reader([&] {
    std::ifstream in(pipe);
    arrived.assign(std::istreambuf_iterator<char>(in), {});
  });
  const auto written = write_text(pipe, "through");
  reader.join();
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(arrived, "through");
  EXPECT_TRUE(fs::is_fifo(pipe));
  const fs::path null = *this / "null";
  if (mknod(null.c_str(), S_IFCHR | 0666, 0x103) != 0)
    GTEST_SKIP() << "only root may make a device node; run the tests as root";
  if (std::ofstream probe(null); !probe)
    GTEST_SKIP() << "device nodes do not open under " << null
                 << "; set TMPDIR to a folder where they do";
  ASSERT_TRUE(write_text(null, "away"));
  EXPECT_TRUE(fs::is_character_file(null));
}

// Claim: our own descriptors are written to where they stand: nothing is cut off or replaced.
TEST_F(OutputFileIn, AFolderWritesThroughItsOwnDescriptors) {
  const fs::path path = *this / "log";
  const int file = open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_EQ(write(file, "before ", 7), 7);
  for (const char* form : {"/dev/fd/{}", "/proc/self/fd/{}"}) {
    ASSERT_TRUE(write_text(fmt::format(fmt::runtime(form), file), "here "));
  }
  fs::create_symlink(fmt::format("/dev/fd/{}", file), *this / "link");
  ASSERT_TRUE(write_text(*this / "link", "linked"));
  close(file);
  EXPECT_EQ(read_text(path).value(), "before here here linked");
  EXPECT_FALSE(write_text(fmt::format("/dev/fd/{}", file), "closed"));
}

// Claim:  nobody who can write in the folder makes us write elsewhere.
// Method: links under the names that the process number and a pattern would give.
TEST_F(OutputFileIn, AFolderIsNotLedAwayByLinksThatWait) {
  ASSERT_TRUE(write_text(*this / "victim", "untouched"));
  for (const char* form : {"out.{}.tmp", "out.{}", ".out.{}.tmp", "out.tmp.{}"}) {
    fs::create_symlink("victim", folder_ / fmt::format(fmt::runtime(form), getpid()));
  }
  ASSERT_TRUE(write_text(*this / "out", "mine"));
  EXPECT_EQ(read_text(*this / "victim").value(), "untouched");
}

TEST_F(OutputFileIn, AFolderIsNoInput) {
  ASSERT_TRUE(write_text(*this / "in", "x"));
  fs::create_symlink("in", *this / "link");
  fs::create_hard_link(*this / "in", *this / "twin");
  const std::vector<std::string> inputs = {"no such file", *this / "in"};
  for (const char* name : {"in", "link", "twin", "./in"}) {
    EXPECT_FALSE(not_an_input(*this / name, inputs)) << name;
  }
  EXPECT_TRUE(not_an_input(*this / "out", inputs));
  EXPECT_TRUE(not_an_input("/dev/null", std::vector<std::string>{"/dev/null"}));
}

}  // namespace
}  // namespace greynic::files
