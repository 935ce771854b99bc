#pragma once

/// The one table of match fields: everything a rule can look at in a packet, with its width and how
/// rte_flow, tc flower and Open vSwitch spell it. It covers the outer layers, tunnel and RoCE
/// fields of NVIDIA's match specification, the first inner layer, and the registers and
/// connection-tracking state that an Open vSwitch pipeline matches between its tables.
///
/// A packet is the vector of all field values; a field that a packet does not have reads as zero.
/// Headers a field needs are named by `needs` (say ether_type=0x0800), so that generators can
/// respect them; matching itself is pure bit comparison.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace greynic {

/// Wide enough for the widest field (an IPv6 address).
__extension__ typedef unsigned __int128 U128;

enum class MatchField : std::uint8_t {
  kInPort,
  kMetadata,
  kEthernetDst,
  kEthernetSrc,
  kEtherType,
  kVlanPresent,
  kVlanId,
  kVlanPriority,
  kVlanEtherType,
  kSvlanPresent,
  kSvlanId,
  kSvlanPriority,
  kIpVersion,
  kIpv4Src,
  kIpv4Dst,
  kIpv6Src,
  kIpv6Dst,
  kIpv6FlowLabel,
  kIpProtocol,
  kIpDscp,
  kIpEcn,
  kIpTtl,
  kIpFragment,
  kArpOperation,
  kArpSenderIpv4,
  kArpTargetIpv4,
  kArpSenderEthernet,
  kArpTargetEthernet,
  kIcmpType,
  kIcmpCode,
  kNdTarget,
  kNdSourceEthernet,
  kNdTargetEthernet,
  kL4SrcPort,
  kL4DstPort,
  kTcpFlags,
  kTunnelIpv4Src,
  kTunnelIpv4Dst,
  kVxlanVni,
  kGreKey,
  kBthOpcode,
  kBthDestinationQp,
  kInnerEthernetDst,
  kInnerEthernetSrc,
  kInnerEtherType,
  kInnerIpv4Src,
  kInnerIpv4Dst,
  kInnerIpv6Src,
  kInnerIpv6Dst,
  kInnerIpProtocol,
  kInnerL4SrcPort,
  kInnerL4DstPort,
  kCtState,
  kCtZone,
  kCtMark,
  kCtLabel,
  kPacketMark,
  kConjunctionId,
  kRecirculationId,
  kDatapathHash,
  kReg0,
  kReg1,
  kReg2,
  kReg3,
  kReg4,
  kReg5,
  kReg6,
  kReg7,
  kReg8,
  kReg9,
  kReg10,
  kReg11,
  kReg12,
  kReg13,
  kReg14,
  kReg15,
};

enum class FieldLayer : std::uint8_t {
  kPort,
  kEthernet,
  kVlan,
  kIp,
  kArp,
  kIcmp,
  kL4,
  kTunnel,
  kRoce,
  kInner,
  kConnection,
  kRegister,
};

/// How a value is written in files: addresses as addresses, the rest as numbers.
enum class FieldFormat : std::uint8_t { kDecimal, kHex, kEthernet, kIpv4, kIpv6 };

struct MatchFieldInfo {
  MatchField field;
  std::string_view name;    ///< greynic's spelling, used in JSON, columns and reports
  std::uint8_t width_bits;  ///< 1 to 128
  FieldLayer layer;
  FieldFormat format;
  std::string_view rte_flow;   ///< item.member of DPDK's rte_flow; empty: not offered there
  std::string_view tc_flower;  ///< key of tc-flower(8); empty: not offered there
  std::string_view ovs;        ///< name in ovs-fields(7); empty: not offered there
  std::string_view needs;  ///< "field=value", the header that must be there; alternatives by '|'
};

/// All fields, indexed by MatchField; the order is the canonical order of fields everywhere.
[[nodiscard]] std::span<const MatchFieldInfo> match_fields();

inline constexpr std::size_t kMatchFieldCount = static_cast<std::size_t>(MatchField::kReg15) + 1;

[[nodiscard]] const MatchFieldInfo& info(MatchField field);
[[nodiscard]] std::optional<MatchField> match_field_named(std::string_view name);

/// All `width_bits` ones.
[[nodiscard]] U128 full_mask(MatchField field);

/// A value as `info(field).format` says: "10.1.2.0", "fa:16:3e:44:48:72", "0x0800", "443".
[[nodiscard]] std::string field_value_to_string(MatchField field, U128 value);

/// Reads what field_value_to_string writes, and any field in decimal or 0x hex.
/// Empty when the text is no such value or has more bits than the field.
[[nodiscard]] std::optional<U128> field_value_from_string(MatchField field, std::string_view text);

}  // namespace greynic
