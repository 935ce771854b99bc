#include "dpdk/rte_match.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <map>
#include <optional>

#include "common/named_headers.h"
#include "common/refusal.h"

namespace greynic::flows {
namespace {

using F = MatchField;

/// The headers of a pattern, from outside in.
enum Header : std::uint8_t {
  kMeta,
  kMark,
  kEthernet,
  kVlan,
  kSecondVlan,
  kIpv4,
  kIpv6,
  kArp,
  kIcmp,
  kIcmp6,
  kTcp,
  kUdp,
  kSctp,
  kGre,
  kGreKey,
  kVxlan,
  kInnerEthernet,
  kInnerIpv4,
  kInnerIpv6,
  kInnerTcp,
  kInnerUdp,
};

struct Shape {
  Header header;
  rte_flow_item_type type;
  std::size_t bytes;
};
constexpr std::array kShapes = {
    Shape{kMeta, RTE_FLOW_ITEM_TYPE_META, sizeof(rte_flow_item_meta)},
    Shape{kMark, RTE_FLOW_ITEM_TYPE_MARK, sizeof(rte_flow_item_mark)},
    Shape{kEthernet, RTE_FLOW_ITEM_TYPE_ETH, sizeof(rte_flow_item_eth)},
    Shape{kVlan, RTE_FLOW_ITEM_TYPE_VLAN, sizeof(rte_flow_item_vlan)},
    Shape{kSecondVlan, RTE_FLOW_ITEM_TYPE_VLAN, sizeof(rte_flow_item_vlan)},
    Shape{kIpv4, RTE_FLOW_ITEM_TYPE_IPV4, sizeof(rte_flow_item_ipv4)},
    Shape{kIpv6, RTE_FLOW_ITEM_TYPE_IPV6, sizeof(rte_flow_item_ipv6)},
    Shape{kArp, RTE_FLOW_ITEM_TYPE_ARP_ETH_IPV4, sizeof(rte_flow_item_arp_eth_ipv4)},
    Shape{kIcmp, RTE_FLOW_ITEM_TYPE_ICMP, sizeof(rte_flow_item_icmp)},
    Shape{kIcmp6, RTE_FLOW_ITEM_TYPE_ICMP6, sizeof(rte_flow_item_icmp6)},
    Shape{kTcp, RTE_FLOW_ITEM_TYPE_TCP, sizeof(rte_flow_item_tcp)},
    Shape{kUdp, RTE_FLOW_ITEM_TYPE_UDP, sizeof(rte_flow_item_udp)},
    Shape{kSctp, RTE_FLOW_ITEM_TYPE_SCTP, sizeof(rte_flow_item_sctp)},
    Shape{kGre, RTE_FLOW_ITEM_TYPE_GRE, sizeof(rte_flow_item_gre)},
    Shape{kGreKey, RTE_FLOW_ITEM_TYPE_GRE_KEY, sizeof(std::uint32_t)},
    Shape{kVxlan, RTE_FLOW_ITEM_TYPE_VXLAN, sizeof(rte_flow_item_vxlan)},
    Shape{kInnerEthernet, RTE_FLOW_ITEM_TYPE_ETH, sizeof(rte_flow_item_eth)},
    Shape{kInnerIpv4, RTE_FLOW_ITEM_TYPE_IPV4, sizeof(rte_flow_item_ipv4)},
    Shape{kInnerIpv6, RTE_FLOW_ITEM_TYPE_IPV6, sizeof(rte_flow_item_ipv6)},
    Shape{kInnerTcp, RTE_FLOW_ITEM_TYPE_TCP, sizeof(rte_flow_item_tcp)},
    Shape{kInnerUdp, RTE_FLOW_ITEM_TYPE_UDP, sizeof(rte_flow_item_udp)}};

/// Where a field lies: bits counted from the first of the item's structure, in network order. That
/// is where it lies on the wire, but for ARP, whose structure is padded.
struct Place {
  MatchField field;
  Header header;
  unsigned first_bit;
};
/// Where a flag lies that is one bit-field of an item: compilers decide that, so it is asked of the
/// structure (the word behind an Ethernet header of 14 bytes does not begin with has_vlan).
template <typename Item>
unsigned place_of_flag(const Item& with_flag_only) {
  std::array<std::uint8_t, sizeof(Item)> bytes;
  std::memcpy(bytes.data(), &with_flag_only, sizeof(Item));
  const auto set = std::find_if(bytes.begin(), bytes.end(), [](std::uint8_t b) { return b != 0; });
  return static_cast<unsigned>(8 * (set - bytes.begin()) + std::countl_zero(*set));
}

unsigned place_of_has_vlan() {
  rte_flow_item_eth item{};
  item.has_vlan = 1;
  return place_of_flag(item);
}

unsigned place_of_has_more_vlan() {
  rte_flow_item_vlan item{};
  item.has_more_vlan = 1;
  return place_of_flag(item);
}

constexpr std::array kPlaces = {
    Place{F::kEthernetDst, kEthernet, 0},
    Place{F::kEthernetSrc, kEthernet, 48},
    Place{F::kVlanPriority, kVlan, 0},
    Place{F::kVlanId, kVlan, 4},
    Place{F::kSvlanPriority, kSecondVlan, 0},
    Place{F::kSvlanId, kSecondVlan, 4},
    Place{F::kIpDscp, kIpv4, 8},
    Place{F::kIpEcn, kIpv4, 14},
    Place{F::kIpTtl, kIpv4, 64},
    Place{F::kIpProtocol, kIpv4, 72},
    Place{F::kIpv4Src, kIpv4, 96},
    Place{F::kIpv4Dst, kIpv4, 128},
    Place{F::kIpDscp, kIpv6, 4},
    Place{F::kIpEcn, kIpv6, 10},
    Place{F::kIpv6FlowLabel, kIpv6, 12},
    Place{F::kIpProtocol, kIpv6, 48},
    Place{F::kIpTtl, kIpv6, 56},
    Place{F::kIpv6Src, kIpv6, 64},
    Place{F::kIpv6Dst, kIpv6, 192},
    Place{F::kArpOperation, kArp, 8 * offsetof(rte_flow_item_arp_eth_ipv4, op)},
    Place{F::kArpSenderEthernet, kArp, 8 * offsetof(rte_flow_item_arp_eth_ipv4, sha)},
    Place{F::kArpSenderIpv4, kArp, 8 * offsetof(rte_flow_item_arp_eth_ipv4, spa)},
    Place{F::kArpTargetEthernet, kArp, 8 * offsetof(rte_flow_item_arp_eth_ipv4, tha)},
    Place{F::kArpTargetIpv4, kArp, 8 * offsetof(rte_flow_item_arp_eth_ipv4, tpa)},
    Place{F::kIcmpType, kIcmp, 0},
    Place{F::kIcmpCode, kIcmp, 8},
    Place{F::kIcmpType, kIcmp6, 0},
    Place{F::kIcmpCode, kIcmp6, 8},
    Place{F::kL4SrcPort, kTcp, 0},
    Place{F::kL4DstPort, kTcp, 16},
    Place{F::kTcpFlags, kTcp, 100},
    Place{F::kL4SrcPort, kUdp, 0},
    Place{F::kL4DstPort, kUdp, 16},
    Place{F::kL4SrcPort, kSctp, 0},
    Place{F::kL4DstPort, kSctp, 16},
    Place{F::kGreKey, kGreKey, 0},
    Place{F::kVxlanVni, kVxlan, 32},
    Place{F::kInnerEthernetDst, kInnerEthernet, 0},
    Place{F::kInnerEthernetSrc, kInnerEthernet, 48},
    Place{F::kInnerIpProtocol, kInnerIpv4, 72},
    Place{F::kInnerIpv4Src, kInnerIpv4, 96},
    Place{F::kInnerIpv4Dst, kInnerIpv4, 128},
    Place{F::kInnerIpProtocol, kInnerIpv6, 48},
    Place{F::kInnerIpv6Src, kInnerIpv6, 64},
    Place{F::kInnerIpv6Dst, kInnerIpv6, 192},
    Place{F::kInnerL4SrcPort, kInnerTcp, 0},
    Place{F::kInnerL4DstPort, kInnerTcp, 16},
    Place{F::kInnerL4SrcPort, kInnerUdp, 0},
    Place{F::kInnerL4DstPort, kInnerUdp, 16}};

constexpr unsigned kEthernetType = 96;
constexpr unsigned kVlanInnerType = 16;

/// Fields that decide which headers there are, and metadata, put by code below.
constexpr std::array kOwnCode = {F::kEtherType, F::kVlanPresent,    F::kSvlanPresent,
                                 F::kMetadata,  F::kInnerEtherType, F::kPacketMark};

/// What a pattern matches in one header.
struct Part {
  std::array<std::uint8_t, 64> spec{};
  std::array<std::uint8_t, 64> mask{};
  bool looked_at = false;

