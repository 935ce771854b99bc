#include "traffic/heartbeat.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <thread>

namespace greynic::verbs {
namespace {

struct Pipe {
  Pipe() { EXPECT_EQ(pipe(ends.data()), 0); }
  ~Pipe() {
    close(ends[0]);
    close(ends[1]);
  }
  std::array<int, 2> ends{};
};

// Claim:  a read of what never comes ends again and again, on the thread whose heart beats and on
//         any thread that makes one of its own.
// Oracle: read(2): EINTR is a signal's doing; without one this test would not end.
TEST(Heartbeat, InterruptsReadsThatHaveNoLimit) {
  const Pipe nothing;
  const auto three_reads_end = [&] {
    const Heartbeat heartbeat(std::chrono::milliseconds(2));
    ASSERT_TRUE(heartbeat.beats());
    for (int i = 0; i < 3; ++i) {
      char byte = 0;
      EXPECT_EQ(read(nothing.ends[0], &byte, 1), -1);
      EXPECT_EQ(errno, EINTR);
    }
  };
  three_reads_end();
  std::thread(three_reads_end).join();
}

// Claim:  what is there is read all the same.
TEST(Heartbeat, LeavesReadsThatHaveSomethingAlone) {
  const Heartbeat heartbeat(std::chrono::milliseconds(1));
  const Pipe filled;
  for (char wanted = 'a'; wanted <= 'z'; ++wanted) {
    ASSERT_EQ(write(filled.ends[1], &wanted, 1), 1);
    char byte = 0;
    ASSERT_EQ(read(filled.ends[0], &byte, 1), 1);
    EXPECT_EQ(byte, wanted);
  }
}

}  // namespace
}  // namespace greynic::verbs
