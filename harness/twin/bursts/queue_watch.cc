#include <fmt/core.h>

#include <cmath>

#include "greynic/twin/bursts.h"

namespace greynic::twin {
namespace {

void put_address(std::uint32_t address, std::array<std::uint8_t, 16>& out) {
  for (std::size_t i = 0; i < 4; ++i) out[i] = static_cast<std::uint8_t>(address >> (24 - 8 * i));
}

std::uint64_t whole_ns(Time time) {
  return time <= 0 ? 0 : static_cast<std::uint64_t>(std::llround(time));
}

}  // namespace

std::string to_string(const PortId& port) {
  return port.of_host ? fmt::format("host {}", port.device)
                      : fmt::format("switch {} port {}", port.device, port.port);
}

burst::FlowKey flow_of(const PacketRecord& record) {
  burst::FlowKey key{.protocol = record.protocol, .kind = burst::FlowKey::kIpv4Roce};
  put_address(record.source_ip, key.source);
  put_address(record.destination_ip, key.destination);
  key.set_qp(record.destination_qp);
  return key;
}

// An observer hears of a packet when it leaves, and only then that it came. Whoever left before it
// came is told by the depth that it found, which is exact where equal times are not.
void QueueWatch::on_packet(const PacketRecord& record) {
  while (depth_ + record.bytes > record.depth_at_enqueue && !waiting_.empty()) leave();
  depth_ += record.bytes;
  waiting_.push_back(record);
  snapshot_.on_enqueue(queue_, record.bytes, depth_, whole_ns(record.enqueued));
}

void QueueWatch::finish() {
  while (!waiting_.empty()) leave();
}

void QueueWatch::leave() {
  const PacketRecord record = waiting_.front();
  waiting_.pop_front();
  depth_ -= record.bytes;
  const bool marked = snapshot_.on_dequeue(queue_, record.bytes, depth_, whole_ns(record.dequeued));
  if (marked) {
    snapshot_.keep(queue_, flow_of(record), record.bytes, whole_ns(record.enqueued),
                   whole_ns(record.dequeued), record.depth_at_enqueue, record.depth_at_dequeue);
  }
  departed_(record, marked);
}

}  // namespace greynic::twin
