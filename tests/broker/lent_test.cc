// Streams whose bytes are sent from where they lie: the cache of registrations against plain words,
// and streams on the fabric whose every byte is known.

#include <gtest/gtest.h>

#include <cerrno>
#include <map>

#include "core/registration_cache.h"
#include "core/verb_choice.h"
#include "pair.h"
#include "talkers.h"

namespace greynic::broker {
namespace {

/// Knows what is registered, and by which right.
class CountingDevice final : public Device {
 public:
  bool has_immediate() const override { return true; }
  Result<Memory> register_memory(std::span<std::byte> memory, Access access) override {
    if (refuses) return fail(ErrorCode::kRefused, "no memory may be locked");
    EXPECT_EQ(access, Access::kRead);
    const Memory made{reinterpret_cast<std::uint64_t>(memory.data()), ++key_, key_};
    registered[key_] = {made.address, memory.size()};
    return made;
  }
  void deregister(const Memory& memory) override {
    EXPECT_EQ(registered.erase(memory.local_key), 1U) << "twice, or never registered";
  }
  std::uint32_t mtu_bytes() const override { return 4096; }
  Result<QpNumber> create_qp(Transport, std::uint32_t, std::uint32_t) override { return 1U; }
  QpAddress address_of(QpNumber) const override { return {}; }
  Result<void> connect(QpNumber, const QpAddress&) override { return {}; }
  void to_error(QpNumber) override {}
  void destroy(QpNumber) override {}
  std::size_t post(QpNumber, std::span<const Work> list) override { return list.size(); }
  std::size_t post_receives(std::span<const std::uint64_t> ids, std::span<const Piece>,
                            QpNumber) override {
    return ids.size();
  }
  std::map<std::uint32_t, std::pair<std::uint64_t, std::uint64_t>> registered;
  bool refuses = false;

