/* SPDX-License-Identifier: GPL-2.0-only */
/* htb is no first-in first-out queue, its classes are. A packet's class is the one at whose tail it
 * lies when it was queued, and the one whose first packet it is when it leaves. */
#ifndef GREYNIC_BURST_CLASSES_H
#define GREYNIC_BURST_CLASSES_H

#include "queues.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct hlist_node {
  struct hlist_node *next;
};
struct hlist_head {
  struct hlist_node *first;
};
struct Qdisc_class_hash {
  struct hlist_head *hash;
  unsigned int hashsize;
};
struct Qdisc_class_common {
  u32 classid;
  struct hlist_node hnode;
};
struct htb_class_leaf {
  struct Qdisc *q;
};
struct htb_class {
  struct Qdisc_class_common common;
  int level;
  union {
    struct htb_class_leaf leaf;
  };
};
struct htb_sched {
  struct Qdisc_class_hash clhash;
};
struct Qdisc___private {
  long privdata[0];
};
#pragma clang attribute pop

/* Which classes packets wait in. Their addresses tell the shelf; of a full one the first goes. */
#define SHELVES 16384
struct member {
  u64 packet; /* 0: free */
  u64 place;
};
struct shelf {
  struct member members[4];
};
GREYNIC_MAP(shelves, BPF_MAP_TYPE_ARRAY, u32, struct shelf, SHELVES);

static __always_inline struct shelf *shelf_of(u64 packet) {
  u32 at = (u32)((packet >> 3) * 0x9e3779b97f4a7c15ULL >> 50);
  return bpf_map_lookup_elem(&shelves, &at);
}

/* The member with this address, or a free one for address 0. */
static __always_inline struct member *member_with(struct shelf *shelf, u64 address) {
  for (int i = 0; i < 4; ++i) {
    if (shelf->members[i].packet == address) return &shelf->members[i];
  }
  return NULL;
}

static __always_inline void enter_class(u64 packet, u32 place) {
  struct shelf *shelf = shelf_of(packet);
  if (!shelf) return;
  struct member *member = member_with(shelf, packet); /* who left unseen had this address, too */
  if (!member) member = member_with(shelf, 0);
  if (!member) member = shelf->members;
  *member = (struct member){packet, place};
}

/* The class that a packet has left. */
static __always_inline struct burst_queue *leave_class(u64 packet, u32 *place) {
  struct shelf *shelf = shelf_of(packet);
  struct member *member = shelf ? member_with(shelf, packet) : NULL;
  if (!member) return NULL;
  member->packet = 0;
  *place = member->place;
  return queue_in(*place);
}

/* A walk over the classes of htb, for the one at whose tail the packet lies. */
struct class_walk {
  struct hlist_head *heads;
  struct hlist_node *node;
  u64 packet;
  struct Qdisc *leaf; /* found */
  u32 bucket, size, class_id;
};
static long next_class(u32 step, struct class_walk *walk) {
  if (!walk->node) {
    if (walk->bucket >= walk->size) return 1;
    struct hlist_head *head = walk->heads + walk->bucket++;
    walk->node = BPF_CORE_READ(head, first);
    return 0;
  }
  struct hlist_node *node = walk->node; /* what lies in our own struct must not be relocated */
  struct htb_class *one = (void *)node - bpf_core_field_offset(struct htb_class, common.hnode);
  walk->node = BPF_CORE_READ(node, next);
  if (BPF_CORE_READ(one, level) != 0) return 0;
  struct Qdisc *leaf = BPF_CORE_READ(one, leaf.q);
  if ((u64)BPF_CORE_READ(leaf, q.tail) != walk->packet) return 0;
  walk->leaf = leaf;
  walk->class_id = BPF_CORE_READ(one, common.classid);
  return 1;
}

/* What we need of a leaf lies together: one call reads it. */
struct leaf_state {
  u64 tail;
  u32 backlog, waiting;
};
#define LEAF_OFFSET(FIELD) bpf_core_field_offset(struct Qdisc, FIELD)
static __always_inline struct leaf_state state_of(u64 leaf) {
  u8 bytes[128];
  u64 first = LEAF_OFFSET(q.tail), backlog = LEAF_OFFSET(qstats.backlog) - first;
  u64 waiting = LEAF_OFFSET(q.qlen) - first, size = backlog + sizeof(u32);
  barrier_var(backlog); /* one number each, which is added to the stack's pointer */
  barrier_var(waiting);
  if (size > sizeof bytes) size = sizeof bytes;
  bpf_probe_read_kernel(bytes, size, (void *)leaf + first);
  return (struct leaf_state){*(u64 *)bytes, *(u32 *)(bytes + backlog), *(u32 *)(bytes + waiting)};
}

/* The class that a packet joined just now. Those that we know come first. */
static __always_inline struct burst_queue *class_joined(struct Qdisc *root, u64 packet,
                                                        struct leaf_state *state) {
  for (u32 i = 0; i <= BURST_MOST_QUEUES; ++i) {
    struct burst_queue *queue = queue_in(i == 0 ? latest_place : i - 1);
    if (!queue || !queue->address) break;
    *state = state_of(queue->address);
    if (state->tail != packet) continue;
    latest_place = queue->place;
    return queue;
  }
  struct htb_sched *htb = (void *)root + bpf_core_field_offset(struct Qdisc___private, privdata);
  struct class_walk walk = {.heads = BPF_CORE_READ(htb, clhash.hash),
                            .packet = packet,
                            .size = BPF_CORE_READ(htb, clhash.hashsize)};
  bpf_loop(4096, next_class, &walk, 0);
  if (!walk.leaf) return NULL;
  *state = state_of((u64)walk.leaf);
  return queue_at((u64)walk.leaf, walk.class_id);
}

#endif
