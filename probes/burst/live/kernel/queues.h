/* SPDX-License-Identifier: GPL-2.0-only */
/* The queues of the device, found by the address of the Qdisc that holds the packets. */
#ifndef GREYNIC_BURST_QUEUES_H
#define GREYNIC_BURST_QUEUES_H

#include "burst_record.h"
#include "kernel_types.h"

GREYNIC_MAP(queues, BPF_MAP_TYPE_ARRAY, u32, struct burst_queue, BURST_MOST_QUEUES);

/* Where we look first. Disciplines of several CPUs may write it: it decides nothing. */
u32 latest_place = 0;

static __always_inline struct burst_queue *queue_in(u32 place) {
  return bpf_map_lookup_elem(&queues, &place);
}

/* The queue with this address, or the next free one. */
static __always_inline struct burst_queue *queue_at(u64 address, u32 class_id) {
  struct burst_queue *queue = queue_in(latest_place);
  if (queue && queue->address == address) return queue;
  for (u32 i = 0; i < BURST_MOST_QUEUES; ++i) {
    queue = queue_in(i);
    if (!queue) return NULL;
    if (queue->address != address) {
      if (queue->address) continue;
      if (__sync_val_compare_and_swap(&queue->address, 0, address)) continue;
      queue->class_id = class_id;
      queue->place = i; /* told by the map, it is one number for the verifier, not 64 */
    }
    latest_place = i;
    return queue;
  }
  return NULL;
}

/* What the verifier takes for a pointer, as a number: what has been in a map is one. */
static __always_inline u64 number_of(struct burst_queue *queue, const struct sk_buff *skb) {
  *(volatile u64 *)&queue->packet = (u64)skb;
  return *(volatile u64 *)&queue->packet;
}

#endif