 private:
  std::uint32_t key_ = 0;
};

// Claim:  what is held is registered and covers the part that was asked for, the bounds hold always,
//         and only what is neither held nor used lately goes.
// Oracle: the device's own list of what is registered.
// Method: random holds and releases of three regions.
TEST(RegistrationCache, HoldsWhatIsInUseAndStaysInItsBounds) {
  constexpr std::size_t kEntries = 8;
  constexpr std::uint64_t kBytes = 300000;
  CountingDevice device;
  std::vector<std::byte> memory(200000);
  std::uint64_t refused = 0, reused = 0;
  {
    RegistrationCache cache(device, kEntries, kBytes);
    statistics::Random random(1);
    std::vector<std::pair<RegistrationCache::Held, Extent>> held;
    for (int step = 0; step < 20000; ++step) {
      if (!held.empty() && random.below(2) == 0) {
        const std::size_t which = random.below(held.size());
        cache.release(held[which].first.id);
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
      } else {
        const std::uint64_t offset = random.below(memory.size());
        const Extent part{offset, 1 + random.below(memory.size() - offset)};
        const auto got = cache.hold({1, 1 + random.below(3)}, memory, part);
        refused += !got.has_value();
        if (!got) continue;
        reused += !got->made;
        held.emplace_back(*got, part);
      }
      ASSERT_LE(cache.entry_count(), kEntries);
      ASSERT_LE(cache.bytes(), kBytes);
      ASSERT_EQ(device.registered.size(), cache.entry_count());
      for (const auto& [one, part] : held) {
        const auto found = device.registered.find(one.memory.local_key);
        ASSERT_NE(found, device.registered.end()) << "it went while it was in use";
        const auto address = reinterpret_cast<std::uint64_t>(memory.data()) + part.offset;
        ASSERT_EQ(one.memory.address, address);
        ASSERT_GE(address, found->second.first);
        ASSERT_LE(address + part.bytes, found->second.first + found->second.second);
      }
    }
    EXPECT_GT(cache.evicted(), 100U);
  }
  EXPECT_GT(refused, 100U);
  EXPECT_GT(reused, 100U);
  EXPECT_TRUE(device.registered.empty());
}

TEST(RegistrationCache, ForgetsTheOneThatWasUsedLongestAgo) {
  CountingDevice device;
  std::vector<std::byte> memory(40960);
  RegistrationCache cache(device, 2, 1 << 20);
  const auto use = [&](std::uint64_t page) {
    const auto held = cache.hold({1, 1}, memory, {page * 4096, 4096});
    cache.release(held->id);
    return held->made;
  };
  EXPECT_TRUE(use(0));
  EXPECT_TRUE(use(1));
  EXPECT_FALSE(use(0));
  EXPECT_TRUE(use(2)) << "page 1 goes";
  EXPECT_FALSE(use(0));
  EXPECT_TRUE(use(1));
  cache.drop({1, 1});
  EXPECT_EQ(device.registered.size(), 0U);
  EXPECT_TRUE(use(0)) << "a region that went is registered anew";
  device.refuses = true;
  EXPECT_FALSE(cache.hold({1, 1}, memory, {20480, 4096}));
  EXPECT_FALSE(use(0)) << "what is there serves on";
}

/// Takes one stream and holds it against its pattern.
class Checker : public FabricClient {
 public:
  Checker(FabricNode& node, std::uint64_t ring_bytes) : segment(2 * ring_bytes), node_(node) {
    app = *node.attach(*this, segment);
    node.act([this](Core& core) { (void)core.listen(app, 7); });
  }
  void on_incoming(std::uint16_t, VirtualQpn number) override {
    const std::uint64_t half = segment.size() / 2;
    const Rings rings{.send = {0, half}, .receive = {half, half}, .rule = rule};
    (void)node_.core().accept(app, number, rings);
  }
  void on_received(VirtualQpn number, std::uint64_t total) override {
    if (!reads) return;
    const std::uint64_t half = segment.size() / 2;
    for (; received < total; ++received) {
      wrong += segment[half + received % half] != pattern(key, received);
    }
    (void)node_.core().consume(app, number, total);
  }
  void on_finished(VirtualQpn number) override {
    if (reads) (void)node_.core().close(app, number);
  }
  AppId app = 0;
  VerbRule rule = VerbRule::kAuto;
  std::uint64_t key = 0, received = 0, wrong = 0;
  bool reads = true;
  std::vector<std::byte> segment;

 private:
  FabricNode& node_;
};

/// Sends one stream, piece by piece from its ring, its segment or lent memory, as chance has it.
class Lender : public FabricClient {
 public:
  static constexpr std::uint32_t kRegion = 5;
  Lender(FabricNode& node, std::uint64_t ring_bytes, std::uint64_t total, std::uint64_t seed)
      : segment(3 * ring_bytes),
        memory(300000),
        node_(node),
        random_(seed),
        ring_(ring_bytes),
        total_(total),
        key_(seed) {
    app = *node.attach(*this, segment);
    node.act([this](Core& core) {
      EXPECT_EQ(core.lend(app, kRegion, memory), 0);
      (void)core.connect(app, 1, 7, {.send = {0, ring_}, .receive = {ring_, ring_}, .rule = rule},
                         connection);
    });
  }
  void on_open(VirtualQpn) override { fill(); }
  void on_sent(VirtualQpn, std::uint64_t sent) override {
    acknowledged_ = sent;
    fill();
  }
  void on_closed(VirtualQpn, int error) override { closed = error; }
  void on_returned(std::uint32_t region) override { returned = region; }
  void on_detached() override { detached = true; }

  AppId app = 0;
  VirtualQpn connection = 0;
  VerbRule rule = VerbRule::kAuto;
  int closed = -1;
  std::uint32_t returned = 0;
  bool detached = false, idle = false;
  std::uint64_t lent_pieces = 0;
  std::vector<std::byte> segment, memory;

