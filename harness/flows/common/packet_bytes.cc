#include "common/packet_bytes.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "greynic/core/wire_numbers.h"

namespace greynic::flows {
namespace {

using F = MatchField;

constexpr std::size_t kShortest = 60;  // of an Ethernet frame without its checksum

/// What a wire can carry of the match fields.
constexpr std::array kOnWire = {
    F::kEthernetDst, F::kEthernetSrc, F::kEtherType, F::kVlanPresent, F::kVlanId, F::kVlanPriority,
    F::kVlanEtherType, F::kSvlanPresent, F::kSvlanId, F::kSvlanPriority, F::kIpVersion, F::kIpv4Src,
    F::kIpv4Dst, F::kIpv6Src, F::kIpv6Dst, F::kIpv6FlowLabel, F::kIpProtocol, F::kIpDscp, F::kIpEcn,
    F::kIpTtl, F::kArpOperation, F::kArpSenderIpv4, F::kArpTargetIpv4, F::kArpSenderEthernet,
    F::kArpTargetEthernet, F::kIcmpType, F::kIcmpCode, F::kL4SrcPort, F::kL4DstPort, F::kTcpFlags,
    // Not in the frame, but a frame arrives at some port.
    F::kInPort};

constexpr std::array kTunnelFields = {F::kTunnelIpv4Src, F::kTunnelIpv4Dst, F::kVxlanVni};
constexpr std::uint16_t kVxlanPort = 4789;
constexpr std::uint16_t kVxlanSource = 49152;        // any of the dynamic ports
constexpr std::uint32_t kTunnelSource = 0xc6120002;  // 198.18.0.2, for benchmarks (RFC 2544)

class Writer {
 public:
  Frame bytes;
  /// Appends the lowest `count` bytes of a value, most significant first.
  void put(U128 value, std::size_t count) {
    for (std::size_t i = count; i-- > 0;) {
      bytes.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
    }
  }
};

std::uint16_t ones_sum(const std::uint8_t* bytes, std::size_t count, std::uint32_t sum = 0) {
  for (std::size_t i = 0; i < count; ++i) {
    sum += i % 2 == 0 ? static_cast<std::uint32_t>(bytes[i]) << 8 : bytes[i];
  }
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

bool any_set(const Packet& packet, std::initializer_list<MatchField> fields) {
  return std::any_of(fields.begin(), fields.end(),
                     [&](MatchField field) { return packet.value(field) != 0; });
}

std::uint16_t ether_type_of(const Packet& packet) {
  if (const auto named = static_cast<std::uint16_t>(packet.value(F::kEtherType)); named != 0) {
    return named;
  }
  if (any_set(packet, {F::kIpv6Src, F::kIpv6Dst, F::kIpv6FlowLabel})) return ether_type::kIpv6;
  if (any_set(packet, {F::kArpOperation, F::kArpSenderIpv4, F::kArpTargetIpv4}))
    return ether_type::kArp;
  return ether_type::kIpv4;
}

std::uint8_t protocol_of(const Packet& packet) {
  if (const auto named = static_cast<std::uint8_t>(packet.value(F::kIpProtocol)); named != 0) {
    return named;
  }
  if (packet.value(F::kTcpFlags) != 0) return ip_protocol::kTcp;
  return any_set(packet, {F::kL4SrcPort, F::kL4DstPort}) ? ip_protocol::kUdp : 0;
}

/// The transport header with its payload; checksums stay zero, which UDP allows and switches
/// ignore.
Frame transport(const Packet& packet, std::uint8_t protocol, std::size_t payload) {
  Writer out;
  if (protocol == ip_protocol::kTcp) {
    out.put(packet.value(F::kL4SrcPort), 2);
    out.put(packet.value(F::kL4DstPort), 2);
    out.put(0, 8);
    out.put(U128{5} << 12 | packet.value(F::kTcpFlags), 2);
    out.put(0, 6);
  } else if (protocol == ip_protocol::kUdp) {
    out.put(packet.value(F::kL4SrcPort), 2);
    out.put(packet.value(F::kL4DstPort), 2);
    out.put(8 + payload, 2);
    out.put(0, 2);
  } else if (protocol == ip_protocol::kIcmp || protocol == ip_protocol::kIcmpv6) {
    out.put(packet.value(F::kIcmpType), 1);
    out.put(packet.value(F::kIcmpCode), 1);
    out.put(0, 6);
  } else if (any_set(packet, {F::kL4SrcPort, F::kL4DstPort})) {  // SCTP and its like
    out.put(packet.value(F::kL4SrcPort), 2);
    out.put(packet.value(F::kL4DstPort), 2);
    out.put(0, 8);
  }
  out.bytes.resize(out.bytes.size() + payload, 0);
  return out.bytes;
}

void put_ipv4(Writer& out, const Packet& packet, const Frame& body, std::uint8_t protocol) {
  const std::size_t start = out.bytes.size();
  out.put(0x45, 1);
  out.put(packet.value(F::kIpDscp) << 2 | packet.value(F::kIpEcn), 1);
  out.put(20 + body.size(), 2);
  out.put(0, 4);
  const U128 ttl = packet.value(F::kIpTtl);
  out.put(ttl != 0 ? ttl : U128{64}, 1);
  out.put(protocol, 1);
  out.put(0, 2);
  out.put(packet.value(F::kIpv4Src), 4);
  out.put(packet.value(F::kIpv4Dst), 4);
  const std::uint16_t sum = ones_sum(out.bytes.data() + start, 20);
  out.bytes[start + 10] = static_cast<std::uint8_t>(sum >> 8);
  out.bytes[start + 11] = static_cast<std::uint8_t>(sum & 0xff);
  out.bytes.insert(out.bytes.end(), body.begin(), body.end());
}

void put_ipv6(Writer& out, const Packet& packet, const Frame& body, std::uint8_t protocol) {
  const U128 traffic_class = packet.value(F::kIpDscp) << 2 | packet.value(F::kIpEcn);
  out.put(U128{6} << 28 | traffic_class << 20 | packet.value(F::kIpv6FlowLabel), 4);
  out.put(body.size(), 2);
  out.put(protocol != 0 ? protocol : 59, 1);  // 59: nothing follows
  const U128 ttl = packet.value(F::kIpTtl);
  out.put(ttl != 0 ? ttl : U128{64}, 1);
  out.put(packet.value(F::kIpv6Src), 16);
  out.put(packet.value(F::kIpv6Dst), 16);
  out.bytes.insert(out.bytes.end(), body.begin(), body.end());
}

void put_arp(Writer& out, const Packet& packet) {
  out.put(0x000108000604, 6);
  out.put(packet.value(F::kArpOperation), 2);
  out.put(packet.value(F::kArpSenderEthernet), 6);
  out.put(packet.value(F::kArpSenderIpv4), 4);
  out.put(packet.value(F::kArpTargetEthernet), 6);
  out.put(packet.value(F::kArpTargetIpv4), 4);
}

Frame plain_frame(const Packet& packet, std::size_t payload_bytes) {
  Writer out;
  out.put(packet.value(F::kEthernetDst), 6);
  out.put(packet.value(F::kEthernetSrc), 6);
  if (packet.value(F::kSvlanPresent) != 0) {
    out.put(ether_type::kServiceVlan, 2);
    out.put(packet.value(F::kSvlanPriority) << 13 | packet.value(F::kSvlanId), 2);
  }
  if (any_set(packet, {F::kVlanPresent, F::kVlanId, F::kVlanPriority})) {
    out.put(ether_type::kVlan, 2);
    out.put(packet.value(F::kVlanPriority) << 13 | packet.value(F::kVlanId), 2);
  }
  const std::uint16_t type = ether_type_of(packet);
  out.put(type, 2);
  const std::uint8_t protocol = protocol_of(packet);
  if (type == ether_type::kIpv4) {
    put_ipv4(out, packet, transport(packet, protocol, payload_bytes), protocol);
  } else if (type == ether_type::kIpv6) {
    put_ipv6(out, packet, transport(packet, protocol, payload_bytes), protocol);
  } else if (type == ether_type::kArp) {
    put_arp(out, packet);
  } else {
    out.bytes.resize(out.bytes.size() + payload_bytes, 0);
  }
  if (out.bytes.size() < kShortest) out.bytes.resize(kShortest, 0);
  return out.bytes;
}

Frame in_vxlan(const Frame& inner, const Packet& packet, const TunnelEnd& end) {
  Writer body;
  body.put(kVxlanSource, 2);
  body.put(kVxlanPort, 2);
  body.put(16 + inner.size(), 2);
  body.put(0, 2);
  body.put(0x08000000, 4);  // there is a VNI
  body.put(packet.value(F::kVxlanVni) << 8, 4);
  body.bytes.insert(body.bytes.end(), inner.begin(), inner.end());
  const U128 source = packet.value(F::kTunnelIpv4Src);
  Packet around;
  around.set(F::kIpv4Src, source != 0 ? source : U128{kTunnelSource});
  around.set(F::kIpv4Dst, end_of_tunnel(packet, end));
  Writer out;
  out.put(end.ethernet, 6);
  out.put(0, 6);
  out.put(ether_type::kIpv4, 2);
  put_ipv4(out, around, body.bytes, ip_protocol::kUdp);
  return out.bytes;
}

}  // namespace

bool is_tunnelled(const Packet& packet) {
  return std::any_of(kTunnelFields.begin(), kTunnelFields.end(),
                     [&](MatchField field) { return packet.value(field) != 0; });
}

std::uint32_t end_of_tunnel(const Packet& packet, const TunnelEnd& end) {
  const auto named = static_cast<std::uint32_t>(packet.value(F::kTunnelIpv4Dst));
  return named != 0 ? named : end.ipv4;
}

Result<Frame> frame_of(const Packet& packet, std::size_t payload_bytes, const TunnelEnd* end) {
  for (const auto& [field, value] : packet.values()) {
    const bool in_frame = std::find(kOnWire.begin(), kOnWire.end(), field) != kOnWire.end();
    const bool around_it = end != nullptr && std::find(kTunnelFields.begin(), kTunnelFields.end(),
                                                       field) != kTunnelFields.end();
    if (!in_frame && !around_it) {
      return fail(
          ErrorCode::kUnsupported,
          fmt::format("traffic sets {}, which no packet on a wire carries", info(field).name));
    }
  }
  Frame frame = plain_frame(packet, payload_bytes);
  return is_tunnelled(packet) && end != nullptr ? in_vxlan(frame, packet, *end) : std::move(frame);
}

std::string pcap_of(const std::vector<Frame>& frames) {
  std::string text;
  const auto put = [&](std::uint64_t value, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) text += static_cast<char>(value >> (8 * i));
  };
  put(0xa1b2c3d4, 4);  // little endian, microseconds
  put(2, 2);
  put(4, 2);
  put(0, 8);
  put(65535, 4);
  put(1, 4);  // Ethernet
  for (std::size_t i = 0; i < frames.size(); ++i) {
    put(0, 4);
    put(static_cast<std::uint32_t>(i), 4);
    put(static_cast<std::uint32_t>(frames[i].size()), 4);
    put(static_cast<std::uint32_t>(frames[i].size()), 4);
    text.append(frames[i].begin(), frames[i].end());
  }
  return text;
}

}  // namespace greynic::flows
