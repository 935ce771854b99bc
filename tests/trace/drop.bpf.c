/* SPDX-License-Identifier: GPL-2.0-only */
/* Drops every fourth packet of 300 bytes or more, 1,000 in all. */
#include "kernel_types.h"

char LICENSE[] SEC("license") = "GPL";

u64 seen = 0;

SEC("tc")
int drop_some(struct __sk_buff *skb) {
  if (skb->len < 300) return 0;
  const u64 number = __sync_fetch_and_add(&seen, 1);
  return number % 4 == 3 && number < 4000 ? 2 : 0;
}
