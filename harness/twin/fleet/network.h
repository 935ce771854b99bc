#pragma once

/// How fast a fleet moves messages: a closed network of queues, solved for its mean values.
///
/// Every container keeps a number of messages under way, each to one of its remote peers at random.
/// A message queues where its packets are served one after another: the sender's RNIC, its fetches
/// from host memory, the cores of its host's software path, the links of its leaf, and the same at
/// the receiver. Stages overlap, so a message takes the time of the slowest stage plus what it
/// waits at each. Mean values follow from Schweitzer's approximation (a message finds what the
/// others have in a queue), iterated until nothing moves. Services, not pairs, are summed over: a
/// pass costs a few operations a container.
///
/// Against packets: tests/twin/fleet/fleet_test.cc holds it against a packet-by-packet simulation
/// of small fleets and against the engine; docs/fleet.md states the errors.

#include <vector>

#include "fleet/placement.h"

namespace greynic::twin {

/// What one message takes at one RNIC, ns of each queue's time. As sender and as receiver.
struct MessageCost {
  double send_ns = 0, receive_ns = 0;              ///< pipes, wire, PCIe: whichever is slowest
  double send_fetch_ns = 0, receive_fetch_ns = 0;  ///< of the fetch slots
  double software_ns = 0;                          ///< of the cores, either way, on average
  double send_delay_ns = 0, receive_delay_ns = 0;  ///< waits for nobody: latency alone
  double software_share = 0;     ///< messages that go through software at this RNIC
  double software_delay_ns = 0;  ///< what one of these takes on top when nobody is before it
};

struct FleetTraffic {
  double active_peer_share = 0;  ///< messages under way of a container: so many of its peers, or 1
  double leaf_link_ns = 0;       ///< of a leaf's uplinks together, for one message; down the same
  double away_delay_ns = 0;      ///< of the way through the spine, on top
  double return_ns = 0;          ///< from delivery until the next message is posted
  std::vector<double> most_per_ns;  ///< messages that an RNIC has work for; empty: without bound
};

struct FleetFlow {
  struct Class {  ///< the messages of one group
    double per_second = 0;
    double latency_ns = 0;        ///< mean
    double hardware_ns = 0;       ///< of one that meets no software
    double send_share = 0;        ///< through software at the sender
    double send_software_ns = 0;  ///< what that adds
    double receive_share = 0;
    double receive_software_ns = 0;
  };
  std::vector<Class> classes;                ///< by group
  std::vector<double> sent_per_second;       ///< messages, by RNIC
  std::vector<double> software_utilisation;  ///< of the cores, by RNIC
  std::size_t iterations = 0;
  bool converged = false;
};

[[nodiscard]] FleetFlow solve_fleet(const FleetPlacement& placement,
                                    const std::vector<MessageCost>& costs,
                                    const FleetTraffic& traffic);

}  // namespace greynic::twin
