#pragma once

/// A small fleet, packet by packet and by the book: the oracle of the aggregated one. Every packet
/// is an event at every queue; nothing is averaged. Shares with the fleet under test only what a
/// message costs at an RNIC and who runs where.

#include <cstdint>
#include <deque>
#include <queue>
#include <vector>

#include "fleet/network.h"
#include "greynic/statistics/random.h"

namespace greynic::twin {

struct PacketFleetResult {
  double messages_per_second = 0;
  double latency_ns = 0;
};

class PacketFleet {
 public:
  PacketFleet(const FleetPlacement& placement, const std::vector<MessageCost>& costs,
              const FleetTraffic& traffic, int packets, std::uint64_t seed)
      : p_(placement), costs_(costs), t_(traffic), packets_(packets), random_(seed) {
    turns_.resize(costs.size());
    for (auto* free : {&send_, &receive_, &core_}) free->assign(costs.size(), 0.0);
    for (std::uint32_t g = 0; g < p_.groups.size(); ++g) {
      for (std::uint32_t i = 0; i < p_.groups[g].container_count; ++i) containers_.push_back(g);
    }
    for (std::size_t s = 0; s + 1 < p_.first.size(); ++s) {
      for (std::uint32_t g = p_.first[s]; g < p_.first[s + 1]; ++g) service_.resize(g + 1, s);
    }
  }

  PacketFleetResult run(double warm_up_ns, double measured_ns) {
    for (std::uint32_t c = 0; c < containers_.size(); ++c) {
      const double own =
          std::max(1.0, t_.active_peer_share * p_.groups[containers_[c]].peers_remote);
      // Whole messages: so many on average.
      const int count = static_cast<int>(own + random_.uniform());
      for (int i = 0; i < count; ++i) {
        events_.push({random_.uniform() * 1000, kPost, new_message(c)});
      }
    }
    double latency = 0;
    double count = 0;
    while (events_.top().time < warm_up_ns + measured_ns) {
      const Event e = events_.top();
      events_.pop();
      if (e.kind == kSendTurn) {
        send_turn(e.message, e.time);
        continue;
      }
      Message& m = messages_[e.message];
      switch (e.kind) {
        case kPost:
          post(e.message, e.time);
          break;
        case kSendTurn:
          break;
        case kSenderCore:
          go(e, core(m.from, e.time), kArrive, costs_[m.from].send_delay_ns);
          break;
        case kArrive: {
          const double end = serve(receive_[m.to], e.time, costs_[m.to].receive_ns / packets_);
          go(e, end, m.software_to ? kReceiverCore : kDeliver, costs_[m.to].receive_delay_ns);
          break;
        }
        case kReceiverCore:
          go(e, core(m.to, e.time), kDeliver, upcall_ns);
          break;
        case kDeliver:
          if (++m.delivered < packets_) break;
          if (m.posted >= warm_up_ns) latency += e.time - m.posted, ++count;
          if (e.time >= warm_up_ns) ++done_;
          events_.push({e.time + t_.return_ns, kPost, e.message});
          break;
      }
    }
    return {done_ / measured_ns * 1e9, count > 0 ? latency / count : 0.0};
  }

  double upcall_ns = 0;  ///< what software takes for a packet on top of its core's time

 private:
  enum Kind : std::uint8_t { kPost, kSendTurn, kSenderCore, kArrive, kReceiverCore, kDeliver };
  struct Event {
    double time;
    Kind kind;
    std::uint32_t message;  ///< or, for kSendTurn, an RNIC
    bool operator<(const Event& other) const { return time > other.time; }
  };
  struct Message {
    std::uint32_t container = 0, from = 0, to = 0;
    int left = 0, delivered = 0;
    bool software_from = false, software_to = false;
    double posted = 0;
  };

  std::uint32_t new_message(std::uint32_t container) {
    messages_.push_back({.container = container});
    return static_cast<std::uint32_t>(messages_.size() - 1);
  }
  static double serve(double& free, double t, double ns) { return free = std::max(free, t) + ns; }
  double core(std::uint32_t rnic, double t) {
    const MessageCost& c = costs_[rnic];
    return serve(core_[rnic], t, c.software_ns / c.software_share / packets_);
  }
  void go(const Event& e, double t, Kind next, double delay) {
    events_.push({t + delay, next, e.message});
  }

  void post(std::uint32_t id, double t) {
    Message& m = messages_[id];
    const std::uint32_t group = containers_[m.container];
    m.from = p_.groups[group].rnic;
    // A peer on another host: draw until one comes.
    const std::size_t s = service_[group];
    do {
      std::uint32_t first = 0;
      std::uint32_t of_service = 0;
      for (std::uint32_t g = 0; g < p_.first[s]; ++g) first += p_.groups[g].container_count;
      for (std::uint32_t g = p_.first[s]; g < p_.first[s + 1]; ++g) {
        of_service += p_.groups[g].container_count;
      }
      m.to = p_.groups[containers_[first + random_.below(of_service)]].rnic;
    } while (p_.host_of[m.to] == p_.host_of[m.from]);
    m.posted = t;
    m.left = packets_;
    m.delivered = 0;
    m.software_from = random_.uniform() < costs_[m.from].software_share;
    m.software_to = random_.uniform() < costs_[m.to].software_share;
    turns_[m.from].push_back(id);
    if (turns_[m.from].size() == 1) {
      events_.push({std::max(t, send_[m.from]), kSendTurn, m.from});
    }
  }

  /// One packet of whoever is next; messages take turns.
  void send_turn(std::uint32_t rnic, double t) {
    std::deque<std::uint32_t>& turns = turns_[rnic];
    const std::uint32_t id = turns.front();
    turns.pop_front();
    Message& m = messages_[id];
    const double end = serve(send_[rnic], t, costs_[rnic].send_ns / packets_);
    events_.push({end + (m.software_from ? upcall_ns : costs_[rnic].send_delay_ns),
                  m.software_from ? kSenderCore : kArrive, id});
    if (--m.left > 0) turns.push_back(id);
    if (!turns.empty()) events_.push({end, kSendTurn, rnic});
  }

  const FleetPlacement& p_;
  const std::vector<MessageCost>& costs_;
  const FleetTraffic& t_;
  int packets_;
  statistics::Random random_;
  std::vector<std::uint32_t> containers_;  ///< their groups
  std::vector<std::size_t> service_;       ///< of each group
  std::vector<Message> messages_;
  std::vector<std::deque<std::uint32_t>> turns_;
  std::vector<double> send_, receive_, core_;  ///< when they are free
  std::priority_queue<Event> events_;
  double done_ = 0;
};

}  // namespace greynic::twin
