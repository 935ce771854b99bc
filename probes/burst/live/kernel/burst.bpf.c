/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The snapshot rule at the queueing discipline of one device. Both hooks run under the lock of the
 * discipline, so the state of a queue needs no atomics.
 *
 * Where depth is read: at enqueue from the discipline itself, and between two enqueues counted
 * down, because packets leave in lists and the hook sees a list when all of it has left.
 *
 * htb is no first-in first-out queue, its classes are. A packet's class is the one at whose tail it
 * lies when it was queued, and it is kept by the packet's address until it leaves.
 */
#include "kernel_types.h"

#include "burst_record.h"
#include "../../include/greynic/burst/snapshot_rule.h"

char LICENSE[] SEC("license") = "GPL";

const volatile u32 watched_interface = 0;
const volatile u32 watched_namespace = 0;
const volatile bool classful = false;
const volatile bool dequeue_only = false;
const volatile bool every_packet = false; /* as in-band telemetry would: for comparison */

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
struct qdisc_skb_cb {
  struct {
    unsigned int pkt_len;
  };
};
#pragma clang attribute pop

struct stamp {
  u64 enqueued_ns;
  u32 depth;
  u32 bytes;
};

GREYNIC_MAP(settings, BPF_MAP_TYPE_ARRAY, u32, u64, 1); /* the threshold in bytes */
GREYNIC_MAP(queues, BPF_MAP_TYPE_ARRAY, u32, struct burst_queue, BURST_MOST_QUEUES);
GREYNIC_MAP(places, BPF_MAP_TYPE_HASH, u64, u32, BURST_MOST_QUEUES); /* by address */
GREYNIC_MAP(stamps, BPF_MAP_TYPE_ARRAY, u32, struct stamp, BURST_MOST_WAITING);
GREYNIC_MAP(class_of, BPF_MAP_TYPE_HASH, u64, u32, 65536); /* place of the queue by packet */
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 1 << 17);
} records SEC(".maps");

static __always_inline bool is_watched(const struct netdev_queue *txq) {
  struct net_device *dev = txq->dev;
  return (u32)dev->ifindex == watched_interface && dev->nd_net.net->ns.inum == watched_namespace;
}

/* The queue with this address, or the next free one. */
static __always_inline struct burst_queue *queue_at(u64 address, u32 class_id, u32 *place) {
  *place = 0;
  struct burst_queue *queue = bpf_map_lookup_elem(&queues, place);
  if (queue && queue->address == address) return queue;
  u32 *known = bpf_map_lookup_elem(&places, &address);
  if (known) {
    *place = *known;
    return bpf_map_lookup_elem(&queues, place);
  }
  for (u32 i = 0; i < BURST_MOST_QUEUES; ++i) {
    u32 key = i;
    queue = bpf_map_lookup_elem(&queues, &key);
    if (!queue) return NULL;
    if (queue->address) continue;
    *place = i;
    queue->address = address;
    queue->class_id = class_id;
    bpf_map_update_elem(&places, &address, place, BPF_ANY);
    return queue;
  }
  return NULL;
}

/* Stamps of all queues share one array; a place is the queue's number of arrivals and the queue. */
static __always_inline u32 stamp_place(u64 number, u32 place) {
  u32 share = classful ? BURST_MOST_WAITING / BURST_MOST_QUEUES : BURST_MOST_WAITING;
  return ((u32)number & (share - 1)) + (classful ? place * share : 0);
}

static __always_inline u32 bytes_of(const struct sk_buff *skb) {
  const struct qdisc_skb_cb *cb = (const struct qdisc_skb_cb *)skb->cb;
  return BPF_CORE_READ(cb, pkt_len);
}

static __always_inline void join(struct burst_queue *queue, u32 place, const struct sk_buff *skb,
                                 u64 backlog, u32 waiting) {
  u32 zero = 0, bytes = bytes_of(skb);
  u64 *threshold = bpf_map_lookup_elem(&settings, &zero);
  if (!threshold) return;
  if (queue->joined == 0 && waiting > 1) queue->unknown = waiting - 1;
  queue->depth = backlog;
  u32 at = stamp_place(queue->joined, place);
  struct stamp *stamp = bpf_map_lookup_elem(&stamps, &at);
  if (stamp) {
    stamp->enqueued_ns = bpf_ktime_get_ns();
    stamp->depth = backlog;
    stamp->bytes = bytes;
  }
  ++queue->joined;
  if (dequeue_only) return;
  struct SnapshotRule rule = {queue->remembered};
  snapshot_enqueue(&rule, *threshold, bytes, backlog);
  queue->remembered = rule.remembered_bytes;
}

