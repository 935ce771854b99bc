/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Engine B: a packet carries the times of the points that it has passed. The first point of a path puts
 * an IPv4 option into the packets of a rule, each point writes its stamp, the last one takes the option
 * out. Each rule has an object of its own, and each point a program of its own, so a program knows
 * where it is.
 */
#include "in_band.h"

#include "counts.h"
#include "hops.h"
#include "kernel_types.h"
#include "parse.h"

char LICENSE[] SEC("license") = "GPL";

const volatile struct greynic_path path = {};
GREYNIC_MAP(in_band, BPF_MAP_TYPE_PERCPU_ARRAY, u32, struct greynic_in_band_counts, 1);

#define GO_ON (-1) /* TC_ACT_UNSPEC: programs of others see the packet too */
#define IPV4_BYTES 20
#define LARGEST_IPV4 60

struct ipv4 {
  u8 version;
  u8 service;
  u16 length;
  u16 id;
  u16 fragment;
  u8 ttl;
  u8 protocol;
  u16 check;
  u32 source, destination;
};

struct stamped_ipv4 {
  struct ipv4 ip;
  struct greynic_stamps stamps;
};

static __always_inline bool load(struct __sk_buff *skb, u32 at, void *into, u32 bytes) {
  return bpf_skb_load_bytes(skb, at, into, bytes) == 0;
}

static __always_inline void count(u32 what) {
  u32 zero = 0;
  struct greynic_in_band_counts *mine = bpf_map_lookup_elem(&in_band, &zero);
  if (mine && what < GREYNIC_IN_BAND_COUNTS) ++mine->count[what];
}

static __always_inline bool has_ethernet(u32 k) { return path.ethernet >> k & 1; }

static __always_inline u16 folded(u32 sum) {
  sum = (sum & 0xffff) + (sum >> 16);
  return (u16)(sum + (sum >> 16));
}

/* The words of the option sum up to nothing, whatever stands in it. */
static __always_inline void balance(struct greynic_stamps *stamps) {
  const u16 *words = (const u16 *)stamps;
  u32 sum = 0;
  stamps->balance = 0;
#pragma unroll
  for (u32 i = 0; i < GREYNIC_STAMP_BYTES / 2; ++i) sum += words[i];
  stamps->balance = ~folded(sum);
}

/* An IP header with other lengths: its checksum follows, byte order does not matter to it. */
static __always_inline void relabel(struct ipv4 *ip, u8 version, u16 length) {
  const u16 *first = (const u16 *)&ip->version;
  u32 sum = (u16)~ip->check + (u16) ~*first + (u16)~ip->length;
  ip->version = version;
  ip->length = bpf_htons(length);
  ip->check = ~folded(sum + *first + ip->length);
}

/* Behind the Ethernet header at *at: what follows, with VLAN tags skipped. */
static __always_inline u32 type_behind_ethernet(struct __sk_buff *skb, u32 *at) {
  u16 type = 0;
  if (!load(skb, *at + 12, &type, 2)) return 0;
  *at += 14;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (type != bpf_htons(ETHERTYPE_VLAN) && type != bpf_htons(ETHERTYPE_QINQ)) break;
    if (!load(skb, *at + 2, &type, 2)) return 0;
    *at += 4;
  }
  return bpf_ntohs(type);
}

/* What a tunnel carries, and where; 0 when there is none. */
static __noinline u32 behind_tunnel(struct __sk_buff *skb, u32 protocol, u32 *at) {
  u8 head[12];
  if (!at) return 0;
  if (protocol == PROTOCOL_IPIP) return ETHERTYPE_IPV4;
  if (protocol == PROTOCOL_IPV6) return ETHERTYPE_IPV6;
  u32 type = ETHERTYPE_ETHERNET;
  if (protocol == PROTOCOL_GRE) {
    if (!load(skb, *at, head, 4)) return 0;
    type = (u32)head[2] << 8 | head[3];
    *at += 4 + (head[0] & 0x80 ? 4 : 0) + (head[0] & 0x20 ? 4 : 0) + (head[0] & 0x10 ? 4 : 0);
  } else if (protocol == PROTOCOL_UDP) {
    if (!load(skb, *at, head, 12)) return 0;
    const u16 port = (u16)((u32)head[2] << 8 | head[3]);
    *at += 16;
    if (port == PORT_GENEVE) {
      type = (u32)head[10] << 8 | head[11];
      *at += (head[8] & 63) * 4;
    } else if (!is_vxlan_port(port)) {
      return 0;
    }
  } else {
    return 0;
  }
  return type == ETHERTYPE_ETHERNET ? type_behind_ethernet(skb, at) : type;
}

