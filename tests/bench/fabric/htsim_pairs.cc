// The load of fabric_bench in csg-htsim: pairs of hosts through one switch. Each way of a pair has
// the queue of the host, a wire, the queue of a switch port and a wire; a RoCE source sends packets
// of 64 bytes, which the sink acknowledges one by one. beside_htsim.py compiles it in htsim's tree.
//
// usage: htsim_pairs hosts messages      prints packets, messages and CPU seconds

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <vector>

#include "config.h"
#include "eventlist.h"
#include "network.h"
#include "pipe.h"
#include "queue.h"
#include "roce.h"
#include "route.h"

EventList events;

namespace {

constexpr mem_b kQueueBytes = 1000000;

Route* way_to(PacketSink* end, linkspeed_bps rate) {
  auto* const route = new Route();
  for (int hop = 0; hop < 2; ++hop) {
    route->push_back(new Queue(rate, kQueueBytes, events, nullptr));
    route->push_back(new Pipe(timeFromNs(300), events));
  }
  route->push_back(end);
  return route;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int hosts = std::atoi(argv[1]);
  const double wanted = std::atof(argv[2]);
  FILE* const out = fdopen(dup(1), "w");
  std::cout.setstate(std::ios_base::badbit);  // the library talks
  Packet::set_packet_size(64);
  const linkspeed_bps rate = speedFromGbps(8);
  const std::clock_t began = std::clock();
  std::vector<RoceSrc*> sources;
  for (int i = 0; i + 1 < hosts; i += 2) {
    auto* const source = new RoceSrc(nullptr, nullptr, events, rate);
    auto* const sink = new RoceSink();
    source->setName("source");
    sink->setName("sink");
    source->set_flowsize(1ULL << 60);
    source->set_dst(1);
    source->connect(way_to(sink, rate), way_to(source, rate), *sink, 0);
    sources.push_back(source);
  }
  double messages = 0, acknowledged = 0;
  for (unsigned long step = 1; EventList::doNextEvent(); ++step) {
    if ((step & 4095) != 0) continue;
    messages = acknowledged = 0;
    for (const RoceSrc* source : sources) {
      messages += static_cast<double>(source->_packets_sent);
      acknowledged += source->_acks_received;
    }
    if (acknowledged >= wanted) break;
  }
  std::fprintf(out, "%.0f %.0f %.6f\n", messages + acknowledged, acknowledged,
               static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC);
  std::fflush(out);
  _exit(0);
}
