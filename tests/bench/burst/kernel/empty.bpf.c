/* SPDX-License-Identifier: GPL-2.0-only */
/* Programs that do nothing: what the kernel takes to call any. */
#include "kernel_types.h"

char LICENSE[] SEC("license") = "GPL";

SEC("tp_btf/qdisc_enqueue")
int on_enqueue(void *context) { return 0; }
SEC("tp_btf/qdisc_dequeue")
int on_dequeue(void *context) { return 0; }
SEC("tp_btf/net_dev_start_xmit")
int on_transmit(void *context) { return 0; }