  void put(unsigned first_bit, unsigned width, U128 value, U128 bits) {
    for (unsigned i = 0; i < width; ++i) {
      const unsigned from = width - 1 - i;
      const unsigned at = first_bit + i;
      const auto bit = static_cast<std::uint8_t>(0x80 >> (at % 8));
      if ((bits >> from & 1) == 0) continue;
      looked_at = true;
      mask[at / 8] |= bit;
      if ((value >> from & 1) != 0) spec[at / 8] |= bit;
    }
  }
  /// Numbers of the host: META and MARK.
  void put_native(std::uint32_t value, std::uint32_t bits) {
    looked_at = true;
    for (unsigned i = 0; i < 4; ++i) {
      spec[i] = static_cast<std::uint8_t>(value >> (8 * i));
      mask[i] = static_cast<std::uint8_t>(bits >> (8 * i));
    }
  }
};
using Parts = std::map<Header, Part>;

struct TypedHeader {
  unsigned value;
  Header header;
};
std::optional<Header> header_of(std::optional<U128> value, std::span<const TypedHeader> rows) {
  for (const TypedHeader& row : rows) {
    if (value == U128{row.value}) return row.header;
  }
  return std::nullopt;
}
constexpr std::array kNetworks = {TypedHeader{0x0800, kIpv4}, TypedHeader{0x86dd, kIpv6},
                                  TypedHeader{0x0806, kArp}};
constexpr std::array kTransports = {TypedHeader{1, kIcmp},   TypedHeader{58, kIcmp6},
                                    TypedHeader{6, kTcp},    TypedHeader{17, kUdp},
                                    TypedHeader{132, kSctp}, TypedHeader{47, kGre}};
constexpr std::array kInnerNetworks = {TypedHeader{0x0800, kInnerIpv4},
                                       TypedHeader{0x86dd, kInnerIpv6}};
constexpr std::array kInnerTransports = {TypedHeader{6, kInnerTcp}, TypedHeader{17, kInnerUdp}};

bool looks_at(const Match& match, MatchField field) { return match.mask().bits(field) != 0; }

bool looks_at_layer(const Match& match, FieldLayer layer) {
  return std::any_of(match.fields().begin(), match.fields().end(),
                     [&](const FieldMatch& part) { return info(part.field).layer == layer; });
}

/// Which headers the match names, and the types that no header stands for.
Parts headers_of(const Match& match) {
  Parts parts;
  parts[kEthernet];
  const auto type = exact_value(match, F::kEtherType);
  Header last_tag = kEthernet;
  for (const FieldMatch& part : match.fields()) {
    if (part.field == F::kVlanPresent) {
      parts[kEthernet].put(place_of_has_vlan(), 1, part.value, 1);
      if (part.value != 0) last_tag = kVlan;
    }
  }
  if (last_tag == kVlan) {
    parts[kVlan];
    parts[kEthernet] = {};  // the tag's own item says that it is there
  }
  for (const FieldMatch& part : match.fields()) {
    if (part.field != F::kSvlanPresent) continue;
    if (part.value != 0) {
      last_tag = kSecondVlan;
      parts[kSecondVlan];
    } else {
      parts[kVlan].put(place_of_has_more_vlan(), 1, 0, 1);
    }
  }
  if (const auto network = header_of(type, kNetworks)) {
    parts[*network];
  } else if (type) {
    parts[last_tag].put(last_tag == kEthernet ? kEthernetType : kVlanInnerType, 16, *type, 0xffff);
  }
  if (const auto transport = header_of(exact_value(match, F::kIpProtocol), kTransports)) {
    parts[*transport];
  }
  if (looks_at(match, F::kGreKey)) parts[kGreKey];
  const bool inner = looks_at_layer(match, FieldLayer::kInner);
  if (inner || looks_at(match, F::kVxlanVni)) parts[kVxlan];
  if (inner) parts[kInnerEthernet];
  const auto inner_type = exact_value(match, F::kInnerEtherType);
  if (const auto network = header_of(inner_type, kInnerNetworks)) {
    parts[*network];
  } else if (inner_type) {
    parts[kInnerEthernet].put(kEthernetType, 16, *inner_type, 0xffff);
  }
  if (const auto transport = header_of(exact_value(match, F::kInnerIpProtocol), kInnerTransports)) {
    parts[*transport];
  }
  return parts;
}

/// Is the field already said by the item that follows?
bool implied(const FieldMatch& part) {
  if (part.bits != full_mask(part.field)) return false;
  if (part.field == F::kIpProtocol) return header_of(part.value, kTransports).has_value();
  return part.field == F::kInnerIpProtocol && header_of(part.value, kInnerTransports).has_value();
}

Result<void> put_field(Parts& parts, const Match& match, const FieldMatch& part) {
  const unsigned width = info(part.field).width_bits;
  if (!rte_takes(part.field)) return kRteRefusal.of(part.field, "this driver knows no item for it");
  const bool type = part.field == F::kEtherType || part.field == F::kInnerEtherType;
  if (type && part.bits != full_mask(part.field))
    return kRteRefusal.of(part.field, "only exact types");
  if (part.field == F::kMetadata || part.field == F::kPacketMark) {
    if (part.bits >> 32 != 0) return kRteRefusal.of(part.field, "only the lower 32 bits are there");
    parts[part.field == F::kMetadata ? kMeta : kMark].put_native(
        static_cast<std::uint32_t>(part.value), static_cast<std::uint32_t>(part.bits));
    return {};
  }
  if (part.field == F::kSvlanPresent && exact_value(match, F::kVlanPresent) != U128{1}) {
    return kRteRefusal.of(part.field, "it needs vlan_present=1 in the same rule");
  }
  if (std::find(kOwnCode.begin(), kOwnCode.end(), part.field) != kOwnCode.end()) return {};
  if (const auto missing = missing_header(match, part.field))
    return kRteRefusal.of(part.field, *missing);
  if (implied(part)) return {};
  for (const Place& place : kPlaces) {
    const auto header = place.field == part.field ? parts.find(place.header) : parts.end();
    if (header == parts.end()) continue;
    header->second.put(place.first_bit, width, part.value, part.bits);
    return {};
  }
  return kRteRefusal.of(part.field, "the rule does not name the header that it is in");
}

}  // namespace

bool rte_takes(MatchField field) {
  return std::find(kOwnCode.begin(), kOwnCode.end(), field) != kOwnCode.end() ||
         std::any_of(kPlaces.begin(), kPlaces.end(),
                     [&](const Place& place) { return place.field == field; });
}

std::uint8_t* memory_for(RteRule& made, std::size_t bytes) {
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  made.memory.emplace_back((bytes + kWord - 1) / kWord);
  return reinterpret_cast<std::uint8_t*>(made.memory.back().data());
}

Result<void> put_rte_pattern(RteRule& made, const Match& match) {
  Parts parts = headers_of(match);
  for (const FieldMatch& part : match.fields()) {
    if (auto put = put_field(parts, match, part); !put) return put;
  }
  for (const auto& [header, part] : parts) {
    const Shape& shape = kShapes[header];
    rte_flow_item item{};
    item.type = shape.type;
    if (part.looked_at) {
      std::uint8_t* const spec = memory_for(made, shape.bytes);
      std::uint8_t* const mask = memory_for(made, shape.bytes);
      std::copy_n(part.spec.begin(), shape.bytes, spec);
      std::copy_n(part.mask.begin(), shape.bytes, mask);
      item.spec = spec;
      item.mask = mask;
    }
    made.pattern.push_back(item);
    made.item_bytes.push_back(shape.bytes);
  }
  made.pattern.push_back({.type = RTE_FLOW_ITEM_TYPE_END});
  made.item_bytes.push_back(0);
  return {};
}

}  // namespace greynic::flows
