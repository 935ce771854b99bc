/* SPDX-License-Identifier: GPL-2.0-only */
/* Counts packets of UDP that are queued on the loopback device of one network namespace. */
#include "kernel_types.h"

char LICENSE[] SEC("license") = "GPL";

const volatile u32 watched_namespace = 0;

struct record {
  u64 number;
  u32 bytes;
  u32 namespace_number;
};

GREYNIC_MAP(per_cpu, BPF_MAP_TYPE_PERCPU_ARRAY, u32, u64, 4);
GREYNIC_MAP(by_length, BPF_MAP_TYPE_HASH, u32, u64, 64);
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 1 << 16);
} records SEC(".maps");

static __always_inline void count(u32 index) {
  u64 *value = bpf_map_lookup_elem(&per_cpu, &index);
  if (value) ++*value;
}

SEC("tp_btf/net_dev_queue")
int BPF_PROG(on_queue, struct sk_buff *skb) {
  u32 number = skb->dev->nd_net.net->ns.inum;
  if (number != watched_namespace) return 0;
  count(0);
  u32 length = skb->len;
  u64 zero = 0;
  u64 *same = bpf_map_lookup_elem(&by_length, &length);
  if (!same) {
    bpf_map_update_elem(&by_length, &length, &zero, BPF_NOEXIST);
    same = bpf_map_lookup_elem(&by_length, &length);
  }
  if (same) __sync_fetch_and_add(same, 1);
  struct record *record = bpf_ringbuf_reserve(&records, sizeof *record, 0);
  if (!record) return 0;
  record->number = same ? *same : 0;
  record->bytes = length;
  record->namespace_number = number;
  bpf_ringbuf_submit(record, 0);
  return 0;
}

/* The same hook without type information; never chosen together with the one above. */
SEC("raw_tp/net_dev_queue")
int on_queue_raw(void *context) {
  count(1);
  return 0;
}

SEC("tc")
int on_tc(struct __sk_buff *skb) {
  count(2);
  return 0;
}

SEC("uprobe")
int on_function(void *context) {
  count(3);
  return 0;
}
