/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The snapshot rule at the queueing discipline of one device. Both hooks run under the lock of the
 * discipline, so the state of a queue needs no atomics.
 *
 * Where depth is read: at enqueue from the discipline itself, and between two enqueues counted
 * down, because packets leave in lists and the hook sees a list when all of it has left.
 *
 * A call of a helper costs more than all else that a quiet packet needs. So fields are read through
 * the types that the hooks give to the verifier, the frame is copied only when the queue is over the
 * threshold, and who finds the queue empty and leaves at once calls for nothing.
 */
#include "kernel_types.h"

#include "burst_record.h"
#include "classes.h"
#include "queues.h"
#include "../../include/greynic/burst/snapshot_rule.h"

char LICENSE[] SEC("license") = "GPL";

const volatile u32 watched_interface = 0;
const volatile u32 watched_namespace = 0;
const volatile bool classful = false;
const volatile u32 waiting_each = 2048; /* arrivals of a queue that are remembered: a power of two */
const volatile bool dequeue_only = false;
const volatile bool every_packet = false; /* as in-band telemetry would: for comparison */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct qdisc_skb_cb {
  struct {
    unsigned int pkt_len;
  };
};
#pragma clang attribute pop

struct stamp { /* an arrival */
  u64 packet; /* its address */
  u64 enqueued_ns;
  u32 depth;
  u32 bytes;
};

/* The beginning of a frame. It is kept of packets that take part, since they may leave unseen. */
#define MOST_KEPT_AT_ONCE 16
struct frame {
  u32 bytes;
  u8 header[BURST_HEADER_BYTES];
};

GREYNIC_MAP(settings, BPF_MAP_TYPE_ARRAY, u32, u64, 1); /* the threshold in bytes */
GREYNIC_MAP(stamps, BPF_MAP_TYPE_ARRAY, u32, struct stamp, BURST_MOST_WAITING);
GREYNIC_MAP(frames, BPF_MAP_TYPE_ARRAY, u32, struct frame, BURST_MOST_WAITING);
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 1 << 17);
} records SEC(".maps");

static __always_inline bool is_watched(const struct netdev_queue *txq) {
  struct net_device *dev = txq->dev;
  return (u32)dev->ifindex == watched_interface && dev->nd_net.net->ns.inum == watched_namespace;
}

/* Packets of all classes whose arrival is remembered. Classes share a lock; roots without do not. */
u64 known_waiting = 0;

/* Where arrivals of a queue lie by their number. Queues share one array. */
static __always_inline u32 slot_of(u32 place, u64 number) {
  return ((u32)number & (waiting_each - 1)) + place * waiting_each;
}
static __always_inline struct stamp *stamp_of(u32 place, u64 number) {
  u32 at = slot_of(place, number);
  return bpf_map_lookup_elem(&stamps, &at);
}

static __always_inline const u32 *place_of_bytes(const struct sk_buff *skb) {
  return (const void *)skb + bpf_core_field_offset(struct sk_buff, cb) +
         bpf_core_field_offset(struct qdisc_skb_cb, pkt_len);
}

/* Of any packet by its address, which the verifier does not know. */
static __always_inline u32 read_header(u64 packet, u8 *header) {
  const struct sk_buff *skb = (const struct sk_buff *)packet;
  u32 linear = BPF_CORE_READ(skb, len) - BPF_CORE_READ(skb, data_len);
  u32 bytes = linear < BURST_HEADER_BYTES ? linear : BURST_HEADER_BYTES;
  if (bpf_probe_read_kernel(header, BURST_HEADER_BYTES, BPF_CORE_READ(skb, data))) return 0;
  return bytes;
}

/* `number`: of its arrival, which `stamp` tells. `packet`: 0 when it left unseen. */
static __always_inline void report(struct burst_queue *queue, u32 place, u64 number,
                                   const struct stamp *stamp, u64 packet, u32 bytes) {
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
  record->enqueued_ns = stamp ? stamp->enqueued_ns : record->dequeued_ns;
  record->depth_at_enqueue = stamp ? stamp->depth : 0;
  record->header_bytes = 0;
  if (!stamp) ++queue->stamps_lost;
  if (packet) {
    record->header_bytes = read_header(packet, record->header);
  } else if (stamp && number < queue->kept) {
    u32 at = slot_of(place, number);
    struct frame *frame = bpf_map_lookup_elem(&frames, &at);
    if (frame) {
      record->header_bytes = frame->bytes;
      __builtin_memcpy(record->header, frame->header, BURST_HEADER_BYTES);
    }
  }
  bpf_ringbuf_submit(record, 0);
}

/* The rule for a packet that leaves, or has left unseen (packet 0). */
static __always_inline void judge(struct burst_queue *queue, u32 place, u64 number,
                                  const struct stamp *stamp, u64 packet, u32 bytes) {
  u32 zero = 0;
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
  if (marked || every_packet) report(queue, place, number, stamp, packet, bytes);
}

static __always_inline void one_less(struct burst_queue *queue) {
  ++queue->left;
  if (classful) --known_waiting;
}

