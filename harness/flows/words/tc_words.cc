/// Filters as tc-flower(8) spells them. The program reads some numbers as hexadecimal whatever they
/// look like (ip_proto, ip_ttl, ip_tos) and some as decimal only (type, code), so each is written
/// in the base that it is read in.

#include <fmt/core.h>
#include <linux/if_ether.h>

#include <array>
#include <bit>
#include <optional>
#include <string_view>

#include "common/action_limits.h"
#include "common/named_headers.h"
#include "common/tunnel_options.h"
#include "tc/tc_flower.h"
#include "tc/tc_place.h"
#include "words/words.h"

namespace greynic::flows {
namespace {

using F = MatchField;

enum class TcValue : std::uint8_t {
  kAddress,  ///< prefixes only
  kMac,      ///< address/mask
  kHex,      ///< 0xVALUE/0xMASK
  kDecimal,  ///< value/mask
  kExact,    ///< 0xVALUE; a mask has no words
  kExactDecimal,
};
struct TcWord {
  MatchField field;
  TcValue value;
};
constexpr std::array kTcWords = {
    TcWord{F::kEthernetDst, TcValue::kMac},       TcWord{F::kEthernetSrc, TcValue::kMac},
    TcWord{F::kVlanId, TcValue::kExactDecimal},   TcWord{F::kVlanPriority, TcValue::kExactDecimal},
    TcWord{F::kSvlanId, TcValue::kExactDecimal},  TcWord{F::kSvlanPriority, TcValue::kExactDecimal},
    TcWord{F::kIpv4Src, TcValue::kAddress},       TcWord{F::kIpv4Dst, TcValue::kAddress},
    TcWord{F::kIpv6Src, TcValue::kAddress},       TcWord{F::kIpv6Dst, TcValue::kAddress},
    TcWord{F::kIpProtocol, TcValue::kExact},      TcWord{F::kIpTtl, TcValue::kHex},
    TcWord{F::kArpSenderIpv4, TcValue::kAddress}, TcWord{F::kArpTargetIpv4, TcValue::kAddress},
    TcWord{F::kArpSenderEthernet, TcValue::kMac}, TcWord{F::kArpTargetEthernet, TcValue::kMac},
    TcWord{F::kIcmpType, TcValue::kDecimal},      TcWord{F::kIcmpCode, TcValue::kDecimal},
    TcWord{F::kL4SrcPort, TcValue::kDecimal},     TcWord{F::kL4DstPort, TcValue::kDecimal},
    TcWord{F::kTcpFlags, TcValue::kHex},          TcWord{F::kTunnelIpv4Src, TcValue::kAddress},
    TcWord{F::kTunnelIpv4Dst, TcValue::kAddress}, TcWord{F::kVxlanVni, TcValue::kExactDecimal},
    TcWord{F::kCtZone, TcValue::kDecimal},        TcWord{F::kCtMark, TcValue::kHex}};

constexpr std::array<std::string_view, 6> kTcStates = {"new", "est", "rel", "rpl", "inv", "trk"};

tl::unexpected<Error> no_tc_word(std::string_view what, std::string_view why) {
  return fail(ErrorCode::kUnsupported,
              fmt::format("tc has no words for {}: {}; `greynic apply` can say it to the kernel",
                          what, why));
}

/// Length of a mask that is a prefix.
std::optional<unsigned> prefix_of(const FieldMatch& part) {
  const unsigned width = info(part.field).width_bits;
  for (unsigned length = 0; length <= width; ++length) {
    const U128 bits =
        full_mask(part.field) & ~(length == width ? 0 : full_mask(part.field) >> length);
    if (bits == part.bits) return length;
  }
  return std::nullopt;
}

Result<std::string> tc_number(const FieldMatch& part, TcValue form) {
  const auto value = static_cast<std::uint64_t>(part.value);
  const auto bits = static_cast<std::uint64_t>(part.bits);
  const bool whole = part.bits == full_mask(part.field);
  const std::string name(info(part.field).name);
  switch (form) {
    case TcValue::kAddress: {
      const auto length = prefix_of(part);
      if (!length) return no_tc_word(name, "it takes prefixes only");
      return fmt::format("{}/{}", field_value_to_string(part.field, part.value), *length);
    }
    case TcValue::kMac:
      return fmt::format("{}/{}", field_value_to_string(part.field, part.value),
                         field_value_to_string(part.field, part.bits));
    case TcValue::kHex:
      return fmt::format("{:#x}/{:#x}", value, bits);
    case TcValue::kDecimal:
      return fmt::format("{}/{}", value, bits);
    case TcValue::kExact:
    case TcValue::kExactDecimal:
      if (!whole) return no_tc_word(name, "it takes no mask, only an exact value");
      return form == TcValue::kExact ? fmt::format("{:#x}", value) : fmt::format("{}", value);
  }
  return no_tc_word(name, "its form is unknown");
}

/// DSCP and ECN are one byte there.
std::string tc_tos(const Match& match) {
  unsigned value = 0;
  unsigned bits = 0;
  for (const FieldMatch& part : match.fields()) {
    if (part.field != F::kIpDscp && part.field != F::kIpEcn) continue;
    const unsigned shift = part.field == F::kIpDscp ? 2 : 0;
    value |= static_cast<unsigned>(part.value) << shift;
    bits |= static_cast<unsigned>(part.bits) << shift;
  }
  return bits == 0 ? "" : fmt::format(" ip_tos {:#x}/{:#x}", value, bits);
}

std::string tc_state(const FieldMatch& part) {
  std::string text = " ct_state ";
  for (std::size_t bit = 0; bit < kTcStates.size(); ++bit) {
    if ((part.bits >> bit & 1) == 0) continue;
    text += fmt::format("{}{}", (part.value >> bit & 1) != 0 ? '+' : '-', kTcStates[bit]);
  }
  return text;
}

/// put_flower_match has refused all forms but these four.
std::string_view tc_fragment(const FieldMatch& part) {
  if (part.value == 0) return " ip_flags nofrag";
  if (part.value == 3) return " ip_flags frag/nofirstfrag";
  return part.bits == 1 ? " ip_flags frag" : " ip_flags frag/firstfrag";
}

std::string tc_type_word(std::uint16_t type) {
  if (type == ETH_P_IP) return "ip";
  if (type == ETH_P_IPV6) return "ipv6";
  if (type == ETH_P_ARP) return "arp";
  if (type == ETH_P_8021Q) return "802.1Q";
  return type == ETH_P_ALL ? "all" : fmt::format("{:#06x}", type);
}

/// One part of the match; fields that other words say give none.
Result<std::string> tc_part(const Match& match, const FieldMatch& part) {
  const auto tagged = exact_value(match, F::kVlanPresent) == U128{1};
  const auto tagged_twice = exact_value(match, F::kSvlanPresent) == U128{1};
  switch (part.field) {
    case F::kEtherType:  // the filter's own protocol where there is no tag
      if (!tagged) return std::string();
      return fmt::format(" {} {}", tagged_twice ? "cvlan_ethtype" : "vlan_ethtype",
                         tc_type_word(static_cast<std::uint16_t>(part.value)));
    case F::kVlanPresent:
      return std::string(tagged_twice ? " vlan_ethtype 802.1Q" : "");
    case F::kSvlanPresent:
    case F::kIpEcn:
      return std::string();
    case F::kIpFragment:
      return std::string(tc_fragment(part));
    case F::kCtState:
      return tc_state(part);
    case F::kArpOperation:
      if (part.value == 1 || part.value == 2) {
        return fmt::format(" arp_op {}", static_cast<unsigned>(part.value));
      }
      return no_tc_word("arp_operation", "it knows requests (1) and replies (2)");
    default:
      break;
  }
  for (const TcWord& word : kTcWords) {
    if (word.field != part.field) continue;
    auto number = tc_number(part, word.value);
    if (!number) return number;
    return fmt::format(" {} {}", info(part.field).tc_flower, *number);
  }
  return no_tc_word(info(part.field).name, "the program does not take it");
}

/// Whether the words that say a field's header come before the field itself: the program reads
/// them in order.
int reading_rank(MatchField field) {
  if (field == F::kVlanPresent) return 0;
  if (field == F::kVlanId || field == F::kVlanPriority) return 1;
  if (field == F::kSvlanId || field == F::kSvlanPriority) return 2;
  if (field == F::kEtherType) return 3;
  return field == F::kIpProtocol ? 4 : 5;
}

Result<std::string> tc_action(const Action& action, bool last) {
  const std::string_view then = last ? "pass" : "pipe";
  if (const auto why = too_large(action)) return no_tc_word(to_string(action), *why);
  const bool ends = action.kind == ActionKind::kDrop || action.kind == ActionKind::kJump;
  if (ends && !last) return no_tc_word(to_string(action), "nothing can follow it");
  switch (action.kind) {
    case ActionKind::kDrop:
      return std::string(" action drop");
    case ActionKind::kJump:
      if (action.number > kLastChain) {
        return no_tc_word(to_string(action), fmt::format("chains end at {}", kLastChain));
      }
      return fmt::format(" action goto chain {}", action.number);
    case ActionKind::kCount:
      return fmt::format(" action gact {}", then);
    case ActionKind::kForward:
      return fmt::format(" action mirred egress {} dev {}", last ? "redirect" : "mirror",
                         action.text);
    case ActionKind::kSetField:
      if (action.field != F::kPacketMark) {
        return no_tc_word(to_string(action), "only packet_mark can be set");
      }
      return fmt::format(" action skbedit mark {:#x}/{:#x} {}",
                         static_cast<std::uint64_t>(action.value),
                         static_cast<std::uint64_t>(action.bits), then);
    case ActionKind::kPushVlan:
      return fmt::format(" action vlan push id {} protocol 802.1Q {}", action.number, then);
    case ActionKind::kPopVlan:
      return fmt::format(" action vlan pop {}", then);
    case ActionKind::kVxlanEncap: {
      const auto tunnel = read_tunnel_options(action.text);
      if (!tunnel) return no_tc_word(to_string(action), tunnel.error().message);
      return fmt::format(" action tunnel_key set src_ip {} dst_ip {} id {} dst_port {} {}",
                         field_value_to_string(F::kIpv4Src, tunnel->src),
                         field_value_to_string(F::kIpv4Dst, tunnel->dst), action.number,
                         tunnel->port, then);
    }
    case ActionKind::kVxlanDecap:
      return fmt::format(" action tunnel_key unset {}", then);
    case ActionKind::kMeter:
    case ActionKind::kOther:
      break;
  }
  return no_tc_word(to_string(action), "it belongs to another interface");
}

}  // namespace

Result<std::string> tc_words(const FlowRule& rule, unsigned preference) {
  os::NetlinkMessage unsent(0, 0, std::uint32_t{0});  // what the kernel could not match is refused in its own terms
  if (const auto possible = put_flower_match(unsent, rule.match); !possible) {
    return pass_on(possible);
  }
  std::string text =
      fmt::format("protocol {} prio {} flower", tc_type_word(tc_protocol(rule.match)), preference);
  constexpr int kLastRank = 5;
  for (int rank = 0; rank <= kLastRank; ++rank) {
    for (const FieldMatch& part : rule.match.fields()) {
      if (reading_rank(part.field) != rank || part.field == F::kIpDscp) continue;
      auto words = tc_part(rule.match, part);
      if (!words) return words;
      text += *words;
    }
  }
  text += tc_tos(rule.match);
  if (rule.actions.empty()) text += " action drop";
  for (std::size_t i = 0; i < rule.actions.size(); ++i) {
    auto words = tc_action(rule.actions[i], i + 1 == rule.actions.size());
    if (!words) return words;
    text += *words;
  }
  return text;
}

}  // namespace greynic::flows
