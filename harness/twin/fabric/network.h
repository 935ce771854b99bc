#pragma once

/// Links and switches: a single switch, or a leaf-spine. A packet is an event at every switch; its
/// egress port is one queue, first come first served. A port that its partner tells to pause (PFC)
/// keeps its packets, fills the buffer, and makes the switch pause those who fill it.
///
/// Ports cut through: an idle port costs a packet nothing but the link behind it. What switches
/// that store packets take on top is `stored_stage_count` of the RNIC's model, as in `measure`.
///
/// Needs: events and packets. Gives: kAtSwitch, kAtHost, kPortFree, kPausePort and kPauseHost.

#include <cstdint>
#include <map>
#include <vector>

#include "fabric/shared.h"
#include "stages/fifo.h"
#include "stages/switch_port.h"

namespace greynic::twin::fabric {

struct HostLink {
  double gbps = 0;
  Time latency = 0;   ///< of the link, one way
  PortLimits limits;  ///< in bytes
};

class Network {
 public:
  Network(Shared& shared, const FabricSpec& spec) : shared_(shared), spec_(spec) {}
  /// One link for each host.
  void lay_out(std::vector<HostLink> links);

  /// A packet of a host gets to its switch.
  void send(std::uint32_t packet, Time there) {
    Packet& p = shared_.packets[packet];
    p.device = leaf_of(p.from);
    p.ingress = p.from - p.device * hosts_per_leaf_;
    shared_.events.push(there, event::kAtSwitch, packet);
  }
  void at_switch(std::uint32_t packet);
  /// What a packet will need at its switch, into the CPU's caches.
  void prefetch_at_switch(const Packet& packet, int step) const;
  void port_free(std::uint32_t port);
  void pause_port(std::uint32_t port, bool pause);
  /// The receive buffer of a host, which pauses the port in front of it when it is full.
  [[nodiscard]] PauseBuffer*& buffer_of(HostId host) { return buffers_[host]; }

  [[nodiscard]] std::vector<PortId> ports() const;
  /// False: no such port of a switch.
  [[nodiscard]] bool observe(const PortId& id, PortObserver* observer);
  [[nodiscard]] double port_gbps(const PortId& id) const;
  [[nodiscard]] std::uint64_t drop_count() const { return drop_count_; }
  [[nodiscard]] std::size_t bytes_of_port() const { return sizeof(Port) + sizeof(Ingress); }

 private:
  struct alignas(64) Port {  ///< as in Qp: two lines of a CPU's cache
    double ns_per_byte = 0;
    Time latency = 0;
    Time free = 0;
    std::uint32_t bytes = 0;  ///< of frames in the queue
    bool to_host = false, watched = false;
    bool paused = false, waiting = false;  ///< waiting: kPortFree is under way
    Fifo<std::uint32_t> queue;
    PortLimits limits;
    std::uint32_t next = 0;          ///< host or switch
    std::uint32_t next_ingress = 0;  ///< there
  };
  struct Ingress {
    std::uint64_t bytes = 0;  ///< in the switch, that came in by it
    bool pausing = false;     ///< its partner was told
    bool from_host = false;
    std::uint32_t partner = 0;  ///< host, or port of the other switch
    Time latency = 0;
  };
  struct Switch {
    std::uint32_t first_port = 0, port_count = 0;
    std::uint32_t busy_ingresses = 0;
    std::vector<Ingress> ingresses;
  };

  [[nodiscard]] std::uint32_t leaf_of(HostId host) const { return host / hosts_per_leaf_; }
  [[nodiscard]] std::uint32_t route(const Switch& at, std::uint32_t device,
                                    const Packet& packet) const;
  void lay_out_leaf(std::uint32_t leaf);
  void lay_out_spine(std::uint32_t spine);
  void depart(std::uint32_t port, std::uint32_t packet);
  void take_up(Switch& at, Ingress& ingress, const PortLimits& limits, std::uint32_t bytes);
  void let_go(Switch& at, Ingress& ingress, const PortLimits& limits, std::uint32_t bytes);
  void tell(const Ingress& ingress, bool pause);
  void report(std::uint32_t port, const Packet& packet, Time t) const;

  Shared& shared_;
  const FabricSpec& spec_;
  std::uint32_t hosts_per_leaf_ = 1, leaf_count_ = 1;
  double uplink_gbps_ = 0;
  std::vector<HostLink> links_;
  std::vector<PauseBuffer*> buffers_;  ///< of hosts, null while they have received nothing
  std::vector<Switch> switches_;       ///< leaves, then spines
  std::vector<Port> ports_;
  std::map<std::uint32_t, PortObserver*> observers_;  ///< by port
  std::uint64_t drop_count_ = 0;
};

/// The header fields that a switch sees.
[[nodiscard]] PacketRecord record_of(const Packet& packet, const PortId& port);

}  // namespace greynic::twin::fabric
