// Messages over UC and UD, on the fabric: whole, once and in order, or lost; and nobody else's loss.

#include <gtest/gtest.h>

#include <cerrno>

#include "talkers.h"

namespace greynic::broker {
namespace {

constexpr std::uint64_t kRing = 64 << 10;

/// A message of a connection tells its number; its length and bytes follow from that and the key.
struct Message {
  std::uint64_t key = 0;
  std::uint32_t number = 0;

  [[nodiscard]] std::uint32_t bytes(std::uint32_t most) const {
    const std::uint64_t drawn = statistics::split_mix(key ^ number);
    return sizeof number + static_cast<std::uint32_t>(drawn % (most - sizeof number + 1));
  }
  [[nodiscard]] std::byte at(std::uint32_t place) const {
    return place < sizeof number ? reinterpret_cast<const std::byte*>(&number)[place]
                                 : pattern(key ^ number, place);
  }
};

/// Sends numbered messages, or takes them and answers each with its like.
class Messenger : public FabricClient {
 public:
  Messenger(FabricNode& node, std::size_t connections, std::uint32_t most_bytes)
      : node_(node), most_(most_bytes), segment_(connections * 2 * kRing) {
    app = *node.attach(*this, segment_);
  }
  /// `window`: messages without an answer at most; 0: it wants no answers and sends on.
  void open(PeerId peer, Transport transport, std::uint32_t count, std::uint32_t window) {
    window_ = window;
    count_ = count;
    node_.act([=, this](Core& core) {
      VirtualQpn number = 0;
      error = core.connect(app, peer, 7, rings(transport), number);
      if (error == 0) flows_[number].at = next_++;
    });
  }
  void listen(bool answers) {
    answers_ = answers;
    node_.act([this](Core& core) { EXPECT_EQ(core.listen(app, 7), 0); });
  }
  /// Writes a length that is none.
  void lie(std::uint32_t length) {
    node_.act([=, this](Core& core) {
      auto& [number, flow] = *flows_.begin();
      put(flow, std::as_bytes(std::span(&length, 1)));
      EXPECT_EQ(core.send(app, number, flow.written), 0);
    });
  }
  void on_incoming(std::uint16_t, VirtualQpn number) override {
    carried = node_.core().transport_of(number);
    const Rings own = rings(Transport::kRC);
    flows_[number].at = next_++;
    EXPECT_EQ(node_.core().accept(app, number, own), 0);
  }
  void on_open(VirtualQpn number) override { send_on(number); }
  void on_sent(VirtualQpn number, std::uint64_t total) override {
    flows_.at(number).left = total;
    send_on(number);
  }
  void on_received(VirtualQpn number, std::uint64_t total) override {
    Flow& flow = flows_.at(number);
    while (flow.read < total) {
      std::uint32_t bytes = 0;
      take(flow, std::as_writable_bytes(std::span(&bytes, 1)));
      std::vector<std::byte> text(bytes);
      take(flow, text);
      judge(flow, text);
      if (answers_) {
        put_message(flow, text);
        (void)node_.core().send(app, number, flow.written);
      }
    }
    (void)node_.core().consume(app, number, total);
    send_on(number);
  }
  void on_finished(VirtualQpn number) override { (void)node_.core().close(app, number); }
  void on_closed(VirtualQpn number, int why) override {
    closed_with.push_back(why);
    flows_.erase(number);
  }

  AppId app = 0;
  int error = 0;
  Transport carried = Transport::kXRC;
  std::uint64_t received = 0, wrong = 0;
  std::vector<int> closed_with;

