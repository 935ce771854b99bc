/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Engine A: follows packets by their sk_buff, without touching them. A journey begins where a packet
 * is made or comes from a wire; each point that it passes is joined to the one before, if that may
 * follow it; it ends when the kernel frees the packet. Addresses of sk_buffs are used again at once,
 * also by packets whose end nobody reports (TCP, GRO): what cannot follow is a new journey.
 */
#include "hops.h"
#include "journeys.h"
#include "kernel_types.h"
#include "parse.h"

char LICENSE[] SEC("license") = "GPL";

static __always_inline u32 segments_of(const struct sk_buff *skb) {
  if (skb->len <= skb->dev->mtu + 18) return 1;
  const struct skb_shared_info *shared =
      (const struct skb_shared_info *)(head_of(skb) + (u64)skb->end);
  u16 segments = BPF_CORE_READ(shared, gso_segs);
  return segments ? segments : 1;
}

/* The IP header at a point: queued packets begin with the device's header, received ones behind it. */
static __always_inline bool parse_at(struct parsed *p, const struct sk_buff *skb,
                                     const struct greynic_device *device, u32 direction) {
  if (bpf_probe_read_kernel(&p->at, sizeof p->at, &skb->data)) return false;
  u32 type = bpf_ntohs(skb->protocol);
  if (direction == GREYNIC_TX && device->ethernet) {
    type = skip_ethernet(p);
  } else if (type == ETHERTYPE_VLAN || type == ETHERTYPE_QINQ) {
    if (!read_header(p, 0, 4)) return false;
    type = BYTES16(2);
    p->at += 4;
  }
  return parse_packet(p, type);
}

/* Finds the flow of a packet that was parsed; false when no rule wants it. */
static __always_inline bool flow_of(struct parsed *p, const struct greynic_device *device,
                                    struct flow_row *found) {
  if (p->later_fragment) {
    const struct flow_row *row = bpf_map_lookup_elem(&fragments, &p->fragment);
    if (!row || row->epoch != config.epoch) return false;
    *found = *row;
    return true;
  }
  if (p->flow.vni == GREYNIC_ANY) p->flow.vni = device->vni;
  u32 index = rule_of(&p->flow);
  const struct greynic_rule *rule = bpf_map_lookup_elem(&rules, &index);
  if (!rule) return false;
  found->flags = rule->flags;
  found->rule = rule->file_rule;
  found->sample = rule->sample;
  found->epoch = config.epoch;
  p->flow.file_rule = rule->file_rule;
  if (rule->flags & (GREYNIC_BY_HOSTS | GREYNIC_BY_RULE)) {
    p->flow.source_port = p->flow.destination_port = 0;
    p->flow.queue_pair = GREYNIC_ANY;
    p->flow.protocol = 0;
  }
  if (rule->flags & GREYNIC_BY_RULE) {
    __builtin_memset(p->flow.source, 0, 16);
    __builtin_memset(p->flow.destination, 0, 16);
    p->flow.vni = GREYNIC_ANY;
  }
  found->flow = number_of_flow(&p->flow);
  if (p->is_fragment) bpf_map_update_elem(&fragments, &p->fragment, found, BPF_ANY);
  return true;
}

/* May a packet that was seen at `last` be seen here next? */
static __always_inline bool may_follow(u32 last, const struct greynic_device *device,
                                       u32 direction, const struct sk_buff *skb) {
  const struct greynic_place *before = place_of(last >> 1);
  if (!before) return false;
  const bool other = (last >> 1) != device->number;
  // The number of the device that has received it last; new packets have none, tunnels take it away.
  const bool received_there = (u32)skb->skb_iif == (u32)before->identity &&
                              before->identity >> 32 == device->identity >> 32;
  if (direction == GREYNIC_TX) {
    if ((last & 1) == GREYNIC_TX) return other && before->kind == GREYNIC_VIRTUAL;
    return received_there;
  }
  if ((last & 1) == GREYNIC_TX) {
    if (before->kind == GREYNIC_VETH) return before->peer == device->number;
    if (before->kind == GREYNIC_LOOPBACK) return !other;
    return before->kind == GREYNIC_VIRTUAL && other;
  }
  return other && (device->kind == GREYNIC_VIRTUAL || received_there);
}

