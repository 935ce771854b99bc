#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "../packets.h"
#include "greynic/burst/fifo.h"
#include "greynic/burst/snapshot.h"
#include "p4_interpreter.h"

namespace greynic::burst {
namespace {

p4::Program burst_radar() {
  std::ifstream file(std::string(GREYNIC_SOURCE_DIR) + "/probes/burst/p4/burst_radar.p4");
  p4::Program program({std::istreambuf_iterator<char>(file), {}});
  const auto field = [&](const std::string& name, int width) {
    program.variables[name] = p4::Value(0, width);
  };
  for (const char* name : {"hdr.ipv4.source", "hdr.ipv4.destination", "meta.depth_in",
                           "standard_metadata.packet_length", "standard_metadata.instance_type"}) {
    field(name, 32);
  }
  for (const char* name : {"hdr.ports.source", "hdr.ports.destination"}) field(name, 16);
  for (const char* name : {"standard_metadata.egress_port", "standard_metadata.egress_spec"}) {
    field(name, 9);
  }
  for (const char* name : {"standard_metadata.ingress_global_timestamp",
                           "standard_metadata.egress_global_timestamp"}) {
    field(name, 48);
  }
  field("hdr.ipv4.protocol", 8);
  field("hdr.ports.isValid", 1);
  field("hdr.courier.record", 232);
  return program;
}

void set(p4::Program& program, const std::string& name, std::uint64_t value) {
  program.variables.at(name) = p4::Value(value, program.variables.at(name).width);
}

std::uint32_t word(const std::array<std::uint8_t, 16>& address) {
  return std::uint32_t{address[0]} << 24 | std::uint32_t{address[1]} << 16 |
         std::uint32_t{address[2]} << 8 | address[3];
}

FlowKey flow_of(std::uint32_t number) {
  const std::string frame = udp_frame(number);
  return parse_frame(kLinkEthernet,
                     {reinterpret_cast<const std::uint8_t*>(frame.data()), frame.size()});
}

constexpr std::size_t kPorts = 3;

/// The switch's text and the core side by side, over the same queues.
struct Pair {
  p4::Program program = burst_radar();
  std::array<QueueState, kPorts> states{};
  std::array<CourierRecord, 1024> ring;
  Snapshot core{states, ring, Mode::kDequeueOnly};
  std::uint64_t compared = 0, marked = 0;

