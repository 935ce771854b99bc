#pragma once

/// What a packet takes of the wire: RoCEv2 headers with their check sums, the overlay around them,
/// preamble and gap. 1024 payload bytes under VXLAN take 1156, so a 200 Gbit/s port carries
/// 177.16 Gbit/s of payload (docs/twin/validation.md, item 3).

#include <cstdint>

#include "parameters/parameters.h"

namespace greynic::twin {

namespace header {
inline constexpr double kEthernet = 14;
inline constexpr double kFrameCheck = 4;
inline constexpr double kPreambleAndGap = 20;
inline constexpr double kIpv4 = 20;
inline constexpr double kUdp = 8;
inline constexpr double kBth = 12;
inline constexpr double kInvariantCrc = 4;
inline constexpr double kReth = 16;       ///< first packet of a WRITE, a READ request
inline constexpr double kAtomicEth = 28;  ///< an atomic request
inline constexpr double kAeth = 4;        ///< acknowledgements and READ responses
inline constexpr double kAtomicAck = 8;
inline constexpr double kDeth = 8;  ///< every UD packet
inline constexpr double kCnp = 16;  ///< what a notification of congestion carries
/// Outer Ethernet, IPv4, UDP and VXLAN header; the frame check is that of the outer frame alone.
inline constexpr double kVxlan = 14 + 20 + 8 + 8;
}  // namespace header

/// Bytes around the payload of every RoCEv2 packet on the wire.
[[nodiscard]] constexpr double packet_overhead_bytes(bool overlay) {
  return header::kEthernet + header::kIpv4 + header::kUdp + header::kBth + header::kInvariantCrc +
         header::kFrameCheck + header::kPreambleAndGap + (overlay ? header::kVxlan : 0);
}

static_assert(packet_overhead_bytes(false) == 62 + 20);
static_assert(packet_overhead_bytes(true) + 1024 == 1156);

}  // namespace greynic::twin
