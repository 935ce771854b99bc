/* SPDX-License-Identifier: GPL-2.0-only */
/* Programs at the hooks of `greynic trace` that do nothing: what the hooks cost by themselves. */
#include "kernel_types.h"

char LICENSE[] SEC("license") = "GPL";

SEC("tp_btf/net_dev_queue")
int empty_queue(void *context) { return 0; }
SEC("tp_btf/netif_receive_skb")
int empty_receive(void *context) { return 0; }
