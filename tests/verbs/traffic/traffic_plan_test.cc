#include "greynic/verbs/traffic_plan.h"

#include <gtest/gtest.h>

#include <set>

#include "greynic/verbs/endpoint.h"

namespace greynic::verbs {
namespace {

// Claim:  with room for all, no two slots of a run share a byte, and none leaves its region.
// Oracle: every byte is marked by the slot that owns it.
// Method: fewer, as many, and more regions than QPs.
TEST(Slots, NeverShareBytesWhenThereIsRoom) {
  for (const std::uint32_t regions : {1U, 3U, 4U, 9U}) {
    TrafficPlan plan;
    plan.qp_count = 4;
    plan.mr_count = regions;
    plan.mr_bytes = 65536;
    plan.sizes = {100};
    plan.send_depth = 8;
    plan.receive_depth = 16;
    ASSERT_FALSE(slots_overlap(plan));
    std::set<std::pair<std::uint32_t, std::uint64_t>> taken;
    std::set<std::uint32_t> used;
    for (std::uint32_t lane = 0; lane < plan.qp_count; ++lane) {
      for (const Slot& slot : slots_of(plan, lane)) {
        ASSERT_LT(slot.region, regions);
        used.insert(slot.region);
        for (std::uint64_t b = slot.offset; b < slot.offset + 100; ++b) {
          ASSERT_LT(b, plan.mr_bytes);
          ASSERT_TRUE(taken.emplace(slot.region, b).second) << "byte " << b << " has two owners";
        }
      }
    }
    EXPECT_EQ(used.size(), regions) << "every region is in use";
  }
}

TEST(Slots, SayWhenTheyOverlap) {
  TrafficPlan plan;
  plan.qp_count = 64;
  plan.mr_bytes = 65536;
  plan.sizes = {4096};
  EXPECT_TRUE(slots_overlap(plan));
  for (std::uint32_t lane = 0; lane < plan.qp_count; ++lane) {
    for (const Slot& slot : slots_of(plan, lane)) EXPECT_LE(slot.offset + 4096, plan.mr_bytes);
  }
}

// Claim:  a lane has a place in memory for each message that may be under way and each receive that
//         may be posted, and no more: with one message in flight it is the same place each time.
// Oracle: the depths themselves.
TEST(Slots, AreAsManyAsMayBeUnderWay) {
  TrafficPlan plan;
  plan.mr_bytes = 16 << 20;
  plan.sizes = {64};
  plan.receive_depth = 512;
  for (const std::uint32_t depth : {1U, 128U}) {
    plan.send_depth = depth;
    for (const Opcode alone :
         {Opcode::kWrite, Opcode::kWriteWithImm, Opcode::kRead, Opcode::kFetchAdd}) {
      plan.operation = alone;
      EXPECT_EQ(slots_of(plan, 0).size(), depth) << to_string(alone);
    }
    plan.operation = Opcode::kSend;
    EXPECT_EQ(slots_of(plan, 0).size(), 512U);
  }
}

// Claim:  threads that gather receives leave some posted in every queue: else none would come and
//         the lists would never be full.
// Oracle: the most that can be held back, counted by thread.
TEST(ReceiveLists, LeaveReceivesPosted) {
  for (std::uint32_t depth = 1; depth <= 12; ++depth) {
    for (std::uint32_t threads = 1; threads <= 5; ++threads) {
      for (const bool shared : {false, true}) {
        Configuration asked;
        asked.set("operation", std::string("SEND"));
        asked.set("qp_count", 8.0);
        asked.set("thread_count", double(threads));
        asked.set("receive_queue_depth", double(depth));
        asked.set("shared_receive_queue", shared);
        asked.set("receive_post_batch", 7.0);
        const auto plan = plan_from(asked, {});
        ASSERT_TRUE(plan.has_value()) << plan.error().message;
        const std::uint32_t held = (shared ? threads : 1) * (plan->receive_batch - 1);
        EXPECT_LT(held, depth) << threads << " threads, shared: " << shared;
        EXPECT_GE(plan->receive_batch, 1U);
        if (depth >= 7 && !shared) EXPECT_EQ(plan->receive_batch, 7U);
      }
    }
  }
}

// Claim:  a mix takes the place of message_bytes, and means what it means on the twin; atomics have
//         eight bytes whatever it is.
TEST(MessageMix, TakesThePlaceOfMessageBytes) {
  const auto planned = [](const std::string& text) {
    return plan_from(parse_configuration(text).value(), {}).value();
  };
  const TrafficPlan requests = planned("message_mix=mixed_requests,message_bytes=777");
  EXPECT_EQ(requests.sizes, (std::vector<std::uint32_t>{65536, 128, 128, 128}));
  EXPECT_TRUE(requests.elements.empty());
  const TrafficPlan elements = planned("message_mix=mixed_sge,sge_count=2");
  EXPECT_EQ(elements.sizes, std::vector<std::uint32_t>{128 + 65536 + 1024});
  EXPECT_EQ(elements.elements, (std::vector<std::uint32_t>{128, 65536, 1024}));
  EXPECT_EQ(elements.sge_count, 3U);
  EXPECT_EQ(planned("message_mix=mixed_sge,sge_count=5").sge_count, 5U);
  EXPECT_EQ(planned("message_mix=uniform,message_bytes=777").sizes,
            std::vector<std::uint32_t>{777});
  EXPECT_EQ(planned("message_mix=mixed_sge,operation=FADD").sizes, std::vector<std::uint32_t>{8});
}

// Claim:  what SEND_WITH_INV does not do here is refused for the reason that applies.
TEST(SendWithInvalidate, SaysWhatItDoesNotDo) {
  const DeviceLimits limits{.qp_count = 100,
                            .queue_depth = 1000,
                            .mr_count = 100,
                            .mr_bytes = 1 << 30,
                            .sge_count = 1,
                            .message_bytes = 1 << 20,
                            .memory_windows_2b = true};
  const PortState port{.active = true, .ethernet = true, .active_mtu_bytes = 4096};
  TrafficPlan plan;
  plan.operation = Opcode::kSendWithInv;
  EXPECT_EQ(impossible(plan, limits, port), std::nullopt);
  const auto refusal = [&](auto change) {
    TrafficPlan changed = plan;
    change(changed);
    return impossible(changed, limits, port).value_or("nothing");
  };
  EXPECT_EQ(refusal([](TrafficPlan& p) { p.mode = Mode::kLatency; }), "nothing");
  EXPECT_NE(
      refusal([](TrafficPlan& p) { p.direction = Direction::kBidirectional; }).find("one way"),
      std::string::npos);
  EXPECT_NE(refusal([](TrafficPlan& p) { p.shared_receive_queue = true; }).find("any QP"),
            std::string::npos);
}

TEST(Sizes, ReadMixes) {
  EXPECT_EQ(parse_sizes("64*2,9").value(), (std::vector<std::uint32_t>{64, 64, 9}));
  for (const char* bad : {"", "64*", "x", "64,,2", "64*0", "-1"}) {
    const auto sizes = parse_sizes(bad);
    ASSERT_FALSE(sizes) << bad;
    EXPECT_EQ(sizes.error().code, ErrorCode::kBadInput);
  }
}

GidEntry gid(int index, std::string_view kind, GidType type = GidType::kRoceV2) {
  GidEntry entry;
  entry.index = index;
  entry.type = type;
  if (kind == "ipv4") {
    entry.gid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 7};
  } else {
    entry.gid[0] = kind == "link" ? 0xfe : 0x20;
    entry.gid[1] = kind == "link" ? 0x80 : 0x01;
    entry.gid[15] = 1;
  }
  return entry;
}

TEST(GidRule, PrefersRoutableRoceV2) {
  const std::vector<GidEntry> all = {gid(0, "ipv4", GidType::kRoceV1), gid(1, "link"),
                                     gid(2, "global"), gid(3, "ipv4")};
  EXPECT_EQ(choose_gid(all, "auto")->index, 3);
  EXPECT_EQ(choose_gid(all, "ipv6")->index, 2);
  EXPECT_EQ(choose_gid(all, "1")->index, 1);
  EXPECT_EQ(choose_gid(all, "10.0.0.7")->index, 3);
}

TEST(GidRule, SaysWhatThereIsWhenNoneFits) {
  const auto none = choose_gid({gid(1, "link")}, "ipv4");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kMissing);
  EXPECT_NE(none.error().message.find("fe80::1"), std::string::npos) << none.error().message;
  EXPECT_EQ(choose_gid({}, "nonsense").error().code, ErrorCode::kBadInput);
}

TEST(Plan, TakesStandardsFromTheFactorTable) {
  const auto plan = plan_from(Configuration{}, {});
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->send_depth,
            find_factor("send_queue_depth")->standard == FactorValue(128.0) ? 128U : 0U);
  EXPECT_EQ(plan->sizes, std::vector<std::uint32_t>{65536});
}

}  // namespace
}  // namespace greynic::verbs
