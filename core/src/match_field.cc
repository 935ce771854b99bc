#include "greynic/core/match_field.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <vector>

namespace greynic {
namespace {

using F = MatchField;
using L = FieldLayer;
using V = FieldFormat;

constexpr std::string_view kIp = "ether_type=0x0800|ether_type=0x86dd";
constexpr std::string_view kIp4 = "ether_type=0x0800";
constexpr std::string_view kIp6 = "ether_type=0x86dd";
constexpr std::string_view kArp = "ether_type=0x0806";
constexpr std::string_view kL4 = "ip_protocol=6|ip_protocol=17|ip_protocol=132";
constexpr std::string_view kTcp = "ip_protocol=6";
constexpr std::string_view kIcmp = "ip_protocol=1|ip_protocol=58";
constexpr std::string_view kNd = "icmp_type=135|icmp_type=136";
constexpr std::string_view kVxlan = "l4_dst_port=4789";
constexpr std::string_view kGre = "ip_protocol=47";
constexpr std::string_view kRoce = "l4_dst_port=4791";
constexpr std::string_view kVlan = "vlan_present=1";
constexpr std::string_view kSvlan = "svlan_present=1";

constexpr std::array<MatchFieldInfo, kMatchFieldCount> kFields = {{
    {F::kInPort, "in_port", 32, L::kPort, V::kDecimal, "port_id.id", "indev", "in_port", ""},
    {F::kMetadata, "metadata", 64, L::kPort, V::kHex, "meta.data", "", "metadata", ""},
    {F::kEthernetDst, "ethernet_dst", 48, L::kEthernet, V::kEthernet, "eth.dst", "dst_mac",
     "eth_dst", ""},
    {F::kEthernetSrc, "ethernet_src", 48, L::kEthernet, V::kEthernet, "eth.src", "src_mac",
     "eth_src", ""},
    {F::kEtherType, "ether_type", 16, L::kEthernet, V::kHex, "eth.type", "protocol", "eth_type",
     ""},
    {F::kVlanPresent, "vlan_present", 1, L::kVlan, V::kDecimal, "eth.has_vlan", "", "vlan_present",
     ""},
    {F::kVlanId, "vlan_id", 12, L::kVlan, V::kDecimal, "vlan.vid", "vlan_id", "vlan_vid", kVlan},
    {F::kVlanPriority, "vlan_priority", 3, L::kVlan, V::kDecimal, "vlan.pcp", "vlan_prio",
     "vlan_pcp", kVlan},
    {F::kVlanEtherType, "vlan_ether_type", 16, L::kVlan, V::kHex, "vlan.inner_type", "vlan_ethtype",
     "", kVlan},
    {F::kSvlanPresent, "svlan_present", 1, L::kVlan, V::kDecimal, "vlan.has_more_vlan", "", "", ""},
    {F::kSvlanId, "svlan_id", 12, L::kVlan, V::kDecimal, "vlan2.vid", "cvlan_id", "", kSvlan},
    {F::kSvlanPriority, "svlan_priority", 3, L::kVlan, V::kDecimal, "vlan2.pcp", "cvlan_prio", "",
     kSvlan},
    {F::kIpVersion, "ip_version", 4, L::kIp, V::kDecimal, "", "", "", ""},
    {F::kIpv4Src, "ipv4_src", 32, L::kIp, V::kIpv4, "ipv4.src_addr", "src_ip", "nw_src", kIp4},
    {F::kIpv4Dst, "ipv4_dst", 32, L::kIp, V::kIpv4, "ipv4.dst_addr", "dst_ip", "nw_dst", kIp4},
    {F::kIpv6Src, "ipv6_src", 128, L::kIp, V::kIpv6, "ipv6.src_addr", "src_ip", "ipv6_src", kIp6},
    {F::kIpv6Dst, "ipv6_dst", 128, L::kIp, V::kIpv6, "ipv6.dst_addr", "dst_ip", "ipv6_dst", kIp6},
    {F::kIpv6FlowLabel, "ipv6_flow_label", 20, L::kIp, V::kHex, "ipv6.vtc_flow", "", "ipv6_label",
     kIp6},
    {F::kIpProtocol, "ip_protocol", 8, L::kIp, V::kDecimal, "ip.proto", "ip_proto", "nw_proto",
     kIp},
    {F::kIpDscp, "ip_dscp", 6, L::kIp, V::kDecimal, "ip.dscp", "ip_tos", "ip_dscp", kIp},
    {F::kIpEcn, "ip_ecn", 2, L::kIp, V::kDecimal, "ip.ecn", "ip_tos", "nw_ecn", kIp},
    {F::kIpTtl, "ip_ttl", 8, L::kIp, V::kDecimal, "ip.ttl", "ip_ttl", "nw_ttl", kIp},
    {F::kIpFragment, "ip_fragment", 2, L::kIp, V::kDecimal, "ipv4.fragment_offset", "ip_flags",
     "nw_frag", kIp},
    {F::kArpOperation, "arp_operation", 16, L::kArp, V::kDecimal, "", "arp_op", "arp_op", kArp},
    {F::kArpSenderIpv4, "arp_sender_ipv4", 32, L::kArp, V::kIpv4, "arp_eth_ipv4.spa", "arp_sip",
     "arp_spa", kArp},
    {F::kArpTargetIpv4, "arp_target_ipv4", 32, L::kArp, V::kIpv4, "arp_eth_ipv4.tpa", "arp_tip",
     "arp_tpa", kArp},
    {F::kArpSenderEthernet, "arp_sender_ethernet", 48, L::kArp, V::kEthernet, "arp_eth_ipv4.sha",
     "arp_sha", "arp_sha", kArp},
    {F::kArpTargetEthernet, "arp_target_ethernet", 48, L::kArp, V::kEthernet, "arp_eth_ipv4.tha",
     "arp_tha", "arp_tha", kArp},
    {F::kIcmpType, "icmp_type", 8, L::kIcmp, V::kDecimal, "icmp.type", "type", "icmp_type", kIcmp},
    {F::kIcmpCode, "icmp_code", 8, L::kIcmp, V::kDecimal, "icmp.code", "code", "icmp_code", kIcmp},
    {F::kNdTarget, "nd_target", 128, L::kIcmp, V::kIpv6, "icmp6_nd.target", "", "nd_target", kNd},
    {F::kNdSourceEthernet, "nd_source_ethernet", 48, L::kIcmp, V::kEthernet, "", "", "nd_sll", kNd},
    {F::kNdTargetEthernet, "nd_target_ethernet", 48, L::kIcmp, V::kEthernet, "", "", "nd_tll", kNd},
    {F::kL4SrcPort, "l4_src_port", 16, L::kL4, V::kDecimal, "l4.src_port", "src_port", "tp_src",
     kL4},
    {F::kL4DstPort, "l4_dst_port", 16, L::kL4, V::kDecimal, "l4.dst_port", "dst_port", "tp_dst",
     kL4},
    {F::kTcpFlags, "tcp_flags", 12, L::kL4, V::kHex, "tcp.tcp_flags", "tcp_flags", "tcp_flags",
     kTcp},
    {F::kTunnelIpv4Src, "tunnel_ipv4_src", 32, L::kTunnel, V::kIpv4, "", "enc_src_ip", "tun_src",
     ""},
    {F::kTunnelIpv4Dst, "tunnel_ipv4_dst", 32, L::kTunnel, V::kIpv4, "", "enc_dst_ip", "tun_dst",
     ""},
    {F::kVxlanVni, "vxlan_vni", 24, L::kTunnel, V::kDecimal, "vxlan.vni", "enc_key_id", "tun_id",
     kVxlan},
    {F::kGreKey, "gre_key", 32, L::kTunnel, V::kDecimal, "gre_key.key", "", "", kGre},
    {F::kBthOpcode, "bth_opcode", 8, L::kRoce, V::kHex, "ib_bth.opcode", "", "", kRoce},
    {F::kBthDestinationQp, "bth_destination_qp", 24, L::kRoce, V::kHex, "ib_bth.dst_qp", "", "",
     kRoce},
    {F::kInnerEthernetDst, "inner_ethernet_dst", 48, L::kInner, V::kEthernet, "inner_eth.dst", "",
     "", kVxlan},
    {F::kInnerEthernetSrc, "inner_ethernet_src", 48, L::kInner, V::kEthernet, "inner_eth.src", "",
     "", kVxlan},
    {F::kInnerEtherType, "inner_ether_type", 16, L::kInner, V::kHex, "inner_eth.type", "", "",
     kVxlan},
    {F::kInnerIpv4Src, "inner_ipv4_src", 32, L::kInner, V::kIpv4, "inner_ipv4.src_addr", "", "",
     kVxlan},
    {F::kInnerIpv4Dst, "inner_ipv4_dst", 32, L::kInner, V::kIpv4, "inner_ipv4.dst_addr", "", "",
     kVxlan},
    {F::kInnerIpv6Src, "inner_ipv6_src", 128, L::kInner, V::kIpv6, "inner_ipv6.src_addr", "", "",
     kVxlan},
    {F::kInnerIpv6Dst, "inner_ipv6_dst", 128, L::kInner, V::kIpv6, "inner_ipv6.dst_addr", "", "",
     kVxlan},
    {F::kInnerIpProtocol, "inner_ip_protocol", 8, L::kInner, V::kDecimal, "inner_ip.proto", "", "",
     kVxlan},
    {F::kInnerL4SrcPort, "inner_l4_src_port", 16, L::kInner, V::kDecimal, "inner_l4.src_port", "",
     "", kVxlan},
    {F::kInnerL4DstPort, "inner_l4_dst_port", 16, L::kInner, V::kDecimal, "inner_l4.dst_port", "",
     "", kVxlan},
    {F::kCtState, "ct_state", 32, L::kConnection, V::kHex, "conntrack.flags", "ct_state",
     "ct_state", ""},
    {F::kCtZone, "ct_zone", 16, L::kConnection, V::kDecimal, "", "ct_zone", "ct_zone", ""},
    {F::kCtMark, "ct_mark", 32, L::kConnection, V::kHex, "", "ct_mark", "ct_mark", ""},
    {F::kCtLabel, "ct_label", 128, L::kConnection, V::kHex, "", "ct_label", "ct_label", ""},
    {F::kPacketMark, "packet_mark", 32, L::kRegister, V::kHex, "mark.id", "", "pkt_mark", ""},
    {F::kConjunctionId, "conjunction_id", 32, L::kRegister, V::kDecimal, "", "", "conj_id", ""},
    {F::kRecirculationId, "recirculation_id", 32, L::kRegister, V::kHex, "", "", "recirc_id", ""},
    {F::kDatapathHash, "datapath_hash", 32, L::kRegister, V::kHex, "", "", "dp_hash", ""},
    {F::kReg0, "reg0", 32, L::kRegister, V::kHex, "tag0.data", "", "reg0", ""},
    {F::kReg1, "reg1", 32, L::kRegister, V::kHex, "tag1.data", "", "reg1", ""},
    {F::kReg2, "reg2", 32, L::kRegister, V::kHex, "tag2.data", "", "reg2", ""},
    {F::kReg3, "reg3", 32, L::kRegister, V::kHex, "tag3.data", "", "reg3", ""},
    {F::kReg4, "reg4", 32, L::kRegister, V::kHex, "tag4.data", "", "reg4", ""},
    {F::kReg5, "reg5", 32, L::kRegister, V::kHex, "tag5.data", "", "reg5", ""},
    {F::kReg6, "reg6", 32, L::kRegister, V::kHex, "tag6.data", "", "reg6", ""},
    {F::kReg7, "reg7", 32, L::kRegister, V::kHex, "tag7.data", "", "reg7", ""},
    {F::kReg8, "reg8", 32, L::kRegister, V::kHex, "", "", "reg8", ""},
    {F::kReg9, "reg9", 32, L::kRegister, V::kHex, "", "", "reg9", ""},
    {F::kReg10, "reg10", 32, L::kRegister, V::kHex, "", "", "reg10", ""},
    {F::kReg11, "reg11", 32, L::kRegister, V::kHex, "", "", "reg11", ""},
    {F::kReg12, "reg12", 32, L::kRegister, V::kHex, "", "", "reg12", ""},
    {F::kReg13, "reg13", 32, L::kRegister, V::kHex, "", "", "reg13", ""},
    {F::kReg14, "reg14", 32, L::kRegister, V::kHex, "", "", "reg14", ""},
    {F::kReg15, "reg15", 32, L::kRegister, V::kHex, "", "", "reg15", ""},
}};

constexpr bool in_enum_order() {
  for (std::size_t i = 0; i < kFields.size(); ++i) {
    if (static_cast<std::size_t>(kFields[i].field) != i) return false;
  }
  return true;
}
static_assert(in_enum_order(), "the table must list the fields in the order of the enumeration");

std::optional<U128> parse_number(std::string_view text) {
  unsigned base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    base = 16;
    text.remove_prefix(2);
  }
  if (text.empty()) return std::nullopt;
  const U128 limit = ~U128{0};
  U128 value = 0;
  for (const char c : text) {
    unsigned digit = 0;
    if (c >= '0' && c <= '9') {
      digit = static_cast<unsigned>(c - '0');
    } else if (base == 16 && ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')) {
      digit = static_cast<unsigned>((c | 0x20) - 'a') + 10;
    } else {
      return std::nullopt;
    }
    if (value > (limit - digit) / base) return std::nullopt;
    value = value * base + digit;
  }
  return value;
}

/// Up to `most` groups separated by `separator`, each of at most `bits` bits in the given base.
std::optional<std::vector<unsigned>> parse_groups(std::string_view text, char separator, int base,
                                                  unsigned bits, std::size_t most) {
  std::vector<unsigned> groups;
  while (true) {
    const std::size_t cut = text.find(separator);
    const std::string_view part = text.substr(0, cut);
    unsigned value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value, base);
    if (error != std::errc{} || end != part.data() + part.size() || (value >> bits) != 0) {
      return std::nullopt;
    }
    groups.push_back(value);
    if (groups.size() > most) return std::nullopt;
    if (cut == std::string_view::npos) return groups;
    text.remove_prefix(cut + 1);
  }
}

