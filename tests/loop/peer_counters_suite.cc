// Counters of a peer while traffic runs: an agent on the device in memory, and beside it a monitor's
// agent that shows what `greynic zero rnic` publishes, here out of a copy of sysfs.

#include <fstream>
#include <thread>

#include "fake_device/fake_rdma.h"
#include "far_counters.h"
#include "greynic/agent/agent.h"
#include "greynic/rnic/sampler.h"
#include "greynic/target/target.h"
#include "greynic/verbs/verbs_target.h"
#include "greynic_zero.h"
#include "patient.h"
#include "remote_fixture.h"

namespace greynic::monitor {
namespace {

namespace fs = std::filesystem;

class PeerCounters : public RemoteHost {
 protected:
  void SetUp() override {
    RemoteHost::SetUp();
    verbs::fake_rdma() = {};
    make_lab({"alice"});
    start_agent();
    open_door();
    auto peer = agent::Agent::start(
        {.listen = "127.0.0.1:0", .certificates = lab(), .device = verbs::kFakeDevice});
    ASSERT_TRUE(peer) << peer.error().message;
    peer_ = std::move(*peer);
    ASSERT_EQ(zero_connect(nullptr), 0);
  }
  void TearDown() override {
    peer_.reset();
    zero_disconnect();
    RemoteHost::TearDown();
  }
  void put(const std::string& device, std::uint64_t packets) const {
    const fs::path folder =
        fs::path(folder_) / "sys/class/infiniband" / device / "ports/1/hw_counters";
    fs::create_directories(folder);
    std::ofstream(folder / "rcvd_pkts") << packets << "\n";
    std::ofstream(folder / "of_no_meaning") << packets << "\n";
  }
  rnic::Sampler sampler() const {
    auto made = rnic::Sampler::open({"*", rnic::Selection::usual(), folder_ + "/sys", false});
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
  }
  Result<std::unique_ptr<target::Target>> open(const std::string& more) const {
    const auto specs = target::parse_specs("verbs:fake0?certificates=" + of_client("alice") + more);
    EXPECT_TRUE(specs);
    return verbs::verbs_kind(agent::remote_peer, {}, loop::open_far_counters).open(specs->front());
  }
  std::string with_peer() const { return "&peer=" + peer_->address(); }
  std::string with_counters() const { return with_peer() + "&peer_counters=" + door_->address(); }
  static Observation measured(target::Target& target) {
    return measure_patiently(
        target, {.configuration = *parse_configuration(
                     "transport=XRC,operation=SEND,message_bytes=64,send_queue_depth=8,"
                     "receive_queue_depth=8,mr_bytes=65536,qp_count=6,qps_per_cq=2"),
                 .duration = milliseconds(500),
                 .seed = 5,
                 .sample_every = milliseconds(5)});
  }

  std::unique_ptr<agent::Agent> peer_;
};

const std::string kReceived = "peer.rdma.packets_received";

// Claim:  while traffic runs a peer's counters are READ on its host, under the names that they have
//         before and after the run; each sample is of its moment.
// Oracle: what the test publishes meanwhile, the time of the day in it.
TEST_F(PeerCounters, AreReadOnItsHostWhileTrafficRuns) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto now = [&] {
    return static_cast<std::uint64_t>((Clock::now() - begin) / milliseconds(1));
  };
  put("fake0", now());
  auto published = sampler();
  std::atomic<bool> over{false};
  std::thread publishing([&] {
    while (!over) {
      put("fake0", now());
      published.sample_ports();
      std::this_thread::sleep_for(milliseconds(2));
    }
  });
  const auto target = open(with_counters());
  ASSERT_TRUE(target) << target.error().message;
  const auto before = now();
  const Observation seen = measured(**target);
  const auto after = now();
  over = true;
  publishing.join();
  ASSERT_EQ(seen.outcome, Outcome::kMeasured) << seen.reason;
  ASSERT_TRUE(seen.counter_samples.contains(kReceived));
  EXPECT_EQ(seen.counter_samples.size(), 1U) << "no counter without a neutral name";
  const auto& samples = seen.counter_samples.at(kReceived);
  ASSERT_GE(samples.size(), 3U);
  for (std::size_t i = 1; i < samples.size(); ++i) {
    EXPECT_GT(samples[i].time_ns, samples[i - 1].time_ns);
    EXPECT_GE(samples[i].value, samples[i - 1].value);
  }
  EXPECT_GT(samples.back().value, samples.front().value);
  EXPECT_GE(samples.back().value, static_cast<double>(before));
  EXPECT_LE(samples.back().value, static_cast<double>(after));
}

// Claim:  a monitor that goes away in the middle of a run ends its samples, and nothing else.
TEST_F(PeerCounters, ThatAreNotReadAnyMoreCostNoRun) {
  put("fake0", 1);
  const auto published = sampler();
  const auto target = open(with_counters());
  ASSERT_TRUE(target) << target.error().message;
  door_.reset();
  const Observation seen = measured(**target);
  EXPECT_EQ(seen.outcome, Outcome::kMeasured) << seen.reason;
  EXPECT_FALSE(seen.counter_samples.contains(kReceived));
}

// Claim:  a host without counters, one with those of several devices, and a number of monitors that is
//         not that of the peers are told with the remedy.
TEST_F(PeerCounters, ThatCannotBeReadAreTold) {
  const auto nobody = open(with_counters());
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().code, ErrorCode::kMissing);
  EXPECT_NE(nobody.error().message.find("greynic zero rnic"), std::string::npos)
      << nobody.error().message;
  put("fake0", 1);
  put("other0", 1);
  const auto published = sampler();
  const auto several = open(with_counters());
  ASSERT_FALSE(several);
  EXPECT_EQ(several.error().code, ErrorCode::kBadInput);
  EXPECT_NE(several.error().message.find(door_->address() + "/fake0"), std::string::npos)
      << several.error().message;
  EXPECT_TRUE(open(with_counters() + "/other0"));
  for (const std::string& bad :
       {"&peer_counters=" + door_->address(), with_counters() + "," + door_->address()}) {
    const auto refused = open(bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().code, ErrorCode::kBadInput) << bad;
  }
}

}  // namespace
}  // namespace greynic::monitor
