// SPDX-License-Identifier: Apache-2.0
// BurstRadar for a switch of the v1model architecture: which packets took part in a burst, and
// whose they are, decided at the egress of the queue where it happens.
//
// State is kept for each egress port. Depth is in bytes: v1model gives it in packets, so the ingress
// adds each frame's length to what has come for its port, the egress to what has left, and their
// difference is what waits, as long as the switch drops nothing between the two. (Where a switch gives its depth in bytes, that takes the place of both
// registers.) The snapshot rule is that of probes/burst/include/greynic/burst/snapshot_rule.h, at
// departures alone.
//
// A marked packet writes its record into a ring and is cloned to the mirror session; the clone
// carries a record out of the ring and becomes a courier.
#include <core.p4>
#include <v1model.p4>

#define PORTS 64
#define RING 1024
#define MIRROR_SESSION 100
#define COURIER 2  // instance_type of a clone from egress to egress

header ethernet_t { bit<48> destination; bit<48> source; bit<16> type; }
header ipv4_t {
  bit<4> version; bit<4> ihl; bit<8> tos; bit<16> length; bit<16> id; bit<16> fragment; bit<8> ttl;
  bit<8> protocol; bit<16> checksum; bit<32> source; bit<32> destination;
}
header ports_t { bit<16> source; bit<16> destination; }
// 29 bytes, as probes/burst packs them.
header courier_t { bit<232> record; }
struct headers_t { ethernet_t ethernet; courier_t courier; ipv4_t ipv4; ports_t ports; }
struct metadata_t { bit<32> depth_in; }

parser BurstParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
  state start {
    packet.extract(hdr.ethernet);
    transition select(hdr.ethernet.type) { 0x0800: ipv4; default: accept; }
  }
  state ipv4 {
    packet.extract(hdr.ipv4);
    transition select(hdr.ipv4.protocol) { 6: ports; 17: ports; default: accept; }
  }
  state ports { packet.extract(hdr.ports); transition accept; }
}

control BurstVerify(inout headers_t hdr, inout metadata_t meta) { apply { } }

register<bit<32>>(PORTS) bytes_in;
register<bit<32>>(PORTS) bytes_out;
register<bit<32>>(PORTS) threshold;
register<bit<32>>(PORTS) remembered;
register<bit<32>>(1) ring_head;
register<bit<32>>(1) ring_tail;
register<bit<32>>(1) ring_lost;
register<bit<232>>(RING) ring;

control BurstIngress(inout headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
  action forward(bit<9> port) { standard_metadata.egress_spec = port; }
  table route {
    key = { hdr.ethernet.destination: exact; }
    actions = { forward; }
  }
  apply {
    route.apply();
    bit<32> joined;
    bit<32> left;
    bytes_in.read(joined, (bit<32>)standard_metadata.egress_spec);
    joined = joined + standard_metadata.packet_length;
    bytes_in.write((bit<32>)standard_metadata.egress_spec, joined);
    bytes_out.read(left, (bit<32>)standard_metadata.egress_spec);
    meta.depth_in = joined - left;
  }
}

control BurstEgress(inout headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
  apply {
    bit<32> head;
    bit<32> tail;
    if (standard_metadata.instance_type == COURIER) {
      bit<232> record;
      ring_head.read(head, 0);
      ring.read(record, head & (RING - 1));
      ring_head.write(0, head + 1);
      hdr.courier.setValid();
      hdr.courier.record = record;
      hdr.ipv4.setInvalid();
      hdr.ports.setInvalid();
    } else {
      bit<32> port;
      bit<32> joined;
      bit<32> left;
      bit<32> depth;
      bit<32> limit;
      bit<32> rest;
      bit<1> marked;
      port = (bit<32>)standard_metadata.egress_port;
      bytes_out.read(left, port);
      left = left + standard_metadata.packet_length;
      bytes_out.write(port, left);
      bytes_in.read(joined, port);
      depth = joined - left;
      threshold.read(limit, port);
      remembered.read(rest, port);
      marked = 0;
      if (depth > limit) {
        marked = 1;
        rest = depth;
      } else {
        if (rest > 0) {
          marked = 1;
          rest = rest |-| standard_metadata.packet_length;
          if (rest > depth) { rest = depth; }
        }
      }
      remembered.write(port, rest);
      if (marked == 1) {
        ring_head.read(head, 0);
        ring_tail.read(tail, 0);
        if (tail - head == RING) {
          bit<32> lost;
          ring_lost.read(lost, 0);
          ring_lost.write(0, lost + 1);
        } else {
          bit<16> source_port;
          bit<16> destination_port;
          source_port = 0;
          destination_port = 0;
          if (hdr.ports.isValid()) {
            source_port = hdr.ports.source;
            destination_port = hdr.ports.destination;
          }
          ring.write(tail & (RING - 1),
                     hdr.ipv4.source ++ hdr.ipv4.destination ++ source_port ++
                     destination_port ++ hdr.ipv4.protocol ++
                     standard_metadata.ingress_global_timestamp ++
                     standard_metadata.egress_global_timestamp ++
                     (bit<16>)((meta.depth_in + 79) / 80) ++ (bit<16>)((depth + 79) / 80));
          ring_tail.write(0, tail + 1);
          clone(CloneType.E2E, MIRROR_SESSION);
        }
      }
    }
  }
}

control BurstCompute(inout headers_t hdr, inout metadata_t meta) { apply { } }

control BurstDeparser(packet_out packet, in headers_t hdr) {
  apply {
    packet.emit(hdr.ethernet);
    packet.emit(hdr.courier);
    packet.emit(hdr.ipv4);
    packet.emit(hdr.ports);
  }
}

V1Switch(BurstParser(), BurstVerify(), BurstIngress(), BurstEgress(), BurstCompute(),
         BurstDeparser()) main;
