#include "traffic/own_file_table.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

namespace greynic::verbs {
namespace {

/// A pipe whose ends are closed by hand.
struct OpenPipe {
  OpenPipe() { EXPECT_EQ(pipe(ends), 0); }
  int ends[2] = {-1, -1};
  [[nodiscard]] int out() const { return ends[0]; }
  [[nodiscard]] int in() const { return ends[1]; }
  void close_both() const {
    close(out());
    close(in());
  }
};

bool writes(int descriptor) { return write(descriptor, "x", 1) == 1; }

// Claim:  a thread with files of its own has those that it named, whatever lies between them and
//         behind them, and the rest of the process has all of its own.
// Oracle: the system's answer to a write: done, or EBADF.
TEST(OwnFiles, KeepWhatIsNamedAndLeaveTheProcessItsOwn) {
  const OpenPipe first;
  const OpenPipe second;
  const OpenPipe third;
  std::thread([&] {
    own_file_table({third.in(), first.in()});
    EXPECT_TRUE(writes(first.in()));
    EXPECT_TRUE(writes(third.in()));
    EXPECT_FALSE(writes(second.in()));
    EXPECT_EQ(errno, EBADF);
    EXPECT_NE(fcntl(STDERR_FILENO, F_GETFD), -1);
  }).join();
  for (const OpenPipe* one : {&first, &second, &third}) {
    EXPECT_TRUE(writes(one->in()));
    one->close_both();
  }
}

// Claim:  what the process closes is closed, though a thread with files of its own still runs.
// Oracle: the end of file at the other end of a pipe. Without a file of its own closed there, the
//         reader would wait for ever.
TEST(OwnFiles, HoldNothingOpenThatTheProcessCloses) {
  const OpenPipe ready;
  const OpenPipe done;
  const OpenPipe held;
  std::thread thread([&] {
    own_file_table({ready.in(), done.out()});
    EXPECT_TRUE(writes(ready.in()));
    char end = 0;
    EXPECT_EQ(read(done.out(), &end, 1), 1);
  });
  char byte = 0;
  EXPECT_EQ(read(ready.out(), &byte, 1), 1);
  close(held.in());
  EXPECT_EQ(read(held.out(), &byte, 1), 0);
  EXPECT_TRUE(writes(done.in()));
  thread.join();
  close(held.out());
  ready.close_both();
  done.close_both();
}

// Claim:  what a thread with files of its own opens is no file of the process, and the other way.
// Oracle: the system's answer about that descriptor.
TEST(OwnFiles, AreNotThoseThatTheProcessOpensLater) {
  constexpr int kTheirs = 900;  // far above what is open anyway
  constexpr int kOurs = 901;
  const OpenPipe ready;
  const OpenPipe opened;
  std::thread thread([&] {
    own_file_table({ready.in(), opened.out()});
    EXPECT_EQ(dup2(STDERR_FILENO, kTheirs), kTheirs);
    EXPECT_TRUE(writes(ready.in()));
    char byte = 0;
    EXPECT_EQ(read(opened.out(), &byte, 1), 1);
    EXPECT_EQ(fcntl(kOurs, F_GETFD), -1);
  });
  char byte = 0;
  EXPECT_EQ(read(ready.out(), &byte, 1), 1);
  EXPECT_EQ(fcntl(kTheirs, F_GETFD), -1);
  EXPECT_EQ(dup2(STDERR_FILENO, kOurs), kOurs);
  EXPECT_TRUE(writes(opened.in()));
  thread.join();
  close(kOurs);
  ready.close_both();
  opened.close_both();
}

}  // namespace
}  // namespace greynic::verbs
