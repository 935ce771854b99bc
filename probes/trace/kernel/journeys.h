/* SPDX-License-Identifier: GPL-2.0-only */
/* The tables of engine A: devices, journeys in flight, and what is known of flows by heart. */
#ifndef GREYNIC_TRACE_JOURNEYS_H
#define GREYNIC_TRACE_JOURNEYS_H

#include "counts.h"
#include "hops.h"
#include "kernel_types.h"
#include "parse.h"

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
GREYNIC_MAP(journeys, BPF_MAP_TYPE_ARRAY, u32, struct journey_set, GREYNIC_JOURNEY_SETS);
GREYNIC_MAP(heads, BPF_MAP_TYPE_ARRAY, u32, struct journey, GREYNIC_HEADS);
GREYNIC_MAP(fragments, BPF_MAP_TYPE_LRU_HASH, struct fragment_key, struct flow_row, 8192);
GREYNIC_MAP(scratches, BPF_MAP_TYPE_PERCPU_ARRAY, u32, struct parsed, 2);
GREYNIC_MAP(virtuals, BPF_MAP_TYPE_PERCPU_ARRAY, u32, struct journey, 1);
GREYNIC_MAP(known_flows, BPF_MAP_TYPE_PERCPU_ARRAY, u32, struct known_flow, GREYNIC_KNOWN_FLOWS);
/*
 * An address as a number. The verifier lets nobody reckon with pointers, but allows the distance between
 * two; a table of ours is the other.
 */
static __always_inline u64 number_of(const void *pointer) {
  u64 address = (u64)pointer;
  asm volatile("%0 -= %1" : "+r"(address) : "r"(&used_cells));
  return address;
}

static __always_inline u64 address_of(const struct sk_buff *skb) { return number_of(skb); }

/*
 * Kernels from 6.2 on let a program load what it takes for a type of the kernel: 2 ns, where a call that
 * copies takes 25. Which fields are numbers to reckon with differs as well, so the tracer tries: a program
 * with direct loads, else the one without.
 */
const volatile bool direct_loads = false;
extern void *bpf_rdonly_cast(const void *object, u32 type) __ksym __weak;

/* The address where its bytes begin. */
static __always_inline u64 head_address(const struct sk_buff *skb) {
  u64 head = 0;
  bpf_probe_read_kernel(&head, sizeof head, &skb->head);
  return head;
}

/* The same as a number that copies share, and no address to read from. */
static __always_inline u64 head_of(const struct sk_buff *skb) {
  return direct_loads ? number_of(skb->head) : head_address(skb);
}

static __always_inline u64 data_of(const struct sk_buff *skb) {
  if (direct_loads) return (u64)skb->data;
  u64 data = 0;
  bpf_probe_read_kernel(&data, sizeof data, &skb->data);
  return data;
}

/* Seven words of a header. Addresses of IPv6 are words and nothing else, whatever they stand for here. */
static __always_inline bool read_words(u64 at, u32 *words) {
  if (!direct_loads) return bpf_probe_read_kernel(words, 28, (const void *)at) == 0;
  const u32 type = bpf_core_type_id_kernel(struct in6_addr);
  const struct in6_addr *first = bpf_rdonly_cast((const void *)at, type);
  const struct in6_addr *second = bpf_rdonly_cast((const void *)(at + 16), type);
#pragma unroll
  for (int i = 0; i < 4; ++i) words[i] = first->in6_u.u6_addr32[i];
#pragma unroll
  for (int i = 0; i < 3; ++i) words[4 + i] = second->in6_u.u6_addr32[i];
  return true;
}

/* One for points, one for ends: a point may interrupt an end. */
static __always_inline struct parsed *scratch(u32 which) {
  return bpf_map_lookup_elem(&scratches, &which);
}

/*
 * Finders give a number, not a pointer, and are global functions: the verifier looks at each once, and
 * behind it there is one state, where each of the ways would be one.
 */
__noinline u32 find_device(u64 identity) {
  u32 set = ((u32)(identity * 0x9E3779B97F4A7C15ULL >> 40) & (GREYNIC_DEVICE_SETS - 1)) |
            (config.half ? GREYNIC_DEVICE_SETS : 0);
  const struct greynic_device_set *found = bpf_map_lookup_elem(&devices, &set);
  if (!found) return GREYNIC_ANY;
  for (u32 i = 0; i < GREYNIC_WAYS; ++i) {
    if (found->way[i].identity == identity) return set * GREYNIC_WAYS + i;
  }
  return GREYNIC_ANY;
}

static __always_inline const struct greynic_device *device_by(u64 identity) {
  const u32 place = find_device(identity);
  u32 set = place / GREYNIC_WAYS;
  const struct greynic_device_set *found = bpf_map_lookup_elem(&devices, &set);
  if (!found) return 0;
  u32 way = place % GREYNIC_WAYS;
  barrier_var(way); /* an addition to a pointer that may be null is refused: not before */
  return &found->way[way];
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

/* Which of the ways of its set; GREYNIC_WAYS: none. */
__noinline u32 find_journey(u64 skb) {
  u32 set = set_of(skb);
  const struct journey_set *found = bpf_map_lookup_elem(&journeys, &set);
  if (!found) return GREYNIC_WAYS;
  for (u32 i = 0; i < GREYNIC_WAYS; ++i) {
    if (found->way[i].skb == skb) return i;
  }
  return GREYNIC_WAYS;
}

static __always_inline u64 last_time_of(const struct journey *journey) {
  return journey->row.epoch == config.epoch ? journey->last_ns : 0;
}

/*
 * A place for a journey, taken by compare and swap. Without a free one the oldest makes room, one under
 * other rules first. A packet that was received a second ago and was not queued since will not come
 * again: TCP has it. Any other that makes room is counted as cut short.
 */
__noinline u32 make_room(u64 skb, u64 now) {
  u32 set = set_of(skb);
  struct journey_set *found = bpf_map_lookup_elem(&journeys, &set);
  struct greynic_counters *mine = my_counters();
  if (!found || !mine) return GREYNIC_WAYS;
  u32 oldest = 0;
  for (u32 i = 0; i < GREYNIC_WAYS; ++i) {
    struct journey *way = &found->way[i];
    if (way->skb == 0 && __sync_val_compare_and_swap(&way->skb, 0, skb) == 0) return i;
    if (last_time_of(way) < last_time_of(&found->way[oldest % GREYNIC_WAYS])) oldest = i;
  }
  struct journey *victim = &found->way[oldest % GREYNIC_WAYS];
  const u64 of = victim->skb;
  const u64 last = last_time_of(victim);
  const bool over = !last || ((victim->at & 1) == GREYNIC_RX && now - last > 1000000000ULL);
  if (__sync_val_compare_and_swap(&victim->skb, of, skb) != of) {
    ++mine->evicted;
    return GREYNIC_WAYS;
  }
  if (!over) ++mine->evicted;
  return oldest;
}

/* The journey of a packet by the number of its way. */
static __always_inline struct journey *journey_at(u64 skb, u32 way) {
  u32 set = set_of(skb);
  struct journey_set *found = bpf_map_lookup_elem(&journeys, &set);
  if (!found || way >= GREYNIC_WAYS) return 0;
  barrier_var(way); /* as above */
  return &found->way[way % GREYNIC_WAYS];
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

static __always_inline void send_record(u32 kind, const struct journey *journey, u32 point, u64 now,
                                        u32 bytes, u64 place, u32 reason) {
  u64 number = 0;
  struct greynic_record *record = next_record(&number);
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
  publish_record(record, number);
}

#endif