std::optional<U128> joined(const std::optional<std::vector<unsigned>>& groups, std::size_t expected,
                           unsigned bits) {
  if (!groups || groups->size() != expected) return std::nullopt;
  U128 value = 0;
  for (const unsigned group : *groups) value = value << bits | group;
  return value;
}

std::optional<U128> parse_ipv6(std::string_view text) {
  // An IPv4 tail ("::ffff:10.0.0.1") stands for the last two groups.
  std::string flat(text);
  if (const std::size_t dot = flat.find('.'); dot != std::string::npos) {
    const std::size_t colon = flat.rfind(':');
    if (colon == std::string::npos) return std::nullopt;
    const auto tail =
        joined(parse_groups(std::string_view(flat).substr(colon + 1), '.', 10, 8, 4), 4, 8);
    if (!tail) return std::nullopt;
    flat = fmt::format("{}{:x}:{:x}", flat.substr(0, colon + 1), static_cast<unsigned>(*tail >> 16),
                       static_cast<unsigned>(*tail & 0xffff));
  }
  const std::string_view view = flat;
  const std::size_t gap = view.find("::");
  if (gap == std::string_view::npos) return joined(parse_groups(view, ':', 16, 16, 8), 8, 16);
  std::vector<unsigned> head;
  std::vector<unsigned> tail;
  if (gap > 0) {
    auto groups = parse_groups(view.substr(0, gap), ':', 16, 16, 8);
    if (!groups) return std::nullopt;
    head = *groups;
  }
  if (gap + 2 < view.size()) {
    auto groups = parse_groups(view.substr(gap + 2), ':', 16, 16, 8);
    if (!groups) return std::nullopt;
    tail = *groups;
  }
  if (head.size() + tail.size() > 7) return std::nullopt;
  head.resize(8 - tail.size(), 0);
  head.insert(head.end(), tail.begin(), tail.end());
  return joined(head, 8, 16);
}