/* Where the IP header with our option is, in a tunnel or not; -1 where there is none. */
static __noinline int find_stamps(struct __sk_buff *skb, u32 ethernet) {
  u32 at = 0;
  u32 type = ethernet ? type_behind_ethernet(skb, &at) : bpf_ntohs(skb->protocol);
  for (int level = 0; level < GREYNIC_LEVELS; ++level) {
    u8 head[24];
    u32 protocol;
    if (type == ETHERTYPE_IPV4) {
      if (!load(skb, at, head, 20)) return -1;
      const u32 length = (head[0] & 15) * 4;
      if (length == LARGEST_IPV4) {
        if (!load(skb, at + IPV4_BYTES, head + 20, 4)) return -1;
        u16 id;
        __builtin_memcpy(&id, head + 22, 2);
        if (head[20] == GREYNIC_STAMP_TYPE && head[21] == GREYNIC_STAMP_BYTES && id == path.id) {
          return (int)at;
        }
      }
      if ((head[6] & 0x1f) | head[7]) return -1; /* a later fragment */
      protocol = head[9];
      at += length;
    } else if (type == ETHERTYPE_IPV6) {
      if (!load(skb, at, head, 8)) return -1;
      protocol = head[6];
      at += 40;
    } else {
      return -1;
    }
    type = behind_tunnel(skb, protocol, &at);
  }
  return -1;
}

/* All but the addresses of the flow of a packet without fragments whose ports are at `at`. */
static __always_inline void read_flow(struct __sk_buff *skb, u8 protocol, u32 at,
                                      struct greynic_flow *flow) {
  flow->protocol = protocol;
  flow->vni = flow->queue_pair = GREYNIC_ANY;
  u8 ports[8];
  if (protocol != PROTOCOL_TCP && protocol != PROTOCOL_UDP) return;
  if (!load(skb, at, ports, 4)) return;
  flow->source_port = (u16)((u32)ports[0] << 8 | ports[1]);
  flow->destination_port = (u16)((u32)ports[2] << 8 | ports[3]);
  if (protocol != PROTOCOL_UDP || flow->destination_port != PORT_ROCE) return;
  if (load(skb, at + 13, ports, 3)) {
    flow->queue_pair = (u32)ports[0] << 16 | (u32)ports[1] << 8 | ports[2];
  }
}

/* Adds a hop up; `since` is the stamp of the point before. */
static __always_inline void add_hop(struct __sk_buff *skb, u32 flow, u32 from, u32 to, u32 since,
                                    u64 now) {
  struct greynic_cell_stats *into = stats_of(find_cell(flow, from, to));
  if (into) add_to_cell(into, 1, from != GREYNIC_NOWHERE, (u32)now - since);
}

/* IPv6 has no such option: packets that a rule wants go on as they are, and are counted. */
static __noinline void leave_ipv6(struct __sk_buff *skb, u32 at) {
  u8 head[40];
  struct greynic_flow flow = {};
  if (!load(skb, at, head, sizeof head)) return;
  __builtin_memcpy(flow.source, head + 8, 16);
  __builtin_memcpy(flow.destination, head + 24, 16);
  read_flow(skb, head[6], at + sizeof head, &flow);
  if (rule_of(&flow) != GREYNIC_ANY) count(GREYNIC_IS_IPV6);
}

