#include "peer/fan_out.h"

#include <gtest/gtest.h>

#include <cmath>

namespace greynic::verbs {
namespace {

// Claim:  what is dealt to the peers is the plan, no QP and no message more or less, and no part is
//         empty.
// Method: every number of QPs, CQ sizes and threads up to 20 on up to 7 peers.
TEST(Deal, LosesNothing) {
  for (std::uint32_t peers = 1; peers <= 7; ++peers) {
    for (std::uint32_t qps = peers; qps <= 20; ++qps) {
      TrafficPlan plan;
      plan.qp_count = qps;
      plan.qps_per_cq = 1 + qps % 5;
      plan.thread_count = 1 + qps % 7;
      plan.offered_rate = 1000;
      const auto parts = deal(plan, peers);
      ASSERT_TRUE(parts.has_value()) << parts.error().message;
      ASSERT_EQ(parts->size(), peers);
      std::uint32_t sum = 0;
      double rate = 0;
      for (const TrafficPlan& part : *parts) {
        sum += part.qp_count;
        rate += part.offered_rate;
        EXPECT_GE(part.qp_count, qps / peers);
        EXPECT_LE(part.qp_count, qps / peers + 1);
        EXPECT_GE(part.thread_count, 1U);
        EXPECT_LE(part.qps_per_cq, part.qp_count);
      }
      EXPECT_EQ(sum, qps);
      EXPECT_NEAR(rate, 1000, 1e-9);
    }
  }
}

// Claim:  fewer QPs than peers are refused, with both numbers.
TEST(Deal, RefusesPeersWithoutQps) {
  const auto none = deal(TrafficPlan{}, 2);
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, ErrorCode::kBadInput);
  EXPECT_NE(none.error().message.find("qp_count 1 is too few for 2 peers"), std::string::npos);
}

// Claim:  reports add up: rates and counts by sum, errors by squares, CPU time by messages; a
//         failure that is only a flush gives way to its cause.
TEST(Merged, AddsReportsUp) {
  RequestReport one;
  one.posted = 10;
  one.completed = 9;
  one.completed_by_lane = {4, 5};
  one.messages_per_second = 100;
  one.rate_standard_error = 3;
  one.cpu_ns_per_message = 50;
  one.latency.record(1000);
  one.steady.settled = true;
  one.failure = Failure{Outcome::kFailed, "IBV_WC_WR_FLUSH_ERR"};
  RequestReport two = one;
  two.posted = 30;
  two.messages_per_second = 50;
  two.rate_standard_error = 4;
  two.cpu_ns_per_message = 10;
  two.failure = Failure{Outcome::kFailed, "IBV_WC_RETRY_EXC_ERR"};
  const RequestReport both = merged(std::vector<RequestReport>{one, two});
  EXPECT_EQ(both.posted, 40U);
  EXPECT_EQ(both.completed_by_lane, (std::vector<std::uint64_t>{4, 5, 4, 5}));
  EXPECT_EQ(both.messages_per_second, 150);
  EXPECT_NEAR(*both.rate_standard_error, 5, 1e-12);
  EXPECT_NEAR(both.cpu_ns_per_message, 20, 1e-12);
  EXPECT_EQ(both.latency.count(), 2U);
  EXPECT_TRUE(both.steady.settled);
  EXPECT_EQ(both.failure->reason, "IBV_WC_RETRY_EXC_ERR");
}

// Claim:  counters say whose they are as soon as there are several peers.
TEST(Merged, KeepsCountersOfPeersApart) {
  PeerReport one;
  one.counters_before = {{"hw.sent_pkts", 1}};
  one.answers.received = 2;
  PeerReport two = one;
  two.counters_before = {{"hw.sent_pkts", 5}};
  EXPECT_EQ(merged(std::vector<PeerReport>{one}).counters_before.at("peer.hw.sent_pkts"), 1);
  const PeerReport both = merged(std::vector<PeerReport>{one, two});
  EXPECT_EQ(both.counters_before.at("peer1.hw.sent_pkts"), 1);
  EXPECT_EQ(both.counters_before.at("peer2.hw.sent_pkts"), 5);
  EXPECT_EQ(both.answers.received, 4U);
  EXPECT_FALSE(both.requests.has_value());
}

}  // namespace
}  // namespace greynic::verbs
