#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "greynic/os/own_folder.h"
#include "greynic/os/piped_command.h"
#include "greynic/os/program.h"

namespace greynic::os {
namespace {

// Claim:  a program gets its words, its input and its settings, and its output comes back whole.
TEST(Program, IsRunToItsEnd) {
  const std::string long_text(300'000, 'x');
  const auto said = run({.words = {"sh", "-c", "printf %s \"$COLOUR\"; cat"},
                         .environment = {{"COLOUR", "green"}},
                         .input = long_text});
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_EQ(*said, "green" + long_text);
}

// Claim:  each way in which a program fails has its own error, with the cause in its words.
TEST(Program, SaysWhyItFailed) {
  const auto missing = run({.words = {"no-such-program-here"}});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kMissing);
  const auto refused = run({.words = {"sh", "-c", "echo the cause >&2; exit 3"}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
  EXPECT_NE(refused.error().message.find("the cause"), std::string::npos);
  const auto late = run({.words = {"sleep", "60"}, .timeout = std::chrono::milliseconds(50)});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kIo);
}

// Claim:  a command that neither reads nor ends by itself is ended with all that it started, and
//         says which signal it was.
TEST(PipedCommand, EndsItsWholeGroup) {
  auto command = PipedCommand::start("sleep 600 & sleep 600");
  ASSERT_TRUE(command) << command.error().message;
  int status = 0;
  const std::string how = command->stop(status);
  EXPECT_EQ(status, 128 + 15) << how;
  EXPECT_NE(how.find("signal 15"), std::string::npos) << how;
}

// Claim:  a folder is there while it is owned, and gone afterwards with what is in it.
TEST(OwnFolder, GoesWithItsOwner) {
  std::string path;
  {
    const auto folder = OwnFolder::create("greynic-os-test-");
    ASSERT_TRUE(folder) << folder.error().message;
    path = folder->path();
    std::ofstream(path + "/file") << "text";
    // Another owner of the same prefix leaves it alone.
    ASSERT_TRUE(OwnFolder::create("greynic-os-test-"));
    EXPECT_TRUE(std::filesystem::exists(path + "/file"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

// Claim:  a folder whose owner was killed is gone when the next one is made; a living one stays.
// Method: a child makes one and is killed.
TEST(OwnFolder, OfADeadProcessIsRemoved) {
  const std::string prefix = "greynic-test-" + std::to_string(getpid()) + "-";
  const auto mine = OwnFolder::create(prefix);
  ASSERT_TRUE(mine.has_value());
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto theirs = OwnFolder::create(prefix);
    const std::string path = theirs ? theirs->path() : "";
    (void)!write(pipes[1], path.data(), path.size());
    kill(getpid(), SIGKILL);
  }
  waitpid(child, nullptr, 0);
  char path[100] = {};
  ASSERT_GT(read(pipes[0], path, sizeof path - 1), 0);
  EXPECT_TRUE(std::filesystem::exists(path)) << "a killed process removes nothing";
  const auto next = OwnFolder::create(prefix);
  ASSERT_TRUE(next.has_value());
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(std::filesystem::exists(mine->path()));
}

}  // namespace
}  // namespace greynic::os
