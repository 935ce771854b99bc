#include "caller.h"

#include <gtest/gtest.h>

namespace greynic::agent {
namespace {

// Claim:  gRPC's name of a connection and the door's are one, whatever the address.
TEST(Caller, IsNamedAsAtTheDoor) {
  EXPECT_EQ(connection_of("unix-abstract:greynic-00000000000a1b2c/10.0.0.7:41234"),
            "10.0.0.7:41234");
  EXPECT_EQ(connection_of("unix-abstract:greynic-00000000000a1b2c/%5Bfe80::7%5D:41234"),
            "[fe80::7]:41234");
}

}  // namespace
}  // namespace greynic::agent
