/* SPDX-License-Identifier: GPL-2.0-only */
/* What the verifier must refuse: it reads through a pointer that may be null. */
#include "kernel_types.h"

char LICENSE[] SEC("license") = "GPL";

GREYNIC_MAP(values, BPF_MAP_TYPE_HASH, u32, u64, 4);

SEC("tp_btf/net_dev_queue")
int BPF_PROG(forgets_null, struct sk_buff *skb) {
  u32 key = skb->len;
  u64 *value = bpf_map_lookup_elem(&values, &key);
  return (int)*value;
}
