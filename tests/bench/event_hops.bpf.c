/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What tools that report each packet do at a hook (pwru, those of bcc), at the hooks of `greynic trace`: time, device and the
 * first bytes of a packet, sent to user space. The ring has room for a round and nobody reads it: a reader costs more.
 */
#include "kernel_types.h"

char LICENSE[] SEC("license") = "GPL";

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 1 << 26);
} events SEC(".maps");

struct event {
  u64 skb, time_ns;
  u32 interface, bytes;
  u8 head[40];
};

static __always_inline int at_hook(struct sk_buff *skb) {
  struct event *event = bpf_ringbuf_reserve(&events, sizeof *event, 0);
  if (!event) return 0;
  event->skb = (u64)skb;
  event->time_ns = bpf_ktime_get_ns();
  event->interface = (u32)skb->dev->ifindex;
  event->bytes = skb->len;
  bpf_probe_read_kernel(event->head, sizeof event->head, skb->data);
  bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
  return 0;
}

SEC("tp_btf/net_dev_queue")
int BPF_PROG(event_queue, struct sk_buff *skb) { return at_hook(skb); }
SEC("tp_btf/netif_receive_skb")
int BPF_PROG(event_receive, struct sk_buff *skb) { return at_hook(skb); }
