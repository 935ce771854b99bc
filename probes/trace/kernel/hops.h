/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs in the kernel (hops.bpf.c) and the tracer share: how tables are laid out. C, read
 * by both compilers.
 */
#ifndef GREYNIC_TRACE_HOPS_H
#define GREYNIC_TRACE_HOPS_H

#include <linux/types.h>

/* A point is a device and a direction: 2 * number of the device + direction. Device 0 is nowhere. */
enum { GREYNIC_RX = 0, GREYNIC_TX = 1 };
#define GREYNIC_NOWHERE 0u

#define GREYNIC_WAYS 4
#define GREYNIC_DEVICE_SETS 4096 /* of each half; two halves, so that a change is one switch */
#define GREYNIC_JOURNEY_SETS 32768
#define GREYNIC_HEADS 16384
#define GREYNIC_KNOWN_FLOWS 1024
#define GREYNIC_RULES 64      /* in the kernel; a rule of the file may become several */
#define GREYNIC_FILE_RULES 32 /* bits of a mask */
#define GREYNIC_BUCKETS 544   /* 16 in each power of two, up to 2^37 ns */
#define GREYNIC_TUNNEL_PORTS 8
#define GREYNIC_RECORDS 16384 /* of each CPU, until they are read */
#define GREYNIC_REASONS 1024
#define GREYNIC_DEVICES 16384
#define GREYNIC_ANY 0xffffffffu

/* How packets leave a device, which decides where they can be seen next. */
enum greynic_device_kind {
  GREYNIC_PHYSICAL = 0, /* the wire, a tap: what arrives here is new */
  GREYNIC_VETH = 1,     /* arrives at the peer */
  GREYNIC_LOOPBACK = 2, /* arrives at itself */
  GREYNIC_VIRTUAL =
      3, /* hands packets to other devices of this host: bridge, tunnel, macvlan, ifb */
};

struct greynic_device {
  __u64 identity; /* inode of the namespace << 32 | index of the interface; 0: a free place */
  __u32 number;
  __u32 peer; /* number of the other end of a veth */
  __u32 vni;  /* of the tunnel whose segment it is part of; GREYNIC_ANY: of none */
  __u8 kind;
  __u8 ethernet; /* frames begin with an Ethernet header */
  __u8 copies;   /* bits by direction: what passes here may go on as several copies */
  __u8 pad;
  __u32 rules[2]; /* which rules of the file look here, by direction */
};

struct greynic_device_set {
  struct greynic_device way[GREYNIC_WAYS];
};

enum {
  GREYNIC_TIMED = 1, /* stamp and fill histograms; else count alone */
  GREYNIC_LOSS = 2,
  GREYNIC_BY_HOSTS = 4,  /* a flow is two addresses */
  GREYNIC_BY_RULE = 8,   /* a flow is a rule */
  GREYNIC_NUMBERED = 16, /* of a journey: headers tell the packet from others of its flow */
};

/* Addresses are IPv6; IPv4 is ::ffff:a.b.c.d. */
struct greynic_rule {
  __u64 source[2], source_mask[2];
  __u64 destination[2], destination_mask[2];
  __u16 source_ports[2], destination_ports[2]; /* first and last */
  __u32 vni;                                   /* GREYNIC_ANY: any */
  __u32 queue_pair;                            /* GREYNIC_ANY: any */
  __u32 flags;
  __u32 sample;   /* every so many-th journey is sent as it is; 0: none */
  __u8 protocol;  /* 0: any */
  __u8 file_rule; /* which rule of the file */
  __u8 pad[6];
};

struct greynic_config {
  __u64 slow_ns;    /* journeys that take longer are sent too; 0: none */
  __u32 half;       /* of devices and rules that is in force */
  __u32 epoch;      /* changes with the rules: journeys of before are forgotten */
  __u32 generation; /* changes with rules and devices: what was remembered of them is forgotten */
  __u32 rules;      /* in force */
  __u32 one_in;     /* only one of so many journeys is followed */
  __u32 clockless;  /* no rule asks for times: a coarse one tells old journeys from new */
  __u32 cells;      /* room for them */
  __u32 flows;
  __u16 vxlan_ports[GREYNIC_TUNNEL_PORTS];
};

struct greynic_flow {
  __u64 source[2], destination[2];
  __u16 source_port, destination_port;
  __u32 vni;        /* GREYNIC_ANY: none seen */
  __u32 queue_pair; /* GREYNIC_ANY: not RoCE */
  __u8 protocol;
  __u8 file_rule;
  __u8 pad[2];
};

/* A pair of points that a flow's packets pass one after the other. Pair 0 takes what finds no room. */
struct greynic_pair {
  __u32 flow, from, to, pad;
};

enum { GREYNIC_GOES_ON_AS_COPIES = 1, GREYNIC_FEEDS_OTHERS = 2 };

/*
 * What a CPU has counted of a pair; and where the last packet went from there, with all that a packet
 * must fulfil to be counted there too. Most go where the last one went.
 */
struct greynic_cell_stats {
  __u64 packets;
  __u64 segments; /* as they would be on a wire: a large packet of GSO or GRO is several */
  __u64 timed;
  __u64 sum_ns;
  __u64 max_ns;
  __u64 next_key; /* namespace, direction and interface; 0: not known */
  __u32 next_point;
  __u32 next_generation;
  __u32 next_received_on; /* the interface that it came in by; GREYNIC_ANY: whichever */
  __u16 next_cell;
  __u16 next_flags;
  __u32 buckets[GREYNIC_BUCKETS];
};

struct greynic_loss {
  __u64 place; /* address in the kernel */
  __u32 flow;
  __u32 from; /* the last point where it was seen */
  __u32 to;   /* the device that it was bound for, when that is known */
  __u32 reason;
};

struct greynic_counters {
  __u64 journeys;
  __u64 inferred; /* events whose predecessor is known by place alone: no delay */
  __u64 evicted;  /* journeys cut short for want of room */
  __u64 folded;   /* flows without room of their own: all others as one */
  __u64 no_ring;  /* records that did not fit into the ring */
  __u64 unplaced; /* events at devices that are not known yet */
  __u64 losses_unstored;
};

enum { GREYNIC_HOP = 0, GREYNIC_LOST = 1 };

struct greynic_record {
  __u64 sequence; /* its number on its CPU, from 1 on; written last */
  __u64 time_ns;
  __u64 journey;
  __u64 place;
  __u32 kind;
  __u32 flow;
  __u32 from, point;
  __u32 reason;
  __u32 bytes;
  /* The same on every host: IP's identification << 32 | TCP's or RoCE's number, with bit 48; 0: none. */
  __u64 identity;
};

/* How far the records of a CPU are, in a line of their own. */
struct greynic_record_ring {
  __u64 written;
  __u64 taken; /* by the reader */
  __u64 pad[6];
};

#endif
