/* SPDX-License-Identifier: GPL-2.0-only */
/* The tables of engine A: devices, rules, journeys in flight, flows, and what was counted. */
#ifndef GREYNIC_TRACE_JOURNEYS_H
#define GREYNIC_TRACE_JOURNEYS_H

#include "hops.h"
#include "kernel_types.h"
#include "parse.h"

volatile struct greynic_config shared_config SEC(".data.config");
#define config (*(const struct greynic_config *)&shared_config)

/* What a packet's headers told: the flow, and the rule that wants it. */
struct flow_row {
  u32 flow; /* GREYNIC_ANY: no rule wants it */
  union {
    u32 sample;   /* of the rule, until a journey has begun */
    u32 sequence; /* behind that: what its headers say of the packet */
  };
  u32 epoch;
  u8 flags;
  u8 rule;
  u16 ip_id;
};

/* 64 bytes: a hop touches one line of it. */
struct journey {
  u64 skb; /* 0: a free place */
  u64 last_ns;
  u64 first_ns;
  u64 serial;
  struct flow_row row;
  u32 at;         /* the last point */
  u32 cell;       /* the pair that ends with ... */
  u32 cell_point; /* ... the last point that the rule looks at */
  u32 recorded;
};

struct journey_set {
  struct journey way[GREYNIC_WAYS];
};

/* Flows of plain IPv4 by the bytes of their headers, so that most packets need no parsing. */
struct known_flow {
  u64 addresses;
  u64 ports_and_segment;
  u64 generation_and_protocol;
  struct flow_row row;
};

/* What the kernel keeps of a device for good, by its number. */
struct greynic_place {
  u64 identity;
  u32 peer;
  u32 kind;
};

GREYNIC_MAP(devices, BPF_MAP_TYPE_ARRAY, u32, struct greynic_device_set, 2 * GREYNIC_DEVICE_SETS);
GREYNIC_MAP(places, BPF_MAP_TYPE_ARRAY, u32, struct greynic_place, GREYNIC_DEVICES);
GREYNIC_MAP(rules, BPF_MAP_TYPE_ARRAY, u32, struct greynic_rule, 2 * GREYNIC_RULES);
GREYNIC_MAP(journeys, BPF_MAP_TYPE_ARRAY, u32, struct journey_set, GREYNIC_JOURNEY_SETS);
GREYNIC_MAP(heads, BPF_MAP_TYPE_ARRAY, u32, struct journey, GREYNIC_HEADS);
GREYNIC_MAP(flows, BPF_MAP_TYPE_HASH, struct greynic_flow, u32, 4096);
GREYNIC_MAP(fragments, BPF_MAP_TYPE_LRU_HASH, struct fragment_key, struct flow_row, 8192);
GREYNIC_MAP(pairs, BPF_MAP_TYPE_HASH, struct greynic_pair, u32, 8192);
GREYNIC_MAP(stats, BPF_MAP_TYPE_PERCPU_ARRAY, u32, struct greynic_cell_stats, 8192);
GREYNIC_MAP(no_loss, BPF_MAP_TYPE_ARRAY, u32, u32, GREYNIC_REASONS); /* reasons that are none */
GREYNIC_MAP(losses, BPF_MAP_TYPE_HASH, struct greynic_loss, u64, 4096);
GREYNIC_MAP(counters, BPF_MAP_TYPE_PERCPU_ARRAY, u32, struct greynic_counters, 1);
GREYNIC_MAP(scratches, BPF_MAP_TYPE_PERCPU_ARRAY, u32, struct parsed, 2);
GREYNIC_MAP(virtuals, BPF_MAP_TYPE_PERCPU_ARRAY, u32, struct journey, 1);
GREYNIC_MAP(known_flows, BPF_MAP_TYPE_PERCPU_ARRAY, u32, struct known_flow, GREYNIC_KNOWN_FLOWS);
GREYNIC_MAP(serials, BPF_MAP_TYPE_PERCPU_ARRAY, u32, u64, 2);
/* Memory that the reader maps: no lock, no call. The tracer makes both as large as there are CPUs. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, GREYNIC_RECORDS);
  __type(key, u32);
  __type(value, struct greynic_record);
} records SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);
  __type(key, u32);
  __type(value, struct greynic_record_ring);
} record_rings SEC(".maps");

/* next cell, next flow; cell 0 and flow 0 are the ones for all that finds no room */
u32 used_cells SEC(".data.used") = 1;
u32 used_flows SEC(".data.used") = 1;

