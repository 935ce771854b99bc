// Shares of equal clients, and calls of peers that are garbage.

#include <gtest/gtest.h>

#include "talkers.h"

namespace greynic::broker {
namespace {

// Claim:  100 applications with equal demand get equal shares of the shared QPs.
// Oracle: Jain's index over the bytes that each has had; 1 is equal.
// Method: endless streams for 8 virtual milliseconds.
TEST(BrokerFairness, SharesEquallyBetweenAHundredClients) {
  auto fabric = std::move(*twin::Fabric::create({}));
  auto a = std::move(*FabricNode::create(*fabric, 0, {}));
  auto b = std::move(*FabricNode::create(*fabric, 1, {}));
  ASSERT_TRUE(FabricNode::meet(*a, *b));
  constexpr std::uint64_t kEndless = std::uint64_t{1} << 40;
  Talker server(*b, 100, 65536, kEndless, 1);
  server.listen(7);
  std::vector<std::unique_ptr<Talker>> clients;
  for (std::uint64_t i = 0; i < 100; ++i) {
    clients.push_back(std::make_unique<Talker>(*a, 1, 65536, kEndless, i + 2));
    clients.back()->open(1, 7, i + 1000);
  }
  fabric->run_until(8e6);
  double sum = 0, squares = 0;
  for (const Outcome& one : server.outcomes) {
    EXPECT_EQ(one.wrong, 0U);
    sum += static_cast<double>(one.received);
    squares += static_cast<double>(one.received) * static_cast<double>(one.received);
  }
  ASSERT_EQ(server.outcomes.size(), 100U);
  RecordProperty("jain", std::to_string(sum * sum / (100 * squares)));
  EXPECT_GE(sum * sum / (100 * squares), 0.95);
}

// Claim:  garbage out of band ends the peer that sent it, and nothing else.
// Method: random bytes, and true calls with one byte changed.
TEST(BrokerWire, TakesNoGarbageFromPeers) {
  statistics::Random random(5);
  for (int round = 0; round < 300; ++round) {
    twin::FabricSpec spec;
    spec.host_count = 3;
    auto fabric = std::move(*twin::Fabric::create(spec));
    auto a = std::move(*FabricNode::create(*fabric, 0, {}));
    auto b = std::move(*FabricNode::create(*fabric, 1, {}));
    auto good = std::move(*FabricNode::create(*fabric, 2, {}));
    ASSERT_TRUE(FabricNode::meet(*a, *b));
    ASSERT_TRUE(FabricNode::meet(*a, *good));
    std::vector<std::byte> bytes(random.below(3) == 0 ? random.below(200) : 56);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(256));
    if (bytes.size() > 8 && random.below(2) == 0) {  // begins as a true one does
      bytes[0] = std::byte{0xB8};
      bytes[1] = static_cast<std::byte>(1 + random.below(2));
      for (std::size_t i = 2; i < 12 && i < bytes.size(); ++i) bytes[i] = {};
      bytes[4] = std::byte{2};
    }
    a->act([&](Core& core) { core.on_peer_call(1, bytes); });
    Talker opener(*a, 1, 4096, 10000, 1), server(*good, 1, 4096, 10000, 2);
    server.listen(7);
    opener.open(2, 7, 99);
    ASSERT_TRUE(run_while_busy(
        *fabric, 1e8,
        [&] { return opener.outcomes.size() == 1 && opener.all_closed() && server.all_closed(); }))
        << "round " << round;
    ASSERT_EQ(opener.outcomes[0].error, 0);
    ASSERT_EQ(opener.outcomes[0].received, opener.outcomes[0].wanted);
  }
}

}  // namespace
}  // namespace greynic::broker
