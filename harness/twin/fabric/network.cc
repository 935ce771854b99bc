#include "fabric/network.h"

#include <algorithm>
#include <utility>

namespace greynic::twin::fabric {
namespace {

/// Opcode of the base transport header (InfiniBand specification, table 38).
std::uint8_t bth_opcode(const Packet& p) {
  const std::uint8_t base = p.transport == Transport::kUC   ? 0x20
                            : p.transport == Transport::kUD ? 0x60
                                                            : 0x00;
  const bool only = p.first && p.last;
  switch (p.kind) {
    case PacketKind::kSendData:
      if (only) return base + (p.has_immediate ? 5 : p.invalidates ? 0x17 : 4);
      return base + (p.first ? 0 : !p.last ? 1 : p.has_immediate ? 3 : p.invalidates ? 0x16 : 2);
    case PacketKind::kWriteData:
      if (only) return base + (p.has_immediate ? 11 : 10);
      return base + (p.first ? 6 : !p.last ? 7 : p.has_immediate ? 9 : 8);
    case PacketKind::kReadRequest:
      return 12;
    case PacketKind::kReadResponse:
      return only ? 16 : p.first ? 13 : p.last ? 15 : 14;
    case PacketKind::kAtomicResponse:
      return 18;
    case PacketKind::kAtomicRequest:
      return p.form->operation == Operation::kAtomic && p.has_immediate ? 19 : 20;
    case PacketKind::kCongested:
      return 0x81;
    default:
      return 17;  // acknowledge, positive or negative
  }
}

constexpr std::uint32_t kFirstAddress = 0x0a000001;  // 10.0.0.1

}  // namespace

PacketRecord record_of(const Packet& p, const PortId& port) {
  PacketRecord record;
  record.port = port;
  record.source_ip = kFirstAddress + p.from;
  record.destination_ip = kFirstAddress + p.to;
  // As drivers do: the source port spreads QPs over paths.
  record.source_port =
      static_cast<std::uint16_t>(0xc000 | (statistics::split_mix(p.from_qp) & 0x3fff));
  record.opcode = bth_opcode(p);
  record.destination_qp = p.to_qp;
  record.psn = p.psn & 0xffffff;
  record.bytes = p.form->frame_bytes;
  record.marked = p.marked;
  return record;
}

void Network::lay_out(std::vector<HostLink> links) {
  links_ = std::move(links);
  const auto hosts = static_cast<std::uint32_t>(links_.size());
  buffers_.resize(hosts, nullptr);
  hosts_per_leaf_ = spec_.hosts_per_leaf == 0 ? hosts : std::min(spec_.hosts_per_leaf, hosts);
  leaf_count_ = (hosts + hosts_per_leaf_ - 1) / hosts_per_leaf_;
  uplink_gbps_ = spec_.uplink_gbps;
  if (uplink_gbps_ <= 0) {
    double most = 0;
    for (const HostLink& link : links_) most = std::max(most, link.gbps);
    uplink_gbps_ = most * hosts_per_leaf_ / spec_.spine_count;
  }
  const std::uint32_t spines = leaf_count_ > 1 ? spec_.spine_count : 0;
  switches_.resize(leaf_count_ + spines);
  for (std::uint32_t leaf = 0; leaf < leaf_count_; ++leaf) {
    switches_[leaf].first_port = leaf * (hosts_per_leaf_ + spines);
    switches_[leaf].port_count = hosts_per_leaf_ + spines;
  }
  for (std::uint32_t spine = 0; spine < spines; ++spine) {
    switches_[leaf_count_ + spine].first_port =
        leaf_count_ * (hosts_per_leaf_ + spines) + spine * leaf_count_;
    switches_[leaf_count_ + spine].port_count = leaf_count_;
  }
  ports_.resize(switches_.back().first_port + switches_.back().port_count);
  for (std::uint32_t leaf = 0; leaf < leaf_count_; ++leaf) lay_out_leaf(leaf);
  for (std::uint32_t spine = 0; spine < spines; ++spine) lay_out_spine(spine);
}

void Network::lay_out_leaf(std::uint32_t leaf) {
  Switch& self = switches_[leaf];
  self.ingresses.resize(self.port_count);
  for (std::uint32_t i = 0; i < self.port_count; ++i) {
    Port& port = ports_[self.first_port + i];
    Ingress& ingress = self.ingresses[i];
    if (i < hosts_per_leaf_) {
      const HostId host = leaf * hosts_per_leaf_ + i;
      if (host >= links_.size()) continue;
      const HostLink& link = links_[host];
      port.ns_per_byte = 8 / link.gbps;
      port.latency = link.latency;
      port.limits = link.limits;
      port.to_host = true;
      port.next = host;
      ingress = {.from_host = true, .partner = host, .latency = link.latency};
      continue;
    }
    const std::uint32_t spine = leaf_count_ + i - hosts_per_leaf_;
    port.ns_per_byte = 8 / uplink_gbps_;
    port.latency = spec_.hop_ns;
    port.limits = links_[leaf * hosts_per_leaf_].limits;
    port.next = spine;
    port.next_ingress = leaf;
    ingress = {.partner = switches_[spine].first_port + leaf, .latency = spec_.hop_ns};
  }
}

void Network::lay_out_spine(std::uint32_t spine) {
  Switch& self = switches_[leaf_count_ + spine];
  self.ingresses.resize(self.port_count);
  for (std::uint32_t leaf = 0; leaf < leaf_count_; ++leaf) {
    Port& port = ports_[self.first_port + leaf];
    port.ns_per_byte = 8 / uplink_gbps_;
    port.latency = spec_.hop_ns;
    port.limits = links_[leaf * hosts_per_leaf_].limits;
    port.next = leaf;
    port.next_ingress = hosts_per_leaf_ + spine;
    self.ingresses[leaf] = {.partner = switches_[leaf].first_port + hosts_per_leaf_ + spine,
                            .latency = spec_.hop_ns};
  }
}

std::uint32_t Network::route(const Switch& at, std::uint32_t device, const Packet& p) const {
  const std::uint32_t leaf = leaf_of(p.to);
  if (device >= leaf_count_) return at.first_port + leaf;  // a spine
  if (device == leaf) return at.first_port + p.to - leaf * hosts_per_leaf_;
  // Both ways of a QP pair may take different spines, as equal-cost hashing has it.
  const std::uint64_t flow = std::uint64_t{p.from_qp} << 32 | p.to_qp;
  const auto spines = static_cast<std::uint32_t>(switches_.size()) - leaf_count_;
  return at.first_port + hosts_per_leaf_ +
         static_cast<std::uint32_t>(statistics::split_mix(flow) % spines);
}

void Network::prefetch_at_switch(const Packet& packet, int step) const {
  const Switch& self = switches_[packet.device];
  const Port& port = ports_[route(self, packet.device, packet)];
  if (step == 0) {
    prefetch(&port);
    return prefetch(&self.ingresses[packet.ingress]);
  }
  if (!port.to_host || !carries_payload(packet.kind)) return;
  const PauseBuffer* buffer = buffers_[port.next];
  if (buffer == nullptr) return;
  if (step == 1) return prefetch(buffer);
  prefetch(buffer->next());
}

void Network::at_switch(std::uint32_t id) {
  Packet& packet = shared_.packets[id];
  Switch& self = switches_[packet.device];
  const std::uint32_t index = route(self, packet.device, packet);
  Port& port = ports_[index];
  const bool data = carries_payload(packet.kind);
  // Who leaves at the time at which another comes leaves first.
  if (!port.queue.empty() && !port.paused && port.free <= shared_.now) {
    depart(index, port.queue.pop());
  }
  // As in `measure`, a packet joins the backlog that it finds: what is being sent counts by the
  // time that it still takes.
  double backlog = static_cast<double>(port.bytes);
  if (port.free > shared_.now) backlog += (port.free - shared_.now) / port.ns_per_byte;
  const PacketForm& form = *packet.form;
  if (data && !spec_.pfc && backlog + form.wire_bytes > port.limits.buffer) {
    ++drop_count_;
    shared_.events.push(shared_.now, event::kDropped, packet.from);
    shared_.packets.give_back(id);
    return;
  }
  if (data && spec_.dcqcn && !packet.marked) {
    const double share = port.limits.mark_share(backlog);
    packet.marked = share >= 1 || (share > 0 && shared_.random.uniform() < share);
  }
  port.bytes += form.frame_bytes;
  packet.enqueued = shared_.now;
  packet.depth = port.bytes;
  take_up(self, self.ingresses[packet.ingress], port.limits, form.frame_bytes);
  if (port.queue.empty() && !port.paused && port.free <= shared_.now) return depart(index, id);
  port.queue.push(id);
  if (!port.waiting && !port.paused) {
    port.waiting = true;
    shared_.events.push(port.free, event::kPortFree, index);
  }
}

void Network::port_free(std::uint32_t index) {
  Port& port = ports_[index];
  port.waiting = false;
  if (port.paused || port.queue.empty()) return;
  if (port.free > shared_.now) {
    port.waiting = true;
    return shared_.events.push(port.free, event::kPortFree, index);
  }
  depart(index, port.queue.pop());
  if (port.queue.empty() || port.waiting) return;
  port.waiting = true;
  shared_.events.push(port.free, event::kPortFree, index);
}

/// The packet leaves now, or when the receiver's buffer lets it.
void Network::depart(std::uint32_t index, std::uint32_t id) {
  Port& port = ports_[index];
  Packet& packet = shared_.packets[id];
  const Time now = shared_.now;
  const PacketForm& form = *packet.form;
  port.free = now + form.wire_bytes * port.ns_per_byte;
  port.bytes -= form.frame_bytes;
  Switch& self = switches_[packet.device];
  let_go(self, self.ingresses[packet.ingress], port.limits, form.frame_bytes);
  if (port.watched) [[unlikely]]
    report(index, packet, now);
  const Time there = now + port.latency;
  if (port.to_host) {
    PauseBuffer* buffer = buffers_[port.next];
    if (buffer != nullptr && carries_payload(packet.kind)) {
      // A receiver that is full pauses the port for what comes after.
      port.free = std::max(port.free, buffer->admit(now));
    }
    return shared_.events.push(there, event::kAtHost, id);
  }
  packet.device = port.next;
  packet.ingress = port.next_ingress;
  shared_.events.push(there, event::kAtSwitch, id);
}

void Network::pause_port(std::uint32_t index, bool pause) {
  Port& port = ports_[index];
  port.paused = pause;
  if (pause || port.queue.empty() || port.waiting) return;
  port.waiting = true;
  shared_.events.push(std::max(shared_.now, port.free), event::kPortFree, index);
}

/// Who fills the buffer: many share it evenly, few are held to the threshold of one.
void Network::take_up(Switch& self, Ingress& ingress, const PortLimits& limits,
                      std::uint32_t bytes) {
  if (ingress.bytes == 0) ++self.busy_ingresses;
  ingress.bytes += bytes;
  if (!spec_.pfc || ingress.pausing) return;
  const auto held = static_cast<double>(ingress.bytes);
  if (held <= limits.pause && held * self.busy_ingresses <= limits.buffer) return;
  ingress.pausing = true;
  tell(ingress, true);
}

void Network::let_go(Switch& self, Ingress& ingress, const PortLimits& limits,
                     std::uint32_t bytes) {
  ingress.bytes -= bytes;
  const std::uint32_t sharers = self.busy_ingresses;
  if (ingress.bytes == 0) --self.busy_ingresses;
  if (!ingress.pausing) return;
  const double part = std::min(1.0, limits.buffer / sharers / limits.pause);
  if (static_cast<double>(ingress.bytes) > part * limits.resume) return;
  ingress.pausing = false;
  tell(ingress, false);
}

void Network::tell(const Ingress& ingress, bool pause) {
  shared_.events.push(shared_.now + ingress.latency,
                      ingress.from_host ? event::kPauseHost : event::kPausePort, ingress.partner,
                      pause ? 1 : 0);
}

void Network::report(std::uint32_t index, const Packet& packet, Time t) const {
  const std::uint32_t port = index - switches_[packet.device].first_port;
  PacketRecord record = record_of(packet, {.device = packet.device, .port = port});
  record.enqueued = packet.enqueued;
  record.dequeued = t;
  record.depth_at_enqueue = packet.depth;
  record.depth_at_dequeue = ports_[index].bytes;
  observers_.at(index)->on_packet(record);
}

std::vector<PortId> Network::ports() const {
  std::vector<PortId> all;
  for (HostId host = 0; host < links_.size(); ++host) {
    all.push_back({.of_host = true, .device = host});
  }
  for (std::uint32_t device = 0; device < switches_.size(); ++device) {
    for (std::uint32_t port = 0; port < switches_[device].port_count; ++port) {
      if (ports_[switches_[device].first_port + port].ns_per_byte <= 0) continue;
      all.push_back({.device = device, .port = port});
    }
  }
  return all;
}

bool Network::observe(const PortId& id, PortObserver* observer) {
  if (id.of_host || id.device >= switches_.size()) return false;
  const Switch& self = switches_[id.device];
  const std::uint32_t index = self.first_port + id.port;
  if (id.port >= self.port_count || ports_[index].ns_per_byte <= 0) return false;
  ports_[index].watched = observer != nullptr;
  observers_[index] = observer;
  return true;
}

double Network::port_gbps(const PortId& id) const {
  if (id.of_host) return id.device < links_.size() && id.port == 0 ? links_[id.device].gbps : 0;
  if (id.device >= switches_.size() || id.port >= switches_[id.device].port_count) return 0;
  const Port& port = ports_[switches_[id.device].first_port + id.port];
  return port.ns_per_byte > 0 ? 8 / port.ns_per_byte : 0;
}

}  // namespace greynic::twin::fabric
