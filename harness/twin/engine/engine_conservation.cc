#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "engine/engine.h"
#include "greynic/core/check.h"

/// What a run must neither lose nor make: WQEs, queue slots, receive WQEs, PCIe read credits,
/// notifications, packets and bytes. Each is counted twice: where it is now, in streams, rings and
/// the queue of events; and by counters of what was ever put in and taken out. A stage that drops
/// one, or does something twice, makes the two differ.

namespace greynic::twin {
namespace {

double number(std::uint64_t count) { return static_cast<double>(count); }

}  // namespace

/// Remembers the first that is broken.
struct Engine::Laws {
  std::string broken;
  void hold(const char* what, double there, double expected) {
    if (there == expected || !broken.empty()) return;
    broken = fmt::format("{}: {} where {} should be", what, there, expected);
  }
};

struct Engine::Sent {
  double packets = 0, bytes = 0;
  double requests = 0;  ///< that carry no data
  void add(double more_packets, double more_bytes) {
    packets += more_packets;
    bytes += more_bytes;
  }
};

/// Where requests and messages of one stream are.
struct Engine::Ledger {
  struct Line {
    std::uint64_t posted = 0;      ///< on their way to the RNIC
    std::uint64_t waiting = 0;     ///< for the engine
    std::uint64_t fetching = 0;    ///< payload or translation
    std::uint64_t arriving = 0;    ///< whole, on their way to the receiver's memory
    std::uint64_t completing = 0;  ///< word of them is on its way back
    std::uint64_t refills = 0;     ///< receive WQEs that are in use, or being put back
  };
  std::vector<Line> lines;  ///< by stream
  std::uint64_t notifications = 0;
};

Engine::Ledger Engine::count_all() const {
  Ledger ledger;
  ledger.lines.resize(streams_.size());
  for (const Event& event : events_.all()) {
    if (event.kind == kNotified) ++ledger.notifications;
    switch (event.kind) {
      case kDoorbell:
      case kWqeArrives:
        ledger.lines[event.subject].posted += event.count;
        break;
      case kPayloadWanted:
        ++ledger.lines[event.subject].fetching;
        break;
      case kDataReady:
        ledger.lines[event.subject].fetching += event.count;
        break;
      case kDelivered:
        if (!is_void(event.subject, event.count)) ++ledger.lines[event.subject].arriving;
        break;
      case kCompleted:
        ledger.lines[event.subject].completing += event.count;
        break;
      default:  // not about a request
        break;
    }
  }
  for (const Nic& nic : nics_) {
    nic.for_each_request([&](std::uint32_t stream) { ++ledger.lines[stream].waiting; });
  }
  for (std::size_t i = refill_head_; i < refills_.size(); ++i) {
    ++ledger.lines[refills_[i].stream].refills;
  }
  for (std::uint32_t id = 0; id < recoveries_.size(); ++id) {
    if (recoveries_[id].received) ++ledger.lines[w_.shared_receive_queue ? 0 : id].refills;
  }
  return ledger;
}

void Engine::check_stream(std::uint32_t id, const Ledger& ledger, Laws& laws) const {
  const Stream& s = streams_[id];
  const Ledger::Line& line = ledger.lines[id];
  if (w_.operation == Operation::kSend) {
    laws.hold("receive WQEs", number(s.receives) + number(line.refills), w_.receive_depth);
  }
  if (s.responds) return;

  // A WQE is in one place at a time.
  const double gone = number(s.sent);
  const auto in_work = [](const Stream& stream) { return stream.packets_left > 0 ? 1.0 : 0.0; };
  laws.hold("WQEs on their way to the RNIC", number(line.posted),
            number(s.posted) - number(s.fetched));
  laws.hold("WQEs that wait for the engine", number(line.waiting),
            number(s.fetched) - number(s.handled));
  laws.hold("WQEs in work", number(s.ready) + number(line.fetching) + in_work(s),
            number(s.handled) - gone);

  // What was sent is answered, will be sent again, or is on its way there or back.
  const auto behind_gap = [&](std::uint32_t stream) {
    const bool gap = !recoveries_.empty() && recoveries_[stream].behind_gap;
    return gap ? number(streams_[stream].sent) - number(recoveries_[stream].message) : 0.0;
  };
  double away = number(line.completing);
  if (!recoveries_.empty()) away += recoveries_[id].unacknowledged;
  if (w_.transport == Transport::kRC) away += number(line.arriving) + behind_gap(id);
  if (!w_.carries_data_in_request()) {
    const Stream& p = streams_[peer_of(id)];
    const Ledger::Line& back = ledger.lines[peer_of(id)];
    away += number(p.ready) + number(back.fetching) + in_work(p) + number(back.arriving) +
            behind_gap(peer_of(id));
  }
  laws.hold("requests without completion", away, gone - number(s.done));

  // A slot of the queue is given back once, with a completion.
  const double used = number(s.posted) - number(s.credited);
  laws.hold("slots given back", number(s.credited), number(s.done - s.done % w_.signal_every));
  if (!owners_.empty()) laws.hold("owners of slots", number(owners_[id].size()), used);
  if (!dues_.empty()) {
    laws.hold("messages that are due", number(dues_[id].size()), number(s.posted - s.done));
  }
}

/// What all streams have put on the wire, each message counted once.
Engine::Sent Engine::count_sent() const {
  Sent cycle;
  for (const Shape& shape : shapes_) cycle.add(shape.packets, number(shape.bytes));
  Sent sent;
  for (const Stream& s : streams_) {
    if (!w_.carries_data_in_request() && !s.responds) {
      sent.requests += s.sent;
      continue;
    }
    const auto cycles = number(s.sent / shapes_.size());
    sent.add(cycles * cycle.packets, cycles * cycle.bytes);
    for (std::size_t i = 0; i < s.sent % shapes_.size(); ++i) {
      sent.add(shapes_[i].packets, number(shapes_[i].bytes));
    }
    if (s.packets_left > 0) {
      const double gone = number(shape_at(s.sent).packets) - number(s.packets_left);
      sent.add(gone, gone * number(w_.mtu_bytes));
    }
  }
  return sent;
}

std::string Engine::broken_law() const {
  Laws laws;
  const Ledger ledger = count_all();
  double used = 0;
  for (std::uint32_t id = 0; id < streams_.size(); ++id) {
    check_stream(id, ledger, laws);
    used += number(streams_[id].posted) - number(streams_[id].credited);
  }
  double held = ping_pong_ ? used : 0;  // then no thread keeps count
  for (const Thread& thread : threads_) held += thread.outstanding;
  laws.hold("slots that threads hold", held, used);

  const auto all_of = [&](std::uint64_t NicCounters::*counter) {
    double sum = 0;
    for (const Nic& nic : nics_) sum += number(nic.counters.*counter);
    return sum;
  };
  using N = NicCounters;
  for (const Nic& nic : nics_) {
    laws.hold("PCIe read credits", number(nic.read_slots.taken()),
              number(nic.counters.pcie_read_tlps));
  }
  laws.hold("notifications of congestion",
            all_of(&N::cnps_handled) + all_of(&N::cnps_lost) + number(ledger.notifications),
            all_of(&N::cnps_sent));
  const Sent sent = count_sent();
  laws.hold("packets sent", all_of(&N::tx_packets),
            sent.packets + sent.requests + all_of(&N::retransmitted_packets) + all_of(&N::acks) +
                all_of(&N::rnr_naks) + all_of(&N::naks_sent) + all_of(&N::cnps_sent));
  laws.hold("packets received", all_of(&N::rx_packets) + all_of(&N::dropped_packets),
            all_of(&N::tx_packets));
  laws.hold("bytes sent", all_of(&N::tx_bytes), sent.bytes + all_of(&N::retransmitted_bytes));
  laws.hold("bytes received", all_of(&N::rx_bytes) + all_of(&N::dropped_bytes),
            all_of(&N::tx_bytes));
  laws.hold("bytes written", payload_ + all_of(&N::thrown_bytes), all_of(&N::tx_bytes));
  return laws.broken;
}

void Engine::check_conservation() const {
#ifndef NDEBUG
  const std::string broken = broken_law();
  if (!broken.empty()) std::fprintf(stderr, "lost or made: %s\n", broken.c_str());
  GREYNIC_CHECK(broken.empty());
#endif
}

}  // namespace greynic::twin
