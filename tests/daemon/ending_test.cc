#include "greynic/daemon/ending.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <mutex>
#include <string>
#include <thread>

namespace greynic::daemon {
namespace {

/// Runs `start(ending, up)` in a child, sends it a signal when it has written to `up`, and gives its
/// wait status. A child that does not end is ended by ctest's limit.
template <typename Start>
int end_of_start(int signal, std::chrono::milliseconds patience, const Start& start) {
  int up[2];
  EXPECT_EQ(pipe(up), 0);
  const pid_t child = fork();
  if (child == 0) {
    const Ending ending("daemon", patience);
    start(ending, up[1]);
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

/// The same for a daemon that is up.
template <typename Daemon>
int end_of(int signal, const Daemon& daemon) {
  return end_of_start(signal, std::chrono::milliseconds(200), [&](const Ending& ending, int up) {
    (void)!write(up, "u", 1);
    daemon(ending);
  });
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

// Claim:  one that serves nobody yet ends at once, whatever its patience, also when it was asked before
//         it began to start.
// Method: a patience of an hour, and a start that never ends.
TEST(Ending, ComesAtOnceWhileADaemonStarts) {
  const auto hangs = [](const Ending& ending, int up) {
    ending.at_once_during([&] {
      (void)!write(up, "u", 1);
      while (true) pause();
      return 0;
    });
  };
  const auto asked_before = [](const Ending& ending, int up) {
    (void)!write(up, "u", 1);
    while (!ending.asked()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ending.at_once_during([] {
      while (true) pause();
      return 0;
    });
  };
  for (const int status : {end_of_start(SIGTERM, std::chrono::hours(1), hangs),
                           end_of_start(SIGTERM, std::chrono::hours(1), asked_before)}) {
    EXPECT_TRUE(WIFEXITED(status)) << status;
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
}

// Claim:  once it has started, it ends in order again.
TEST(Ending, IsInOrderBehindTheStart) {
  const auto started = [](const Ending& ending, int up) {
    (void)ending.at_once_during([] { return 0; });
    (void)!write(up, "u", 1);
    while (!ending.asked()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  };
  const int status = end_of_start(SIGTERM, std::chrono::hours(1), started);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

// Claim:  a log that nobody reads keeps no hanging daemon.
// Method: its standard error is a pipe that is full.
TEST(Ending, WaitsForNoReaderOfItsLog) {
  int log[2];
  ASSERT_EQ(pipe2(log, O_NONBLOCK), 0);
  const std::string page(4096, 'x');
  while (write(log[1], page.data(), page.size()) > 0) {
  }
  ASSERT_EQ(fcntl(log[1], F_SETFL, 0), 0);
  const int status = end_of(SIGTERM, [&](const Ending&) {
    dup2(log[1], STDERR_FILENO);
    while (true) pause();
  });
  EXPECT_TRUE(WIFEXITED(status)) << status;
  close(log[0]);
  close(log[1]);
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