SEC("tc")
int first_point(struct __sk_buff *skb) {
  u32 at = 0;
  const u32 type = has_ethernet(0) ? type_behind_ethernet(skb, &at) : bpf_ntohs(skb->protocol);
  struct stamped_ipv4 made = {};
  if (type == ETHERTYPE_IPV6) leave_ipv6(skb, at);
  if (type != ETHERTYPE_IPV4 || !load(skb, at, &made.ip, IPV4_BYTES)) return GO_ON;
  struct greynic_flow flow = {};
  const u32 ip_bytes = (made.ip.version & 15) * 4;
  const u64 mapped = bpf_cpu_to_be64(0xffffULL << 32);
  flow.source[1] = mapped | (u64)made.ip.source << 32;
  flow.destination[1] = mapped | (u64)made.ip.destination << 32;
  read_flow(skb, made.ip.protocol, at + ip_bytes, &flow);
  const u32 index = rule_of(&flow);
  const struct greynic_rule *rule = bpf_map_lookup_elem(&rules, &index);
  if (!rule || !begins_here(config.one_in)) return GO_ON;
  const u32 length = bpf_ntohs(made.ip.length);
  const u32 wrong = ip_bytes != IPV4_BYTES || at != (has_ethernet(0) ? 14 : 0) ? GREYNIC_HAS_OPTIONS
                    : made.ip.fragment & bpf_htons(0x3fff)                     ? GREYNIC_FRAGMENT
                    : skb->gso_segs > 1        ? GREYNIC_LARGE_PACKET
                    : length > path.most_bytes ? GREYNIC_TOO_LARGE
                                               : GREYNIC_LEFT_OUT;
  if (wrong != GREYNIC_LEFT_OUT) {
    count(wrong);
    return GO_ON;
  }
  flow.file_rule = rule->file_rule;
  if (rule->flags & (GREYNIC_BY_HOSTS | GREYNIC_BY_RULE)) {
    flow.source_port = flow.destination_port = 0;
    flow.queue_pair = GREYNIC_ANY;
    flow.protocol = 0;
  }
  if (rule->flags & GREYNIC_BY_RULE) flow.source[1] = flow.destination[1] = 0;
  const u64 grow = BPF_F_ADJ_ROOM_FIXED_GSO | BPF_F_ADJ_ROOM_NO_CSUM_RESET;
  if (bpf_skb_adjust_room(skb, GREYNIC_STAMP_BYTES, BPF_ADJ_ROOM_NET, grow)) {
    count(GREYNIC_NOT_GROWN);
    return GO_ON;
  }
  const u64 now = bpf_ktime_get_ns();
  relabel(&made.ip, 0x40 | LARGEST_IPV4 / 4, (u16)(length + GREYNIC_STAMP_BYTES));
  made.stamps.type = GREYNIC_STAMP_TYPE;
  made.stamps.length = GREYNIC_STAMP_BYTES;
  made.stamps.path = path.id;
  made.stamps.traced = made.stamps.annotated = 1;
  made.stamps.flow = number_of_flow(&flow);
  made.stamps.stamps[0] = (u32)now;
  balance(&made.stamps);
  if (bpf_skb_store_bytes(skb, at, &made, sizeof made, 0)) return 2; /* torn: TC_ACT_SHOT */
  struct greynic_counters *counters = my_counters();
  if (counters) ++counters->journeys;
  add_hop(skb, made.stamps.flow, GREYNIC_NOWHERE, path.point[0], 0, now);
  return GO_ON;
}

/* A packet that comes another way than its path says gets no more stamps. */
static __always_inline bool is_next(const struct greynic_stamps *stamps, u32 k) {
  return stamps->traced && stamps->annotated == (1u << k) - 1;
}

static __always_inline int middle_point(struct __sk_buff *skb, u32 k) {
  const int at = find_stamps(skb, has_ethernet(k));
  struct greynic_stamps stamps;
  if (at < 0 || !load(skb, (u32)at + IPV4_BYTES, &stamps, sizeof stamps)) return GO_ON;
  if (!stamps.traced) return GO_ON;
  const u64 now = bpf_ktime_get_ns();
  if (is_next(&stamps, k)) {
    add_hop(skb, stamps.flow, path.point[k - 1], path.point[k], stamps.stamps[k - 1], now);
    stamps.stamps[k] = (u32)now;
    stamps.annotated |= 1 << k;
  } else {
    stamps.traced = 0;
    count(GREYNIC_STRAYED);
  }
  balance(&stamps);
  bpf_skb_store_bytes(skb, (u32)at + IPV4_BYTES, &stamps, sizeof stamps, 0);
  return GO_ON;
}