/* Not every departure has an event: a kernel may keep some tasks from being traced, and what an
 * interrupt does while such a task runs is then hidden too. Who is gone is told from the queue: it
 * is first-in first-out, so whoever is before a packet that leaves has left, and it says how many
 * wait. */
struct walk {
  u64 number, packet;
  u32 place, found;
};
static long leave_unseen(u32 step, struct walk *until) {
  u32 place = until->place;
  struct burst_queue *queue = queue_in(place);
  if (!queue || queue->left >= until->number) return 1;
  u64 number = queue->left;
  one_less(queue);
  struct stamp *stamp = stamp_of(place, number);
  if (queue->joined - number > waiting_each) stamp = NULL;
  if (classful && stamp) {
    struct shelf *shelf = shelf_of(stamp->packet);
    struct member *member = shelf ? member_with(shelf, stamp->packet) : NULL;
    if (member && member->place == place) member->packet = 0;
  }
  judge(queue, place, number, stamp, 0, stamp ? stamp->bytes : 0);
  ++queue->unseen;
  return 0;
}
static __always_inline void catch_up_to(u32 place, u64 number) {
  struct walk until = {.number = number, .place = place};
  bpf_loop(BURST_MOST_WAITING, leave_unseen, &until, 0);
}

static long next_stamp(u32 step, struct walk *wanted) {
  struct stamp *stamp = stamp_of(wanted->place, wanted->number);
  if (!stamp) return 1;
  wanted->found = stamp->packet == wanted->packet;
  if (wanted->found) return 1;
  ++wanted->number;
  return 0;
}

/* The stamp of a packet that leaves, and its number; NULL for one that waited before we came, is a
 * segment of one that joined, or came back from the device. */
static __always_inline struct stamp *claim(struct burst_queue *queue, u32 place, u64 packet,
                                           u64 *number) {
  u64 waiting = queue->joined - queue->left;
  *number = queue->left;
  if (waiting == 0) return NULL;
  if (waiting > waiting_each) { /* more than is remembered */
    one_less(queue);
    return NULL;
  }
  struct stamp *stamp = stamp_of(place, *number);
  if (stamp && stamp->packet == packet) {
    one_less(queue);
    return stamp;
  }
  struct walk wanted = {.number = *number, .packet = packet, .place = place};
  bpf_loop(waiting, next_stamp, &wanted, 0);
  if (!wanted.found) return NULL;
  *number = wanted.number;
  catch_up_to(place, wanted.number);
  one_less(queue);
  return stamp_of(place, wanted.number);
}

static __always_inline void leave(u32 place, u64 packet, u32 bytes) {
  struct burst_queue *queue = classful ? leave_class(packet, &place) : queue_in(place);
  if (!queue) return;
  u64 number = 0;
  struct stamp *stamp = claim(queue, place, packet, &number);
  judge(queue, place, number, stamp, packet, bytes);
}

/* Who leaves with a packet, behind it in a list. */
struct list {
  u64 packet;
  u32 place;
};
static long leave_next(u32 step, struct list *list) {
  const struct sk_buff *skb = (const struct sk_buff *)list->packet;
  skb = BPF_CORE_READ(skb, next);
  if (!skb) return 1;
  list->packet = (u64)skb;
  u32 bytes = 0;
  bpf_probe_read_kernel(&bytes, sizeof bytes, place_of_bytes(skb));
  leave(list->place, list->packet, bytes);
  return 0;
}

static long keep_frame(u32 step, struct walk *walk) {
  struct stamp *stamp = stamp_of(walk->place, walk->number);
  u32 at = slot_of(walk->place, walk->number++);
  struct frame *frame = bpf_map_lookup_elem(&frames, &at);
  if (!stamp || !frame) return 1;
  frame->bytes = read_header(stamp->packet, frame->header);
  return 0;
}

/* Whoever waits takes part: keeps what the frames begin with, where that was not done before. A few
 * at a time, the oldest first: nobody shall wait for us. */
static __always_inline void keep_frames(struct burst_queue *queue, u32 place) {
  u64 first = queue->kept > queue->left ? queue->kept : queue->left;
  if (queue->joined - first > waiting_each) first = queue->joined - waiting_each;
  u64 count = queue->joined - first;
  if (count > MOST_KEPT_AT_ONCE) count = MOST_KEPT_AT_ONCE;
  struct walk walk = {.number = first, .place = place};
  bpf_loop(count, keep_frame, &walk, 0);
  queue->kept = first + count;
}

/* A packet that joins an empty queue, not over the threshold, and leaves before anything else
 * happens takes part in nothing: it needs no clock, no stamp, and no class. */
