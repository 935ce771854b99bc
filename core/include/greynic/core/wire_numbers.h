#pragma once

/// Numbers by which a header says what follows it, as IEEE 802 and IANA assign them.

#include <cstdint>

namespace greynic {

namespace ether_type {
inline constexpr std::uint16_t kIpv4 = 0x0800;
inline constexpr std::uint16_t kArp = 0x0806;
inline constexpr std::uint16_t kVlan = 0x8100;
inline constexpr std::uint16_t kIpv6 = 0x86dd;
inline constexpr std::uint16_t kServiceVlan = 0x88a8;
}  // namespace ether_type

namespace ip_protocol {
inline constexpr std::uint8_t kIcmp = 1;
inline constexpr std::uint8_t kTcp = 6;
inline constexpr std::uint8_t kUdp = 17;
inline constexpr std::uint8_t kIcmpv6 = 58;
inline constexpr std::uint8_t kSctp = 132;
}  // namespace ip_protocol

}  // namespace greynic
