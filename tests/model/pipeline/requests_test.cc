#include <gtest/gtest.h>

#include <cmath>

#include "pipeline/law.h"
#include "pipeline/parameters.h"

namespace greynic::model::pipeline {
namespace {

double gbps(const Values& values, Setting setting) {
  return std::exp(LawAt(values).at(kLogBandwidth, setting));
}

// Claim:  the request of a READ passes the masks of its own way, one packet a message: they hold up small READs, and not
//         what is as long as the packets of a second that they let pass.
// Oracle: by hand: 300 masks of 0.15 us and 0.4 us more, 40 packets at once, are 1.135 us a request: 28.87 Gbit/s of 4 KiB;
//         64 KiB take 2.96 us of a line of 200 Gbit/s and more of the bus, so nothing is held up.
TEST(Requests, OfReadsPassMasksToo) {
  Values values = typical();
  const auto set = [&](Parameter parameter, double value) {
    values[parameter] = fitted(parameter, value);
  };
  set(kLineGbps, 200);
  set(kPcieGbps, 260);
  set(kDecapPackets, 40);
  set(kDecapNs, 150);
  set(kStageBaseUs, 0.4);
  set(kMessageNs, 8);
  set(kPostNs, 10);
  set(kLoopPackets, kOpenLoopPackets);
  Setting reads;
  reads.operation = Operation::kRead;
  reads.bytes = 4096;
  reads.qps = 64;
  reads.depth = 1000;
  const double free = gbps(values, reads);
  reads.masks[static_cast<std::size_t>(Hop::kServerDecap)] = 300;
  EXPECT_GT(free, 100);
  EXPECT_NEAR(gbps(values, reads), 28.87, 0.3);
  reads.bytes = 65536;
  const double held = gbps(values, reads);
  reads.masks = {};
  EXPECT_NEAR(held, gbps(values, reads), 1.0);
}

}  // namespace
}  // namespace greynic::model::pipeline
