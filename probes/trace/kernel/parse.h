/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From the headers of a packet to its flow: the innermost addresses and ports that can be seen,
 * through VLAN, IP in IP, GRE, VXLAN and Geneve, with VNI and RoCE's queue pair.
 */
#ifndef GREYNIC_TRACE_PARSE_H
#define GREYNIC_TRACE_PARSE_H

#include "hops.h"
#include "kernel_types.h"

enum {
  ETHERTYPE_IPV4 = 0x0800,
  ETHERTYPE_IPV6 = 0x86dd,
  ETHERTYPE_VLAN = 0x8100,
  ETHERTYPE_QINQ = 0x88a8,
  ETHERTYPE_ETHERNET = 0x6558, /* in GRE and Geneve */
  PROTOCOL_IPIP = 4,
  PROTOCOL_TCP = 6,
  PROTOCOL_UDP = 17,
  PROTOCOL_IPV6 = 41,
  PROTOCOL_FRAGMENT = 44,
  PROTOCOL_GRE = 47,
  PROTOCOL_SCTP = 132,
  PORT_ROCE = 4791,
  PORT_GENEVE = 6081,
};

#define GREYNIC_LEVELS 4 /* a flow in a tunnel in a tunnel in a tunnel */

extern volatile struct greynic_config shared_config;

struct fragment_key {
  u64 source[2], destination[2];
  u32 identification;
  u32 protocol;
};

/*
 * Works in a per-CPU slot: it would fill half the stack. The functions below are global ones: the
 * verifier looks at each of them once, instead of at every way through all of them.
 */
struct parsed {
  struct greynic_flow flow;
  struct fragment_key fragment;
  u64 at;              /* where the next header begins */
  u32 sequence;        /* of TCP, or RoCE's PSN; 0: none */
  u16 ip_id;           /* of the innermost IPv4 */
  bool numbered;       /* there is such a number in its headers */
  bool is_fragment;    /* of a datagram, the first or a later one */
  bool later_fragment; /* without ports */
  bool tunnelled;
  bool plain; /* the outermost header holds the flow, whole */
  u8 protocol;
  union {
    u8 header[40];
    u32 words[10];
  };
};

#define BYTES16(at) ((u16)(((u16)p->header[at] << 8) | p->header[(at) + 1]))
#define BYTES32(at) ((u32)BYTES16(at) << 16 | BYTES16((at) + 2))
#define BYTES24(at) (BYTES32(at) >> 8)

static __always_inline bool read_header(struct parsed *p, u32 skipped, u32 bytes) {
  return bpf_probe_read_kernel(p->header, bytes, (const void *)(p->at + skipped)) == 0;
}

/* Behind an Ethernet header: its type, with VLAN tags skipped; 0 when it cannot be read. */
__noinline u32 skip_ethernet(struct parsed *p) {
  if (!p || !read_header(p, 0, 22)) return 0;
  u32 type = BYTES16(12);
  u32 length = 14;
  if (type == ETHERTYPE_VLAN || type == ETHERTYPE_QINQ) {
    type = BYTES16(16);
    length = 18;
    if (type == ETHERTYPE_VLAN) {
      type = BYTES16(20);
      length = 22;
    }
  }
  p->at += length;
  return type;
}

static __always_inline bool is_vxlan_port(u16 port) {
#pragma unroll
  for (int i = 0; i < GREYNIC_TUNNEL_PORTS; ++i) {
    if (shared_config.vxlan_ports[i] == port) return true;
  }
  return false;
}

__noinline int parse_ipv4(struct parsed *p) {
  if (!p || !read_header(p, 0, 20) || p->header[0] >> 4 != 4) return 0;
  const u64 mapped = bpf_cpu_to_be64(0xffffULL << 32);
  u32 source, destination;
  __builtin_memcpy(&source, &p->header[12], 4);
  __builtin_memcpy(&destination, &p->header[16], 4);
  p->flow.source[0] = p->flow.destination[0] = 0;
  p->flow.source[1] = mapped | (u64)source << 32;
  p->flow.destination[1] = mapped | (u64)destination << 32;
  p->protocol = p->header[9];
  const u16 fragment = BYTES16(6);
  p->is_fragment = (fragment & 0x3fff) != 0;
  p->later_fragment = (fragment & 0x1fff) != 0;
  p->fragment.identification = p->ip_id = BYTES16(4);
  p->numbered = true;
  p->at += (p->header[0] & 15) * 4;
  return 1;
}

