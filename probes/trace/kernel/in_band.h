/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What rides in packets that are traced in band, and what a path's programs are told: read by both
 * compilers.
 */
#ifndef GREYNIC_TRACE_IN_BAND_H
#define GREYNIC_TRACE_IN_BAND_H

#include <linux/types.h>

#define GREYNIC_PATH_POINTS 8
#define GREYNIC_STAMP_BYTES 40 /* all that options of IPv4 have room for */
/* For experiments (RFC 4727), of the class of measurement, not copied into later fragments. */
#define GREYNIC_STAMP_TYPE 94

/*
 * An option of IPv4, so every length that devices, bridges and tunnels look at stays true. The sum of
 * its words is always the same: no checksum around it changes when a stamp is written.
 */
struct greynic_stamps {
  __u8 type, length;
  __u16 path;     /* of whom it is */
  __u8 traced;    /* the decision: 1 until the packet leaves its path */
  __u8 annotated; /* a bit for each point that has written its stamp */
  __u16 balance;  /* keeps the sum */
  __u32 flow;
  __u32 stamps[GREYNIC_PATH_POINTS - 1]; /* low halves of the clock; the last point needs none */
};

struct greynic_path {
  __u16 id;
  __u16 points;
  __u32 most_bytes; /* of IP, before it grows */
  __u32 ethernet;   /* bits of points whose frames begin with an Ethernet header */
  __u32 point[GREYNIC_PATH_POINTS];
};

/* Why packets of a rule are left as they are, and what becomes of those that stray. */
enum {
  GREYNIC_TOO_LARGE = 0,
  GREYNIC_LARGE_PACKET = 1, /* of GSO */
  GREYNIC_HAS_OPTIONS = 2,
  GREYNIC_FRAGMENT = 3,
  GREYNIC_NOT_GROWN = 4, /* the kernel had no memory */
  GREYNIC_IS_IPV6 = 5,
  GREYNIC_LEFT_OUT = 6, /* how many of these reasons */
  GREYNIC_STRAYED = 6,
  GREYNIC_IN_BAND_COUNTS = 7
};

struct greynic_in_band_counts {
  __u64 count[GREYNIC_IN_BAND_COUNTS];
};

#endif
