/// Runs over an agent on the device in memory (tests/verbs/fake_device/fake_rdma.h): what needs no
/// real device, and XRC, which no device in software has.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <thread>

#include "fake_device/fake_rdma.h"
#include "greynic/agent/agent.h"
#include "greynic/target/target.h"
#include "greynic/verbs/verbs_target.h"
#include "patient.h"

namespace greynic::agent {
namespace {

using verbs::fake_rdma;

std::unique_ptr<Agent> started() {
  fake_rdma() = {};
  auto agent = Agent::start({.listen = "127.0.0.1:0", .device = verbs::kFakeDevice});
  EXPECT_TRUE(agent) << (agent ? "" : agent.error().message);
  return agent ? std::move(*agent) : nullptr;
}

Observation measured(const std::string& peers, const std::string& configuration) {
  const auto specs = target::parse_specs(fmt::format("verbs:fake0?validate=true&peer={}", peers));
  EXPECT_TRUE(specs.has_value());
  const auto target = verbs::verbs_kind(remote_peer).open(specs->front());
  EXPECT_TRUE(target.has_value()) << (target ? "" : target.error().message);
  return measure_patiently(
      **target, {.configuration = *parse_configuration(
                     "transport=XRC,message_bytes=64,send_queue_depth=8,receive_queue_depth=8,"
                     "mr_bytes=65536,qp_count=6,qps_per_cq=2," +
                     configuration),
                 .duration = std::chrono::milliseconds(100),
                 .seed = 5});
}

// Claim:  XRC runs over an agent as it does in one process, both ways too.
// Oracle: the payload's pattern, and the device in memory, which sees nothing that the book
// forbids.
TEST(XrcOverAnAgent, CarriesEveryOperation) {
  const auto agent = started();
  ASSERT_NE(agent, nullptr);
  for (const char* what :
       {"operation=SEND", "operation=WRITE", "operation=WRITE_WITH_IMM", "operation=READ",
        "operation=FADD", "operation=SEND,direction=bidirectional"}) {
    const Observation seen = measured(agent->address(), what);
    EXPECT_EQ(seen.outcome, Outcome::kMeasured) << what << ": " << seen.reason;
  }
  for (const std::string& what : fake_rdma().violations) ADD_FAILURE() << what;
  EXPECT_EQ(fake_rdma().objects, 0U);
}

// Claim:  one run goes to several agents; one of them that is not there fails it by name, and the
//         others are free again at once.
TEST(FanOutToAgents, ReachesAllOrNone) {
  const auto first = started();
  auto second = Agent::start({.listen = "127.0.0.1:0", .device = verbs::kFakeDevice});
  ASSERT_TRUE(first != nullptr && second.has_value());
  const std::string both = first->address() + "," + (*second)->address();
  const Observation seen = measured(both, "operation=SEND");
  EXPECT_EQ(seen.outcome, Outcome::kMeasured) << seen.reason;
  EXPECT_GT(first->calls(), 0U);
  EXPECT_GT((*second)->calls(), 0U);
  const std::string gone = (*second)->address();
  second->reset();
  const Observation lost = measured(both, "operation=SEND");
  EXPECT_EQ(lost.outcome, Outcome::kFailed);
  EXPECT_TRUE(lost.reason.starts_with("peer " + gone + " is not reached")) << lost.reason;
  EXPECT_EQ(measured(first->address(), "operation=SEND").outcome, Outcome::kMeasured);
  EXPECT_EQ(fake_rdma().objects, 0U);
}

// Claim:  two runs at once take turns at one agent, and both are measured.
TEST(RemotePeer, WaitsForAnAgentThatIsBusy) {
  const auto agent = started();
  ASSERT_NE(agent, nullptr);
  auto held = remote_peer(agent->address(), {});
  ASSERT_TRUE(held.has_value());
  verbs::TrafficPlan plan;
  plan.transport = Transport::kXRC;
  plan.shared_receive_queue = true;
  plan.mr_bytes = 65536;
  ASSERT_TRUE((*held)->open(plan, std::chrono::seconds(60)).has_value());
  std::thread release([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    (*held)->abandon();
  });
  const Observation seen = measured(agent->address(), "operation=SEND");
  release.join();
  EXPECT_EQ(seen.outcome, Outcome::kMeasured) << seen.reason;
}

}  // namespace
}  // namespace greynic::agent