std::string hex(U128 value) {
  const auto high = static_cast<std::uint64_t>(value >> 64);
  const auto low = static_cast<std::uint64_t>(value);
  return high != 0 ? fmt::format("0x{:x}{:016x}", high, low) : fmt::format("0x{:x}", low);
}

std::string ipv6_text(U128 value) {
  std::array<unsigned, 8> groups{};
  for (std::size_t i = 0; i < 8; ++i) {
    groups[i] = static_cast<unsigned>(value >> (16 * (7 - i)) & 0xffff);
  }
  // The longest run of at least two zero groups is written "::" (RFC 5952).
  std::size_t best = 0;
  std::size_t best_length = 1;
  for (std::size_t i = 0; i < 8; ++i) {
    std::size_t length = 0;
    while (i + length < 8 && groups[i + length] == 0) ++length;
    if (length > best_length) {
      best = i;
      best_length = length;
    }
  }
  std::string text;
  for (std::size_t i = 0; i < 8;) {
    if (best_length > 1 && i == best) {
      text += "::";
      i += best_length;
      continue;
    }
    if (!text.empty() && text.back() != ':') text += ':';
    text += fmt::format("{:x}", groups[i]);
    ++i;
  }
  return text;
}

}  // namespace

std::span<const MatchFieldInfo> match_fields() { return kFields; }

