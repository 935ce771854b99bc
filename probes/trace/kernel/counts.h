/* SPDX-License-Identifier: GPL-2.0-only */
/* The tables that both engines fill: rules, flows, what was counted of pairs of points, and records. */
#ifndef GREYNIC_TRACE_COUNTS_H
#define GREYNIC_TRACE_COUNTS_H

#include "hops.h"
#include "kernel_types.h"

volatile struct greynic_config shared_config SEC(".data.config");
#define config (*(const struct greynic_config *)&shared_config)

GREYNIC_MAP(rules, BPF_MAP_TYPE_ARRAY, u32, struct greynic_rule, 2 * GREYNIC_RULES);
GREYNIC_MAP(flows, BPF_MAP_TYPE_HASH, struct greynic_flow, u32, 4096);
GREYNIC_MAP(pairs, BPF_MAP_TYPE_HASH, struct greynic_pair, u32, 8192);
GREYNIC_MAP(stats, BPF_MAP_TYPE_PERCPU_ARRAY, u32, struct greynic_cell_stats, 8192);
GREYNIC_MAP(no_loss, BPF_MAP_TYPE_ARRAY, u32, u32, GREYNIC_REASONS); /* reasons that are none */
GREYNIC_MAP(losses, BPF_MAP_TYPE_HASH, struct greynic_loss, u64, 4096);
GREYNIC_MAP(counters, BPF_MAP_TYPE_PERCPU_ARRAY, u32, struct greynic_counters, 1);
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

static __always_inline struct greynic_counters *my_counters(void) {
  u32 zero = 0;
  return bpf_map_lookup_elem(&counters, &zero);
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

struct rule_search {
  const struct greynic_flow *flow;
  u32 found;
};

/* Is it the rule with this number, of those in force? 1 ends the search. */
static long try_rule(u32 i, struct rule_search *search) {
  const struct greynic_flow *flow = search->flow;
  u32 index = i + (config.half ? GREYNIC_RULES : 0);
  const struct greynic_rule *rule = bpf_map_lookup_elem(&rules, &index);
  if (!rule) return 1;
  if (!inside(flow->source, rule->source, rule->source_mask) ||
      !inside(flow->destination, rule->destination, rule->destination_mask) ||
      (rule->protocol != 0 && rule->protocol != flow->protocol) ||
      flow->source_port < rule->source_ports[0] || flow->source_port > rule->source_ports[1] ||
      flow->destination_port < rule->destination_ports[0] ||
      flow->destination_port > rule->destination_ports[1] ||
      (rule->vni != GREYNIC_ANY && rule->vni != flow->vni) ||
      (rule->queue_pair != GREYNIC_ANY && rule->queue_pair != flow->queue_pair)) {
    return 0;
  }
  search->found = index;
  return 1;
}

/* The index of the first rule that wants a flow; GREYNIC_ANY when none does. The verifier looks at one
 * turn of the loop. */
__noinline u32 rule_of(const struct greynic_flow *flow) {
  if (!flow) return GREYNIC_ANY;
  struct rule_search search = {.flow = flow, .found = GREYNIC_ANY};
  bpf_loop(config.rules, try_rule, &search, 0);
  return search.found;
}

/*
 * The number of a flow; 0, which is "all others", when there is no room. No global function: kernels of
 * 6.1 take no argument of one as a key.
 */
static __noinline u32 number_of_flow(const struct greynic_flow *flow) {
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
__noinline u32 find_cell(u32 flow, u32 from, u32 to) {
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
  /* 64 bits and a barrier: of a copy in 32 bits, the verifier of 6.1 does not know the bound. */
  u64 bucket = bucket_of(delay);
  barrier_var(bucket);
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
 * A place for a record; 0 when the ring is full. The end of a packet may be interrupted by a point on the
 * same CPU, so it is taken by an atomic addition; a few places stay free, because that happens behind the
 * look at how many there are.
 */
static __always_inline struct greynic_record *next_record(u64 *number) {
  const u32 cpu = bpf_get_smp_processor_id();
  struct greynic_record_ring *ring = bpf_map_lookup_elem(&record_rings, &cpu);
  if (!ring) return 0;
  if (ring->written - ring->taken > GREYNIC_RECORDS - 8) {
    struct greynic_counters *mine = my_counters();
    if (mine) __sync_fetch_and_add(&mine->no_ring, 1);
    return 0;
  }
  *number = __sync_fetch_and_add(&ring->written, 1);
  u32 slot = cpu * GREYNIC_RECORDS + ((u32)*number & (GREYNIC_RECORDS - 1));
  return bpf_map_lookup_elem(&records, &slot);
}

/* It is whole: the reader may have it. */
static __always_inline void publish_record(struct greynic_record *record, u64 number) {
  __sync_lock_test_and_set(&record->sequence, number + 1); /* and all before it */
}

#endif