/*
 * A packet's address as a number. The verifier lets nobody reckon with pointers, but allows the
 * distance between two; a table of ours is the other.
 */
static __always_inline u64 address_of(const struct sk_buff *skb) {
  u64 address = (u64)skb;
  asm volatile("%0 -= %1" : "+r"(address) : "r"(&used_cells));
  return address;
}

/* Where its bytes lie, which copies share. */
static __always_inline u64 head_of(const struct sk_buff *skb) {
  u64 head = 0; /* a load would make a pointer of it, in some kernels, and none to reckon with */
  bpf_probe_read_kernel(&head, sizeof head, &skb->head);
  return head;
}

static __always_inline struct greynic_counters *my_counters(void) {
  u32 zero = 0;
  return bpf_map_lookup_elem(&counters, &zero);
}

/* One for points, one for ends: a point may interrupt an end. */
static __always_inline struct parsed *scratch(u32 which) {
  return bpf_map_lookup_elem(&scratches, &which);
}

static __always_inline const struct greynic_device *device_by(u64 identity) {
  u32 set = ((u32)(identity * 0x9E3779B97F4A7C15ULL >> 40) & (GREYNIC_DEVICE_SETS - 1)) |
            (config.half ? GREYNIC_DEVICE_SETS : 0);
  const struct greynic_device_set *found = bpf_map_lookup_elem(&devices, &set);
  if (!found) return 0;
#pragma unroll
  for (int i = 0; i < GREYNIC_WAYS; ++i) {
    if (found->way[i].identity == identity) return &found->way[i];
  }
  return 0;
}

static __always_inline const struct greynic_place *place_of(u32 number) {
  return bpf_map_lookup_elem(&places, &number);
}

static __always_inline u32 set_of(u64 skb) {
  return (u32)(skb * 0x9E3779B97F4A7C15ULL >> 40) & (GREYNIC_JOURNEY_SETS - 1);
}

static __always_inline struct journey *journey_of(u64 skb) {
  u32 set = set_of(skb);
  struct journey_set *found = bpf_map_lookup_elem(&journeys, &set);
  if (!found) return 0;
#pragma unroll
  for (int i = 0; i < GREYNIC_WAYS; ++i) {
    if (found->way[i].skb == skb) return &found->way[i];
  }
  return 0;
}

/*
 * A place for a journey, taken by compare and swap. Without a free one the oldest makes room. A
 * packet that was received a second ago and was not queued since will not come again: TCP has it.
 * Any other that makes room is counted as cut short.
 */
static __always_inline struct journey *room_for(u64 skb, u64 now, struct greynic_counters *mine) {
  u32 set = set_of(skb);
  struct journey_set *found = bpf_map_lookup_elem(&journeys, &set);
  if (!found) return 0;
  struct journey *oldest = &found->way[0];
#pragma unroll
  for (int i = 0; i < GREYNIC_WAYS; ++i) {
    struct journey *way = &found->way[i];
    if (way->skb == 0 && __sync_val_compare_and_swap(&way->skb, 0, skb) == 0) return way;
    if (way->last_ns < oldest->last_ns) oldest = way;
  }
  const u64 victim = oldest->skb;
  const bool over = (oldest->at & 1) == GREYNIC_RX && now - oldest->last_ns > 1000000000ULL;
  if (__sync_val_compare_and_swap(&oldest->skb, victim, skb) != victim) {
    ++mine->evicted;
    return 0;
  }
  if (!over) ++mine->evicted;
  return oldest;
}

static __always_inline u32 head_slot(u64 head) {
  return (u32)(head * 0x9E3779B97F4A7C15ULL >> 40) & (GREYNIC_HEADS - 1);
}

