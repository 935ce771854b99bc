#pragma once

/// Applications for tests: each connection carries a stream both ways whose every byte follows from
/// the connection's key and the byte's place, so a byte that is lost, doubled or strayed shows.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "greynic/broker/fabric_node.h"
#include "greynic/statistics/random.h"

namespace greynic::broker {

inline std::byte pattern(std::uint64_t key, std::uint64_t place) {
  return static_cast<std::byte>(statistics::split_mix(key ^ place / 8) >> 8 * (place % 8));
}

/// What became of one end of a connection.
struct Outcome {
  std::uint64_t key = 0;
  std::uint64_t wanted = 0, received = 0, wrong = 0;
  bool finished = false, closed = false;
  int error = -1;
};

/// Serves a port, or opens connections. Totals follow from keys, so both ends know them.
class Talker : public FabricClient {
 public:
  static constexpr std::uint64_t kBack = 0xABCDEF;

  Talker(FabricNode& node, std::size_t connections, std::uint64_t ring_bytes,
         std::uint64_t most_bytes, std::uint64_t seed)
      : node_(node),
        ring_bytes_(ring_bytes),
        most_bytes_(most_bytes),
        random_(seed),
        segment(connections * 2 * ring_bytes) {
    app = *node.attach(*this, segment);
    for (std::size_t i = 0; i < connections; ++i) free_.push_back(i * 2 * ring_bytes);
  }

  void open(PeerId peer, std::uint16_t port, std::uint64_t key, VerbRule verb = VerbRule::kAuto) {
    node_.act([=, this](Core& core) {
      VirtualQpn number = 0;
      const std::uint64_t at = take();
      const int error = core.connect(app, peer, port, rings(at, verb), number);
      if (error != 0) return failed_opens.push_back(error);
      Flow& flow = flows_[number] = {.at = at, .opens = true};
      flow.outcome = &outcomes.emplace_back();
      learn_key(flow, key);
    });
  }
  void listen(std::uint16_t port) {
    node_.act([=, this](Core& core) { listen_error = core.listen(app, port); });
  }
  [[nodiscard]] bool all_closed() const { return flows_.empty(); }
  [[nodiscard]] std::size_t open_count() const { return flows_.size(); }

  void on_incoming(std::uint16_t, VirtualQpn number) override {
    if (free_.empty()) return;
    const std::uint64_t at = take();
    Flow& flow = flows_[number] = {.at = at};
    flow.outcome = &outcomes.emplace_back();
    (void)node_.core().accept(app, number, rings(at, rule));
  }
  void on_open(VirtualQpn number) override { fill(number); }
  void on_sent(VirtualQpn number, std::uint64_t total) override {
    flows_.at(number).acknowledged = total;
    fill(number);
  }
  void on_received(VirtualQpn number, std::uint64_t total) override {
    Flow& flow = flows_.at(number);
    const std::byte* ring = segment.data() + flow.at + ring_bytes_;
    Outcome& out = *flow.outcome;
    if (!flow.has_key) {
      if (total < 8) return;  // the opener's key leads its stream
      std::uint64_t key = 0;
      for (std::size_t i = 0; i < 8; ++i) {
        reinterpret_cast<std::byte*>(&key)[i] = ring[i % ring_bytes_];
      }
      learn_key(flow, key);
      out.received = 8;
      fill(number);
    }
    for (; out.received < total; ++out.received) {
      out.wrong += ring[out.received % ring_bytes_] != expected(flow, out.received);
    }
    (void)node_.core().consume(app, number, total);
  }
  void on_finished(VirtualQpn number) override {
    Flow& flow = flows_.at(number);
    flow.outcome->finished = true;
    if (flow.said_finish) (void)node_.core().close(app, number);
  }
  void on_closed(VirtualQpn number, int error) override {
    const auto found = flows_.find(number);
    if (found == flows_.end()) return;
    found->second.outcome->closed = true;
    found->second.outcome->error = error;
    free_.push_back(found->second.at);
    flows_.erase(found);
  }
  void on_detached() override { detached = true; }

  AppId app = 0;
  VerbRule rule = VerbRule::kAuto;  ///< of what it accepts
  std::deque<Outcome> outcomes;
  std::vector<int> failed_opens;
  int listen_error = -1;
  bool detached = false;

 private:
  struct Flow {
    std::uint64_t at = 0;
    bool opens = false, has_key = false, said_finish = false;
    std::uint64_t send_key = 0, receive_key = 0, to_send = 0;
    std::uint64_t written = 0, acknowledged = 0;
    Outcome* outcome = nullptr;
  };

  std::uint64_t take() {
    const std::uint64_t at = free_.front();
    free_.pop_front();
    return at;
  }
  Rings rings(std::uint64_t at, VerbRule verb) const {
    return {.send = {at, ring_bytes_}, .receive = {at + ring_bytes_, ring_bytes_}, .rule = verb};
  }
  std::uint64_t total(std::uint64_t key) const {
    return 8 + statistics::split_mix(key) % most_bytes_;
  }
  void learn_key(Flow& flow, std::uint64_t key) {
    const std::uint64_t back = key ^ kBack;
    flow.has_key = true;
    flow.send_key = flow.opens ? key : back;
    flow.receive_key = flow.opens ? back : key;
    flow.to_send = total(flow.send_key);
    flow.outcome->key = key;
    flow.outcome->wanted = total(flow.receive_key);
  }
  /// The first 8 bytes of an opener's stream are its key.
  std::byte byte_at(std::uint64_t key, bool leads, std::uint64_t place) const {
    return leads && place < 8 ? reinterpret_cast<const std::byte*>(&key)[place]
                              : pattern(key, place);
  }
  std::byte expected(const Flow& flow, std::uint64_t place) const {
    return byte_at(flow.receive_key, !flow.opens, place);
  }
  void fill(VirtualQpn number) {
    Flow& flow = flows_.at(number);
    if (!flow.has_key || flow.said_finish) return;
    Core& core = node_.core();
    const std::uint64_t room = ring_bytes_ - (flow.written - flow.acknowledged);
    std::uint64_t count = std::min(room, flow.to_send - flow.written);
    if (count > 64 && random_.below(3) == 0) count = 1 + random_.below(64);
    for (std::uint64_t i = 0; i < count; ++i, ++flow.written) {
      segment[flow.at + flow.written % ring_bytes_] =
          byte_at(flow.send_key, flow.opens, flow.written);
    }
    (void)core.send(app, number, flow.written);
    if (flow.written < flow.to_send) return;
    flow.said_finish = true;
    (void)core.finish(app, number);
    if (flow.outcome->finished) (void)core.close(app, number);
  }

  FabricNode& node_;
  std::uint64_t ring_bytes_, most_bytes_;
  statistics::Random random_;
  std::map<VirtualQpn, Flow> flows_;
  std::deque<std::uint64_t> free_;

 public:
  std::vector<std::byte> segment;
};

/// Runs until `over` or `most` virtual nanoseconds have passed.
template <typename Over>
bool run_while_busy(twin::Fabric& fabric, twin::Time most, Over over) {
  for (const twin::Time end = fabric.now() + most; fabric.now() < end && !over();) {
    fabric.run_until(fabric.now() + 50e3);
  }
  return over();
}

}  // namespace greynic::broker
