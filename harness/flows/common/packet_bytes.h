#pragma once

/// Packets as bytes: header values become an Ethernet frame with right lengths and checksums,
/// frames become a pcap file.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "greynic/core/flow_rule.h"
#include "greynic/core/result.h"

namespace greynic::flows {

using Frame = std::vector<std::uint8_t>;

/// Where VXLAN tunnels end.
struct TunnelEnd {
  std::uint64_t ethernet = 0;
  std::uint32_t ipv4 = 0;  ///< of packets that name none
};

/// The packet came through a tunnel: one of its tunnel fields is not 0.
[[nodiscard]] bool is_tunnelled(const Packet& packet);
/// The address at which its tunnel ends.
[[nodiscard]] std::uint32_t end_of_tunnel(const Packet& packet, const TunnelEnd& end);

/// Builds Ethernet, up to two VLAN tags, IPv4, IPv6 or ARP, and TCP, UDP, ICMP or nothing, with
/// `payload_bytes` of zeros behind the last header. Frames shorter than 60 bytes are padded. A
/// missing ether_type or ip_protocol is told from the fields that need it. A packet of a tunnel is
/// wrapped in VXLAN and addressed to the tunnel's end, where there is one. kUnsupported names a
/// field that is set but that no wire carries (registers, metadata; without an end, tunnels).
[[nodiscard]] Result<Frame> frame_of(const Packet& packet, std::size_t payload_bytes,
                                     const TunnelEnd* end = nullptr);

/// A pcap file (microseconds, Ethernet) with these frames in order.
[[nodiscard]] std::string pcap_of(const std::vector<Frame>& frames);

}  // namespace greynic::flows