static __always_inline void remember_head(u64 head, const struct journey *journey) {
  u32 slot = head_slot(head);
  struct journey *kept = bpf_map_lookup_elem(&heads, &slot);
  if (!kept) return;
  *kept = *journey;
  kept->skb = head;
}

/* The bytes belong to a packet that nobody follows now. */
static __always_inline void forget_head(u64 head) {
  u32 slot = head_slot(head);
  struct journey *kept = bpf_map_lookup_elem(&heads, &slot);
  if (kept && kept->skb == head) kept->skb = 0;
}

static __always_inline const struct journey *journey_by_head(u64 head) {
  u32 slot = head_slot(head);
  const struct journey *kept = bpf_map_lookup_elem(&heads, &slot);
  return kept && kept->skb == head && kept->row.epoch == config.epoch ? kept : 0;
}

static __always_inline void remember_virtual(const struct journey *journey) {
  u32 zero = 0;
  struct journey *kept = bpf_map_lookup_elem(&virtuals, &zero);
  if (kept) *kept = *journey;
}

static __always_inline const struct journey *last_virtual(void) {
  u32 zero = 0;
  return bpf_map_lookup_elem(&virtuals, &zero);
}

/* Numbers of journeys, no two the same on this host. */
static __always_inline u64 next_serial(void) {
  u32 zero = 0;
  u64 *mine = bpf_map_lookup_elem(&serials, &zero);
  return mine ? ++*mine * 256 + (bpf_get_smp_processor_id() & 255) : 0;
}

static __always_inline bool begins_here(u32 one_in) {
  if (one_in <= 1) return true;
  u32 one = 1;
  u64 *mine = bpf_map_lookup_elem(&serials, &one);
  return mine && ++*mine % one_in == 0;
}

static __always_inline bool inside(const u64 *address, const u64 *prefix, const u64 *mask) {
  return ((address[0] ^ prefix[0]) & mask[0]) == 0 && ((address[1] ^ prefix[1]) & mask[1]) == 0;
}

/* The index of the first rule that wants a flow; GREYNIC_ANY when none does. */
__noinline u32 rule_of(const struct greynic_flow *flow) {
  if (!flow) return GREYNIC_ANY;
  for (u32 i = 0; i < GREYNIC_RULES; ++i) {
    if (i >= config.rules) break;
    u32 index = i + (config.half ? GREYNIC_RULES : 0);
    const struct greynic_rule *rule = bpf_map_lookup_elem(&rules, &index);
    if (!rule) break;
    if (inside(flow->source, rule->source, rule->source_mask) &&
        inside(flow->destination, rule->destination, rule->destination_mask) &&
        (rule->protocol == 0 || rule->protocol == flow->protocol) &&
        flow->source_port >= rule->source_ports[0] && flow->source_port <= rule->source_ports[1] &&
        flow->destination_port >= rule->destination_ports[0] &&
        flow->destination_port <= rule->destination_ports[1] &&
        (rule->vni == GREYNIC_ANY || rule->vni == flow->vni) &&
        (rule->queue_pair == GREYNIC_ANY || rule->queue_pair == flow->queue_pair)) {
      return index;
    }
  }
  return GREYNIC_ANY;
}

/* The number of a flow; 0, which is "all others", when there is no room. */
static __always_inline u32 number_of_flow(const struct greynic_flow *flow) {
  const u32 *known = bpf_map_lookup_elem(&flows, flow);
  if (known) return *known;
  if (used_flows >= config.flows) {
    struct greynic_counters *mine = my_counters();
    if (mine) ++mine->folded;
    return 0;
  }
  u32 number = __sync_fetch_and_add(&used_flows, 1);
  bpf_map_update_elem(&flows, flow, &number, BPF_NOEXIST);
  known = bpf_map_lookup_elem(&flows, flow);  // another CPU may have been first
  return known ? *known : 0;
}

