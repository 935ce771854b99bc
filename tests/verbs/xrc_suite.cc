/// XRC over a device in memory (fake_rdma.h); no device in software has XRC.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fake_device/fake_rdma.h"
#include "greynic/verbs/traffic.h"
#include "greynic/verbs/verbs_target.h"
#include "patient.h"

namespace greynic::verbs {
namespace {

TrafficPlan small_plan(Opcode operation) {
  TrafficPlan plan;
  plan.transport = Transport::kXRC;
  plan.operation = operation;
  plan.qp_count = 5;
  plan.qps_per_cq = 2;
  plan.thread_count = 2;
  plan.send_depth = 8;
  plan.receive_depth = 8;
  plan.shared_receive_queue = true;
  plan.sizes = {is_atomic(operation) ? 8U : 200U};
  plan.mr_bytes = 1 << 16;
  plan.mr_count = 5;
  plan.signal_every = 3;
  plan.validate = true;
  plan.seed = 11;
  plan.stall_limit = std::chrono::minutes(10);  // a test whose process is held up is no stall
  return plan;
}

struct Run {
  RequestReport requests;
  AnswerReport answers;
};

/// Both ends in this process. `disturb` may change what the requester is told.
Result<Run> run(const TrafficPlan& plan,
                const std::function<void(EndpointDescription&)>& disturb = {},
                std::chrono::milliseconds duration = std::chrono::milliseconds(100)) {
  auto device = Device::open(kFakeDevice, 1);
  if (!device) return pass_on(device);
  auto near = Endpoint::create(*device, plan, {.requests = true, .answers = plan.both_ways()});
  if (!near) return pass_on(near);
  auto far = Endpoint::create(*device, plan, {.requests = plan.both_ways(), .answers = true});
  if (!far) return pass_on(far);
  EndpointDescription told = far->describe();
  if (disturb) disturb(told);
  if (auto done = far->connect(near->describe()); !done) return pass_on(done);
  if (auto done = near->connect(told); !done) return pass_on(done);
  Answerer far_answers(*far);
  Answerer near_answers(*near);
  far_answers.start();
  if (plan.direction == Direction::kBidirectional) near_answers.start();
  Run result;
  const std::atomic<bool> stop = false;
  result.requests = run_requests(*near, duration, stop);
  result.answers = far_answers.finish(result.requests.completed_by_lane);
  return result;
}

class XrcOperation : public testing::TestWithParam<std::tuple<Opcode, bool>> {};

// Claim:  every operation of XRC arrives, once, unchanged, in the receive queue that the request
//         names, by ibv_wr_* and by ibv_post_send; the device sees nothing that the book forbids,
//         and nothing of it is left over.
// Oracle: a device in memory, and the payload's own pattern.
TEST_P(XrcOperation, ArrivesUnchanged) {
  const auto [operation, extended] = GetParam();
  FakeRdma& device = fake_rdma();
  device = {};
  device.extended = extended;
  const auto seen = run(small_plan(operation));
  ASSERT_TRUE(seen.has_value()) << seen.error().message;
  EXPECT_FALSE(seen->requests.failure) << seen->requests.failure->reason;
  EXPECT_FALSE(seen->answers.failure) << seen->answers.failure->reason;
  EXPECT_GT(seen->requests.completed, 0U);
  EXPECT_EQ(seen->requests.payload_errors + seen->answers.payload_errors, 0U);
  if (takes_receive(operation)) EXPECT_EQ(seen->answers.received, seen->requests.posted);
  EXPECT_EQ(device.posted_extended > 0, extended);
  EXPECT_EQ(device.posted_plain > 0, !extended);
  for (const std::string& what : device.violations) ADD_FAILURE() << what;
  EXPECT_EQ(device.objects, 0U);
}

INSTANTIATE_TEST_SUITE_P(All, XrcOperation,
                         testing::Combine(testing::Values(Opcode::kSend, Opcode::kSendWithImm,
                                                          Opcode::kWrite, Opcode::kWriteWithImm,
                                                          Opcode::kRead, Opcode::kCompareSwap,
                                                          Opcode::kFetchAdd),
                                          testing::Bool()),
                         [](const auto& the) {
                           return fmt::format("{}_{}", to_string(std::get<0>(the.param)),
                                              std::get<1>(the.param) ? "extended" : "plain");
                         });

// Claim:  a campaign may have XRC as a level where the device has it, which is then measured and
//         says that it received through shared queues; elsewhere it is refused by name.
TEST(Xrc, IsALevelWhereTheDeviceHasIt) {
  for (const bool has : {true, false}) {
    fake_rdma() = {};
    fake_rdma().xrc = has;
    const auto specs = target::parse_specs(fmt::format("verbs:{}?stall=600s", kFakeDevice));
    ASSERT_TRUE(specs.has_value());
    const auto target = verbs_kind(nullptr).open(specs->front());
    ASSERT_TRUE(target.has_value()) << target.error().message;
    const auto transports = (*target)->info().categories.at("transport");
    EXPECT_EQ(std::count(transports.begin(), transports.end(), "XRC"), has ? 1 : 0);
    const auto asked = parse_configuration(
        "transport=XRC,operation=SEND,message_bytes=64,qp_count=4,send_queue_depth=8,"
        "receive_queue_depth=8,mr_bytes=65536");
    ASSERT_TRUE(asked.has_value());
    auto seen = Result<Observation>(Observation{});
    // Threads that get no processor for a tenth of a second are no fault of the driver's.
    for (const int milliseconds : {100, 1000, 10000}) {
      seen = target::measure_one(**target, {.configuration = *asked,
                                            .duration = std::chrono::milliseconds(milliseconds),
                                            .seed = 1});
      ASSERT_TRUE(seen.has_value()) << seen.error().message;
      if (seen->outcome != Outcome::kTooShort) break;
    }
    EXPECT_EQ(seen->outcome, has ? Outcome::kMeasured : Outcome::kRefused) << seen->reason;
    EXPECT_EQ(seen->reason, has ? "" : "the device has no XRC");
    if (has) EXPECT_TRUE(seen->granted.flag("shared_receive_queue"));
  }
}

// Claim:  each ping is answered once over XRC, where both ends send and have targets, also when one
//         receive has to do for all: none is kept back that the next message needs.
// Oracle: the answering end's own count, its payload check, and what the device saw.
TEST(Xrc, AnswersPings) {
  for (const std::uint32_t receives : {1U, 2U, 8U}) {
    fake_rdma() = {};
    TrafficPlan plan = small_plan(Opcode::kSend);
    plan.mode = Mode::kLatency;
    plan.signal_every = 1;
    plan.thread_count = 1;
    plan.receive_depth = receives;
    const auto seen = run(plan);
    ASSERT_TRUE(seen.has_value()) << seen.error().message;
    EXPECT_FALSE(seen->requests.failure) << seen->requests.failure->reason;
    EXPECT_FALSE(seen->answers.failure) << seen->answers.failure->reason;
    EXPECT_GT(seen->requests.completed, 0U);
    EXPECT_EQ(seen->answers.received, seen->requests.completed) << receives << " receives";
    EXPECT_EQ(seen->answers.payload_errors, 0U);
    EXPECT_EQ(fake_rdma().posted_extended, 2 * seen->requests.completed);
    for (const std::string& what : fake_rdma().violations) ADD_FAILURE() << what;
    EXPECT_EQ(fake_rdma().objects, 0U);
  }
}

// Claim:  no ping is taken for answered by what an earlier one left in its slot, whatever the
//         number of slots.
// Oracle: the answering end's own count: it writes back what it counted, and nothing else does.
// Method: WRITE with as many slots as there are marks, one less and one more, and with one slot.
TEST(Xrc, TakesNoOldMarkForAnAnswer) {
  for (const std::uint32_t depth : {1U, 254U, 255U, 256U}) {
    fake_rdma() = {};
    TrafficPlan plan = small_plan(Opcode::kWrite);
    plan.mode = Mode::kLatency;
    plan.thread_count = 1;
    plan.qp_count = 1;
    plan.mr_count = 1;
    plan.signal_every = 1;
    plan.send_depth = depth;
    plan.mr_bytes = 1 << 20;
    const auto seen = run(plan);
    ASSERT_TRUE(seen.has_value()) << seen.error().message;
    EXPECT_FALSE(seen->requests.failure) << seen->requests.failure->reason;
    EXPECT_GT(seen->requests.completed, 0U);
    EXPECT_EQ(seen->answers.received, seen->requests.completed) << depth << " slots";
    EXPECT_EQ(seen->answers.payload_errors, 0U);
  }
}

// Claim:  at an offered rate messages are handed over post_batch at a time too, and the rate is
//         kept.
// Oracle: the device in memory counts how many come by one call; the rate is the one asked for.
TEST(OpenLoop, PostsListsAtTheRateAskedFor) {
  for (const bool extended : {true, false}) {
    fake_rdma() = {};
    fake_rdma().extended = extended;
    TrafficPlan plan = small_plan(Opcode::kWrite);
    plan.thread_count = 1;
    plan.signal_every = 1;
    plan.post_batch = 4;
    plan.offered_rate = 4000;
    const auto seen = run(plan);
    ASSERT_TRUE(seen.has_value()) << seen.error().message;
    EXPECT_FALSE(seen->requests.failure);
    EXPECT_EQ(fake_rdma().longest_list, 4U);
    EXPECT_EQ(seen->requests.posted % 4, 0U);
    EXPECT_LE(seen->requests.posted, 404U) << "4,000 a second for 100 ms, and one list";
    EXPECT_GT(seen->requests.posted, 0U);
  }
}

// Claim:  no sizes of queue, list and silence between completions lock a run up, at full speed or
//         at a rate: some lists do not fit behind messages that never report.
// Method: every depth to 9, with every list and every distance of completions that fits in it.
TEST(Lists, NeverWaitForCompletionsThatDoNotCome) {
  for (std::uint32_t depth = 1; depth <= 9; ++depth) {
    for (std::uint32_t batch = 1; batch <= depth; ++batch) {
      for (std::uint32_t every = 1; every <= depth; ++every) {
        fake_rdma() = {};
        TrafficPlan plan = small_plan(Opcode::kWrite);
        plan.thread_count = 1;
        plan.qp_count = 1;
        plan.qps_per_cq = 1;
        plan.send_depth = depth;
        plan.post_batch = batch;
        plan.signal_every = every;
        plan.offered_rate = (depth + batch + every) % 2 == 0 ? 0.0 : 100'000.0;
        // A thread may get no processor for so short a time; one that is locked up stays so.
        std::uint64_t completed = 0;
        for (int ms = 2; completed <= 2 * depth && ms < 500; ms *= 8) {
          const auto seen = run(plan, {}, std::chrono::milliseconds(ms));
          ASSERT_TRUE(seen.has_value()) << seen.error().message;
          EXPECT_FALSE(seen->requests.failure) << seen->requests.failure->reason;
          completed = seen->requests.completed;
        }
        EXPECT_GT(completed, std::uint64_t{2} * depth)
            << depth << " deep, lists of " << batch << ", one completion in " << every;
      }
    }
  }
}

// Claim:  cq_moderation reaches every CQ of both ends, and is asked of no device without it; what
//         is no number of completions and no time is refused with an example.
// Oracle: the device in memory writes down what ibv_modify_cq asks for.
TEST(CqModeration, IsAskedOfEveryCq) {
  const auto opened = [](const std::string& options) {
    const auto specs = target::parse_specs("verbs:fake0" + options);
    EXPECT_TRUE(specs.has_value());
    return verbs_kind(nullptr).open(specs->front());
  };
  for (const bool asked : {true, false}) {
    fake_rdma() = {};
    const auto target = opened(asked ? "?cq_moderation=16,20us" : "");
    ASSERT_TRUE(target.has_value()) << target.error().message;
    const Observation seen = measure_patiently(
        **target, {.configuration = *parse_configuration(
                       "transport=XRC,operation=SEND,message_bytes=64,qp_count=4,qps_per_cq=2,"
                       "mr_bytes=65536,completion_mode=polling"),
                   .duration = std::chrono::milliseconds(100)});
    EXPECT_EQ(seen.outcome, Outcome::kMeasured) << seen.reason;
    // Two groups of QPs, with a CQ for each direction, at two ends.
    EXPECT_GE(fake_rdma().moderated.size(), asked ? 8U : 0U);
    EXPECT_EQ(fake_rdma().moderated.empty(), !asked);
    for (const std::string& what : fake_rdma().moderated) EXPECT_EQ(what, "16 completions, 20 us");
  }
  for (const char* wrong :
       {"16", "16,", ",20us", "0,20us", "16,20", "16,70ms", "x,20us", "16,0us"}) {
    const auto target = opened(std::string("?cq_moderation=") + wrong);
    ASSERT_FALSE(target.has_value()) << wrong;
    EXPECT_NE(target.error().message.find("such as 16,20us"), std::string::npos)
        << target.error().message;
  }
}

// Claim:  a target with several peers deals its QPs to them, checks what arrives at each, and
//         leaves nothing behind; more peers than QPs are refused by name.
// Oracle: the device in memory; both peers stand in its counters and in the environment.
TEST(FanOut, ReachesEveryPeer) {
  fake_rdma() = {};
  const auto specs = target::parse_specs("verbs:fake0?peer_device=fake0,fake0,fake0&validate=true");
  ASSERT_TRUE(specs.has_value());
  const auto target = verbs_kind(nullptr).open(specs->front());
  ASSERT_TRUE(target.has_value()) << target.error().message;
  const auto measured = [&](const std::string& more) {
    const auto asked = parse_configuration(
        "transport=XRC,operation=SEND,message_bytes=64,send_queue_depth=8,receive_queue_depth=8,"
        "mr_bytes=65536,mr_count=7,thread_count=5,qps_per_cq=4," +
        more);
    EXPECT_TRUE(asked.has_value());
    return measure_patiently(
        **target, {.configuration = *asked, .duration = std::chrono::milliseconds(100), .seed = 1});
  };
  for (const char* direction : {"unidirectional", "bidirectional"}) {
    const Observation seen = measured(std::string("qp_count=8,direction=") + direction);
    EXPECT_EQ(seen.outcome, Outcome::kMeasured) << seen.reason;
    EXPECT_EQ(seen.granted.number("thread_count"), 3);
    EXPECT_EQ(seen.granted.number("qps_per_cq"), 3);
    EXPECT_EQ(seen.granted.number("mr_count"), 6);
    EXPECT_NE(seen.environment.at("peer").find(", fake0"), std::string::npos);
  }
  for (const std::string& what : fake_rdma().violations) ADD_FAILURE() << what;
  EXPECT_EQ(fake_rdma().objects, 0U);
  const Observation few = measured("qp_count=2");
  EXPECT_EQ(few.outcome, Outcome::kRefused);
  EXPECT_NE(few.reason.find("too few for 3 peers"), std::string::npos) << few.reason;
}

// Claim:  a request that names a receive queue which is not the peer's ends with the status of the
//         book, and so the run.
TEST(Xrc, NamesTheReceiveQueueOfThePeer) {
  fake_rdma() = {};
  const auto seen = run(small_plan(Opcode::kSend), [](EndpointDescription& told) {
    for (std::uint32_t& number : told.srq_numbers) number += 1;
  });
  ASSERT_TRUE(seen.has_value()) << seen.error().message;
  ASSERT_TRUE(seen->requests.failure.has_value());
  EXPECT_NE(seen->requests.failure->reason.find("IBV_WC_REM_INV_REQ_ERR"), std::string::npos)
      << seen->requests.failure->reason;
}

// Claim:  a peer whose description does not fit the plan is refused, not believed.
TEST(Xrc, RefusesAPeerThatLacksTargets) {
  fake_rdma() = {};
  const auto seen = run(small_plan(Opcode::kSend),
                        [](EndpointDescription& told) { told.xrc_targets.pop_back(); });
  ASSERT_FALSE(seen.has_value());
  EXPECT_NE(seen.error().message.find("XRC targets instead of"), std::string::npos) << seen.error().message;
}

// Claim:  what a device, or this driver, does not offer over XRC is refused by name beforehand.
TEST(Xrc, IsRefusedByNameWhereItIsNotOffered) {
  fake_rdma() = {};
  const auto inv = run(small_plan(Opcode::kSendWithInv));
  ASSERT_FALSE(inv.has_value());
  EXPECT_NE(inv.error().message.find("SEND_WITH_INV"), std::string::npos) << inv.error().message;
  fake_rdma().xrc = false;
  const auto none = run(small_plan(Opcode::kSend));
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().message, "the device has no XRC");
  EXPECT_EQ(fake_rdma().objects, 0U);
}

}  // namespace
}  // namespace greynic::verbs
