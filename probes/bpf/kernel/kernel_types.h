/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's types as far as our programs read them. CO-RE (preserve_access_index) finds each
 * field by its name in the kernel that runs, so order, size and all other fields do not matter.
 * A field that some kernels lack is read behind bpf_core_field_exists().
 */
#ifndef GREYNIC_KERNEL_TYPES_H
#define GREYNIC_KERNEL_TYPES_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_tracing.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s64 s64;

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
  unsigned int inum;
};

struct net {
  struct ns_common ns;
};

typedef struct {
  struct net *net;
} possible_net_t;

struct net_device {
  int ifindex;
  unsigned int mtu;
  unsigned int flags;
  unsigned int tx_queue_len;
  char name[16];
  possible_net_t nd_net;
};

struct sock_common {
  unsigned short skc_family;
  possible_net_t skc_net;
};

struct sock {
  struct sock_common __sk_common;
};

struct skb_shared_info {
  u8 nr_frags;
  u16 gso_size;
  u16 gso_segs;
  unsigned int gso_type;
  struct sk_buff *frag_list;
};

struct in6_addr {
  union {
    u32 u6_addr32[4];
  } in6_u;
};

struct dst_entry {
  struct net_device *dev;
};

struct sk_buff {
  struct sk_buff *next;
  struct sk_buff *prev;
  struct net_device *dev;
  struct sock *sk;
  unsigned long _skb_refdst;
  char cb[48];
  unsigned int len;
  unsigned int data_len;
  u16 mac_len;
  u8 cloned : 1;
  u8 pkt_type : 3;
  u8 encapsulation : 1;
  u32 priority;
  int skb_iif;
  u32 hash;
  u16 vlan_proto;
  u16 vlan_tci;
  u32 mark;
  u16 queue_mapping;
  u16 inner_transport_header;
  u16 inner_network_header;
  u16 inner_mac_header;
  u16 protocol;
  u16 transport_header;
  u16 network_header;
  u16 mac_header;
  unsigned int tail;
  unsigned int end;
  unsigned char *head;
  unsigned char *data;
};

struct qdisc_skb_head {
  struct sk_buff *head;
  struct sk_buff *tail;
  u32 qlen;
};

struct gnet_stats_queue {
  u32 qlen;
  u32 backlog;
  u32 drops;
};

struct netdev_queue {
  struct net_device *dev;
};

struct Qdisc {
  unsigned int flags;
  u32 limit;
  u32 handle;
  u32 parent;
  struct netdev_queue *dev_queue;
  struct qdisc_skb_head q;
  struct gnet_stats_queue qstats;
};

#pragma clang attribute pop

/* A map: GREYNIC_MAP(flows, BPF_MAP_TYPE_HASH, struct flow, u32, 1024); */
#define GREYNIC_MAP(NAME, TYPE, KEY, VALUE, ENTRIES) \
  struct {                                           \
    __uint(type, TYPE);                              \
    __uint(max_entries, ENTRIES);                    \
    __type(key, KEY);                                \
    __type(value, VALUE);                            \
  } NAME SEC(".maps")

#endif