/* Where a packet without a history must have been before; GREYNIC_NOWHERE when that is open. */
static __always_inline u32 point_before(const struct greynic_device *device, u32 direction,
                                        const struct sk_buff *skb) {
  if (direction == GREYNIC_RX) {
    return device->kind == GREYNIC_VETH && device->peer ? device->peer << 1 | GREYNIC_TX
                                                        : GREYNIC_NOWHERE;
  }
  if (skb->skb_iif == 0) return GREYNIC_NOWHERE;
  const struct greynic_device *in =
      device_by((device->identity & 0xffffffff00000000ULL) | (u32)skb->skb_iif);
  return in ? in->number << 1 | GREYNIC_RX : GREYNIC_NOWHERE;
}

struct arrival {
  const struct greynic_device *device;
  struct greynic_counters *counters;
  u64 now;
  u32 point;
  u32 segments;
  u32 bytes;
};

/* Joins a point to a journey; `timed` when the time of the point before is known. */
static __always_inline void arrive(struct journey *journey, const struct arrival *a, bool timed) {
  const u32 direction = a->point & 1;
  journey->at = a->point;
  if (!(a->device->rules[direction] & (1u << (journey->row.rule & 31)))) return;
  ++a->counters->events;
  const u32 from = journey->cell_point;
  const u32 cell = cell_behind(journey->cell, journey->row.flow, from, a->point, a->counters);
  const u64 delay = a->now - journey->last_ns;
  const bool measured = timed && from != GREYNIC_NOWHERE && (journey->row.flags & GREYNIC_TIMED);
  add_to_cell(cell, a->segments, measured, delay);
  if (!timed) ++a->counters->inferred;
  if (journey->recorded) {
    send_record(GREYNIC_HOP, journey, a->point, a->now, a->bytes, 0, 0, a->counters);
  } else if (config.slow_ns && a->now - journey->first_ns > config.slow_ns) {
    send_record(GREYNIC_HOP, journey, a->point, a->now, a->bytes, 0, 0, a->counters);
  }
  journey->cell = cell;
  journey->cell_point = a->point;
  journey->last_ns = a->now;
}

/* A packet without a history that may follow: new, a copy, a fragment or a segment. */
static __noinline int begin(const struct sk_buff *skb, const struct arrival *a) {
  struct parsed *p = scratch(0);
  const u32 direction = a->point & 1;
  struct journey made = {};
  if (!p) return 0;
  // Copies share the bytes with a packet that we know.
  const struct journey *twin = skb->cloned ? journey_by_head(head_of(skb)) : 0;
  if (twin && may_follow(twin->at, a->device, direction, skb)) {
    made = *twin;
    made.skb = address_of(skb);
    struct journey *copy = room_for(address_of(skb), a->now, a->counters);
    if (!copy) return 0;
    *copy = made;
    arrive(copy, a, true);
    return 1;
  }
  const u32 before = point_before(a->device, direction, skb);
  // Packets that are not followed have no history anywhere: only a first point may begin one.
  if (config.one_in > 1 && (before != GREYNIC_NOWHERE || !begins_here(config.one_in))) return 0;
  if (!parse_at(p, skb, a->device, direction) || !flow_of(p, a->device, &made.row)) return 0;
  // What leaves a tunnel as new packets, in pieces, is made by the CPU that has just fed the tunnel.
  const struct journey *last = p->tunnelled || p->is_fragment ? last_virtual() : 0;
  bool timed = true;
  if (before == GREYNIC_NOWHERE && last && last->row.flow == made.row.flow &&
             last->row.epoch == config.epoch && may_follow(last->at, a->device, direction, skb)) {
    made = *last;
  } else {
    made.at = made.cell_point = before;
    made.first_ns = made.last_ns = a->now;
    made.serial = next_serial();
    made.recorded = made.row.sample && (made.serial >> 8) % made.row.sample == 0;
    timed = before == GREYNIC_NOWHERE;
    ++a->counters->journeys;
  }
  made.skb = address_of(skb);
  struct journey *journey = room_for(address_of(skb), a->now, a->counters);
  if (!journey) return 0;
  *journey = made;
  arrive(journey, a, timed);
  return 1;
}

