/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What tools like netstacklat do at a hook, at the hooks of `greynic trace`: the time of a packet's last hook in a hash table by
 * its address, the difference into a histogram of powers of two.
 */
#include "kernel_types.h"

char LICENSE[] SEC("license") = "GPL";

struct bucket {
  u32 hook;
  u32 log;
};
GREYNIC_MAP(times, BPF_MAP_TYPE_LRU_HASH, u64, u64, 65536);
GREYNIC_MAP(buckets, BPF_MAP_TYPE_PERCPU_HASH, struct bucket, u64, 256);

static __always_inline int at_hook(struct sk_buff *skb, u32 hook) {
  u64 key = (u64)skb, now = bpf_ktime_get_ns(), one = 1;
  const u64 *last = bpf_map_lookup_elem(&times, &key);
  if (last) {
    struct bucket bucket = {.hook = hook};
    for (u64 delay = now - *last; delay > 1 && bucket.log < 63; delay >>= 1) ++bucket.log;
    u64 *count = bpf_map_lookup_elem(&buckets, &bucket);
    if (count) {
      ++*count;
    } else {
      bpf_map_update_elem(&buckets, &bucket, &one, BPF_NOEXIST);
    }
  }
  bpf_map_update_elem(&times, &key, &now, BPF_ANY);
  return 0;
}

SEC("tp_btf/net_dev_queue")
int BPF_PROG(hash_queue, struct sk_buff *skb) { return at_hook(skb, 0); }
SEC("tp_btf/netif_receive_skb")
int BPF_PROG(hash_receive, struct sk_buff *skb) { return at_hook(skb, 1); }
