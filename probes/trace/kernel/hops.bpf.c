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

/* With interfaces in the low half, their numbers being positive. */
#define GREYNIC_KEY_TX 0x80000000ULL

/* Jiffies take 1 ns, the clock 40. How many there are in a second is up to the kernel; 250 is usual. */
static __always_inline u64 time_now(void) {
  return config.clockless ? bpf_jiffies64() * 4000000 : bpf_ktime_get_ns();
}

static __always_inline u32 segments_of(const struct sk_buff *skb, const struct net_device *dev) {
  if (skb->len <= dev->mtu + 18) return 1;
  const struct skb_shared_info *shared =
      (const struct skb_shared_info *)(head_address(skb) + (u64)skb->end);
  u16 segments = BPF_CORE_READ(shared, gso_segs);
  return segments ? segments : 1;
}

/* The IP header at a point: queued packets begin with the device's header, received ones behind it. */
static __always_inline bool parse_at(struct parsed *p, const struct sk_buff *skb,
                                     const struct greynic_device *device, u32 direction) {
  p->at = data_of(skb);
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

/* Is the device that a packet has received it last the one of a point? New packets have none. */
static __always_inline bool received_at(const struct greynic_place *place,
                                        const struct sk_buff *skb) {
  return (u32)skb->skb_iif == (u32)place->identity;
}

/* May a packet that was seen at `last` be seen here next? `received_there`: by received_at(). */
static __always_inline bool may_go_on(u32 last, const struct greynic_place *before,
                                      const struct greynic_device *device, u32 direction,
                                      bool received_there) {
  const bool other = (last >> 1) != device->number;
  received_there = received_there && before->identity >> 32 == device->identity >> 32;
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

static __always_inline bool may_follow(u32 last, const struct greynic_device *device, u32 direction,
                                       const struct sk_buff *skb) {
  const struct greynic_place *before = place_of(last >> 1);
  return before && may_go_on(last, before, device, direction, received_at(before, skb));
}

/* Must a packet without a history have been at a point before? */
static __always_inline bool was_before(const struct greynic_device *device, u32 direction,
                                       const struct sk_buff *skb) {
  if (direction == GREYNIC_RX) return device->kind == GREYNIC_VETH && device->peer;
  return skb->skb_iif != 0;
}

/* Where it must have been; GREYNIC_NOWHERE when that is open. */
static __always_inline u32 point_before(const struct greynic_device *device, u32 direction,
                                        const struct sk_buff *skb) {
  if (!was_before(device, direction, skb)) return GREYNIC_NOWHERE;
  if (direction == GREYNIC_RX) return device->peer << 1 | GREYNIC_TX;
  const struct greynic_device *in =
      device_by((device->identity & 0xffffffff00000000ULL) | (u32)skb->skb_iif);
  return in ? in->number << 1 | GREYNIC_RX : GREYNIC_NOWHERE;
}

struct arrival {
  const struct greynic_device *device;
  u64 key;
  u64 now;
  u32 point;
  u32 segments;
  u32 bytes;
};

/* What follows when a journey has reached a point: added up, and sent if somebody wants it. */
static __always_inline void count_arrival(struct journey *journey, const struct arrival *a,
                                          u32 cell, struct greynic_cell_stats *into, bool timed) {
  const u64 delay = a->now - journey->last_ns;
  add_to_cell(into, a->segments, timed && (journey->row.flags & GREYNIC_TIMED), delay);
  if (journey->recorded || (config.slow_ns && a->now - journey->first_ns > config.slow_ns)) {
    send_record(GREYNIC_HOP, journey, a->point, a->now, a->bytes, 0, 0);
  }
  journey->at = journey->cell_point = a->point;
  journey->cell = cell;
  journey->last_ns = a->now;
}

/* Where a packet goes that follows this one; what that asks of it is found once, here. */
static __always_inline void remember_way(struct greynic_cell_stats *last, u32 cell, u32 from,
                                         const struct arrival *a) {
  const u32 direction = a->point & 1;
  const struct greynic_place *before = place_of(from >> 1);
  if (!before) return;
  last->next_key = a->key;
  last->next_point = a->point;
  last->next_generation = config.generation;
  last->next_received_on =
      may_go_on(from, before, a->device, direction, false) ? GREYNIC_ANY : (u32)before->identity;
  last->next_cell = (u16)cell;
  last->next_flags = 0;
  if (a->device->copies & (1 << direction)) last->next_flags |= GREYNIC_GOES_ON_AS_COPIES;
  if (direction == GREYNIC_TX && a->device->kind == GREYNIC_VIRTUAL) {
    last->next_flags |= GREYNIC_FEEDS_OTHERS;
  }
}

/* Joins a point to a journey; `timed` when the time of the point before is known. */
static __always_inline void arrive(struct journey *journey, const struct arrival *a, bool timed) {
  const u32 direction = a->point & 1;
  const u32 last = journey->at;
  journey->at = a->point;
  if (!(a->device->rules[direction] & (1u << (journey->row.rule & 31)))) return;
  const u32 from = journey->cell_point;
  const u32 cell = find_cell(journey->row.flow, from, a->point);
  struct greynic_cell_stats *before = journey->cell ? stats_of(journey->cell) : 0;
  if (cell && before && from == last) remember_way(before, cell, from, a);
  struct greynic_cell_stats *into = stats_of(cell);
  if (!into) return;
  struct greynic_counters *counters = my_counters();
  if (!timed && counters) ++counters->inferred;
  count_arrival(journey, a, cell, into, timed && from != GREYNIC_NOWHERE);
}

/* By the bytes of a plain IPv4 header; 0 when it is none. */
static __always_inline struct known_flow *known_flow_of(const struct sk_buff *skb,
                                                        const struct greynic_device *device,
                                                        u32 direction, struct parsed *p,
                                                        struct known_flow *asked) {
  u32 *header = p->words; /* IPv4 without options, ports, and TCP's number: seven of them */
  if (skb->protocol != bpf_htons(ETHERTYPE_IPV4)) return 0;
  u64 at = data_of(skb);
  if (direction == GREYNIC_TX && device->ethernet) at += 14;
  if (!read_words(at, header)) return 0;
  const u32 first = bpf_ntohl(header[0]) >> 24;
  const u32 protocol = bpf_ntohl(header[2]) >> 16 & 255;
  if (first != 0x45 || (bpf_ntohl(header[1]) & 0x3fff)) return 0;
  if (protocol != PROTOCOL_UDP && protocol != PROTOCOL_TCP) return 0;
  p->ip_id = bpf_ntohl(header[1]) >> 16;
  p->sequence = protocol == PROTOCOL_TCP ? bpf_ntohl(header[6]) : 0;
  asked->addresses = (u64)header[3] << 32 | header[4];
  asked->ports_and_segment = (u64)header[5] << 32 | device->vni;
  asked->generation_and_protocol = (u64)config.generation << 8 | protocol;
  u64 mixed = (asked->addresses ^ (asked->ports_and_segment * 0x9E3779B97F4A7C15ULL)) *
              0xC2B2AE3D27D4EB4FULL;
  u32 slot = (u32)(mixed >> 40) & (GREYNIC_KNOWN_FLOWS - 1);
  return bpf_map_lookup_elem(&known_flows, &slot);
}

/* From headers to flow: by heart, or by parsing. False when no rule wants it. */
static __noinline bool read_flow(const struct sk_buff *skb, const struct greynic_device *device,
                                 u32 direction, struct parsed *p, struct flow_row *row) {
  struct known_flow asked = {};
  p->is_fragment = p->tunnelled = false;
  struct known_flow *known = known_flow_of(skb, device, direction, p, &asked);
  if (known && known->addresses == asked.addresses &&
      known->ports_and_segment == asked.ports_and_segment &&
      known->generation_and_protocol == asked.generation_and_protocol) {
    *row = known->row;
    p->plain = p->numbered = true;
    return row->flow != GREYNIC_ANY;
  }
  if (!parse_at(p, skb, device, direction)) return false;
  if (!flow_of(p, device, row)) row->flow = GREYNIC_ANY;
  if (known && p->plain && row->flow != 0) { /* flow 0 is counted each time */
    asked.row = *row;
    *known = asked;
  }
  return row->flow != GREYNIC_ANY;
}

/*
 * Every so many-th packet is kept point by point: the same ones on every host, where headers number
 * packets. Their numbers count up by one, but for TCP's.
 */
static __always_inline bool is_kept(struct journey *journey, const struct parsed *p) {
  const u32 sample = journey->row.sample;
  u64 number = p->ip_id;
  if (!p->plain && p->flow.queue_pair != GREYNIC_ANY) number = p->sequence;
  if (!number) number = (u64)p->sequence * 0x9E3779B97F4A7C15ULL >> 32;
  if (!number) number = journey->serial >> 8;
  journey->row.ip_id = p->ip_id;
  journey->row.sequence = p->sequence;
  if (p->numbered) journey->row.flags |= GREYNIC_NUMBERED;
  return sample && number % sample == 0;
}

/*
 * A packet without a history that may follow: new, a copy, a fragment or a segment. The clock is the
 * dearest call, so it is read behind all that sends packets away.
 */
static __noinline struct journey *begin(const struct sk_buff *skb, struct arrival *a,
                                        struct journey *old) {
  const u32 direction = a->point & 1;
  // Copies share the bytes with a packet that we know.
  const struct journey *twin = skb->cloned ? journey_by_head(head_of(skb)) : 0;
  if (twin && !may_follow(twin->at, a->device, direction, skb)) twin = 0;
  // Packets that are not followed have no history anywhere: only a first point may begin one.
  if (!twin && config.one_in > 1 &&
      (was_before(a->device, direction, skb) || !begins_here(config.one_in))) {
    return 0;
  }
  struct parsed *p = scratch(0);
  struct greynic_counters *counters = my_counters();
  struct journey made = {};
  if (!p || !counters) return 0;
  bool timed = true;
  if (twin) {
    made = *twin;
    a->now = time_now();
  } else {
    if (!read_flow(skb, a->device, direction, p, &made.row)) return 0;
    a->now = time_now();
    const u32 before = point_before(a->device, direction, skb);
    // What leaves a tunnel as new packets, in pieces, is made by the CPU that has just fed the tunnel.
    const struct journey *last = p->tunnelled || p->is_fragment ? last_virtual() : 0;
    if (before == GREYNIC_NOWHERE && last && last->row.flow == made.row.flow &&
        last->row.epoch == config.epoch && may_follow(last->at, a->device, direction, skb)) {
      made = *last;
    } else {
      made.at = made.cell_point = before;
      made.first_ns = made.last_ns = a->now;
      if (made.row.sample || config.slow_ns) made.serial = next_serial();
      made.recorded = is_kept(&made, p);
      timed = before == GREYNIC_NOWHERE;
      ++counters->journeys;
    }
  }
  struct journey *journey =
      old ? old : journey_at(address_of(skb), make_room(address_of(skb), a->now));
  if (!journey) return 0;
  made.skb = address_of(skb);
  *journey = made;
  arrive(journey, a, timed);
  return journey;
}

/* The long way: which device it is, whether the packet may come here, what flow it is of. */
static __always_inline void look_closely(struct sk_buff *skb, bool known, struct arrival *a,
                                         u32 direction) {
  struct journey *journey = known ? journey_at(address_of(skb), find_journey(address_of(skb))) : 0;
  const struct greynic_device *device = device_by(a->key & ~GREYNIC_KEY_TX);
  if (!device) {
    struct greynic_counters *counters = my_counters();
    if (counters) ++counters->unplaced;
    return;
  }
  a->device = device;
  a->point = device->number << 1 | direction;
  if (journey && journey->row.epoch == config.epoch &&
      may_follow(journey->at, device, direction, skb)) {
    a->now = time_now();
    arrive(journey, a, true);
  } else {
    struct journey *begun = begin(skb, a, journey);
    if (!begun) {
      if (journey) journey->skb = 0;
      if (device->copies & (1 << direction)) forget_head(head_of(skb));
      return;
    }
    journey = begun;
  }
  if (direction == GREYNIC_TX && device->kind == GREYNIC_VIRTUAL) remember_virtual(journey);
  if (device->copies & (1 << direction)) remember_head(head_of(skb), journey);
}

static __always_inline int on_hop(struct sk_buff *skb, u32 direction) {
  const struct net_device *dev = skb->dev;
  if (!dev) return 0;
  struct arrival a = {.key = (u64)dev->nd_net.net->ns.inum << 32 | (u32)dev->ifindex |
                             (direction == GREYNIC_TX ? GREYNIC_KEY_TX : 0),
                      .segments = segments_of(skb, dev),
                      .bytes = skb->len};
  struct journey *journey = journey_of(address_of(skb));
  struct greynic_cell_stats *last = journey && journey->cell ? stats_of(journey->cell) : 0;
  struct greynic_cell_stats *into = 0;
  // Most packets go where the last one of their flow went.
  if (last && last->next_key == a.key && last->next_generation == config.generation &&
      journey->row.epoch == config.epoch && journey->at == journey->cell_point &&
      (last->next_received_on == GREYNIC_ANY || last->next_received_on == (u32)skb->skb_iif)) {
    into = stats_of(last->next_cell);
  }
  if (!into) {
    look_closely(skb, journey != 0, &a, direction);
    return 0;
  }
  const u16 flags = last->next_flags;
  a.point = last->next_point;
  a.now = time_now();
  count_arrival(journey, &a, last->next_cell, into, true);
  if (flags & GREYNIC_FEEDS_OTHERS) remember_virtual(journey);
  if (flags & GREYNIC_GOES_ON_AS_COPIES) remember_head(head_of(skb), journey);
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
  p->at = head_address(skb) + skb->network_header;
  return parse_packet(p, bpf_ntohs(skb->protocol)) && flow_of(p, device, &made->row);
}

/*
 * Did the packet that is freed come from the last point of a journey? Its address may have been used
 * again. Gives the point that it was bound for in `to`.
 */
static __always_inline bool died_behind(u32 last, const struct greynic_device *device,
                                        bool in_socket, const struct sk_buff *skb, u32 *to) {
  const struct greynic_place *before = place_of(last >> 1);
  if (!before) return false;
  const bool received_there = received_at(before, skb);
  *to = GREYNIC_NOWHERE;
  if (!device) return in_socket && (last & 1) == GREYNIC_RX && received_there;
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
  if (!counters) return 0;
  const struct net_device *dev = skb->dev;
  // A socket writes other things where the device was, which have no namespace. A device that is not
  // known yet has one: then the packet is another's that has the address now.
  const u32 namespace = dev ? dev->nd_net.net->ns.inum : 0;
  const struct greynic_device *device =
      namespace ? device_by((u64) namespace << 32 | (u32)dev->ifindex) : 0;
  u32 to = GREYNIC_NOWHERE;
  if (!journey || made.row.epoch != config.epoch ||
      !died_behind(made.at, device, namespace == 0, skb, &to)) {
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
    send_record(GREYNIC_LOST, &made, to, bpf_ktime_get_ns(), skb->len, (u64)location, reason);
  }
  return 0;
}