static __always_inline void report(struct burst_queue *queue, u32 place, struct sk_buff *skb,
                                   u32 bytes) {
  struct burst_record *record = bpf_ringbuf_reserve(&records, sizeof *record, 0);
  if (!record) {
    ++queue->ring_lost;
    return;
  }
  u64 number = queue->left - 1;
  u32 at = stamp_place(number, place);
  u64 most = classful ? BURST_MOST_WAITING / BURST_MOST_QUEUES : BURST_MOST_WAITING;
  struct stamp *stamp = bpf_map_lookup_elem(&stamps, &at);
  bool kept = stamp && queue->joined - number <= most;
  record->dequeued_ns = bpf_ktime_get_ns();
  record->enqueued_ns = kept ? stamp->enqueued_ns : record->dequeued_ns;
  record->depth_at_enqueue = kept ? stamp->depth : 0;
  if (!kept) ++queue->stamps_lost;
  record->depth_at_dequeue = queue->depth;
  record->bytes = bytes;
  record->queue = place;
  record->run = queue->run;
  u32 linear = BPF_CORE_READ(skb, len) - BPF_CORE_READ(skb, data_len);
  record->header_bytes = linear < BURST_HEADER_BYTES ? linear : BURST_HEADER_BYTES;
  if (bpf_probe_read_kernel(record->header, BURST_HEADER_BYTES, BPF_CORE_READ(skb, data))) {
    record->header_bytes = 0;
  }
  bpf_ringbuf_submit(record, 0);
}

static __always_inline void leave(struct burst_queue *queue, u32 place, struct sk_buff *skb) {
  u32 zero = 0, bytes = bytes_of(skb);
  u64 *threshold = bpf_map_lookup_elem(&settings, &zero);
  if (!threshold) return;
  queue->depth = queue->depth > bytes ? queue->depth - bytes : 0;
  if (queue->unknown > 0) {
    --queue->unknown;
    return;
  }
  ++queue->left;
  ++queue->seen;
  struct SnapshotRule rule = {queue->remembered};
  bool marked = snapshot_dequeue(&rule, *threshold, bytes, queue->depth);
  queue->remembered = rule.remembered_bytes;
  if (marked && !queue->in_run) ++queue->run;
  queue->in_run = marked && queue->depth > 0;
  if (marked) ++queue->marked;
  if (marked || every_packet) report(queue, place, skb, bytes);
}

/* A walk over the classes of htb, for the one at whose tail the packet lies. */
struct class_walk {
  struct hlist_head *heads;
  struct hlist_node *node;
  const struct sk_buff *skb;
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
  if (BPF_CORE_READ(leaf, q.tail) != walk->skb) return 0;
  walk->leaf = leaf;
  walk->class_id = BPF_CORE_READ(one, common.classid);
  return 1;
}

static __always_inline struct class_walk class_with(struct Qdisc *root, const struct sk_buff *skb) {
  struct htb_sched *htb = (void *)root + bpf_core_field_offset(struct Qdisc___private, privdata);
  struct class_walk walk = {.heads = BPF_CORE_READ(htb, clhash.hash),
                            .skb = skb,
                            .size = BPF_CORE_READ(htb, clhash.hashsize)};
  bpf_loop(4096, next_class, &walk, 0);
  return walk;
}

SEC("tp_btf/qdisc_enqueue")
int BPF_PROG(on_enqueue, struct Qdisc *root, const struct netdev_queue *txq, struct sk_buff *skb) {
  if (!is_watched(txq)) return 0;
  u32 place = 0;
  if (!classful) {
    struct burst_queue *queue = queue_at((u64)root, 0, &place);
    if (queue) join(queue, place, skb, root->qstats.backlog, root->q.qlen);
    return 0;
  }
  struct class_walk found = class_with(root, skb);
  struct Qdisc *leaf = found.leaf;
  if (!leaf) return 0;
  struct burst_queue *queue = queue_at((u64)leaf, found.class_id, &place);
  if (!queue) return 0;
  u64 packet = (u64)skb;
  bpf_map_update_elem(&class_of, &packet, &place, BPF_ANY);
  join(queue, place, skb, BPF_CORE_READ(leaf, qstats.backlog),
       BPF_CORE_READ(leaf, q.qlen));
  return 0;
}

static __always_inline void leave_classes(struct sk_buff *skb, int packets) {
  for (int i = 0; i < 64 && i < packets && skb; ++i) {
    u64 packet = (u64)skb;
    u32 *known = bpf_map_lookup_elem(&class_of, &packet);
    if (known) {
      u32 place = *known;
      struct burst_queue *queue = bpf_map_lookup_elem(&queues, &place);
      bpf_map_delete_elem(&class_of, &packet);
      if (queue) leave(queue, place, skb);
    }
    skb = BPF_CORE_READ(skb, next);
  }
}

/* The hook is called without a packet too, and the verifier takes its arguments for never null:
 * they are read as a number. */
SEC("tp_btf/qdisc_dequeue")
int BPF_PROG(on_dequeue, struct Qdisc *root, const struct netdev_queue *txq, int packets) {
  if (!is_watched(txq)) return 0;
  u64 first = 0;
  bpf_probe_read_kernel(&first, sizeof first, &ctx[3]);
  if (!first) return 0;
  struct sk_buff *skb = (struct sk_buff *)first;
  if (classful) {
    leave_classes(skb, packets);
    return 0;
  }
  u32 place = 0;
  struct burst_queue *queue = queue_at((u64)root, 0, &place);
  if (!queue) return 0;
  for (int i = 0; i < 64 && i < packets && skb; ++i) {
    leave(queue, place, skb);
    skb = BPF_CORE_READ(skb, next);
  }
  return 0;
}
