#include "parts/path.h"

#include <algorithm>

namespace greynic::twin {

Time one_way(const Parameters& p, bool overlay) {
  // A short message without overlay takes this; what the published figure has on top is the
  // overlay.
  const double bare = p.post_request_ns + 2 * (p.pcie_post_ns + kPcieJitterNs) +
                      1e3 / p.qp_packet_rate_cap_mpps + p.one_way_ns + p.completion_ns;
  return p.one_way_ns + (overlay ? std::max(0.0, p.base_half_rtt_us * 1e3 - bare) : 0.0);
}

Crossing cross_groups(const Parameters& p, double groups, Time per_group_ns, bool in_sequence) {
  if (!in_sequence) groups = std::min(groups, 1.0);
  const double hops = p.base_hops_per_packet + groups * p.hops_per_group;
  const double hop_ns = p.cycle_ns() / p.steering_pipe_count;
  return {.latency = groups * per_group_ns, .hops = hops, .occupancy = hops * hop_ns};
}

void Path::lay_out(World& world) {
  one_way_ns_ = one_way(world.p, world.load.overlay);
  for (std::size_t side = 0; side < 2; ++side) {
    Passage& passage = passages_[side];
    const Hop out = side == 0 ? Hop::kClientEncap : Hop::kServerEncap;
    const Hop in = side == 0 ? Hop::kServerDecap : Hop::kClientDecap;
    passage.encap = {.walk = &world.load.walk(out),
                     .per_group_ns = world.p.encap_per_group_ns[world.load.operation]};
    passage.decap = {.walk = &world.load.walk(in),
                     .per_group_ns = world.p.decap_per_group_ns[world.load.operation]};
    for (Steering* steering : {&passage.encap, &passage.decap}) {
      steering->varies = !steering->walk->shares.empty();
      steering->current = crossing_of(world, *steering, steering->walk->groups);
    }
  }
  lay_out_loops(world);
  lay_out_port(world);
}

void Path::lay_out_loops(World& world) {
  const auto window =
      static_cast<std::size_t>(world.load.overlay ? world.p.loop_window_packets : 0);
  for (std::uint32_t side = 0; side < world.nics.size(); ++side) {
    Nic& nic = world.nics[side];
    const Passage& way = passages_[World::direction_from(side)];
    const Passage& back = passages_[World::direction_from(side) ^ 1U];
    nic.transmit_walk = Walk({.equal_walks = !way.encap.varies});
    nic.receive_walk =
        Walk({.burst_packets = static_cast<std::size_t>(world.p.walk_burst_packets),
              .window_packets = static_cast<std::size_t>(world.p.walk_window_packets),
              .equal_walks = !back.decap.varies});
    nic.loop = Window(window);
    // What of the loop is not the way there: the way back, with the groups it meets.
    const Freight& full = world.messages.shapes().front().middle;
    const Time there =
        one_way_ns_ + full.wire_ns + full.stored_ns + world.pcie.write_ns(world.load.mtu_bytes);
    nic.loop_rest_ns = world.p.loop_base_us * 1e3 - there;
    if (!world.effects.masks_in_sequence) continue;
    nic.unit_ns =
        way.encap.walk->mean() * (world.p.encap_unit_cycles_per_group * world.p.cycle_ns());
    nic.loop_rest_ns += back.encap.walk->mean() * back.encap.per_group_ns +
                        back.decap.walk->mean() * back.decap.per_group_ns;
  }
}

void Path::lay_out_port(const World& world) {
  const bool narrow =
      world.load.server_link_gbps > 0 && world.load.server_link_gbps < world.p.link_rate_gbps;
  if (!narrow && world.load.sender_count == 1) return;
  const double gbps = narrow ? world.load.server_link_gbps : world.p.link_rate_gbps;
  const double ns_per_kbyte = 8e3 / gbps;
  // What senders may fill together fits the buffer.
  const double part = std::min(
      1.0, world.p.port_buffer_kbytes / world.load.sender_count / world.p.port_pause_kbytes);
  port_ = SwitchPort(world.p.link_rate_gbps / gbps,
                     {.ecn_low = world.p.port_ecn_low_kbytes * ns_per_kbyte,
                      .ecn_high = world.p.port_ecn_high_kbytes * ns_per_kbyte,
                      .ecn_share = world.p.port_ecn_share,
                      .lossless = world.load.pfc,
                      .pause = part * world.p.port_pause_kbytes * ns_per_kbyte,
                      .resume = part * world.p.port_resume_kbytes * ns_per_kbyte,
                      .buffer = world.p.port_buffer_kbytes * ns_per_kbyte},
                     world.nics.size());
}

Crossing Path::crossing_of(const World& world, const Steering& steering, double groups) {
  return cross_groups(world.p, groups, steering.per_group_ns, world.effects.masks_in_sequence);
}

void Path::draw_crossing(World& world, Steering& steering) {
  const GroupWalk& walk = *steering.walk;
  const auto at = std::upper_bound(walk.shares.begin(), walk.shares.end(), world.random.uniform());
  const auto index = std::min<std::size_t>(static_cast<std::size_t>(at - walk.shares.begin()),
                                           walk.share_groups.size() - 1);
  steering.current = crossing_of(world, steering, walk.share_groups[index]);
}

/// The rule that a packet's flow hits is on chip, or is read over PCIe. Messages are dealt out to
/// flows at random. Returns when the packet goes on.
Time Path::recall_flow(World& world, Nic& nic, std::uint32_t stream, Time t) {
  const std::uint64_t message =
      static_cast<std::uint64_t>(stream) << 32 | world.streams[stream].sent;
  if (nic.steering.touch(statistics::split_mix(message) % world.load.flow_count)) return t;
  ++nic.counters.steering_misses;
  return nic.fetch_slots.pass(t, world.p.context_fetch_ns);
}

Time Path::send_control(World& world, std::uint32_t from, std::uint32_t to, double bytes, Time t) {
  Nic& sender = world.nics[from];
  ++sender.counters.tx_packets;
  ++world.nics[to].counters.rx_packets;
  const double wire_ns =
      (bytes + packet_overhead_bytes(world.load.overlay)) * 8.0 / world.p.link_rate_gbps;
  Time wire_end = 0;
  return cross(world, sender, world.nics[to], World::direction_from(from), wire_ns, t, from == to,
               false, wire_end);
}

Time Path::send_word(World& world, std::uint32_t from, std::uint32_t to, double bytes, Time t) {
  const Time there = send_control(world, from, to, bytes, t);
  if (world.load.loss <= 0 || from == to || world.random.uniform() >= world.load.loss) return there;
  NicCounters& receiver = world.nics[to].counters;
  --receiver.rx_packets;
  ++receiver.dropped_packets;
  return kNever;
}

}  // namespace greynic::twin
