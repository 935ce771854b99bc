/* SPDX-License-Identifier: GPL-2.0-only */
/* What the program in the kernel (burst.bpf.c) and the reader (live.cc) tell each other. */
#ifndef GREYNIC_BURST_RECORD_H
#define GREYNIC_BURST_RECORD_H

#define BURST_HEADER_BYTES 96
#define BURST_MOST_QUEUES 64
#define BURST_MOST_WAITING 131072 /* packets whose arrival is remembered, of all queues */

/* A marked packet: the beginning of its frame, for the reader to parse. */
struct burst_record {
  unsigned long long enqueued_ns, dequeued_ns;
  unsigned int depth_at_enqueue, depth_at_dequeue;
  unsigned int bytes;
  unsigned int queue; /* place in `queues` */
  unsigned int run;   /* of the queue's bursts */
  unsigned int header_bytes;
  unsigned char header[BURST_HEADER_BYTES];
};

/* A queue: a root without classes, or a class of htb. */
struct burst_queue {
  unsigned long long address;    /* of the Qdisc that holds the packets; 0: free */
  unsigned long long remembered; /* of the snapshot rule */
  unsigned long long depth;
  unsigned long long joined,
      left;                  /* packets whose arrival is remembered; from 0 when it was empty */
  unsigned long long kept;   /* before this number the beginnings of frames are kept as well */
  unsigned long long packet; /* that a hook looks at */
  unsigned long long alone;  /* joined an empty queue, and nothing has happened since; 0: none */
  unsigned long long seen, marked;
  unsigned long long ring_lost;   /* records that the ring had no room for */
  unsigned long long stamps_lost; /* marked packets whose arrival was not remembered */
  unsigned long long unseen;      /* packets that left without an event */
  unsigned int alone_bytes;
  unsigned int class_id; /* of htb; 0: the root */
  unsigned int run, in_run;
  unsigned int place; /* in `queues` */
};

#endif
