#include "wire_messages.h"

#include <gtest/gtest.h>

#include "greynic/verbs/peer_claims.h"

namespace greynic::agent {
namespace {

// Claim:  all that a peer is told of an end arrives as it was told: each field has a value of its
//         own, so that none stands in for another.
TEST(WireMessages, KeepsEveryFieldOfAnEnd) {
  verbs::EndpointDescription told;
  told.gid = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  told.lid = 0xfff1;
  told.ethernet = false;
  told.psn = 0xfffff2;
  told.qp_numbers = {3, 0xfffff4};
  told.target_addresses = {0xffff'ffff'ffff'fff5};
  told.target_keys = {0xfffffff6};
  told.listens_at = 0xfff7;
  told.window_keys = {0xfffffff8, 9};
  told.xrc_targets = {10, 0xfffffb};
  told.srq_numbers = {0xfffffc};
  wire::Endpoint message;
  write(told, message);
  wire::Endpoint arrived;
  ASSERT_TRUE(arrived.ParseFromString(message.SerializeAsString()));
  const auto read_back = read(arrived);
  ASSERT_TRUE(read_back.has_value());
  EXPECT_EQ(read_back->gid, told.gid);
  EXPECT_EQ(read_back->lid, told.lid);
  EXPECT_EQ(read_back->ethernet, told.ethernet);
  EXPECT_EQ(read_back->psn, told.psn);
  EXPECT_EQ(read_back->qp_numbers, told.qp_numbers);
  EXPECT_EQ(read_back->target_addresses, told.target_addresses);
  EXPECT_EQ(read_back->target_keys, told.target_keys);
  EXPECT_EQ(read_back->listens_at, told.listens_at);
  EXPECT_EQ(read_back->window_keys, told.window_keys);
  EXPECT_EQ(read_back->xrc_targets, told.xrc_targets);
  EXPECT_EQ(read_back->srq_numbers, told.srq_numbers);
}

// Claim:  when completions are told of travels with the plan.
TEST(WireMessages, KeepsCqModeration) {
  verbs::TrafficPlan plan;
  plan.cq_moderation = {65535, 1};
  wire::Plan message;
  write(plan, message);
  EXPECT_EQ(read(message)->cq_moderation, plan.cq_moderation);
}

// Claim:  lists of receives and elements of messages travel with the plan; a list longer than its
//         queue, which nobody of ours asks for, does not become memory here.
TEST(WireMessages, KeepsListsAndElements) {
  verbs::TrafficPlan plan;
  plan.elements = {128, 65536, 1024};
  plan.receive_batch = 17;
  wire::Plan message;
  write(plan, message);
  EXPECT_EQ(read(message)->elements, plan.elements);
  EXPECT_EQ(read(message)->receive_batch, 17U);
  message.set_receive_batch(0xffffffff);
  EXPECT_FALSE(verbs::check_plan(*read(message)));
}

// Claim:  each choice of a plan travels as itself.
// Method: one is set at a time; the others must stay as they were.
TEST(WireMessages, KeepsTheChoicesOfAPlan) {
  constexpr bool verbs::TrafficPlan::*kChoices[] = {&verbs::TrafficPlan::shared_receive_queue,
                                                    &verbs::TrafficPlan::srq_per_cq,
                                                    &verbs::TrafficPlan::validate,
                                                    &verbs::TrafficPlan::huge_pages,
                                                    &verbs::TrafficPlan::extended_posting,
                                                    &verbs::TrafficPlan::connection_manager,
                                                    &verbs::TrafficPlan::doorbell_per_thread};
  for (const auto set : kChoices) {
    verbs::TrafficPlan plan;
    plan.extended_posting = false;
    plan.*set = true;
    wire::Plan message;
    write(plan, message);
    const verbs::TrafficPlan back = *read(message);
    for (const auto choice : kChoices) EXPECT_EQ(back.*choice, choice == set);
  }
}

// Claim:  every transport and operation travels as itself.
TEST(WireMessages, KeepsTransportAndOperation) {
  using verbs::Opcode;
  for (const Transport transport :
       {Transport::kRC, Transport::kUC, Transport::kUD, Transport::kXRC}) {
    for (const Opcode operation :
         {Opcode::kSend, Opcode::kSendWithImm, Opcode::kSendWithInv, Opcode::kWrite,
          Opcode::kWriteWithImm, Opcode::kRead, Opcode::kCompareSwap, Opcode::kFetchAdd}) {
      verbs::TrafficPlan plan;
      plan.transport = transport;
      plan.operation = operation;
      wire::Plan message;
      write(plan, message);
      EXPECT_EQ(read(message)->transport, transport);
      EXPECT_EQ(read(message)->operation, operation);
    }
  }
}

}  // namespace
}  // namespace greynic::agent