 private:
  void fill() {
    Core& core = node_.core();
    if (idle) return;
    for (int pieces = 0; written_ < total_ && pieces < 4; ++pieces) {
      const bool is_out = acknowledged_ < lent_end_;
      if (!is_out && random_.below(2) == 0) {
        send_lent(core);
        continue;
      }
      const std::uint64_t beside = is_out ? lent_end_ - std::max(acknowledged_, lent_from_) : 0;
      const std::uint64_t room = ring_ - (written_ - acknowledged_ - beside);
      const std::uint64_t count = std::min(below(room + 1), total_ - written_);
      for (std::uint64_t i = 0; i < count; ++i) {
        segment[in_ring_++ % ring_] = pattern(key_, written_++);
      }
      EXPECT_EQ(core.send(app, connection, written_), 0);
    }
    if (written_ == total_) (void)core.finish(app, connection);
    if (written_ == total_ && acknowledged_ == total_) (void)core.close(app, connection);
  }
  std::uint64_t below(std::uint64_t most) { return random_.next() % most; }
  void send_lent(Core& core) {
    const bool from_segment = random_.below(4) == 0;
    std::vector<std::byte>& from = from_segment ? segment : memory;
    const std::uint64_t base = from_segment ? 2 * ring_ : 0;
    const std::uint64_t offset = base + below(from.size() - base);
    const Extent part{offset, std::min(1 + below(from.size() - offset), total_ - written_)};
    for (std::uint64_t i = 0; i < part.bytes; ++i) {
      from[offset + i] = pattern(key_, written_ + i);
    }
    bool made = false;
    const int error = core.send_from(app, connection, from_segment ? 0 : kRegion, part, made);
    EXPECT_TRUE(error == 0 || error == ENOMEM) << error;
    if (error != 0) return;
    ++lent_pieces;
    lent_from_ = written_;
    lent_end_ = written_ += part.bytes;
  }