 private:
  struct Flow {
    std::size_t at = 0;
    std::uint64_t written = 0, left = 0, read = 0;
    std::uint32_t sent = 0, answered = 0;
    std::int64_t last = -1;  ///< number of the last message that came
    bool closed = false;
  };
  [[nodiscard]] Rings rings(Transport transport) const {
    const std::uint64_t at = next_ * 2 * kRing;
    return {.send = {at, kRing}, .receive = {at + kRing, kRing}, .transport = transport};
  }
  void put(Flow& flow, std::span<const std::byte> bytes) {
    for (const std::byte one : bytes) segment_[flow.at * 2 * kRing + flow.written++ % kRing] = one;
  }
  void put_message(Flow& flow, std::span<const std::byte> text) {
    const auto bytes = static_cast<std::uint32_t>(text.size());
    put(flow, std::as_bytes(std::span(&bytes, 1)));
    put(flow, text);
  }
  void take(Flow& flow, std::span<std::byte> into) {
    for (std::byte& one : into) one = segment_[(flow.at * 2 + 1) * kRing + flow.read++ % kRing];
  }
  void judge(Flow& flow, std::span<const std::byte> text) {
    ++received;
    ++flow.answered;
    Message message{.key = 5};
    if (text.size() < sizeof message.number) return void(++wrong);
    std::memcpy(&message.number, text.data(), sizeof message.number);
    bool right = message.number > flow.last && text.size() == message.bytes(most_);
    for (std::uint32_t i = 0; right && i < text.size(); ++i) right = text[i] == message.at(i);
    wrong += !right;
    flow.last = message.number;
  }
  void send_on(VirtualQpn number) {
    Flow& flow = flows_.at(number);
    Core& core = node_.core();
    while (flow.sent < count_ && (window_ == 0 || flow.sent - flow.answered < window_)) {
      const Message message{.key = 5, .number = flow.sent};
      std::vector<std::byte> text(message.bytes(most_));
      if (flow.written - flow.left + kLengthBytes + text.size() > kRing) break;
      for (std::uint32_t i = 0; i < text.size(); ++i) text[i] = message.at(i);
      put_message(flow, text);
      ++flow.sent;
    }
    if (count_ == 0) return;
    (void)core.send(app, number, flow.written);
    const bool over = flow.sent == count_ && (window_ == 0 || flow.answered == count_);
    if (over && !std::exchange(flow.closed, true)) (void)core.close(app, number);
  }