static __always_inline bool stays_alone(struct burst_queue *queue, const struct sk_buff *skb,
                                        u32 backlog, u32 waiting) {
  u32 zero = 0;
  u64 *threshold = bpf_map_lookup_elem(&settings, &zero);
  if (!threshold || backlog > *threshold || waiting != 1 || every_packet) return false;
  if (queue->alone || (classful ? known_waiting : queue->joined - queue->left)) return false;
  queue->alone_bytes = backlog;
  *(volatile u64 *)&queue->alone = (u64)skb;
  return true;
}
/* Something else happens: it has joined like any other. It did so a moment ago, since who joins is
 * followed by an attempt to send. */
static __always_inline void settle(struct burst_queue *queue, u64 packet, u32 bytes) {
  struct stamp *stamp = stamp_of(queue->place, 0);
  if (!stamp) return;
  *stamp = (struct stamp){packet, bpf_ktime_get_ns(), bytes, bytes};
  queue->depth = bytes;
  queue->joined = 1;
  queue->left = queue->kept = queue->remembered = 0;
  if (!classful) return;
  ++known_waiting;
  enter_class(packet, queue->place);
}

static __always_inline void settle_root(struct burst_queue *queue) {
  u64 packet = queue->alone;
  queue->alone = 0;
  settle(queue, packet, queue->alone_bytes);
}

/* `backlog` and `waiting`: of the queue, with the packet. */
static __always_inline void join(struct burst_queue *queue, u32 place, const struct sk_buff *skb,
                                 u32 backlog, u32 waiting) {
  u32 zero = 0, bytes = *place_of_bytes(skb);
  u64 *threshold = bpf_map_lookup_elem(&settings, &zero);
  if (!threshold || waiting == 0) return;
  u64 before = waiting - 1;
  if (queue->joined - queue->left > before) catch_up_to(place, queue->joined - before);
  /* The same stamps again: they are at hand. */
  if (before == 0) queue->joined = queue->left = queue->kept = 0;
  queue->depth = backlog;
  if (queue->joined - queue->left == before) {
    struct stamp *stamp = stamp_of(place, queue->joined);
    if (!stamp) return;
    stamp->packet = (u64)skb;
    stamp->enqueued_ns = bpf_ktime_get_ns();
    stamp->depth = backlog;
    stamp->bytes = bytes;
    ++queue->joined;
    if (classful) ++known_waiting;
  } else {
    bytes = 0; /* tbf may have put segments there instead, and freed what we look at */
  }
  if (backlog > *threshold) keep_frames(queue, place);
  if (dequeue_only) return;
  struct SnapshotRule rule = {queue->remembered};
  snapshot_enqueue(&rule, *threshold, bytes, backlog);
  queue->remembered = rule.remembered_bytes;
}

/* `queue`: the class of the packet that was alone, where it is known. */
static __always_inline void settle_class(struct Qdisc *root, struct burst_queue *first,
                                         struct burst_queue *queue) {
  u64 packet = first->alone;
  struct leaf_state state = {};
  first->alone = 0;
  if (!queue) queue = class_joined(root, packet, &state);
  if (queue) {
    settle(queue, packet, first->alone_bytes);
  } else { /* it has left unseen */
    ++first->seen;
    ++first->unseen;
  }
}

SEC("tp_btf/qdisc_enqueue")
int BPF_PROG(on_enqueue, struct Qdisc *root, const struct netdev_queue *txq, struct sk_buff *skb) {
  if (!is_watched(txq)) return 0;
  struct burst_queue *own = classful ? queue_in(0) : queue_at((u64)root, 0);
  if (!own || stays_alone(own, skb, root->qstats.backlog, root->q.qlen)) return 0;
  if (!classful) {
    if (own->alone) settle_root(own);
    join(own, own->place, skb, root->qstats.backlog, root->q.qlen);
    return 0;
  }
  u64 packet = number_of(own, skb);
  struct leaf_state state = {};
  struct burst_queue *queue = class_joined(root, packet, &state);
  /* Who was alone is in the class where now two wait. */
  if (own->alone) settle_class(root, own, state.waiting > 1 ? queue : NULL);
  if (!queue) return 0;
  join(queue, queue->place, skb, state.backlog, state.waiting);
  enter_class(packet, queue->place);
  return 0;
}

/* The hook is called without a packet too. Some kernels tell the verifier otherwise, which then
 * takes a comparison of the pointer with null for needless: so a number is compared as well. */
SEC("tp_btf/qdisc_dequeue")
int BPF_PROG(on_dequeue, struct Qdisc *root, const struct netdev_queue *txq, int packets,
             struct sk_buff *skb) {
  if (!is_watched(txq)) return 0;
  struct burst_queue *own = classful ? queue_in(0) : queue_at((u64)root, 0);
  if (own && own->alone) {
    if (own->alone == (u64)skb) {
      own->alone = 0;
      ++own->seen;
      return 0;
    }
    if (classful) {
      settle_class(root, own, NULL);
    } else {
      settle_root(own);
    }
  }
  u64 packet = own ? number_of(own, skb) : 0;
  if (!packet || !skb) return 0;
  leave(own->place, packet, *place_of_bytes(skb));
  struct list list = {packet, own->place};
  if (packets > 1) bpf_loop(packets - 1, leave_next, &list, 0);
  return 0;
}
