/* SPDX-License-Identifier: GPL-2.0-only */
/* Has the next device send 64 copies of each packet that a device sends: packets without system calls. */
#include "kernel_types.h"

char LICENSE[] SEC("license") = "GPL";

SEC("tc")
int flood(struct __sk_buff *skb) {
  for (int i = 0; i < 64; ++i) bpf_clone_redirect(skb, skb->ifindex + 1, 0);
  return 4; /* TC_ACT_STOLEN: the packet itself has done its work */
}
