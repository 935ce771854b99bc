/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#ifndef GREYNIC_BURST_SNAPSHOT_RULE_H
#define GREYNIC_BURST_SNAPSHOT_RULE_H

/* The snapshot rule in the words that C, C++ and eBPF share: no library, no allocation, no clock.
 *
 * A packet takes part in a burst if the queue is deeper than the threshold at any instant of its
 * stay, its own bytes among them. Depth grows only when a packet joins. So when one joins and the
 * depth is over the threshold, exactly the packets that wait then took part: the rule remembers
 * their bytes, and marks whoever leaves while remembered bytes remain.
 *
 * Depth is in bytes. Of a packet that joins: with it. Of one that leaves: what stays. "Over" means
 * more than the threshold, never as much.
 *
 * A place that only sees packets leave (a switch's egress) calls the second function alone. It then
 * misses peaks between two departures: they are invisible there.
 */

#ifdef __cplusplus
#include <cstdint>
namespace greynic::burst {
using rule_u64 = std::uint64_t;
#else
typedef unsigned long long rule_u64;
#endif

struct SnapshotRule {
  rule_u64 remembered_bytes; /* of what waits in the queue, the part that took part */
};

/* A packet joins: is the queue over the threshold now? */
static inline int snapshot_enqueue(struct SnapshotRule *rule, rule_u64 threshold, rule_u64 bytes,
                                   rule_u64 depth) {
  rule_u64 before = depth > bytes ? depth - bytes : 0;
  if (depth > threshold) {
    rule->remembered_bytes = depth;
    return 1;
  }
  /* A queue that was emptied unseen (a reset, a purge) holds less than is remembered of it. */
  if (rule->remembered_bytes > before) rule->remembered_bytes = before;
  return 0;
}

/* A packet leaves: did it take part? */
static inline int snapshot_dequeue(struct SnapshotRule *rule, rule_u64 threshold, rule_u64 bytes,
                                   rule_u64 depth) {
  rule_u64 remembered = rule->remembered_bytes;
  if (depth > threshold) {
    rule->remembered_bytes = depth;
    return 1;
  }
  if (remembered == 0) return 0;
  remembered = remembered > bytes ? remembered - bytes : 0;
  rule->remembered_bytes = remembered < depth ? remembered : depth;
  return 1;
}

#ifdef __cplusplus
}  // namespace greynic::burst
#endif

#endif
