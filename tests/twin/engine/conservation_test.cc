#include <gtest/gtest.h>

#include <random>

#include "engine/engine.h"

namespace greynic::twin {

namespace {

constexpr std::uint64_t kSeed = 20260302;

HostLoad any_load(std::mt19937_64& random) {
  const auto pick = [&](auto... options) {
    const std::common_type_t<decltype(options)...> all[] = {options...};
    return all[random() % sizeof...(options)];
  };
  HostLoad w;
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
// Oracle: laws of conservation, each counted in two places (books.h).
// Method: 400 random loads with losses, refused messages, mixed sizes, shared queues, all
//         directions, stopped at random times; the seed is printed. Latency runs as well.
TEST(Conservation, HoldsWhateverIsSimulated) {
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  const Parameters parameters = load_model("cx6", "")->parameters;
  std::mt19937_64 random(kSeed);
  std::uint64_t refused = 0;
  std::uint64_t went_back = 0;
  std::uint64_t discarded = 0;
  for (int i = 0; i < 400; ++i) {
    const HostLoad w = any_load(random);
    RunLimits limits;
    limits.duration = static_cast<double>(1000 + random() % 3000000);
    limits.most_packets = 20000;
    Engine engine(parameters, w, Effects{}, kSeed + static_cast<std::uint64_t>(i));
    (void)engine.run_bandwidth(limits);
    ASSERT_EQ(engine.broken_law(), "") << "load " << i;
    refused += engine.counters(1).rnr_naks;
    went_back += engine.counters(0).sequence_naks;
    discarded += engine.counters(0).port_discards;
    Engine trips(parameters, w, Effects{}, kSeed);
    (void)trips.run_latency(limits, 200);
    ASSERT_EQ(trips.broken_law(), "") << "latency of load " << i;
  }
  EXPECT_GT(refused, 200U);  // else the method does not reach what it claims
  EXPECT_GT(went_back, 1000U);
  EXPECT_GT(discarded, 1000U);
}

struct Leak {
  const char* law;
  void (*plant)(Ledger&);
};

void PrintTo(const Leak& leak, std::ostream* out) { *out << leak.law; }

/// The first stream that has one of these; it loses it.
void lose_one(Ledger& ledger, std::uint64_t LedgerLine::*place) {
  for (LedgerLine& line : ledger.lines) {
    if (line.*place > 0) {
      --(line.*place);
      return;
    }
  }
  FAIL() << "there is nothing to lose";
}

NicCounters& client(Ledger& ledger) { return ledger.rnics[0].counters; }
NicCounters& server(Ledger& ledger) { return ledger.rnics[1].counters; }

const Leak kLeaks[] = {
    {"receive WQEs", [](Ledger& ledger) { --ledger.lines[0].stream.receives; }},
    {"WQEs on their way", [](Ledger& ledger) { lose_one(ledger, &LedgerLine::posted); }},
    {"WQEs that wait", [](Ledger& ledger) { ++ledger.lines[0].waiting; }},
    {"WQEs in work", [](Ledger& ledger) { lose_one(ledger, &LedgerLine::fetching); }},
    {"requests without completion",
     [](Ledger& ledger) { lose_one(ledger, &LedgerLine::arriving); }},
    {"requests without completion",
     [](Ledger& ledger) { lose_one(ledger, &LedgerLine::completing); }},
    {"slots given back", [](Ledger& ledger) { ++ledger.lines[0].stream.credited; }},
    {"slots that threads hold", [](Ledger& ledger) { --ledger.held; }},
    {"PCIe read credits", [](Ledger& ledger) { ++client(ledger).pcie_read_tlps; }},
    {"notifications", [](Ledger& ledger) { ++client(ledger).cnps_handled; }},
    {"packets sent", [](Ledger& ledger) { ++client(ledger).tx_packets; }},
    {"packets received", [](Ledger& ledger) { ++server(ledger).rx_packets; }},
    {"bytes sent", [](Ledger& ledger) { ++client(ledger).tx_bytes; }},
    {"bytes received", [](Ledger& ledger) { ++server(ledger).rx_bytes; }},
    {"bytes written", [](Ledger& ledger) { ledger.payload -= 1; }},
};

class PlantedLeak : public testing::TestWithParam<Leak> {};

// Claim:  one of anything that is lost or made is found, by the law that it breaks, and stops a
//         debug build, which checks its books during every run.
// Oracle: the leak is planted, in the books of the middle of a run, which hold without it.
TEST_P(PlantedLeak, IsFoundAndNamed) {
  HostLoad w;
  w.qp_count = 400;  // so many that some of their requests are in each place
  w.message_bytes = {4096};
  Engine engine(load_model("cx6", "")->parameters, w, Effects{}, kSeed);
  RunLimits limits;
  limits.duration = 20e3;
  (void)engine.run_bandwidth(limits);
  Ledger ledger = engine.ledger();
  ASSERT_EQ(broken_law(ledger), "");
  check(ledger);
  GetParam().plant(ledger);
  EXPECT_EQ(broken_law(ledger).find(GetParam().law), 0U) << broken_law(ledger);
  EXPECT_DEATH(check(ledger), std::string("lost or made: ") + GetParam().law);
}

INSTANTIATE_TEST_SUITE_P(All, PlantedLeak, testing::ValuesIn(kLeaks),
                         [](const auto& test) { return std::to_string(test.index); });

}  // namespace
}  // namespace greynic::twin
