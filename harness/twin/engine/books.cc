#include "engine/books.h"

#include <fmt/core.h>

#include <cstdio>

#include "greynic/core/check.h"

namespace greynic::twin {
namespace {

double number(std::uint64_t count) { return static_cast<double>(count); }

/// Remembers the first that is broken.
struct Laws {
  std::string broken;
  void hold(const char* what, double there, double expected) {
    if (there == expected || !broken.empty()) return;
    broken = fmt::format("{}: {} where {} should be", what, there, expected);
  }
};

struct Sent {
  double packets = 0, bytes = 0;
  double requests = 0;  ///< that carry no data
  void add(double more_packets, double more_bytes) {
    packets += more_packets;
    bytes += more_bytes;
  }
};

double in_work(const Stream& stream) { return stream.packets_left > 0 ? 1.0 : 0.0; }

/// A WQE is in one place at a time, and a slot of the queue is given back once.
void check_requests(const Ledger& ledger, std::uint32_t id, Laws& laws) {
  const HostLoad& load = ledger.load;
  const LedgerLine& line = ledger.lines[id];
  const Stream& s = line.stream;
  laws.hold("WQEs on their way to the RNIC", number(line.posted),
            number(s.posted) - number(s.fetched));
  laws.hold("WQEs that wait for the engine", number(line.waiting),
            number(s.fetched) - number(s.handled));
  laws.hold("WQEs in work", number(s.ready) + number(line.fetching) + in_work(s),
            number(s.handled) - number(s.sent));

  // What was sent is answered, will be sent again, or is on its way there or back.
  double away = number(line.completing) + number(line.unacknowledged);
  if (load.transport == Transport::kRC) away += number(line.arriving) + number(line.behind_gap);
  if (!load.carries_data_in_request()) {
    const LedgerLine& back = ledger.lines[World::peer_of(id)];
    away += number(back.stream.ready) + number(back.fetching) + in_work(back.stream) +
            number(back.arriving) + number(back.behind_gap);
  }
  laws.hold("requests without completion", away, number(s.sent) - number(s.done));

  const double used = number(s.posted) - number(s.credited);
  laws.hold("slots given back", number(s.credited), number(s.done - s.done % load.signal_every));
  if (ledger.shared_qps) laws.hold("owners of slots", number(line.owners), used);
  if (ledger.open_loop) {
    laws.hold("messages that are due", number(line.due), number(s.posted - s.done));
  }
}

/// What all streams have put on the wire, each message counted once.
Sent count_sent(const Ledger& ledger) {
  const std::vector<MessageShape>& shapes = ledger.messages.shapes();
  Sent cycle;
  for (const MessageShape& shape : shapes) cycle.add(shape.packets, number(shape.bytes));
  Sent sent;
  for (const LedgerLine& line : ledger.lines) {
    const Stream& s = line.stream;
    if (!ledger.load.carries_data_in_request() && !s.responds) {
      sent.requests += s.sent;
      continue;
    }
    const auto cycles = number(s.sent / shapes.size());
    sent.add(cycles * cycle.packets, cycles * cycle.bytes);
    for (std::size_t i = 0; i < s.sent % shapes.size(); ++i) {
      sent.add(shapes[i].packets, number(shapes[i].bytes));
    }
    if (s.packets_left > 0) {
      const double gone = number(ledger.messages[s.sent].packets) - number(s.packets_left);
      sent.add(gone, gone * number(ledger.load.mtu_bytes));
    }
  }
  return sent;
}

/// What left one RNIC arrived at another, or was dropped on the way.
void check_traffic(const Ledger& ledger, Laws& laws) {
  const auto all_of = [&](std::uint64_t NicCounters::*counter) {
    double sum = 0;
    for (const LedgerRnic& rnic : ledger.rnics) sum += number(rnic.counters.*counter);
    return sum;
  };
  using N = NicCounters;
  laws.hold("notifications of congestion",
            all_of(&N::cnps_handled) + all_of(&N::cnps_lost) + number(ledger.notifications),
            all_of(&N::cnps_sent));
  const Sent sent = count_sent(ledger);
  laws.hold("packets sent", all_of(&N::tx_packets),
            sent.packets + sent.requests + all_of(&N::retransmitted_packets) + all_of(&N::acks) +
                all_of(&N::rnr_naks) + all_of(&N::naks_sent) + all_of(&N::cnps_sent));
  laws.hold("packets received", all_of(&N::rx_packets) + all_of(&N::dropped_packets),
            all_of(&N::tx_packets));
  laws.hold("bytes sent", all_of(&N::tx_bytes), sent.bytes + all_of(&N::retransmitted_bytes));
  laws.hold("bytes received", all_of(&N::rx_bytes) + all_of(&N::dropped_bytes),
            all_of(&N::tx_bytes));
  laws.hold("bytes written", ledger.payload + all_of(&N::thrown_bytes), all_of(&N::tx_bytes));
}

}  // namespace

std::string broken_law(const Ledger& ledger) {
  Laws laws;
  double used = 0;
  for (std::uint32_t id = 0; id < ledger.lines.size(); ++id) {
    const LedgerLine& line = ledger.lines[id];
    if (ledger.load.operation == Operation::kSend) {
      laws.hold("receive WQEs", number(line.stream.receives) + number(line.refills),
                ledger.load.receive_depth);
    }
    if (!line.stream.responds) check_requests(ledger, id, laws);
    used += number(line.stream.posted) - number(line.stream.credited);
  }
  if (ledger.threads_count) laws.hold("slots that threads hold", number(ledger.held), used);
  for (const LedgerRnic& rnic : ledger.rnics) {
    laws.hold("PCIe read credits", number(rnic.read_credits_taken),
              number(rnic.counters.pcie_read_tlps));
  }
  check_traffic(ledger, laws);
  return laws.broken;
}

void check(const Ledger& ledger) {
  const std::string broken = broken_law(ledger);
  if (!broken.empty()) std::fprintf(stderr, "lost or made: %s\n", broken.c_str());
  GREYNIC_CHECK(broken.empty());
}

}  // namespace greynic::twin