const MatchFieldInfo& info(MatchField field) { return kFields[static_cast<std::size_t>(field)]; }

std::optional<MatchField> match_field_named(std::string_view name) {
  const auto* found = std::find_if(kFields.begin(), kFields.end(),
                                   [&](const MatchFieldInfo& row) { return row.name == name; });
  if (found == kFields.end()) return std::nullopt;
  return found->field;
}

U128 full_mask(MatchField field) {
  const unsigned width = info(field).width_bits;
  return width == 128 ? ~U128{0} : (U128{1} << width) - 1;
}

std::string field_value_to_string(MatchField field, U128 value) {
  const auto low = static_cast<std::uint64_t>(value);
  switch (info(field).format) {
    case FieldFormat::kDecimal:
      return fmt::format("{}", low);
    case FieldFormat::kHex:
      return hex(value);
    case FieldFormat::kEthernet:
      return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", low >> 40 & 255,
                         low >> 32 & 255, low >> 24 & 255, low >> 16 & 255, low >> 8 & 255,
                         low & 255);
    case FieldFormat::kIpv4:
      return fmt::format("{}.{}.{}.{}", low >> 24 & 255, low >> 16 & 255, low >> 8 & 255,
                         low & 255);
    case FieldFormat::kIpv6:
      return ipv6_text(value);
  }
  return {};
}

std::optional<U128> field_value_from_string(MatchField field, std::string_view text) {
  std::optional<U128> value;
  const FieldFormat format = info(field).format;
  if (format == FieldFormat::kEthernet && text.find(':') != std::string_view::npos) {
    value = joined(parse_groups(text, ':', 16, 8, 6), 6, 8);
  } else if (format == FieldFormat::kIpv4 && text.find('.') != std::string_view::npos) {
    value = joined(parse_groups(text, '.', 10, 8, 4), 4, 8);
  } else if (format == FieldFormat::kIpv6 && text.find(':') != std::string_view::npos) {
    value = parse_ipv6(text);
  } else {
    value = parse_number(text);
  }
  if (!value || (*value & ~full_mask(field)) != 0) return std::nullopt;
  return value;
}

}  // namespace greynic
