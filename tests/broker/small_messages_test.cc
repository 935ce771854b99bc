// What a small message waits for when others move much.

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "pair.h"
#include "talkers.h"

namespace greynic::broker {
namespace {

/// Sends 64 bytes on each connection, waits for as many back, and again; or answers so.
class Pinger : public FabricClient {
 public:
  static constexpr std::uint64_t kBytes = 64, kRing = 4096;

  Pinger(FabricNode& node, twin::Fabric& fabric, std::size_t connections)
      : node_(node), fabric_(fabric), segment_(connections * 2 * kRing) {
    app = *node.attach(*this, segment_);
  }
  void open(std::uint16_t port, std::size_t count) {
    node_.act([this, port, count](Core& core) {
      for (std::size_t i = 0; i < count; ++i) {
        VirtualQpn number = 0;
        ASSERT_EQ(core.connect(app, 1, port, rings(i), number), 0);
      }
    });
  }
  void on_incoming(std::uint16_t, VirtualQpn number) override {
    (void)node_.core().accept(app, number, rings(accepted_++));
  }
  void on_open(VirtualQpn number) override { ping(number, 0); }
  void on_received(VirtualQpn number, std::uint64_t total) override {
    (void)node_.core().consume(app, number, total);
    const auto begun = begun_.find(number);
    if (begun == begun_.end()) return void(node_.core().send(app, number, total));
    trips.push_back(fabric_.now() - begun->second);
    ping(number, total);
  }
  void on_closed(VirtualQpn, int) override { ++ended; }

  AppId app = 0;
  std::vector<twin::Time> trips;
  std::size_t ended = 0;

 private:
  static Rings rings(std::size_t i) {
    return {.send = {i * 2 * kRing, kRing}, .receive = {i * 2 * kRing + kRing, kRing}};
  }
  void ping(VirtualQpn number, std::uint64_t so_far) {
    begun_[number] = fabric_.now();
    (void)node_.core().send(app, number, so_far + kBytes);
  }
  FabricNode& node_;
  twin::Fabric& fabric_;
  std::vector<std::byte> segment_;
  std::size_t accepted_ = 0;
  std::map<VirtualQpn, twin::Time> begun_;
};

struct Trips {
  twin::Time p99 = 0, worst = 0, segment_ns = 0;
  std::size_t count = 0, ended = 0;
};

enum class Other { kNone, kOneStream, kFloods, kDies };

Trips trips_beside(Other other) {
  auto fabric = std::move(*twin::Fabric::create({}));
  auto a = std::move(*FabricNode::create(*fabric, 0, {}));
  auto b = std::move(*FabricNode::create(*fabric, 1, {}));
  EXPECT_TRUE(FabricNode::meet(*a, *b));
  Pinger pinger(*a, *fabric, 20), ponger(*b, *fabric, 20);
  b->act([&](Core& core) { (void)core.listen(ponger.app, 7); });
  constexpr std::uint64_t kEndless = std::uint64_t{1} << 40;
  Talker flood(*a, 40, 1 << 20, kEndless, 1), sink(*b, 40, 1 << 20, kEndless, 2);
  sink.listen(8);
  fabric->run_until(1e5);
  pinger.open(7, 20);
  if (other != Other::kNone) {
    const std::uint64_t streams = other == Other::kOneStream ? 1 : 40;
    for (std::uint64_t i = 0; i < streams; ++i) flood.open(1, 8, 1000 + i);
  }
  fabric->run_until(1e6);
  pinger.trips.clear();
  if (other == Other::kDies) a->act([&](Core& core) { core.detach(flood.app); });
  fabric->run_until(3e6);
  std::vector<twin::Time>& all = pinger.trips;
  std::sort(all.begin(), all.end());
  EXPECT_FALSE(all.empty());
  if (all.empty()) return {};
  const double gbps = fabric->port_gbps({.of_host = true, .device = 0});
  return {all[all.size() * 99 / 100], all.back(), CoreOptions{}.segment_bytes * 8 / gbps,
          all.size(), pinger.ended};
}

// Claim:  small messages of one application pass another that floods both ways, or dies while it
//         does: none of its connections ends, and none of its messages waits for more than a
//         segment on each way and in each RNIC.
// Oracle: a segment of 64 KiB takes 5.3 us at 100 Gbit/s; the same program with nobody beside it.
TEST(BrokerSmallMessages, PassThoseWhoFlood) {
  const Trips alone = trips_beside(Other::kNone);
  for (const Other other : {Other::kFloods, Other::kDies}) {
    const Trips beside = trips_beside(other);
    RecordProperty("alone_p99_ns", std::to_string(alone.p99));
    RecordProperty(other == Other::kFloods ? "flood_p99_ns" : "death_p99_ns",
                   std::to_string(beside.p99));
    EXPECT_EQ(beside.ended, 0U);
    EXPECT_LE(beside.p99, 2 * alone.p99);
    EXPECT_GT(beside.count, 20U);
  }
}

// Claim:  a small message behind another connection's 1 MiB waits for one segment at most.
// Oracle: the time of a segment on the line; no trip of all takes longer than the longest with
//         nobody beside it and one segment on each way.
TEST(BrokerSmallMessages, WaitForOneSegmentOfAMebibyte) {
  const Trips alone = trips_beside(Other::kNone);
  const Trips beside = trips_beside(Other::kOneStream);
  RecordProperty("alone_worst_ns", std::to_string(alone.worst));
  RecordProperty("beside_worst_ns", std::to_string(beside.worst));
  RecordProperty("segment_ns", std::to_string(beside.segment_ns));
  EXPECT_GT(beside.segment_ns, 0.0);
  EXPECT_LE(beside.worst, alone.worst + 2 * beside.segment_ns);
  EXPECT_GT(beside.count, 20U);
}

/// One connection, which its owner sends on.
class Sender : public FabricClient {
 public:
  static constexpr std::uint64_t kRing = 65536;
  explicit Sender(FabricNode& node) : node_(node), segment_(2 * kRing) {
    app = *node.attach(*this, segment_);
  }
  void on_incoming(std::uint16_t, VirtualQpn one) override {
    (void)node_.core().accept(app, one, kRings);
  }
  void on_open(VirtualQpn one) override { number = one; }
  void on_received(VirtualQpn one, std::uint64_t total) override {
    (void)node_.core().consume(app, one, total);
  }
  /// So many pieces of so many bytes. `seen`: how soon its broker must look after the last.
  void send(std::uint64_t bytes, int pieces) {
    node_.act([this, bytes, pieces](Core& core) {
      for (int i = 0; i < pieces; ++i) {
        EXPECT_EQ(core.send(app, number, sent_ += bytes), 0);
        core.flush();
      }
      seen = core.awaits();
    });
  }
  Core::Awaits seen = Core::Awaits::kNothing;
  static constexpr Rings kRings{.send = {0, kRing}, .receive = {kRing, kRing}};
  AppId app = 0;
  VirtualQpn number = 0;