/* The number of a pair; 0 when there is no room. */
static __noinline u32 find_cell(u32 flow, u32 from, u32 to) {
  struct greynic_pair pair = {.flow = flow, .from = from, .to = to};
  const u32 *known = bpf_map_lookup_elem(&pairs, &pair);
  if (known) return *known;
  if (used_cells >= config.cells) return 0;
  u32 number = __sync_fetch_and_add(&used_cells, 1);
  bpf_map_update_elem(&pairs, &pair, &number, BPF_NOEXIST);
  known = bpf_map_lookup_elem(&pairs, &pair);  // another CPU may have been first
  return known ? *known : 0;
}

static __always_inline struct greynic_cell_stats *stats_of(u32 cell) {
  return bpf_map_lookup_elem(&stats, &cell);
}

static __always_inline u32 bucket_of(u64 ns) {
  if (ns < 16) return (u32)ns;
  if (ns >> 37) return GREYNIC_BUCKETS - 1;
  u32 log = 0;
  u64 rest = ns;
  if (rest >> 32) rest >>= 32, log += 32;
  if (rest >> 16) rest >>= 16, log += 16;
  if (rest >> 8) rest >>= 8, log += 8;
  if (rest >> 4) rest >>= 4, log += 4;
  if (rest >> 2) rest >>= 2, log += 2;
  if (rest >> 1) log += 1;
  return (log - 3) * 16 + ((u32)(ns >> (log - 4)) & 15);
}

/* Points are seen with bottom halves off, so nobody else on this CPU is in the same cell. */
static __always_inline void add_to_cell(struct greynic_cell_stats *cell, u32 segments, bool timed,
                                        u64 delay) {
  ++cell->packets;
  cell->segments += segments;
  if (!timed) return;
  ++cell->timed;
  cell->sum_ns += delay;
  if (delay > cell->max_ns) cell->max_ns = delay;
  const u32 bucket = bucket_of(delay);
  if (bucket < GREYNIC_BUCKETS) ++cell->buckets[bucket];
}

static __always_inline void count_loss(const struct greynic_loss *loss,
                                       struct greynic_counters *mine) {
  u64 zero = 0;
  u64 *count = bpf_map_lookup_elem(&losses, loss);
  if (!count) {
    bpf_map_update_elem(&losses, loss, &zero, BPF_NOEXIST);
    count = bpf_map_lookup_elem(&losses, loss);
  }
  if (count) {
    __sync_fetch_and_add(count, 1);
  } else {
    __sync_fetch_and_add(&mine->losses_unstored, 1);
  }
}

/*
 * The end of a packet may be interrupted by a point on the same CPU, so a place is taken by an atomic
 * addition; a few places stay free, because that happens behind the look at how many there are.
 */
static __always_inline void send_record(u32 kind, const struct journey *journey, u32 point, u64 now,
                                        u32 bytes, u64 place, u32 reason) {
  const u32 cpu = bpf_get_smp_processor_id();
  struct greynic_record_ring *ring = bpf_map_lookup_elem(&record_rings, &cpu);
  if (!ring) return;
  if (ring->written - ring->taken > GREYNIC_RECORDS - 8) {
    struct greynic_counters *mine = my_counters();
    if (mine) __sync_fetch_and_add(&mine->no_ring, 1);
    return;
  }
  const u64 number = __sync_fetch_and_add(&ring->written, 1);
  u32 slot = cpu * GREYNIC_RECORDS + ((u32)number & (GREYNIC_RECORDS - 1));
  struct greynic_record *record = bpf_map_lookup_elem(&records, &slot);
  if (!record) return;
  record->time_ns = now;
  record->journey = journey->serial;
  record->place = place;
  record->kind = kind;
  record->flow = journey->row.flow;
  record->from = journey->cell_point;
  record->point = point;
  record->reason = reason;
  record->bytes = bytes;
  record->identity = journey->row.flags & GREYNIC_NUMBERED
                         ? 1ULL << 48 | (u64)journey->row.ip_id << 32 | journey->row.sequence
                         : 0;
  __sync_lock_test_and_set(&record->sequence, number + 1); /* and all before it */
}

#endif
