// Runs inside the small machine, on Soft-RoCE: rxe0 connects to rxe1 by rdma_cm; and in a lab.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <thread>

#include "devices.h"
#include "greynic/target/target.h"
#include "greynic/verbs/endpoint.h"
#include "greynic/verbs/verbs_target.h"
#include "patient.h"

namespace greynic::verbs {
namespace {

// Claim:  QPs that rdma_cm connected carry every payload, in all modes.
// Oracle: the pattern of seed, lane and slot, checked where the bytes arrive.
TEST(RdmaCm, ConnectsForEveryMode) {
  for (const char* options : {"", "&mode=latency"}) {
    const auto specs =
        target::parse_specs(fmt::format("verbs:{}?peer_device={}&connect=rdma_cm&validate=true{}",
                                        near_device(), far_device(), options));
    const auto target = verbs_kind(nullptr).open(specs->front());
    ASSERT_TRUE(target) << target.error().message;
    for (const char* configuration :
         {"operation=SEND", "operation=WRITE,qp_count=8,mr_count=8",
          "operation=READ,qp_count=3,mr_count=3",
          "operation=SEND,direction=bidirectional,qp_count=2,mr_count=2"}) {
      const auto parsed = parse_configuration(fmt::format(
          "{},message_bytes=64,send_queue_depth=8,receive_queue_depth=32,mr_bytes=65536",
          configuration));
      const Observation seen = measure_patiently(
          **target,
          {.configuration = *parsed, .duration = std::chrono::milliseconds(300), .seed = 7});
      EXPECT_EQ(seen.outcome, Outcome::kMeasured)
          << configuration << options << ": " << seen.reason;
    }
    const auto seen = target::measure_one(
        **target,
        {.configuration = *parse_configuration("transport=UD,operation=SEND,message_bytes=64"),
         .duration = std::chrono::milliseconds(100)});
    ASSERT_TRUE(seen) << seen.error().message;
    EXPECT_EQ(seen->outcome, Outcome::kRefused);
    EXPECT_NE(seen->reason.find("rdma_cm"), std::string::npos) << seen->reason;
  }
}

/// Both ends of a connection that is not made yet.
struct Ends {
  Device near;
  Device far;
  Endpoint asking;
  Endpoint listening;
};

std::unique_ptr<Ends> two_ends(std::chrono::milliseconds limit) {
  TrafficPlan plan;
  plan.connection_manager = true;
  plan.qp_count = 2;
  plan.mr_bytes = 65536;
  plan.stall_limit = limit;
  auto near = Device::open(near_device());
  auto far = Device::open(far_device());
  if (!near || !far) return nullptr;
  auto asking = Endpoint::create(*near, plan, {.requests = true});
  auto listening = Endpoint::create(*far, plan, {.answers = true, .listens = true});
  EXPECT_TRUE(asking) << asking.error().message;
  EXPECT_TRUE(listening) << listening.error().message;
  if (!asking || !listening) return nullptr;
  return std::unique_ptr<Ends>(
      new Ends{std::move(*near), std::move(*far), std::move(*asking), std::move(*listening)});
}

void expect_failure(const Result<void>& done, ErrorCode code, std::string_view words) {
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, code) << done.error().message;
  EXPECT_NE(done.error().message.find(words), std::string::npos) << done.error().message;
}

// Claim:  each way not to be connected ends by itself, with a reason of its own.
// Method: an address that no route leads to, a port where nobody listens, a listener that never
//         answers, a listener whom nobody asks.
TEST(RdmaCm, SaysWhyItDidNotConnect) {
  const auto ends = two_ends(std::chrono::milliseconds(1500));
  ASSERT_NE(ends, nullptr);
  const EndpointDescription there = ends->listening.describe();
  ASSERT_NE(there.listens_at, 0);

  EndpointDescription nowhere = there;
  nowhere.gid[12] = 203;
  expect_failure(ends->asking.connect(nowhere), ErrorCode::kRefused, "does not resolve");
  EndpointDescription closed = there;
  closed.listens_at = static_cast<std::uint16_t>(there.listens_at == 1 ? 2 : there.listens_at - 1);
  expect_failure(ends->asking.connect(closed), ErrorCode::kRefused, "rejected");
  expect_failure(ends->asking.connect(there), ErrorCode::kIo, "no answer within 1500 ms");

  const auto lonely = two_ends(std::chrono::milliseconds(300));
  ASSERT_NE(lonely, nullptr);
  expect_failure(lonely->listening.connect(lonely->asking.describe()), ErrorCode::kIo,
                 "0 of 2 QPs connected");
}

}  // namespace
}  // namespace greynic::verbs
