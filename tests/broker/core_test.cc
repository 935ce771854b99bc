// The core on the fabric: random programs with failures, held against plain words.

#include <gtest/gtest.h>

#include <cerrno>

#include "pair.h"
#include "talkers.h"

namespace greynic::broker {
namespace {

void expect_whole(const Talker& talker, const std::string& what) {
  for (const Outcome& one : talker.outcomes) {
    EXPECT_TRUE(one.closed) << what << " key " << one.key;
    EXPECT_EQ(one.error, 0) << what << " key " << one.key;
    EXPECT_EQ(one.received, one.wanted) << what << " key " << one.key;
    EXPECT_EQ(one.wrong, 0U) << what << " key " << one.key;
  }
}

FabricNodeOptions random_options(statistics::Random& random) {
  FabricNodeOptions options;
  options.core.latency_lanes = static_cast<std::uint16_t>(1 + random.below(3));
  options.core.bulk_lanes = static_cast<std::uint16_t>(random.below(3));
  options.core.receive_credits = 32 + random.below(3) * 48;
  options.core.receive_bytes = random.below(2) == 0 ? 1024 : 4096;
  options.core.segment_bytes = 4096U << random.below(5);
  options.core.send_depth = 16 + random.below(100);
  options.immediate = random.below(3) != 0;
  options.attributes.ack_timeout = 8;
  return options;
}

// Claim:  every byte arrives once and in order on every connection, whatever verb carries it, when
//         packets are lost and shared QPs fail at any time, and nothing is left behind.
// Oracle: the byte that belongs at each place of each stream; 0 connections at the end.
// Method: random programs; QPs of either side are put into error while they run.
TEST(BrokerCore, CarriesEveryByteOnceThroughFailures) {
  std::uint64_t rebuilds = 0, replayed = 0, reads = 0, writes = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    statistics::Random random(seed);
    twin::FabricSpec spec;
    spec.seed = seed;
    spec.loss = random.below(4) == 0 ? 1e-3 : 0;
    Pair pair(random_options(random), spec);
    const std::uint32_t count = 1 + random.below(30);
    const std::uint64_t ring = 600 + random.below(100000);
    const std::uint64_t most = 1 + random.below(200000);
    Talker opener(*pair.a, count, ring, most, seed), server(*pair.b, count, ring, most, seed + 1);
    const auto rule = [&] { return static_cast<VerbRule>(random.below(4)); };
    server.rule = rule();
    server.listen(7);
    for (std::uint32_t i = 0; i < count; ++i) opener.open(1, 7, seed << 32 | i, rule());
    for (std::uint32_t i = random.below(6); i > 0; --i) {
      FabricNode& node = random.below(2) == 0 ? *pair.a : *pair.b;
      pair.fabric->at(50e3 + random.uniform() * 300e3, [&node, &pair, pick = random.next()] {
        const std::vector<QpNumber>& qps = node.qps();
        const twin::QpId qp{qps[pick % qps.size()]};
        (void)pair.fabric->modify(qp, twin::QpState::kError);
        node.act([qp](Core& core) { core.on_qp_error(qp.id); });
      });
    }
    const std::string what = "seed " + std::to_string(seed);
    const bool over = run_while_busy(*pair.fabric, 1e9, [&] {
      return opener.outcomes.size() == count && opener.all_closed() && server.all_closed();
    });
    EXPECT_TRUE(over) << what << ": " << opener.open_count() << " of " << count
                      << " are still open; " << pair.a->broken() << pair.b->broken();
    expect_whole(opener, what);
    expect_whole(server, what);
    for (FabricNode* node : {pair.a.get(), pair.b.get()}) {
      const Counters& counters = node->core().counters();
      EXPECT_EQ(node->core().connection_count(), 0U) << what;
      EXPECT_EQ(counters.garbled + counters.forged + counters.guilty, 0U) << what;
      rebuilds += counters.rebuilds;
      replayed += counters.replayed;
      reads += counters.chose_read;
      writes += counters.chose_write;
    }
    if (HasFailure()) break;
  }
  // The claim says nothing unless these happened.
  EXPECT_GT(rebuilds, 100U);
  EXPECT_GT(replayed, 100U);
  EXPECT_GT(reads, 100U);
  EXPECT_GT(writes, 100U);
}

// Claim:  with as many lanes as connections each has a QP of its own, made when it comes; a lane that no
//         connection uses costs none.
// Oracle: every byte; the count of QPs.
TEST(BrokerCore, GivesEachConnectionAQpWhereThatIsAsked) {
  FabricNodeOptions options;
  options.core.latency_lanes = 4096;
  options.core.bulk_lanes = 0;
  Pair pair(options);
  pair.fabric->run_until(1e6);
  EXPECT_EQ(pair.a->core().qp_count(), 1U);
  Talker opener(*pair.a, 20, 50000, 100000, 1), server(*pair.b, 20, 50000, 100000, 2);
  server.listen(7);
  for (std::uint64_t i = 0; i < 20; ++i) opener.open(1, 7, 100 + i);
  ASSERT_TRUE(run_while_busy(*pair.fabric, 1e9, [&] {
    return opener.outcomes.size() == 20 && opener.all_closed() && server.all_closed();
  }));
  expect_whole(opener, "opener");
  expect_whole(server, "server");
  for (FabricNode* node : {pair.a.get(), pair.b.get()}) {
    EXPECT_EQ(node->core().qp_count(), 21U) << "20, and the first, which carries control";
  }
}

/// Takes the registration of a segment away, as no broker does: what is written there is refused.
void deregister_behind_its_back(twin::Fabric& fabric, const std::vector<std::byte>& segment) {
  const auto address = reinterpret_cast<std::uint64_t>(segment.data());
  for (std::uint32_t id = 1; id < 100; ++id) {
    if (fabric.region_address(twin::RegionId{id}) == address) {
      ASSERT_TRUE(fabric.destroy(twin::RegionId{id}));
      return;
    }
  }
  FAIL() << "no region at this address";
}

// Claim:  a request that the far RNIC refuses costs its own connection EFAULT; others on the same
//         QPs lose nothing.
// Oracle: the bytes of the others; one error each at both ends of the guilty one.
// Method: one application's memory is deregistered while 20 connections of another are busy.
TEST(BrokerCore, TellsOnlyTheGuilty) {
  FabricNodeOptions options;
  options.core.latency_lanes = options.core.bulk_lanes = 1;
  Pair pair(options);
  Talker opener(*pair.a, 20, 50000, 300000, 1), server(*pair.b, 20, 50000, 300000, 2);
  Talker bad(*pair.a, 1, 50000, 300000, 3), victim(*pair.b, 1, 50000, 300000, 4);
  server.listen(7);
  victim.listen(8);
  victim.rule = VerbRule::kWrite;
  for (std::uint64_t i = 0; i < 20; ++i) opener.open(1, 7, 100 + i, VerbRule::kWrite);
  pair.fabric->run_until(60e3);
  deregister_behind_its_back(*pair.fabric, victim.segment);
  bad.open(1, 8, 0x5151, VerbRule::kWrite);
  EXPECT_TRUE(run_while_busy(*pair.fabric, 2e9, [&] {
    return bad.outcomes.size() == 1 && bad.all_closed() && opener.all_closed() &&
           server.all_closed() && victim.all_closed();
  }));
  expect_whole(opener, "opener");
  expect_whole(server, "server");
  ASSERT_EQ(bad.outcomes.size(), 1U);
  EXPECT_EQ(bad.outcomes[0].error, EFAULT);
  EXPECT_EQ(pair.a->core().counters().guilty, 1U);
  EXPECT_GE(pair.a->core().counters().rebuilds, 1U);
  EXPECT_EQ(pair.a->core().connection_count(), 0U);
  EXPECT_EQ(pair.b->core().connection_count(), 0U);
}

// Claim:  an application that ends in the middle leaves nothing behind and takes nobody with it.
TEST(BrokerCore, FreesWhatADeadApplicationHad) {
  Pair pair;
  Talker opener(*pair.a, 10, 30000, 400000, 1), server(*pair.b, 40, 30000, 400000, 2);
  auto dying = std::make_unique<Talker>(*pair.a, 30, 30000, 400000, 3);
  server.listen(7);
  for (std::uint64_t i = 0; i < 10; ++i) opener.open(1, 7, 100 + i);
  for (std::uint64_t i = 0; i < 30; ++i) dying->open(1, 7, 200 + i);
  pair.fabric->run_until(150e3);
  ASSERT_GT(dying->open_count(), 0U);
  pair.a->act([&](Core& core) { core.detach(dying->app); });
  EXPECT_TRUE(run_while_busy(*pair.fabric, 1e9, [&] {
    return dying->detached && opener.all_closed() && server.all_closed();
  }));
  expect_whole(opener, "opener");
  EXPECT_EQ(pair.a->core().connection_count(), 0U);
  EXPECT_EQ(pair.b->core().connection_count(), 0U);
  std::size_t reset = 0;
  for (const Outcome& one : server.outcomes) {
    EXPECT_EQ(one.wrong, 0U);
    if (one.error == 0) EXPECT_EQ(one.received, one.wanted);
    reset += one.error == ECONNRESET;
  }
  EXPECT_GT(reset, 0U);
}

// Claim:  when a peer dies, its connections end with ECONNRESET, and those to others go on.
TEST(BrokerCore, SurvivesADeadPeer) {
  twin::FabricSpec spec;
  spec.host_count = 3;
  Pair pair({}, spec);
  auto third = std::move(*FabricNode::create(*pair.fabric, 2, {}));
  ASSERT_TRUE(FabricNode::meet(*pair.a, *third));
  Talker opener(*pair.a, 20, 30000, 400000, 1), staying(*pair.b, 10, 30000, 400000, 2);
  Talker dying(*third, 10, 30000, 400000, 3);
  staying.listen(7);
  dying.listen(7);
  for (std::uint64_t i = 0; i < 20; ++i) opener.open(i % 2 == 0 ? 1 : 2, 7, 100 + i);
  pair.fabric->run_until(120e3);
  third->kill();
  EXPECT_TRUE(run_while_busy(*pair.fabric, 1e9,
                             [&] { return opener.all_closed() && staying.all_closed(); }));
  expect_whole(staying, "staying");
  std::size_t lost = 0;
  for (const Outcome& one : opener.outcomes) lost += one.error == ECONNRESET;
  EXPECT_EQ(lost, 10U);
  EXPECT_EQ(pair.a->core().connection_count(), 0U);
}

// Claim:  10,000 connections, opened and closed, leave nothing behind, and numbers do not repeat
//         soon: those of a connection that ended are void.
TEST(BrokerCore, LeavesNothingAfterTenThousandConnections) {
  Pair pair;
  Talker opener(*pair.a, 100, 1024, 100, 1), server(*pair.b, 100, 1024, 100, 2);
  server.listen(7);
  const std::size_t bytes = pair.a->core().own_bytes();
  for (std::uint64_t round = 0; round < 100; ++round) {
    for (std::uint64_t i = 0; i < 100; ++i) opener.open(1, 7, round << 16 | i);
    ASSERT_TRUE(run_while_busy(*pair.fabric, 1e8, [&] {
      return opener.outcomes.size() == 100 * (round + 1) && opener.all_closed() &&
             server.all_closed();
    }));
  }
  expect_whole(opener, "opener");
  expect_whole(server, "server");
  EXPECT_EQ(pair.a->core().own_bytes(), bytes);
  EXPECT_EQ(pair.a->core().connection_count(), 0U);
  EXPECT_EQ(pair.a->core().qp_count(), 2U);
}

/// Exposes its segment, and WRITEs pieces of it once a connection is open.
class Writer : public FabricClient {
 public:
  Writer(FabricNode& node, std::uint64_t piece, int pieces)
      : node_(node), piece_(piece), pieces_(pieces), segment_(16384 + piece * pieces) {
    app = *node.attach(*this, segment_);
  }
  void on_incoming(std::uint16_t, VirtualQpn number) override {
    pieces_ = 0;
    EXPECT_EQ(node_.core().accept(app, number, rings()), 0);
  }
  void on_open(VirtualQpn number) override {
    for (int i = 0; i < pieces_; ++i) {
      EXPECT_EQ(node_.core().transfer(app, number, Verb::kWrite, 8192, i * piece_, piece_, 0), 0);
    }
  }
  void on_transferred(VirtualQpn, std::uint64_t) override { ++done; }
  [[nodiscard]] Rings rings() const {
    return {.send = {0, 4096}, .receive = {4096, 4096}, .exposed = {8192, segment_.size() - 8192}};
  }