__noinline int parse_ipv6(struct parsed *p) {
  if (!p || !read_header(p, 0, 40) || p->header[0] >> 4 != 6) return 0;
  __builtin_memcpy(p->flow.source, &p->header[8], 16);
  __builtin_memcpy(p->flow.destination, &p->header[24], 16);
  p->is_fragment = p->later_fragment = false;
  p->ip_id = 0;
  p->numbered = false;
  p->protocol = p->header[6];
  p->at += 40;
  for (int i = 0; i < 4; ++i) {  // extension headers
    const u8 kind = p->protocol;
    if (kind != 0 && kind != 43 && kind != 60 && kind != PROTOCOL_FRAGMENT) break;
    if (!read_header(p, 0, 8)) return 0;
    p->protocol = p->header[0];
    if (kind != PROTOCOL_FRAGMENT) {
      p->at += ((u32)p->header[1] + 1) * 8;
      continue;
    }
    p->is_fragment = true;
    p->later_fragment = (BYTES16(2) & 0xfff8) != 0;
    __builtin_memcpy(&p->fragment.identification, &p->header[4], 4);
    p->at += 8;
  }
  return 1;
}

/* What a tunnel carries: its type; 0 when there is no tunnel here. */
__noinline u32 enter_tunnel(struct parsed *p) {
  if (!p) return 0;
  const u8 protocol = p->protocol;
  if (protocol == PROTOCOL_IPIP) return ETHERTYPE_IPV4;
  if (protocol == PROTOCOL_IPV6) return ETHERTYPE_IPV6;
  if ((protocol != PROTOCOL_GRE && protocol != PROTOCOL_UDP) || !read_header(p, 0, 20)) return 0;
  u32 type = 0;
  u32 length = 16;
  if (protocol == PROTOCOL_GRE) {
    const u8 flags = p->header[0];
    type = BYTES16(2);
    length = 4 + (flags & 0x80 ? 4 : 0);
    if (flags & 0x20) p->flow.vni = flags & 0x80 ? BYTES32(8) : BYTES32(4);
    length += (flags & 0x20 ? 4 : 0) + (flags & 0x10 ? 4 : 0);
  } else if (BYTES16(2) == PORT_GENEVE) {
    type = BYTES16(10);
    length += (p->header[8] & 63) * 4;
    p->flow.vni = BYTES24(12);
  } else if (is_vxlan_port(BYTES16(2)) && (p->header[8] & 8)) {
    type = ETHERTYPE_ETHERNET;
    p->flow.vni = BYTES24(12);
  } else {
    return 0;
  }
  p->at += length;
  return type == ETHERTYPE_ETHERNET ? skip_ethernet(p) : type;
}

__noinline int parse_ports(struct parsed *p) {
  if (!p) return 0;
  const u8 protocol = p->protocol;
  p->flow.source_port = p->flow.destination_port = 0;
  if (protocol != PROTOCOL_TCP && protocol != PROTOCOL_UDP && protocol != PROTOCOL_SCTP) return 0;
  if (!read_header(p, 0, 20)) return 0;
  p->flow.source_port = BYTES16(0);
  p->flow.destination_port = BYTES16(2);
  p->sequence = protocol == PROTOCOL_TCP ? BYTES32(4) : 0;
  if (protocol == PROTOCOL_TCP) p->numbered = true;
  if (protocol == PROTOCOL_UDP && p->flow.destination_port == PORT_ROCE) {
    p->flow.queue_pair = BYTES24(13);
    p->sequence = BYTES24(17);
    p->numbered = true;
  }
  return 1;
}

/* There is an IP header of this type at p->at; 0 when there is not. */
__noinline int parse_packet(struct parsed *p, u32 type) {
  if (!p) return 0;
  __builtin_memset(&p->flow, 0, sizeof p->flow);
  __builtin_memset(&p->fragment, 0, sizeof p->fragment);
  p->flow.vni = p->flow.queue_pair = GREYNIC_ANY;
  p->tunnelled = p->plain = false;
  p->sequence = p->ip_id = 0;
  for (int level = 0; level < GREYNIC_LEVELS; ++level) {
    if (type == ETHERTYPE_IPV4) {
      if (!parse_ipv4(p)) return 0;
    } else if (type == ETHERTYPE_IPV6) {
      if (!parse_ipv6(p)) return 0;
    } else {
      return 0;
    }
    p->flow.protocol = p->protocol;
    if (p->is_fragment) {  // known by the outermost header that is cut
      __builtin_memcpy(p->fragment.source, p->flow.source, 16);
      __builtin_memcpy(p->fragment.destination, p->flow.destination, 16);
      p->fragment.protocol = 1 + p->protocol;
      if (p->later_fragment) return 1;
    }
    parse_ports(p);
    const u32 inner = enter_tunnel(p);
    if (level == 0) p->plain = inner == 0 && !p->is_fragment && p->flow.queue_pair == GREYNIC_ANY;
    if (inner != ETHERTYPE_IPV4 && inner != ETHERTYPE_IPV6) break;  // ARP keeps the outer flow
    p->tunnelled = true;
    type = inner;
  }
  return 1;
}

#endif