  void join(std::size_t port, const Fifo::Packet& packet) {
    set(program, "standard_metadata.egress_spec", port);
    set(program, "standard_metadata.packet_length", packet.bytes);
    program.run("BurstIngress");
    ASSERT_EQ(program.variables.at("meta.depth_in").number(), packet.depth_at_arrival);
    core.on_enqueue(port, packet.bytes, packet.depth_at_arrival, packet.arrived_ns);
  }
  void leave(std::size_t port, const Fifo::Packet& packet, std::uint64_t depth,
             std::uint64_t time) {
    set(program, "standard_metadata.instance_type", 0);
    set(program, "standard_metadata.egress_port", port);
    set(program, "standard_metadata.packet_length", packet.bytes);
    set(program, "standard_metadata.ingress_global_timestamp", packet.arrived_ns);
    set(program, "standard_metadata.egress_global_timestamp", time);
    set(program, "meta.depth_in", packet.depth_at_arrival);
    set(program, "hdr.ipv4.source", word(packet.flow.source));
    set(program, "hdr.ipv4.destination", word(packet.flow.destination));
    set(program, "hdr.ipv4.protocol", packet.flow.protocol);
    set(program, "hdr.ports.isValid", 1);
    set(program, "hdr.ports.source", packet.flow.source_port);
    set(program, "hdr.ports.destination", packet.flow.destination_port);
    const int before = program.clones;
    program.run("BurstEgress");
    const bool by_core = core.on_dequeue(port, packet.bytes, depth, time);
    ASSERT_EQ(program.clones - before, by_core ? 1 : 0) << "packet " << compared;
    ++compared;
    if (!by_core) return;
    ++marked;
    core.keep(port, packet.flow, packet.bytes, packet.arrived_ns, time, packet.depth_at_arrival,
              depth);
    compare_courier();
  }
  /// The clone carries the record that the core packs.
  void compare_courier() {
    set(program, "standard_metadata.instance_type", 2);
    program.run("BurstEgress");
    CourierRecord record;
    ASSERT_TRUE(core.ring().pop(record));
    std::array<std::uint8_t, kPackedBytes> packed{};
    pack(record, packed);
    std::bitset<256> expected;
    for (const std::uint8_t byte : packed) expected = expected << 8 | std::bitset<256>(byte);
    ASSERT_EQ(program.variables.at("hdr.courier.record").bits, expected);
  }
};

// Claim:  the P4 text marks packet for packet what the core marks at departures, at each of three
//         ports for itself, and its couriers carry the same 29 bytes.
// Method: random trains through queues of stated rates; every event in the order of time.
TEST(BurstRadarP4, AgreesWithTheCorePacketForPacket) {
  Pair pair;
  std::vector<Fifo> queues(kPorts, Fifo(10'000'000'000));
  struct Event {
    std::uint64_t time;
    std::size_t port;
    Arrival arrival;
  };
  std::vector<Event> events;
  for (std::size_t port = 0; port < kPorts; ++port) {
    const std::uint64_t threshold = 12000 * (port + 1);
    pair.states[port].threshold_bytes = threshold;
    pair.program.registers.at("threshold").cells.at(port) = p4::Value(threshold, 32);
    statistics::Random random(port + 21);
    for (const Arrival& arrival : random_arrivals(800, 10'000'000'000, random)) {
      events.push_back({arrival.time_ns, port, arrival});
    }
  }
  std::ranges::stable_sort(events, {}, &Event::time);
  const auto leaver = [&](std::size_t port) {
    return [&pair, port](const Fifo::Packet& packet, std::uint64_t, std::uint64_t depth,
                         std::uint64_t time) { pair.leave(port, packet, depth, time); };
  };
  for (const Event& event : events) {
    queues[event.port].drain(event.time, leaver(event.port));
    Fifo::Packet* packet = queues[event.port].arrive(event.time, event.arrival.bytes);
    packet->flow = flow_of(event.arrival.flow);
    pair.join(event.port, *packet);
    if (HasFatalFailure()) return;
  }
  for (std::size_t port = 0; port < kPorts; ++port) queues[port].drain_all(leaver(port));
  EXPECT_EQ(pair.compared, events.size());
  EXPECT_GT(pair.marked, 500U);
  EXPECT_GT(pair.compared - pair.marked, 200U);
}

// Claim:  what docs/bursts.md says of the text's cost: register operations of a packet, bits of a
//         port, bytes of the ring.
TEST(BurstRadarP4, CostsWhatThePageSays) {
  Pair pair;
  Fifo queue(10'000'000'000);
  pair.program.registers.at("threshold").cells.at(0) = p4::Value(100, 32);
  pair.states[0].threshold_bytes = 100;
  const auto operations = [&] {
    std::uint64_t sum = 0;
    for (const auto& [_, one] : pair.program.registers) sum += one.reads + one.writes;
    return sum;
  };
  Fifo::Packet first{flow_of(1), 80, 0, 80}, second{flow_of(1), 300, 0, 300};
  pair.join(0, first);
  EXPECT_EQ(operations(), 3U);
  pair.leave(0, first, 0, 10);
  EXPECT_EQ(operations(), 3U + 6U);
  pair.join(0, second);
  pair.join(0, {flow_of(1), 200, 0, 500});
  const std::uint64_t before = operations();
  pair.leave(0, second, 200, 20);
  EXPECT_EQ(operations() - before, 6U + 4U + 3U);  // with its record, and its courier's
  std::uint64_t bits_of_port = 0;
  for (const char* name : {"bytes_in", "bytes_out", "threshold", "remembered"}) {
    bits_of_port += static_cast<std::uint64_t>(pair.program.registers.at(name).width);
  }
  EXPECT_EQ(bits_of_port, 128U);
  const p4::Register& ring = pair.program.registers.at("ring");
  EXPECT_EQ(ring.cells.size() * static_cast<std::size_t>(ring.width) / 8, 29'696U);
}

}  // namespace
}  // namespace greynic::burst
