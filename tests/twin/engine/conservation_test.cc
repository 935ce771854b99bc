#include <gtest/gtest.h>

#include <random>

#include "engine/engine.h"

namespace greynic::twin {

/// Takes away, or makes, one of what an engine must conserve.
struct EngineLeak {
  Engine& engine;

  /// The first stream that sends something of its own.
  [[nodiscard]] auto& stream() const { return engine.streams_[0]; }
  [[nodiscard]] NicCounters& client() const { return engine.nics_[0].counters; }
  [[nodiscard]] NicCounters& server() const { return engine.nics_[1].counters; }
  void payload() const { engine.payload_ -= 1; }
  /// Forgets the first event that brings a stream further; false: there is none of the kind.
  [[nodiscard]] bool event(bool arrives) const {
    EventQueue kept;
    bool lost = false;
    while (!engine.events_.empty()) {
      const Event event = engine.events_.pop();
      const bool wanted =
          arrives ? event.kind == Engine::kDelivered || event.kind == Engine::kCompleted
                  : event.kind == Engine::kDoorbell || event.kind == Engine::kWqeArrives ||
                        event.kind == Engine::kDataReady;
      if (wanted && !lost) {
        lost = true;
      } else {
        kept.push(event.time, event.kind, event.subject, event.count);
      }
    }
    engine.events_ = std::move(kept);
    return lost;
  }
};

namespace {

constexpr std::uint64_t kSeed = 20260302;

Workload any_workload(std::mt19937_64& random) {
  const auto pick = [&](auto... options) {
    const std::common_type_t<decltype(options)...> all[] = {options...};
    return all[random() % sizeof...(options)];
  };
  Workload w;
  w.transport = pick(Transport::kRC, Transport::kRC, Transport::kUC);
  w.operation = pick(Operation::kSend, Operation::kWrite);
  if (w.transport == Transport::kRC && random() % 2 == 0) {
    w.operation = pick(Operation::kRead, Operation::kAtomic, Operation::kSend);
  }
  w.qp_count = pick(1U, 3U, 40U);
  w.thread_count = pick(1U, 2U, 8U);
  w.send_depth = pick(4U, 128U);
  w.receive_depth = pick(1U, 8U, 512U);
  w.shared_receive_queue = random() % 4 == 0;
  w.message_bytes = {pick(0ULL, 64ULL, 5000ULL, 100000ULL)};
  if (random() % 3 == 0) w.message_bytes.insert(w.message_bytes.end(), {20000, 1, 3000});
  if (w.operation == Operation::kAtomic) w.message_bytes = {8};
  w.signal_every = pick(1U, 4U);
  w.post_batch = pick(1U, 4U);
  w.direction = pick(Direction::kUnidirectional, Direction::kBidirectional, Direction::kLoopback);
  if (w.direction == Direction::kLoopback && w.qp_count == 1) w.qp_count = 2;
  w.posting = pick(Posting::kWindow, Posting::kRound);
  w.loss = pick(0.0, 0.001, 0.05);
  w.flow_count = pick(1ULL, 1000000ULL);
  w.mr_churn_rate = pick(0.0, 100000.0);
  if (random() % 3 == 0) {
    w.server_link_gbps = 50;
    w.dcqcn = random() % 2 == 0;
  }
  if (random() % 3 == 0 && w.direction == Direction::kUnidirectional) {
    w.sender_count = pick(2U, 3U, 9U);
    w.dcqcn = random() % 2 == 0;
  }
  w.pfc = random() % 4 != 0;
  if (random() % 4 == 0) w.offered_rate = pick(1e5, 1e8);
  return w;
}

// Claim:  no packet, byte, queue slot, receive WQE, read credit or WQE is lost or made, whatever is
//         simulated, and wherever the run is stopped.
// Oracle: laws of conservation, each counted in two places (engine_conservation.cc).
// Method: 400 random workloads with losses, refused messages, mixed sizes, shared queues, all
//         directions, stopped at random times; the seed is printed. Latency runs as well.
TEST(Conservation, HoldsWhateverIsSimulated) {
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  const Parameters parameters = load_model("cx6", "")->parameters;
  std::mt19937_64 random(kSeed);
  std::uint64_t refused = 0;
  std::uint64_t went_back = 0;
  std::uint64_t discarded = 0;
  for (int i = 0; i < 400; ++i) {
    const Workload w = any_workload(random);
    RunLimits limits;
    limits.duration = static_cast<double>(1000 + random() % 3000000);
    limits.most_packets = 20000;
    Engine engine(parameters, w, Effects{}, kSeed + static_cast<std::uint64_t>(i));
    (void)engine.run_bandwidth(limits);
    ASSERT_EQ(engine.broken_law(), "") << "workload " << i;
    refused += engine.counters(1).rnr_naks;
    went_back += engine.counters(0).sequence_naks;
    discarded += engine.counters(0).port_discards;
    Engine trips(parameters, w, Effects{}, kSeed);
    (void)trips.run_latency(limits, 200);
    ASSERT_EQ(trips.broken_law(), "") << "latency of workload " << i;
  }
  EXPECT_GT(refused, 200U);  // else the method does not reach what it claims
  EXPECT_GT(went_back, 1000U);
  EXPECT_GT(discarded, 1000U);
}

struct Leak {
  const char* law;
  bool (*plant)(const EngineLeak&);  ///< false: there is nothing to lose yet
};

void PrintTo(const Leak& leak, std::ostream* out) { *out << leak.law; }

const Leak kLeaks[] = {
    {"receive WQEs", [](const EngineLeak& leak) { return leak.stream().receives-- > 0; }},
    {"WQEs ", [](const EngineLeak& leak) { return leak.event(false); }},
    {"requests without completion", [](const EngineLeak& leak) { return leak.event(true); }},
    {"slots given back", [](const EngineLeak& leak) { return ++leak.stream().credited > 0; }},
    {"PCIe read credits",
     [](const EngineLeak& leak) { return ++leak.client().pcie_read_tlps > 0; }},
    {"notifications", [](const EngineLeak& leak) { return ++leak.client().cnps_handled > 0; }},
    {"packets sent", [](const EngineLeak& leak) { return ++leak.client().tx_packets > 0; }},
    {"packets received", [](const EngineLeak& leak) { return ++leak.server().rx_packets > 0; }},
    {"bytes sent", [](const EngineLeak& leak) { return ++leak.client().tx_bytes > 0; }},
    {"bytes received", [](const EngineLeak& leak) { return ++leak.server().rx_bytes > 0; }},
    {"bytes written",
     [](const EngineLeak& leak) {
       leak.payload();
       return true;
     }},
};

class PlantedLeak : public testing::TestWithParam<Leak> {};

// Claim:  one of anything that is lost or made is found, by the law that it breaks; a debug build
//         stops at the next look at the clock.
// Oracle: the leak is planted, in the middle of a run.
TEST_P(PlantedLeak, IsFoundAndNamed) {
  Workload w;
  w.qp_count = 4;
  w.message_bytes = {4096};
  RunLimits limits;
  limits.duration = 1e6;
  limits.whole_duration = true;
  Engine engine(load_model("cx6", "")->parameters, w, Effects{}, kSeed);
  bool planted = false;
  engine.on_period(1000, [&](Time t) {
    if (t >= 200e3 && !planted) planted = GetParam().plant({engine});
  });
#ifdef NDEBUG
  (void)engine.run_bandwidth(limits);
  ASSERT_TRUE(planted);
  EXPECT_EQ(engine.broken_law().find(GetParam().law), 0U) << engine.broken_law();
#else
  EXPECT_DEATH((void)engine.run_bandwidth(limits), std::string("lost or made: ") + GetParam().law);
#endif
}

INSTANTIATE_TEST_SUITE_P(All, PlantedLeak, testing::ValuesIn(kLeaks),
                         [](const auto& test) { return std::to_string(test.index); });

}  // namespace
}  // namespace greynic::twin
