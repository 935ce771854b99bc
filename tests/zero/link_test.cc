#include <gtest/gtest.h>

#include "greynic_zero.h"

namespace greynic::zero {
namespace {

/// As programs have that link DPDK: it lies on the stack of each thread.
thread_local volatile char much[512 << 10];

// Claim: the library's own thread begins in a program whose threads need much memory each.
TEST(Link, BeginsInProgramsWithMuchThreadLocalMemory) {
  much[0] = 1;
  EXPECT_EQ(zero_connect("/tmp/greynic_no_agent_here"), 0) << zero_error();
  zero_disconnect();
}

}  // namespace
}  // namespace greynic::zero
