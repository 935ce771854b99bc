/// Factors of which a device tells nothing that could be measured in software: how receives are
/// handed over, how a message lies in its SG list, which doorbell register a QP has. Over a device
/// in memory (fake_rdma.h), which writes down what it is told.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "fake_device/fake_rdma.h"
#include "greynic/verbs/verbs_target.h"
#include "patient.h"

namespace greynic::verbs {
namespace {

std::unique_ptr<target::Target> opened() {
  const auto specs = target::parse_specs("verbs:fake0?validate=true&stall=600s");
  auto target = verbs_kind(nullptr).open(specs->front());
  EXPECT_TRUE(target.has_value()) << target.error().message;
  return std::move(*target);
}

Observation measured(const std::string& more) {
  const auto asked = parse_configuration(
      "transport=XRC,qp_count=5,qps_per_cq=2,thread_count=2,message_bytes=200,"
      "send_queue_depth=8,receive_queue_depth=16,mr_count=5," +
      more);
  EXPECT_TRUE(asked.has_value()) << more;
  return measure_patiently(
      *opened(), {.configuration = *asked, .duration = std::chrono::milliseconds(100), .seed = 3});
}

void expect_clean() {
  for (const std::string& what : fake_rdma().violations) ADD_FAILURE() << what;
  EXPECT_EQ(fake_rdma().objects, 0U);
}

// Claim:  receives go to the device in lists of receive_post_batch, however that divides the depth
//         of the queue; only what is left over when a queue is filled is shorter. A list longer
//         than the queue is cut to it, and the observation says so.
// Oracle: the device counts what each call brings; a queue of 16 has three groups to fill.
TEST(ReceivePostBatch, IsTheLengthOfEachList) {
  for (const std::uint64_t batch : {1, 3, 5, 8, 16, 40}) {
    for (const char* operation : {"SEND", "WRITE_WITH_IMM"}) {
      fake_rdma() = {};
      const Observation seen = measured(
          fmt::format("operation={},mr_bytes=65536,receive_post_batch={}", operation, batch));
      ASSERT_EQ(seen.outcome, Outcome::kMeasured) << seen.reason;
      const std::uint64_t granted = std::min<std::uint64_t>(batch, 16);
      EXPECT_EQ(seen.granted.number("receive_post_batch"), static_cast<double>(granted));
      // Of every run that the patient measurement took.
      const std::uint64_t remainders = fake_rdma().receive_lists[16 % granted];
      if (16 % granted != 0) EXPECT_EQ(remainders % 3, 0U);
      fake_rdma().receive_lists.erase(16 % granted);
      EXPECT_GT(fake_rdma().receive_lists[granted], 3 * (16 / granted)) << "and in the run itself";
      EXPECT_EQ(fake_rdma().receive_lists.size(), 1U) << "lists of " << granted;
      expect_clean();
    }
  }
}

// Claim:  a mix is what each request looks like to the device.
// Oracle: the lengths in the SG lists that the device was handed; message_bytes is granted as the
//         mean of the mix.
TEST(MessageMix, IsWhatTheDeviceIsHanded) {
  using Lengths = std::set<std::vector<std::uint32_t>>;
  const std::string room = "operation=WRITE,mr_bytes=4194304,message_mix=";
  for (const bool extended : {true, false}) {
    fake_rdma() = {};
    fake_rdma().extended = extended;
    const Observation elements = measured(room + "mixed_sge,sge_count=1");
    ASSERT_EQ(elements.outcome, Outcome::kMeasured) << elements.reason;
    EXPECT_EQ(fake_rdma().pieces, (Lengths{{128, 65536, 1024}}));
    EXPECT_EQ(elements.granted.number("sge_count"), 3);
    EXPECT_EQ(elements.granted.number("message_bytes"), 66688);
    fake_rdma().pieces.clear();
    const Observation requests = measured(room + "mixed_requests");
    ASSERT_EQ(requests.outcome, Outcome::kMeasured) << requests.reason;
    EXPECT_EQ(fake_rdma().pieces, (Lengths{{65536}, {128}}));
    EXPECT_EQ(requests.granted.number("message_bytes"), (65536 + 3 * 128) / 4);
    expect_clean();
  }
}

// Claim:  with a register for each thread the QPs of a thread share one and those of two threads do
//         not; without, all have the driver's; where the provider has no thread domains the level
//         is not offered, and is refused by name.
// Oracle: which thread domain each QP was made on; of 5 QPs two to a CQ, 3 belong to one thread.
TEST(DoorbellSharing, GivesEachThreadItsRegister) {
  fake_rdma() = {};
  const std::string asked = "operation=WRITE,mr_bytes=65536,doorbell_sharing=";
  EXPECT_EQ(opened()->info().categories.at("doorbell_sharing"),
            (std::vector<std::string>{"default", "dedicated"}));
  for (const std::string level : {"default", "dedicated"}) {
    fake_rdma() = {};
    const auto target = opened();
    const Observation seen = measured(asked + level);
    ASSERT_EQ(seen.outcome, Outcome::kMeasured) << seen.reason;
    std::map<std::size_t, std::size_t> domains;  // by their QPs, over however many runs it took
    for (const auto& [domain, count] : fake_rdma().senders) {
      EXPECT_EQ(domain == 0, level == "default");
      ++domains[count];
    }
    if (level == "dedicated") {
      EXPECT_EQ(domains.size(), 2U);
      EXPECT_EQ(domains[3], domains[2]);
      EXPECT_GT(domains[3], 0U);
    }
    expect_clean();
  }
  fake_rdma() = {};
  fake_rdma().thread_domains = false;
  EXPECT_EQ(opened()->info().categories.at("doorbell_sharing"),
            std::vector<std::string>{"default"});
  const Observation refused = measured(asked + "dedicated");
  EXPECT_EQ(refused.outcome, Outcome::kRefused);
  EXPECT_NE(refused.reason.find("doorbell_sharing dedicated"), std::string::npos) << refused.reason;
  expect_clean();
}

}  // namespace
}  // namespace greynic::verbs
