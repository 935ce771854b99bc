#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

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

/// Waits until there is no such process; what is dead but not yet taken note of counts as gone.
bool is_gone(pid_t pid) {
  for (int tries = 0; tries < 1000; ++tries) {
    std::string state;
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    file >> state >> state >> state;
    if (!file || state == "Z") return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

/// Starts processes that try to stay and print their numbers: one in the background, one in a
/// session of its own, and one whose parents have ended and who does not hear SIGTERM.
constexpr const char* kStayers =
    "sleep 600 >/dev/null & echo $!; "
    "setsid sh -c 'echo $$; exec sleep 600 >/dev/null' & "
    "setsid sh -c 'setsid sh -c \"trap : TERM; echo \\$\\$; "
    "while :; do sleep 1; done >/dev/null\" &' & ";

std::vector<pid_t> numbers(PipedCommand& command, std::size_t count) {
  std::string text;
  while (std::count(text.begin(), text.end(), '\n') < static_cast<std::ptrdiff_t>(count)) {
    pollfd waiting{.fd = command.output(), .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, 20000) <= 0 || !command.read_into(text)) break;
  }
  std::vector<pid_t> found;
  std::istringstream lines(text);
  for (pid_t pid = 0; lines >> pid;) found.push_back(pid);
  return found;
}

// Claim:  what greynic blocks or ignores for its own end, its commands hear: they can be told to end,
//         and who writes for nobody ends.
// Method: each signal to a command by itself, from a process that hears none.
TEST(PipedCommand, HearsTheUsualSignals) {
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const auto heard = std::signal(SIGPIPE, SIG_IGN), grown = std::signal(SIGXFSZ, SIG_IGN);
  for (const auto& [name, number] :
       {std::pair{"TERM", SIGTERM}, {"PIPE", SIGPIPE}, {"XFSZ", SIGXFSZ}}) {
    const std::string text = std::string("kill -") + name + " $$; exit 3";
    auto command = PipedCommand::start(text);
    ASSERT_TRUE(command) << command.error().message;
    numbers(*command, 1);  // until it has closed its output
    int status = 0;
    command->stop(status);
    EXPECT_EQ(status, 128 + number);
    const auto said = run({.words = {"sh", "-c", "sh -c '" + text + "' || echo $?"}});
    ASSERT_TRUE(said) << said.error().message;
    EXPECT_EQ(*said, std::to_string(128 + number) + "\n");
  }
  std::signal(SIGPIPE, heard);
  std::signal(SIGXFSZ, grown);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// Claim:  nothing that a command started outlives it, wherever it went, though the command itself
//         ended in order; and that a command ended in order is still told.
TEST(PipedCommand, LeavesNothingBehind) {
  auto command = PipedCommand::start(std::string(kStayers) + "read line; exit 7");
  ASSERT_TRUE(command) << command.error().message;
  const std::vector<pid_t> stayers = numbers(*command, 3);
  ASSERT_EQ(stayers.size(), 3U);
  for (const pid_t pid : stayers) EXPECT_EQ(kill(pid, 0), 0);
  int status = 0;
  EXPECT_EQ(command->stop(status), "exited with status 7");
  for (const pid_t pid : stayers) EXPECT_TRUE(is_gone(pid)) << pid;
}

// Claim:  the same when greynic is killed by SIGKILL, which lets it do nothing at all.
// Method: a child owns the command and is killed.
TEST(PipedCommand, GoesWithAKilledOwner) {
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  const pid_t owner = fork();
  if (owner == 0) {
    auto command = PipedCommand::start(std::string(kStayers) + "cat");
    for (const pid_t pid : numbers(*command, 3)) (void)!write(pipes[1], &pid, sizeof pid);
    kill(getpid(), SIGKILL);
  }
  waitpid(owner, nullptr, 0);
  close(pipes[1]);
  std::vector<pid_t> stayers;
  for (pid_t pid = 0; read(pipes[0], &pid, sizeof pid) == sizeof pid;) stayers.push_back(pid);
  close(pipes[0]);
  ASSERT_EQ(stayers.size(), 3U);
  for (const pid_t pid : stayers) EXPECT_TRUE(is_gone(pid)) << pid;
}

// Claim:  a program that is not waited for any longer is ended with what it started.
TEST(Program, IsEndedWithItsChildren) {
  const std::string file = testing::TempDir() + "/greynic-child-" + std::to_string(getpid());
  const auto late = run({.words = {"sh", "-c", "sleep 600 & echo $! > " + file + "; wait"},
                         .timeout = std::chrono::seconds(2)});
  ASSERT_FALSE(late);
  pid_t child = 0;
  std::ifstream(file) >> child;
  std::filesystem::remove(file);
  ASSERT_GT(child, 0);
  EXPECT_TRUE(is_gone(child));
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