  FabricNode& node_;
  std::uint32_t most_, count_ = 0, window_ = 0;
  bool answers_ = false;
  std::size_t next_ = 0;
  std::map<VirtualQpn, Flow> flows_;
  std::vector<std::byte> segment_;
};

struct Meeting {
  std::unique_ptr<twin::Fabric> fabric;
  std::unique_ptr<FabricNode> a, b;
  explicit Meeting(double loss = 0, const FabricNodeOptions& options = {}) {
    fabric = std::move(*twin::Fabric::create({.loss = loss}));
    a = std::move(*FabricNode::create(*fabric, 0, options));
    b = std::move(*FabricNode::create(*fabric, 1, options));
    EXPECT_TRUE(FabricNode::meet(*a, *b));
  }
};

std::uint32_t most_of(Transport transport) {
  return transport == Transport::kUD ? kUdBytes : kUcBytes;
}

// Claim:  where nothing is lost, each message arrives whole, once and in order, and so does its
//         answer; a QP for each transport is made when it is first asked for.
// Oracle: length and bytes of each message follow from its number; counts of QPs.
TEST(BrokerMessages, ArriveWholeAndInOrder) {
  Meeting at;
  at.fabric->run_until(1e6);
  std::size_t qps = at.a->core().qp_count();
  for (const Transport transport : {Transport::kUC, Transport::kUD}) {
    Messenger asker(*at.a, 10, most_of(transport)), server(*at.b, 10, most_of(transport));
    server.listen(true);
    for (int i = 0; i < 10; ++i) asker.open(1, transport, 300, 2);
    EXPECT_TRUE(run_while_busy(*at.fabric, 1e9, [&] { return server.closed_with.size() == 10; }));
    EXPECT_EQ(server.carried, transport);
    EXPECT_EQ(server.received, 3000U);
    EXPECT_EQ(asker.received, 3000U);
    EXPECT_EQ(server.wrong + asker.wrong, 0U);
    EXPECT_EQ(at.a->core().qp_count(), ++qps);
    EXPECT_EQ(at.b->core().qp_count(), qps);
    at.b->act([&](Core& core) { (void)core.unlisten(server.app, 7); });
    at.fabric->run_until(at.fabric->now() + 1e6);
    EXPECT_EQ(at.a->core().connection_count() + at.b->core().connection_count(), 0U);
  }
}

// Claim:  a flood over a network that loses packets, and over QPs that fail, loses messages, but none
//         comes twice, out of order or damaged; streams beside it lose nothing.
// Oracle: the numbers and bytes of what came; every byte of the streams.
TEST(BrokerMessages, AreLostAloneAndWhole) {
  for (const Transport transport : {Transport::kUC, Transport::kUD}) {
    FabricNodeOptions options;
    options.attributes.ack_timeout = 8;
    Meeting at(1e-2, options);
    Messenger flood(*at.a, 4, most_of(transport)), sink(*at.b, 4, most_of(transport));
    Talker opener(*at.a, 10, 30000, 100000, 1), server(*at.b, 10, 30000, 100000, 2);
    sink.listen(false);
    at.b->act([&](Core& core) { EXPECT_EQ(core.listen(server.app, 8), 0); });
    for (int i = 0; i < 4; ++i) flood.open(1, transport, 3000, 0);
    for (std::uint64_t i = 0; i < 10; ++i) opener.open(1, 8, i);
    for (int i = 0; i < 3; ++i) {
      at.fabric->at(300e3 + 200e3 * i, [&] {
        const twin::QpId qp{at.a->qps().back()};
        (void)at.fabric->modify(qp, twin::QpState::kError);
        at.a->act([qp](Core& core) { core.on_qp_error(qp.id); });
      });
    }
    EXPECT_TRUE(run_while_busy(*at.fabric, 1e9, [&] {
      return sink.closed_with.size() == 4 && opener.outcomes.size() == 10 && opener.all_closed() &&
             server.all_closed();
    }));
    EXPECT_EQ(sink.wrong, 0U);
    EXPECT_LT(sink.received, 12000U) << "something must have been lost";
    EXPECT_GT(sink.received, 4000U);
    EXPECT_GT(at.a->core().counters().rebuilds, 0U);
    for (const Talker* talker : {&opener, &server}) {
      for (const Outcome& one : talker->outcomes) {
        EXPECT_EQ(one.error, 0);
        EXPECT_EQ(one.received, one.wanted);
        EXPECT_EQ(one.wrong, 0U);
      }
    }
  }
}

// Claim:  a length that cannot be costs its own connection EMSGSIZE; nothing is sent for it.
TEST(BrokerMessages, HaveTrueLengths) {
  for (const std::uint32_t length :
       {0U, kUdBytes + 1, 0xffffffffU, 100U /* of bytes not written */}) {
    Meeting at;
    Messenger liar(*at.a, 1, kUdBytes), server(*at.b, 1, kUdBytes);
    server.listen(false);
    liar.open(1, Transport::kUD, 0, 0);
    at.fabric->run_until(1e6);
    liar.lie(length);
    at.fabric->run_until(2e6);
    EXPECT_EQ(liar.closed_with, std::vector<int>{EMSGSIZE}) << length;
    EXPECT_EQ(server.closed_with, std::vector<int>{ECONNRESET}) << length;
    EXPECT_EQ(server.received, 0U);
  }
}

// Claim:  what needs immediate data, or packets as long as a message, is refused without them.
TEST(BrokerMessages, AreRefusedWhereTheyCannotBe) {
  FabricNodeOptions no_immediate, short_packets;
  no_immediate.immediate = false;
  short_packets.attributes.mtu_bytes = 512;
  Meeting iwarp(0, no_immediate), narrow(0, short_packets);
  Messenger one(*iwarp.a, 1, kUcBytes), two(*narrow.a, 1, kUdBytes);
  one.open(1, Transport::kUC, 1, 0);
  two.open(1, Transport::kUD, 1, 0);
  iwarp.fabric->run_until(1e6);
  narrow.fabric->run_until(1e6);
  EXPECT_EQ(one.error, EOPNOTSUPP);
  EXPECT_EQ(two.error, EOPNOTSUPP);
}

}  // namespace
}  // namespace greynic::broker
