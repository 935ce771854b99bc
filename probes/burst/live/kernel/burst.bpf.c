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
const volatile u32 waiting_each = 2048; /* arrivals of a queue that are remembered: a power of two */
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

/* An arrival. The beginning of the frame is kept because a packet may leave unseen. */
struct stamp {
  u64 packet; /* its address */
  u64 enqueued_ns;
  u32 depth;
  u32 bytes;
  u32 header_bytes, unused;
  u8 header[BURST_HEADER_BYTES];
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

/* The stamp of a queue's arrival with this number. Queues share one array. */
static __always_inline struct stamp *stamp_of(u32 place, u64 number) {
  u32 at = ((u32)number & (waiting_each - 1)) + place * waiting_each;
  return bpf_map_lookup_elem(&stamps, &at);
}

static __always_inline u32 bytes_of(const struct sk_buff *skb) {
  const struct qdisc_skb_cb *cb = (const struct qdisc_skb_cb *)skb->cb;
  return BPF_CORE_READ(cb, pkt_len);
}

static __always_inline u32 read_header(const struct sk_buff *skb, u8 *header) {
  u32 linear = BPF_CORE_READ(skb, len) - BPF_CORE_READ(skb, data_len);
  u32 bytes = linear < BURST_HEADER_BYTES ? linear : BURST_HEADER_BYTES;
  if (bpf_probe_read_kernel(header, BURST_HEADER_BYTES, BPF_CORE_READ(skb, data))) return 0;
  return bytes;
}

static __always_inline void report(struct burst_queue *queue, u32 place,
                                   const struct stamp *stamp, const struct sk_buff *skb,
                                   u32 bytes) {
  struct burst_record *record = bpf_ringbuf_reserve(&records, sizeof *record, 0);
  if (!record) {
    ++queue->ring_lost;
    return;
  }
  record->dequeued_ns = bpf_ktime_get_ns();
  record->depth_at_dequeue = queue->depth;
  record->bytes = bytes;
  record->queue = place;
  record->run = queue->run;
  if (stamp) {
    record->enqueued_ns = stamp->enqueued_ns;
    record->depth_at_enqueue = stamp->depth;
    record->header_bytes = stamp->header_bytes;
    __builtin_memcpy(record->header, stamp->header, BURST_HEADER_BYTES);
  } else {
    ++queue->stamps_lost;
    record->enqueued_ns = record->dequeued_ns;
    record->depth_at_enqueue = 0;
    record->header_bytes = skb ? read_header(skb, record->header) : 0;
  }
  bpf_ringbuf_submit(record, 0);
}

/* The rule for a packet that leaves, or has left unseen (without skb). */
static __always_inline void judge(struct burst_queue *queue, u32 place, const struct stamp *stamp,
                                  const struct sk_buff *skb) {
  u32 zero = 0, bytes = skb ? bytes_of(skb) : stamp ? stamp->bytes : 0;
  u64 *threshold = bpf_map_lookup_elem(&settings, &zero);
  if (!threshold) return;
  queue->depth = queue->depth > bytes ? queue->depth - bytes : 0;
  ++queue->seen;
  struct SnapshotRule rule = {queue->remembered};
  bool marked = snapshot_dequeue(&rule, *threshold, bytes, queue->depth);
  queue->remembered = rule.remembered_bytes;
  if (marked && !queue->in_run) ++queue->run;
  queue->in_run = marked && queue->depth > 0;
  if (marked) ++queue->marked;
  if (marked || every_packet) report(queue, place, stamp, skb, bytes);
}

/* Not every departure has an event: a kernel may keep some tasks from being traced, and what an
 * interrupt does while such a task runs is then hidden too. Who is gone is told from the queue: it
 * is first-in first-out, so whoever is before a packet that leaves has left, and it says how many
 * wait. */
struct catch_up {
  u64 number, packet;
  u32 place, found;
};
static long leave_unseen(u32 step, struct catch_up *until) {
  u32 place = until->place;
  struct burst_queue *queue = bpf_map_lookup_elem(&queues, &place);
  if (!queue || queue->left >= until->number) return 1;
  u64 number = queue->left++;
  struct stamp *stamp = stamp_of(place, number);
  if (queue->joined - number > waiting_each) stamp = NULL;
  if (classful && stamp) {
    u64 packet = stamp->packet;
    bpf_map_delete_elem(&class_of, &packet);
  }
  judge(queue, place, stamp, NULL);
  ++queue->unseen;
  return 0;
}
static __always_inline void catch_up_to(u32 place, u64 number) {
  struct catch_up until = {.number = number, .place = place};
  bpf_loop(BURST_MOST_WAITING, leave_unseen, &until, 0);
}

static long next_stamp(u32 step, struct catch_up *wanted) {
  struct stamp *stamp = stamp_of(wanted->place, wanted->number);
  if (!stamp) return 1;
  wanted->found = stamp->packet == wanted->packet;
  if (wanted->found) return 1;
  ++wanted->number;
  return 0;
}

/* The stamp of a packet that leaves; NULL for one that waited before we came, is a segment of one
 * that joined, or came back from the device. */
static __always_inline struct stamp *claim(struct burst_queue *queue, u32 place, u64 packet) {
  u64 waiting = queue->joined - queue->left;
  if (waiting == 0) return NULL;
  if (waiting > waiting_each) { /* more than is remembered */
    ++queue->left;
    return NULL;
  }
  struct stamp *stamp = stamp_of(place, queue->left);
  if (stamp && stamp->packet == packet) {
    ++queue->left;
    return stamp;
  }
  struct catch_up wanted = {.number = queue->left, .packet = packet, .place = place};
  bpf_loop(waiting, next_stamp, &wanted, 0);
  if (!wanted.found) return NULL;
  catch_up_to(place, wanted.number);
  ++queue->left;
  return stamp_of(place, wanted.number);
}

static __always_inline void join(struct burst_queue *queue, u32 place, const struct sk_buff *skb,
                                 u64 backlog, u32 waiting) {
  u32 zero = 0, bytes = bytes_of(skb);
  u64 *threshold = bpf_map_lookup_elem(&settings, &zero);
  if (!threshold || waiting == 0) return;
  u64 before = waiting - 1;
  if (queue->joined - queue->left > before) catch_up_to(place, queue->joined - before);
  if (before == 0) queue->joined = queue->left = 0; /* the same stamps again: they are at hand */
  queue->depth = backlog;
  if (queue->joined - queue->left == before) {
    struct stamp *stamp = stamp_of(place, queue->joined);
    if (!stamp) return;
    stamp->packet = (u64)skb;
    stamp->enqueued_ns = bpf_ktime_get_ns();
    stamp->depth = backlog;
    stamp->bytes = bytes;
    stamp->header_bytes = read_header(skb, stamp->header);
    ++queue->joined;
  } else {
    bytes = 0; /* tbf may have put segments there instead, and freed what we look at */
  }
  if (dequeue_only) return;
  struct SnapshotRule rule = {queue->remembered};
  snapshot_enqueue(&rule, *threshold, bytes, backlog);
  queue->remembered = rule.remembered_bytes;
}

static __always_inline void leave(struct burst_queue *queue, u32 place, struct sk_buff *skb) {
  judge(queue, place, claim(queue, place, (u64)skb), skb);
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
  join(queue, place, skb, BPF_CORE_READ(leaf, qstats.backlog), BPF_CORE_READ(leaf, q.qlen));
  bpf_map_update_elem(&class_of, &packet, &place, BPF_ANY);
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