#define POINT(K) \
  SEC("tc")      \
  int point_##K(struct __sk_buff *skb) { return middle_point(skb, K); }
POINT(1)
POINT(2)
POINT(3)
POINT(4)
POINT(5)
POINT(6)

/* The packet as it was sent; false when it has no stamps of ours, or is in a tunnel. */
static __always_inline bool strip(struct __sk_buff *skb, u32 ethernet, struct stamped_ipv4 *was) {
  const int at = find_stamps(skb, ethernet);
  if (at != (ethernet ? 14 : 0) || !load(skb, (u32)at, was, sizeof *was)) return false;
  const u64 shrink = BPF_F_ADJ_ROOM_FIXED_GSO | BPF_F_ADJ_ROOM_NO_CSUM_RESET;
  if (bpf_skb_adjust_room(skb, -GREYNIC_STAMP_BYTES, BPF_ADJ_ROOM_NET, shrink)) return false;
  struct ipv4 ip = was->ip;
  relabel(&ip, 0x40 | IPV4_BYTES / 4, (u16)(bpf_ntohs(ip.length) - GREYNIC_STAMP_BYTES));
  bpf_skb_store_bytes(skb, (u32)at, &ip, sizeof ip, 0);
  return true;
}

/* Sends a journey point by point, when its rule or its delay asks for that. */
static __always_inline void keep(struct __sk_buff *skb, const struct greynic_stamps *stamps,
                                 u64 now) {
  u32 index = config.half ? GREYNIC_RULES : 0;
  const struct greynic_rule *rule = bpf_map_lookup_elem(&rules, &index);
  const u64 serial = next_serial();
  const bool sampled = rule && rule->sample && (serial >> 8) % rule->sample == 0;
  const bool slow = config.slow_ns && (u32)now - stamps->stamps[0] > config.slow_ns;
  if (!sampled && !slow) return;
#pragma unroll
  for (u32 k = 0; k < GREYNIC_PATH_POINTS; ++k) {
    if (k >= path.points) break;
    u64 number = 0;
    struct greynic_record *record = next_record(&number);
    if (!record) return;
    const bool last = k + 1 == path.points || k == GREYNIC_PATH_POINTS - 1;
    record->time_ns = last ? now : now - ((u32)now - stamps->stamps[k]);
    record->journey = serial;
    record->kind = GREYNIC_HOP;
    record->flow = stamps->flow;
    record->from = k ? path.point[k - 1] : GREYNIC_NOWHERE;
    record->point = path.point[k];
    record->bytes = skb->len;
    record->place = record->reason = 0;
    record->identity = 0;
    publish_record(record, number);
  }
}

SEC("tc")
int last_point(struct __sk_buff *skb) {
  struct stamped_ipv4 was;
  const u32 k = path.points - 1;
  if (!strip(skb, has_ethernet(k), &was)) return GO_ON;
  const u64 now = bpf_ktime_get_ns();
  if (k < 1 || k >= GREYNIC_PATH_POINTS || !was.stamps.traced) return GO_ON;
  if (!is_next(&was.stamps, k)) {
    count(GREYNIC_STRAYED);
    return GO_ON;
  }
  add_hop(skb, was.stamps.flow, path.point[k - 1], path.point[k], was.stamps.stamps[k - 1], now);
  keep(skb, &was.stamps, now);
  return GO_ON;
}

/* Where packets could leave the hosts of the path: a copy that a bridge floods, a real NIC. */
SEC("tc")
int guard(struct __sk_buff *skb) {
  struct stamped_ipv4 was;
  if (strip(skb, 1, &was) && was.stamps.traced) count(GREYNIC_STRAYED);
  return GO_ON;
}
