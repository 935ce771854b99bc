#pragma once

/// What a run must neither lose nor make: WQEs, queue slots, receive WQEs, PCIe read credits,
/// notifications, packets and bytes. Each is counted twice: where it is now, in streams, rings and
/// the queue of events; and by counters of what was ever put in and taken out. A stage that drops
/// one, or does something twice, makes the two differ.
///
/// Engine::ledger() fills in a Ledger, broken_law() judges it. It is plain data: a test that alters
/// one number must hear the law that the number breaks.

#include <cstdint>
#include <string>
#include <vector>

#include "parts/world.h"

namespace greynic::twin {

/// Where requests and messages of one stream are.
struct LedgerLine {
  Stream stream;                     ///< its counts
  std::uint64_t posted = 0;          ///< on their way to the RNIC
  std::uint64_t waiting = 0;         ///< for the request engine
  std::uint64_t fetching = 0;        ///< payload or translation
  std::uint64_t arriving = 0;        ///< whole, on their way to the receiver's memory
  std::uint64_t completing = 0;      ///< word of them is on its way back
  std::uint64_t refills = 0;         ///< receive WQEs that are in use, or being put back
  std::uint64_t behind_gap = 0;      ///< sent, and will be sent again
  std::uint64_t unacknowledged = 0;  ///< delivered, but the acknowledgement was lost
  std::uint64_t owners = 0;          ///< of requests, where threads share QPs
  std::uint64_t due = 0;             ///< not completed, in an open loop
};

struct LedgerRnic {
  NicCounters counters;
  std::uint64_t read_credits_taken = 0;
};

struct Ledger {
  HostLoad load;
  MessageCycle messages;
  bool shared_qps = false, open_loop = false;
  bool threads_count = true;      ///< threads keep count of the slots that they hold
  std::vector<LedgerLine> lines;  ///< by stream
  std::vector<LedgerRnic> rnics;
  std::uint64_t held = 0;           ///< slots, by the count of threads
  std::uint64_t notifications = 0;  ///< of congestion, on their way
  double payload = 0;               ///< bytes in memory
};

/// The first law of conservation that does not hold, and by how much; empty: all hold.
[[nodiscard]] std::string broken_law(const Ledger& ledger);

/// Stops the program at a broken law, and says which. Debug builds do so during every run.
void check(const Ledger& ledger);

}  // namespace greynic::twin