  AppId app = 0;
  int done = 0;

 private:
  FabricNode& node_;
  std::uint64_t piece_;
  int pieces_;
  std::vector<std::byte> segment_;
};

// Claim:  of eight pieces that are posted together the broker is told at the first and the last, and besides
//         whenever an eighth of what may be under way is done: so large pieces do not go in herds.
TEST(BrokerCore, IsToldOfEachEighthOfWhatIsUnderWay) {
  const auto told_of = [](std::uint64_t piece) {
    Pair pair;
    Writer writer(*pair.a, piece, 8), reader(*pair.b, piece, 8);
    VirtualQpn number = 0;
    pair.b->act([&](Core& core) { EXPECT_EQ(core.listen(reader.app, 7), 0); });
    const auto completions = [&] {
      for (const auto& [name, value] : pair.fabric->counters(0)) {
        if (name == "completions") return value;
      }
      return -1.0;
    };
    pair.a->act(
        [&](Core& core) { EXPECT_EQ(core.connect(writer.app, 1, 7, writer.rings(), number), 0); });
    double before = 0;
    EXPECT_TRUE(run_while_busy(*pair.fabric, 1e7, [&] {
      if (writer.done == 0) before = completions();
      return writer.done == 8;
    }));
    return completions() - before;
  };
  const std::uint64_t eighth = CoreOptions{}.in_flight_bytes / 8;
  EXPECT_EQ(told_of(eighth), 8);
  EXPECT_EQ(told_of(eighth / 4), 3);
}

// Claim:  what is wrong is refused with an error number and changes nothing.
TEST(BrokerCore, RefusesWhatApplicationsMayNotAsk) {
  Pair pair;
  Talker opener(*pair.a, 2, 4096, 100000, 1), server(*pair.b, 2, 4096, 100000, 2);
  Core& core = pair.a->core();
  VirtualQpn number = 0;
  const Rings good{.send = {0, 4096}, .receive = {4096, 4096}};
  const Rings outside{.send = {0, 4096}, .receive = {8192, 1 << 20}};
  const Rings wraps{.send = {~0ULL - 5, 4096}, .receive = {4096, 4096}};
  EXPECT_EQ(core.connect(opener.app, 1, 7, outside, number), EINVAL);
  EXPECT_EQ(core.connect(opener.app, 1, 7, wraps, number), EINVAL);
  EXPECT_EQ(core.connect(opener.app, 5, 7, good, number), EHOSTUNREACH);
  EXPECT_EQ(core.connect(99, 1, 7, good, number), EINVAL);
  EXPECT_EQ(core.send(opener.app, 77, 10), EBADF);
  EXPECT_EQ(core.consume(opener.app, 77, 10), EBADF);
  ASSERT_EQ(core.connect(opener.app, 1, 7, good, number), 0);
  EXPECT_EQ(core.send(server.app + 100, number, 10), EBADF) << "another application's";
  EXPECT_EQ(core.send(opener.app, number, 4097), EINVAL) << "more than the ring holds";
  EXPECT_EQ(core.consume(opener.app, number, 1), EINVAL) << "never received";
  EXPECT_EQ(core.transfer(opener.app, number, Verb::kRead, 0, 0, 10, 0), ENOTCONN);
  EXPECT_EQ(core.listen(opener.app, 9), 0);
  EXPECT_EQ(core.listen(opener.app, 9), EADDRINUSE);
  pair.a->act([](Core&) {});
  EXPECT_TRUE(run_while_busy(*pair.fabric, 1e7, [&] { return core.connection_count() == 0; }))
      << "nobody listens, so the connection is refused";
}

}  // namespace
}  // namespace greynic::broker