  FabricNode& node_;
  statistics::Random random_;
  std::uint64_t ring_, total_, key_;
  std::uint64_t written_ = 0, acknowledged_ = 0, in_ring_ = 0, lent_from_ = 0, lent_end_ = 0;
};

// Claim:  bytes that lie beside the ring arrive once and in their place among those of the ring, by
//         each verb, when packets are lost and shared QPs fail; no registration stays in use.
// Oracle: the byte that belongs at each place of the stream.
TEST(BrokerLent, CarriesEveryByteOnceFromWhereItLies) {
  std::uint64_t pieces = 0, evicted = 0, reused = 0, rebuilds = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    statistics::Random random(seed);
    FabricNodeOptions options;
    options.core.registrations = 1 + static_cast<std::uint32_t>(random.below(4));
    options.core.registered_bytes = 200000 + random.below(500000);
    options.core.segment_bytes = 4096U << random.below(5);
    options.immediate = random.below(3) != 0;
    options.attributes.ack_timeout = 8;
    twin::FabricSpec spec;
    spec.seed = seed;
    spec.loss = random.below(4) == 0 ? 1e-3 : 0;
    Pair pair(options, spec);
    const std::uint64_t total = 1 + random.below(3000000);
    Checker checker(*pair.b, 600 + random.below(100000));
    checker.key = seed;
    Lender lender(*pair.a, 600 + random.below(100000), total, seed);
    lender.rule = static_cast<VerbRule>(random.below(4));
    for (std::uint64_t i = random.below(4); i > 0; --i) {
      FabricNode& node = random.below(2) == 0 ? *pair.a : *pair.b;
      pair.fabric->at(50e3 + random.uniform() * 300e3, [&node, &pair, pick = random.next()] {
        const twin::QpId qp{node.qps()[pick % node.qps().size()]};
        (void)pair.fabric->modify(qp, twin::QpState::kError);
        node.act([qp](Core& core) { core.on_qp_error(qp.id); });
      });
    }
    const std::string what = "seed " + std::to_string(seed);
    EXPECT_TRUE(run_while_busy(*pair.fabric, 1e9, [&] { return lender.closed >= 0; })) << what;
    EXPECT_EQ(lender.closed, 0) << what;
    EXPECT_EQ(checker.received, total) << what;
    EXPECT_EQ(checker.wrong, 0U) << what;
    const Counters& counters = pair.a->core().counters();
    EXPECT_EQ(counters.garbled + counters.guilty, 0U) << what;
    EXPECT_EQ(counters.ring_bytes + counters.lent_bytes, total) << what;
    pieces += lender.lent_pieces;
    evicted += counters.evicted;
    reused += counters.reused;
    rebuilds += counters.rebuilds;
    pair.a->act([&](Core& core) { EXPECT_EQ(core.take_back(lender.app, Lender::kRegion), 0); });
    pair.fabric->run_until(pair.fabric->now() + 1e6);
    EXPECT_EQ(lender.returned, Lender::kRegion) << what << ": something of it is still in use";
    EXPECT_EQ(pair.a->core().registrations().first, 0U) << what;
    if (HasFailure()) break;
  }
  // The claim says nothing unless these happened.
  EXPECT_GT(pieces, 300U);
  EXPECT_GT(evicted, 50U);
  EXPECT_GT(reused, 20U);
  EXPECT_GT(rebuilds, 20U);
}

/// Two applications of which the far one does not read, so that what is sent stays on its way.
struct Stuck {
  Pair pair;
  Checker checker{*pair.b, 4096};
  Lender lender{*pair.a, 4096, 1, 1};
  Stuck() {
    checker.reads = false;
    pair.fabric->run_until(1e6);
    lender.idle = true;
  }
  int send_from(std::uint32_t region, std::uint64_t offset, std::uint64_t bytes) {
    bool made = false;
    int error = -1;
    pair.a->act([&](Core& core) {
      error = core.send_from(lender.app, lender.connection, region, {offset, bytes}, made);
    });
    pair.fabric->run_until(pair.fabric->now() + 1e6);
    return error;
  }
};

// Claim:  nothing is sent from where the application may not, and memory stays the broker's until
//         nothing of it is on its way, whatever the application says.
TEST(BrokerLent, RefusesWhatIsNotLent) {
  Stuck stuck;
  // The lender has sent its one byte and closed.
  EXPECT_EQ(stuck.send_from(Lender::kRegion, 0, 100), EBADF);
  const auto act = [&](auto call) {
    int error = -1;
    stuck.pair.a->act([&](Core& core) { error = call(core); });
    stuck.pair.fabric->run_until(stuck.pair.fabric->now() + 1e6);
    return error;
  };
  std::vector<std::byte> more(10000);
  EXPECT_EQ(act([&](Core& core) { return core.lend(stuck.lender.app, 0, more); }), EINVAL);
  EXPECT_EQ(act([&](Core& core) { return core.lend(stuck.lender.app, Lender::kRegion, more); }),
            EEXIST);
  EXPECT_EQ(act([&](Core& core) { return core.lend(999, 1, more); }), EINVAL);
  EXPECT_EQ(act([&](Core& core) { return core.take_back(stuck.lender.app, 77); }), EINVAL);
  VirtualQpn number = 0;
  ASSERT_EQ(act([&](Core& core) {
              return core.connect(stuck.lender.app, 1, 7,
                                  {.send = {0, 4096}, .receive = {4096, 4096}}, number);
            }),
            0);
  stuck.lender.connection = number;
  EXPECT_EQ(stuck.send_from(77, 0, 100), EINVAL);
  EXPECT_EQ(stuck.send_from(Lender::kRegion, 300000, 1), EINVAL);
  EXPECT_EQ(stuck.send_from(Lender::kRegion, 1, 300000), EINVAL);
  EXPECT_EQ(stuck.send_from(Lender::kRegion, ~0ULL, 2), EINVAL);
  EXPECT_EQ(stuck.send_from(Lender::kRegion, 0, 0), EINVAL);
  EXPECT_EQ(stuck.send_from(0, 3 * 4096 - 10, 11), EINVAL);
  EXPECT_EQ(stuck.send_from(Lender::kRegion, 0, 50000), 0);
  EXPECT_EQ(stuck.send_from(Lender::kRegion, 0, 100), EBUSY);
  EXPECT_EQ(act([&](Core& core) { return core.take_back(stuck.lender.app, Lender::kRegion); }), 0);
  EXPECT_EQ(act([&](Core& core) { return core.take_back(stuck.lender.app, Lender::kRegion); }),
            EINVAL);
  EXPECT_EQ(stuck.lender.returned, 0U) << "its bytes are still on their way";
  EXPECT_GE(stuck.pair.a->core().registrations().first, 1U);
  (void)act([&](Core& core) {
    core.detach(stuck.lender.app);
    return 0;
  });
  EXPECT_TRUE(stuck.lender.detached);
  EXPECT_EQ(stuck.pair.a->core().registrations().first, 0U);
}

// Claim:  each piece of a stream is in the list of decisions with what decided it, as often as the
//         counts say, and the list does not grow.
TEST(BrokerDecisions, ListsWhatItCounts) {
  Pair pair;
  pair.a->core().set_load({.processor = 0.9});
  Checker checker(*pair.b, 100000);
  checker.key = 3;
  Lender lender(*pair.a, 100000, 400000, 3);
  ASSERT_TRUE(run_while_busy(*pair.fabric, 1e9, [&] { return lender.closed >= 0; }));
  const auto list = pair.a->core().decisions();
  const Counters& counters = pair.a->core().counters();
  ASSERT_LT(list.size(), DecisionLog::kKept);
  std::uint64_t sends = 0, writes = 0, reads = 0, bytes = 0, lent = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Decision& one = list[i];
    EXPECT_EQ(one.number, i + 1);
    EXPECT_LE(one.bytes, one.waiting);
    EXPECT_EQ(one.why == Decision::Why::kSmall, one.verb == Verb::kSend);
    if (one.why == Decision::Why::kLoad) EXPECT_EQ(one.prefers_read, one.verb == Verb::kRead);
    EXPECT_EQ(one.bulk, one.lane == 1);
    ++(one.verb == Verb::kSend ? sends : one.verb == Verb::kWrite ? writes : reads);
    if (one.from != Decision::From::kRing) lent += one.bytes;
    bytes += one.bytes;
  }
  EXPECT_EQ(sends, counters.chose_send);
  EXPECT_EQ(writes, counters.chose_write);
  EXPECT_EQ(reads, counters.chose_read);
  EXPECT_EQ(bytes, 400000U);
  EXPECT_EQ(lent, counters.lent_bytes);
  EXPECT_GT(lent, 0U);
  DecisionLog log;
  for (int i = 0; i < 1000; ++i) log.add({});
  ASSERT_EQ(log.list().size(), DecisionLog::kKept);
  EXPECT_EQ(log.list().front().number, 1000 - DecisionLog::kKept + 1);
  EXPECT_EQ(log.list().back().number, 1000U);
}

// Claim:  READ when the sender is the busier one or the receiver short of memory, WRITE the other way
//         round, and loads that tremble between change nothing.
TEST(VerbChoice, FollowsTheLoadsOfBothEnds) {
  VerbChoice choice;
  const auto hear = [&](Load own, Load far) {
    (void)choice.hear(own, far);
    return choice.rule() == VerbRule::kRead;
  };
  EXPECT_FALSE(hear({0.5, 0}, {0.35, 0}));
  EXPECT_TRUE(hear({0.5, 0}, {0.25, 0}));
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(hear({0.5, 0}, {0.5 + (i % 2 == 0 ? 0.09 : -0.15), 0}));
  EXPECT_FALSE(hear({0.5, 0}, {0.65, 0}));
  EXPECT_TRUE(hear({0.5, 0}, {0.5, 0.3})) << "the receiver is short of memory";
  EXPECT_FALSE(hear({0.9, 0.8}, {0.5, 0.2})) << "the sender is, and that counts as much";
}

}  // namespace
}  // namespace greynic::broker