static __always_inline int on_hop(struct sk_buff *skb, u32 direction) {
  const struct net_device *dev = skb->dev;
  if (!dev) return 0;
  const struct greynic_device *device =
      device_by((u64)dev->nd_net.net->ns.inum << 32 | (u32)dev->ifindex);
  struct greynic_counters *counters = my_counters();
  if (!counters) return 0;
  if (!device) {
    ++counters->unplaced;
    return 0;
  }
  struct arrival a = {.device = device,
                      .counters = counters,
                      .now = bpf_ktime_get_ns(),
                      .point = device->number << 1 | direction,
                      .segments = segments_of(skb),
                      .bytes = skb->len};
  if (a.now < config.start_ns) return 0;
  struct journey *journey = journey_of(address_of(skb));
  if (journey && journey->row.epoch == config.epoch &&
      may_follow(journey->at, device, direction, skb)) {
    arrive(journey, &a, true);
  } else {
    if (!begin(skb, &a)) {
      if (journey) journey->skb = 0;
      if (device->copies & (1 << direction)) forget_head(head_of(skb));
      return 0;
    }
    journey = journey_of(address_of(skb));
    if (!journey) return 0;
  }
  if (direction == GREYNIC_TX && device->kind == GREYNIC_VIRTUAL) remember_virtual(journey);
  if (device->copies & (1 << direction)) remember_head(head_of(skb), journey);
  return 0;
}

SEC("tp_btf/net_dev_queue")
int BPF_PROG(on_queue, struct sk_buff *skb) { return on_hop(skb, GREYNIC_TX); }

SEC("tp_btf/netif_receive_skb")
int BPF_PROG(on_receive, struct sk_buff *skb) { return on_hop(skb, GREYNIC_RX); }

SEC("tp_btf/consume_skb")
int BPF_PROG(on_consume, struct sk_buff *skb) {
  struct journey *journey = journey_of(address_of(skb));
  if (journey) journey->skb = 0;
  return 0;
}

static __always_inline bool is_no_loss(u32 reason) {
  const u32 *listed = bpf_map_lookup_elem(&no_loss, &reason);
  return listed && *listed;
}

/* A packet that died before any point had seen it. */
static __always_inline bool unseen(struct sk_buff *skb, const struct greynic_device *device,
                                   struct journey *made) {
  struct parsed *p = scratch(1);
  if (!p || !skb->network_header || skb->network_header == 0xffff) return false;
  p->at = head_of(skb) + skb->network_header;
  return parse_packet(p, bpf_ntohs(skb->protocol)) && flow_of(p, device, &made->row);
}

/*
 * Did the packet that is freed come from the last point of a journey? Its address may have been used
 * again. Gives the point that it was bound for in `to`.
 */
static __always_inline bool died_behind(u32 last, const struct greynic_device *device,
                                        const struct sk_buff *skb, u32 *to) {
  const struct greynic_place *before = place_of(last >> 1);
  if (!before) return false;
  const bool received_there = (u32)skb->skb_iif == (u32)before->identity;
  *to = GREYNIC_NOWHERE;
  if (!device) return (last & 1) == GREYNIC_RX && received_there;  // in a socket
  if (device->number == last >> 1) return (last & 1) == GREYNIC_TX || received_there;
  if (may_follow(last, device, GREYNIC_TX, skb)) {
    *to = device->number << 1 | GREYNIC_TX;
    return true;
  }
  *to = device->number << 1 | GREYNIC_RX;
  return may_follow(last, device, GREYNIC_RX, skb);
}

SEC("tp_btf/kfree_skb")
int BPF_PROG(on_free, struct sk_buff *skb, void *location, u32 reason) {
  struct journey *journey = journey_of(address_of(skb));
  struct journey made = {};
  if (journey) {
    made = *journey;
    journey->skb = 0;
  }
  if (is_no_loss(reason)) return 0;
  struct greynic_counters *counters = my_counters();
  const u64 now = bpf_ktime_get_ns();
  if (!counters || now < config.start_ns) return 0;
  const struct net_device *dev = skb->dev;
  const struct greynic_device *device =
      dev ? device_by((u64)dev->nd_net.net->ns.inum << 32 | (u32)dev->ifindex) : 0;
  u32 to = GREYNIC_NOWHERE;
  if (!journey || made.row.epoch != config.epoch || !died_behind(made.at, device, skb, &to)) {
    __builtin_memset(&made, 0, sizeof made);
    if (!device || !unseen(skb, device, &made)) return 0;
    const bool received_here = (u32)skb->skb_iif == (u32)device->identity;
    made.cell_point = received_here ? device->number << 1 : point_before(device, GREYNIC_TX, skb);
    to = received_here ? GREYNIC_NOWHERE : device->number << 1 | GREYNIC_TX;
  }
  if (!(made.row.flags & GREYNIC_LOSS)) return 0;
  struct greynic_loss loss = {.place = (u64)location,
                              .flow = made.row.flow,
                              .from = made.cell_point,
                              .to = to,
                              .reason = reason};
  count_loss(&loss, counters);
  if (made.recorded) {
    send_record(GREYNIC_LOST, &made, to, now, skb->len, (u64)location, reason, counters);
  }
  return 0;
}
