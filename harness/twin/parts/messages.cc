#include "parts/messages.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace greynic::twin {

MessageShape shape_of(const Parameters& p, const PcieLink& pcie, const MessageForm& form) {
  const double overhead = packet_overhead_bytes(form.overlay) +
                          (form.transport == Transport::kUD ? header::kDeth : 0.0);
  const double ns_per_byte = 8.0 / p.link_rate_gbps;
  const bool response = form.operation == Operation::kRead || form.operation == Operation::kAtomic;
  const double first_extra = form.operation == Operation::kWrite ? header::kReth
                             : response                          ? header::kAeth
                                                                 : 0.0;
  const double gap = form.operation == Operation::kSend ? p.send_gap_ns : 0.0;
  MessageShape shape;
  shape.bytes = form.bytes;
  shape.packets = static_cast<std::uint32_t>(
      std::max<std::uint64_t>(1, (form.bytes + form.mtu_bytes - 1) / form.mtu_bytes));
  const auto full = static_cast<double>(form.mtu_bytes);
  const double rest = static_cast<double>(form.bytes) - full * (shape.packets - 1);
  const auto wire = [&](double payload, double extra) {
    return (payload + overhead + extra) * ns_per_byte;
  };
  shape.inlined = form.inlined;
  const auto freight = [&](double payload, Time wire_ns) {
    // Who sends as much as it receives asks for the one on the link that takes the other.
    const bool asks = form.both_ways && !shape.inlined;
    return Freight{static_cast<std::uint32_t>(payload), wire_ns, pcie.read_ns(payload),
                   pcie.write_ns(payload) + (asks ? pcie.request_ns(payload) : 0.0),
                   p.stored_stage_count * payload * ns_per_byte};
  };
  shape.middle = freight(full, wire(full, 0));
  shape.first = freight(full, wire(full, first_extra) + gap);
  shape.last = freight(rest, shape.packets == 1 ? wire(rest, first_extra) + gap
                                                : wire(rest, response ? header::kAeth : 0));
  // Elements of a message are as long as each other; each is read by itself.
  const double ahead = std::min(static_cast<double>(form.bytes), kTurnPackets * full);
  const double element = std::max(1.0, static_cast<double>(form.bytes) / form.sge_count);
  const double elements = std::ceil(ahead / element);
  const double reads = elements * pcie.read_requests(std::min(element, ahead));
  shape.reads = static_cast<std::uint32_t>(std::max(1.0, reads));
  return shape;
}

MessageCycle::MessageCycle(const Parameters& p, const HostLoad& load, const PcieLink& pcie,
                           bool ping_pong) {
  // perftest inlines small messages where it measures latency, and nothing where it measures rate.
  const double inlined = load.inline_bytes ? static_cast<double>(*load.inline_bytes)
                         : ping_pong       ? p.max_inline_bytes[load.operation]
                                           : 0.0;
  for (const std::uint64_t bytes : load.message_bytes) {
    const bool fits = load.carries_data_in_request() && static_cast<double>(bytes) <= inlined;
    shapes_.push_back(shape_of(p, pcie,
                               {.operation = load.operation,
                                .transport = load.transport,
                                .overlay = load.overlay,
                                .inlined = bytes == 0 || fits,
                                .both_ways = load.direction == Direction::kBidirectional,
                                .mtu_bytes = load.mtu_bytes,
                                .sge_count = load.sge_count,
                                .bytes = bytes}));
  }
}

double MessageCycle::packets_per_message() const {
  return std::accumulate(shapes_.begin(), shapes_.end(), 0.0,
                         [](double sum, const MessageShape& s) { return sum + s.packets; }) /
         static_cast<double>(shapes_.size());
}

}  // namespace greynic::twin
