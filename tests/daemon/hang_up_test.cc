#include "greynic/daemon/hang_up.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <chrono>
#include <thread>

#include "lingering.h"

namespace greynic::daemon {
namespace {

using Clock = std::chrono::steady_clock;

bool is_open(int descriptor) { return fcntl(descriptor, F_GETFD) >= 0; }

bool closes(int descriptor) {
  for (int i = 0; i < 2000 && is_open(descriptor); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return !is_open(descriptor);
}

// Claim:  who hands over what takes ten minutes to close delays nobody; it is closed all the same.
TEST(HangUp, WaitsForNoDescriptor) {
  Lingering one;
  const auto begin = Clock::now();
  close_apart(one.socket());
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5));
  EXPECT_TRUE(closes(one.socket()));
}

TEST(HangUp, WaitsForNoDescriptorThatWasNotTaken) {
  Lingering one;
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  one.send_over(ends[0]);
  close(ends[0]);
  const auto begin = Clock::now();
  hang_up(ends[1]);
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5));
  EXPECT_TRUE(closes(ends[1]));
}

// Claim:  what an honest program hands over costs no thread: it is closed before the call ends.
TEST(HangUp, ClosesMemoryAndSilentSocketsAtOnce) {
  const int memory = memfd_create("memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  close_apart(memory);
  EXPECT_FALSE(is_open(memory));
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  hang_up(ends[1]);
  EXPECT_FALSE(is_open(ends[1]));
  close(ends[0]);
  close_apart(-1);
  hang_up(-1);
}

// Claim:  a hundred at once are all closed.
TEST(HangUp, ClosesMoreThanItHasThreads) {
  std::vector<int> files;
  for (int i = 0; i < 100; ++i) {
    files.push_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
    close_apart(files.back());
  }
  for (const int file : files) EXPECT_TRUE(closes(file));
}

}  // namespace
}  // namespace greynic::daemon