 private:
  FabricNode& node_;
  std::vector<std::byte> segment_;
  std::uint64_t sent_ = 0;
};

// Claim:  a broker may sleep until something is received while a few small pieces are under way; not
//         while a large one is, or many, or an end that somebody waits for; and nothing is left later.
TEST(BrokerSmallMessages, HoldNothingUpUntilTheyAreDone) {
  Pair pair;
  Sender a(*pair.a), b(*pair.b);
  const auto later = [&] { pair.fabric->run_until(pair.fabric->now() + 1e6); };
  const auto awaits = [&] { return pair.a->core().awaits(); };
  pair.b->act([&](Core& core) { EXPECT_EQ(core.listen(b.app, 7), 0); });
  later();
  pair.a->act(
      [&](Core& core) { EXPECT_EQ(core.connect(a.app, 1, 7, Sender::kRings, a.number), 0); });
  later();
  EXPECT_EQ(awaits(), Core::Awaits::kNothing);
  for (const auto& [bytes, pieces, expected] : {std::tuple{64U, 1, Core::Awaits::kSoon},
                                                {64U, 8, Core::Awaits::kSoon},
                                                {64U, 9, Core::Awaits::kNow},
                                                {1000U, 1, Core::Awaits::kNow},
                                                {30000U, 1, Core::Awaits::kNow}}) {
    a.send(bytes, pieces);
    later();
    EXPECT_EQ(a.seen, expected) << pieces << " of " << bytes;
    EXPECT_EQ(awaits(), Core::Awaits::kNothing) << pieces << " of " << bytes;
  }
  Core::Awaits ending = Core::Awaits::kNothing;
  pair.a->act([&](Core& core) {
    EXPECT_EQ(core.finish(a.app, a.number), 0);
    core.flush();
    ending = core.awaits();
  });
  later();
  EXPECT_EQ(ending, Core::Awaits::kNow);
}

}  // namespace
}  // namespace greynic::broker
