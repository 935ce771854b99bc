#include "pipeline/walks/uneven_walks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "greynic/model/model.h"

namespace greynic::model::pipeline {
namespace {

/// An RNIC that a loop of `packets` holds up, and next to nothing else.
Values looped(double packets) {
  Values values = typical();
  const auto set = [&](Parameter parameter, double value) {
    values[parameter] = fitted(parameter, value);
  };
  set(kLineGbps, 3000);
  set(kPcieGbps, 15000);
  set(kPostNs, 1);
  set(kMessageNs, 0.5);
  set(kSendGapNs, 0.05);
  set(kQpPacketNs, 1);
  set(kQpMaskNs, 0.001);
  set(kQpWindow, 1e5);
  set(kEncapPackets, 1e5);
  set(kDecapPackets, 1e5);
  set(kStageBaseUs, 0.001);
  set(kDecapNs, 100);
  set(kBurstWalk, 0.001);
  set(kLoopPackets, packets);
  set(kLoopBaseUs, 1);
  return values;
}

Setting writes() {
  Setting setting;
  setting.operation = Operation::kWrite;
  setting.bytes = 65536;
  setting.qps = 16;
  return setting;
}

/// us a packet where `window` may be under way, each for 1 us and 0.1 us a mask, and leave in order.
double in_order(std::size_t window, double slow_share, double slow_masks) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<double> left(window, 0.0);
  constexpr int kCount = 400000;
  double last = 0;
  for (int i = 0; i < kCount; ++i) {
    double& place = left[static_cast<std::size_t>(i) % window];
    const double masks = uniform(random) < slow_share ? slow_masks : 0.0;
    last = std::max(last, place + 0.1 * masks);
    place = last + 1.0;
  }
  return last / kCount;
}

// Claim:  packets that leave a loop in order pass as many as the same number of masks for each would let pass: their
//         mean when there is one packet under way, and far more when there are many, as most wait for a slow one.
// Oracle: a loop of a few lines, with a generator of its own.
TEST(UnevenWalks, WaitForThoseBeforeThem) {
  const MaskShares shares = {{0, 0.9}, {100, 0.1}};
  for (const std::size_t window : {1U, 4U, 20U, 48U}) {
    const double alike =
        masks_alike(looped(static_cast<double>(window)), writes(), Hop::kServerDecap, shares)
            .for_rate;
    // Even packets: (1 us + 0.1 us a mask) / window.
    const double expected = (in_order(window, 0.1, 100) * static_cast<double>(window) - 1.0) / 0.1;
    EXPECT_NEAR(alike, expected, 0.04 * expected + 0.5) << window << " under way";
  }
}

// Claim:  where all packets try as many, that is the answer, at either hop and for each verb.
TEST(UnevenWalks, AreTheMeanOfEvenOnes) {
  for (const Operation operation : {Operation::kWrite, Operation::kRead, Operation::kSend}) {
    Setting setting = writes();
    setting.operation = operation;
    for (const Hop hop : {Hop::kServerDecap, Hop::kClientEncap}) {
      const AlikeMasks alike = masks_alike(looped(30), setting, hop, {{17, 1.0}});
      EXPECT_DOUBLE_EQ(alike.for_rate, 17);
      EXPECT_DOUBLE_EQ(alike.for_latency, 17);
    }
  }
}

// Claim:  a message is there when the last of its packets is: one packet in 20 that tries 100 masks is met by next to
//         every message of 64 packets (0.95^64 = 0.04), and by few of one packet, of which a median says nothing.
TEST(UnevenWalks, HoldUpTheMessagesThatMeetThem) {
  const MaskShares shares = {{0, 0.95}, {100, 0.05}};
  Setting setting = writes();
  EXPECT_GT(masks_alike(looped(1e6), setting, Hop::kServerDecap, shares).for_latency, 40);
  setting.bytes = 1e15;  // and is answered at once
  EXPECT_LE(masks_alike(looped(1e6), setting, Hop::kServerDecap, shares).for_latency, 100);
  setting.bytes = 512;
  EXPECT_NEAR(masks_alike(looped(1e6), setting, Hop::kServerDecap, shares).for_latency, 0, 0.2);
}

/// us until `count` packets are through where `window` may be under way, each for 1 us, its walk and `beyond`, in order.
double message_us(std::size_t window, std::size_t count, const std::function<double()>& masks,
                  double beyond) {
  std::vector<double> left(window, 0.0);
  double last = 0;
  for (std::size_t i = 0; i < count; ++i) {
    double& place = left[i % window];
    last = std::max(last, place + 0.1 * masks());
    place = last + 1.0 + beyond;
  }
  return last;
}

// Claim:  of a ping-pong one way walks; what comes back only waits longer for word of its packets, for the mean of their
//         walks. A law that took both ways for uneven would say 15 % more masks.
// Oracle: two loops of a few lines, with a generator of their own; even masks that take as long, by halving.
TEST(UnevenWalks, AreAnsweredByPacketsThatDoNotWalk) {
  constexpr std::size_t kWindow = 17, kCount = 256;
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> uniform(0, 100);
  std::vector<double> times(801);
  for (double& one : times)
    one = message_us(
        kWindow, kCount, [&] { return uniform(random); }, 0);
  std::nth_element(times.begin(), times.begin() + 400, times.end());
  const auto answer = [](double mean) {
    return message_us(
        kWindow, kCount, [] { return 0.0; }, 0.1 * mean);
  };
  const double expected = times[400] + answer(50);
  double low = 0, high = 100;
  while (high - low > 0.01) {
    const double middle = (low + high) / 2;
    const double even = message_us(
                            kWindow, kCount, [&] { return middle; }, 0) +
                        answer(middle);
    (even < expected ? low : high) = middle;
  }
  Setting setting = writes();
  setting.mtu = 1024;
  setting.bytes = 1024.0 * kCount;
  MaskShares shares;
  for (int masks = 0; masks <= 100; ++masks) shares.emplace_back(masks, 1.0 / 101);
  Values values = looped(kWindow);
  values[kBurstGapUs] = fitted(kBurstGapUs, 0.001);
  EXPECT_NEAR(masks_alike(values, setting, Hop::kServerDecap, shares).for_latency, low, 0.03 * low);
}

// Claim:  a loop of 16.5 packets is between one of 16 and one of 17, for messages of 17 packets, too, which the one holds
//         up for a whole walk and the other not at all.
TEST(UnevenWalks, FillWindowsThatAreNotWhole) {
  Setting setting = writes();
  setting.mtu = 1024;
  setting.bytes = 1024.0 * 17;
  const MaskShares shares = {{0, 0.5}, {100, 0.5}};
  const auto alike = [&](double window) {
    Values values = looped(window);
    return masks_alike(values, setting, Hop::kServerDecap, shares).for_latency;
  };
  EXPECT_GT(alike(17), 99);
  EXPECT_LT(alike(16), 85);
  EXPECT_GT(alike(16.5), alike(16) + 2);
  EXPECT_LT(alike(16.5), alike(17) - 2);
}

// Claim:  the request of a READ is one packet, of which the median counts; the loop of its payload goes by the mean, as
//         requests are a small part of what waits there.
TEST(UnevenWalks, OfRequestsCountByTheirMedian) {
  Setting setting = writes();
  setting.operation = Operation::kRead;
  const auto alike = masks_alike(looped(1e6), setting, Hop::kServerDecap, {{2, 0.6}, {100, 0.4}});
  EXPECT_NEAR(alike.for_latency, 2, 0.2);
  const auto waits = masks_alike(looped(30), setting, Hop::kServerDecap, {{2, 0.6}, {100, 0.4}});
  EXPECT_NEAR(waits.for_rate, 41.2, 0.5);
}

// Claim:  a law that knows nothing of order answers by the mean.
// Oracle: the same law, asked for the mean.
TEST(UnevenWalks, OfOtherLawsAreTheirMean) {
  const auto law = load("published:cx6");
  ASSERT_TRUE(law) << law.error().message;
  Configuration at;
  at.set("operation", std::string("WRITE"));
  at.set("message_bytes", 65536.0);
  const auto uneven = (*law)->predict_uneven(at, Hop::kServerDecap, {{10, 0.5}, {30, 0.5}});
  at.set("server_decap_masks", 20.0);
  const auto even = (*law)->predict(at);
  ASSERT_TRUE(uneven && even);
  ASSERT_FALSE(even->measures.empty());
  for (const auto& [name, measure] : even->measures) {
    EXPECT_DOUBLE_EQ(uneven->measures.at(name).value, measure.value) << name;
  }
}

}  // namespace
}  // namespace greynic::model::pipeline
