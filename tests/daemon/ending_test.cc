#include "greynic/daemon/ending.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <mutex>
#include <thread>

namespace greynic::daemon {
namespace {

/// Runs `daemon` in a child, sends it a signal when it says that it is up, and gives its wait
/// status. A child that does not end is ended by ctest's limit.
template <typename Daemon>
int end_of(int signal, const Daemon& daemon) {
  int up[2];
  EXPECT_EQ(pipe(up), 0);
  const pid_t child = fork();
  if (child == 0) {
    const Ending ending("daemon", std::chrono::milliseconds(200));
    (void)!write(up[1], "u", 1);
    daemon(ending);
    _exit(7);
  }
  char word = 0;
  EXPECT_EQ(read(up[0], &word, 1), 1);
  kill(child, signal);
  int status = 0;
  waitpid(child, &status, 0);
  close(up[0]);
  close(up[1]);
  return status;
}

// Claim:  a daemon in order sees that it was asked, and ends as it likes.
TEST(Ending, IsAskedFor) {
  for (const int signal : {SIGTERM, SIGINT}) {
    const int status = end_of(signal, [](const Ending& ending) {
      while (!ending.asked()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    });
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 7);
  }
}

// Claim:  a daemon that hangs ends all the same: in a lock, in a loop, in a call that never returns.
TEST(Ending, ComesWhateverHangs) {
  const auto locked = [](const Ending&) {
    std::mutex mutex;
    mutex.lock();
    std::thread([&] { mutex.lock(); }).join();
  };
  const auto busy = [](const Ending&) {
    for (std::atomic<std::uint64_t> i = 0;; ++i) {
    }
  };
  const auto sleeps = [](const Ending&) {
    while (true) pause();
  };
  for (const int status :
       {end_of(SIGTERM, locked), end_of(SIGTERM, busy), end_of(SIGTERM, sleeps)}) {
    EXPECT_TRUE(WIFEXITED(status)) << status;
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
}

// Claim:  a peer that hangs up is no signal to end.
TEST(Ending, DoesNotComeOfABrokenPipe) {
  const int status = end_of(SIGTERM, [](const Ending& ending) {
    int ends[2];
    if (pipe(ends) != 0) return;
    close(ends[0]);
    (void)!write(ends[1], "x", 1);
    while (!ending.asked()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  });
  EXPECT_TRUE(WIFEXITED(status)) << status;
}

}  // namespace
}  // namespace greynic::daemon
