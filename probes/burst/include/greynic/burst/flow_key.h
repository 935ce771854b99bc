#pragma once

/// Who a packet belongs to, and how that is written:
///
///     10.0.0.1:1000>10.0.0.2:80/udp          ports of TCP, UDP, UDP-Lite, DCCP and SCTP
///     [2001:db8::1]:1000>[2001:db8::2]:80/tcp
///     10.0.0.1>10.0.0.2/icmp                 no ports: other protocols, later fragments
///     10.0.0.1>10.0.0.2:qp17/roce            RoCE v2 by its destination QP
///     02:00:00:00:00:01>ff:ff:ff:ff:ff:ff/arp   no IP: stations and Ethernet type
///
/// VLAN tags are no part of a flow.

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace greynic::burst {

struct FlowKey {
  enum Kind : std::uint8_t {
    kUnknown,    ///< too short, or a link type that nobody knows
    kIpv4,       ///< addresses in the first 4 bytes
    kIpv4Ports,  ///< and ports
    kIpv4Roce,   ///< destination QP in the ports: upper 16 bits, lower 16 bits
    kIpv6,
    kIpv6Ports,
    kIpv6Roce,
    kStation,  ///< MAC addresses in the first 6 bytes, type in destination_port
  };

  std::array<std::uint8_t, 16> source{}, destination{};
  std::uint16_t source_port = 0, destination_port = 0;
  std::uint8_t protocol = 0;  ///< of IP
  std::uint8_t kind = kUnknown;

  bool operator==(const FlowKey& other) const {
    return ((word(0) ^ other.word(0)) | (word(8) ^ other.word(8)) | (word(16) ^ other.word(16)) |
            (word(24) ^ other.word(24)) | (word(kLastWord) ^ other.word(kLastWord))) == 0;
  }
  auto operator<=>(const FlowKey&) const = default;

  void set_qp(std::uint32_t qp) {
    source_port = static_cast<std::uint16_t>(qp >> 16);
    destination_port = static_cast<std::uint16_t>(qp);
  }
  [[nodiscard]] std::uint32_t qp() const {
    return std::uint32_t{source_port} << 16 | destination_port;
  }
  /// Eight of its bytes from `at` on, in one load: an array of all words would be written to memory and read again.
  [[nodiscard]] std::uint64_t word(std::size_t at) const {
    std::uint64_t word = 0;
    std::memcpy(&word, reinterpret_cast<const std::uint8_t*>(this) + at, sizeof word);
    return word;
  }
  static constexpr std::size_t kLastWord = 30;  ///< overlaps the one before, so that it is whole
  /// The products do not wait for each other.
  [[nodiscard]] std::uint64_t hash() const {
    std::uint64_t h = (word(0) ^ 0x2d358dccaa6c78a5ULL) * 0x9e3779b97f4a7c15ULL;
    h += (word(8) ^ 0x8bb84b93962eacc9ULL) * 0xbf58476d1ce4e5b9ULL;
    h ^= (word(16) ^ 0x4b33a62ed433d4a3ULL) * 0x94d049bb133111ebULL;
    h += (word(24) ^ 0x4d5a2da51de1aa47ULL) * 0xd6e8feb86659fd93ULL;
    h ^= (word(kLastWord) ^ 0xa0761d6478bd642fULL) * 0xe7037ed1a0b428dbULL;
    h = (h ^ h >> 29) * 0x9e3779b97f4a7c15ULL;
    return h ^ h >> 32;
  }
};
static_assert(sizeof(FlowKey) == 38);

/// "10.0.0.1:1000>10.0.0.2:80/udp"
[[nodiscard]] std::string to_string(const FlowKey& flow);
/// The sender alone: "10.0.0.1".
[[nodiscard]] std::string sender_of(const FlowKey& flow);
/// A key that all flows of one sender share.
[[nodiscard]] inline FlowKey sender_key(const FlowKey& flow) {
  FlowKey out;
  out.source = flow.source;
  out.kind = static_cast<std::uint8_t>((flow.kind + 2) / 3);  // by the kind of its address
  return out;
}

/// Link types by their numbers in capture files (tcpdump.org/linktypes.html).
enum LinkType : int {
  kLinkNull = 0,
  kLinkEthernet = 1,
  kLinkRawOld = 12,
  kLinkRaw = 101,
  kLinkLoop = 108,
  kLinkLinuxCooked = 113,
  kLinkIpv4 = 228,
  kLinkIpv6 = 229,
  kLinkLinuxCooked2 = 276,
};

/// Reads the headers of a frame of which `bytes` were captured. Never reads beyond them; what is
/// cut off, or makes no sense, is left out of the key.
[[nodiscard]] FlowKey parse_frame(int link_type, std::span<const std::uint8_t> bytes);

}  // namespace greynic::burst
