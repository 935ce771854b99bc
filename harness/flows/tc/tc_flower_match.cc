#include <arpa/inet.h>
#include <fmt/core.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>

#include <algorithm>
#include <array>

#include "common/named_headers.h"
#include "common/refusal.h"
#include "greynic/core/wire_numbers.h"
#include "tc/tc_flower.h"

namespace greynic::flows {
namespace {

using F = MatchField;

constexpr std::uint16_t kNoMask = 0;  ///< in place of a mask attribute: exact values only

enum class Order : std::uint8_t { kNetwork, kNative };

/// A field that is one attribute, and one for its mask.
struct Key {
  MatchField field;
  std::uint16_t value;
  std::uint16_t mask;
  std::uint8_t width_bytes;
  Order order = Order::kNetwork;
};

constexpr std::array kKeys = {
    Key{F::kEthernetDst, TCA_FLOWER_KEY_ETH_DST, TCA_FLOWER_KEY_ETH_DST_MASK, 6},
    Key{F::kEthernetSrc, TCA_FLOWER_KEY_ETH_SRC, TCA_FLOWER_KEY_ETH_SRC_MASK, 6},
    Key{F::kIpv4Src, TCA_FLOWER_KEY_IPV4_SRC, TCA_FLOWER_KEY_IPV4_SRC_MASK, 4},
    Key{F::kIpv4Dst, TCA_FLOWER_KEY_IPV4_DST, TCA_FLOWER_KEY_IPV4_DST_MASK, 4},
    Key{F::kIpv6Src, TCA_FLOWER_KEY_IPV6_SRC, TCA_FLOWER_KEY_IPV6_SRC_MASK, 16},
    Key{F::kIpv6Dst, TCA_FLOWER_KEY_IPV6_DST, TCA_FLOWER_KEY_IPV6_DST_MASK, 16},
    Key{F::kIpProtocol, TCA_FLOWER_KEY_IP_PROTO, kNoMask, 1},
    Key{F::kIpTtl, TCA_FLOWER_KEY_IP_TTL, TCA_FLOWER_KEY_IP_TTL_MASK, 1},
    Key{F::kArpOperation, TCA_FLOWER_KEY_ARP_OP, kNoMask, 1},
    Key{F::kArpSenderIpv4, TCA_FLOWER_KEY_ARP_SIP, TCA_FLOWER_KEY_ARP_SIP_MASK, 4},
    Key{F::kArpTargetIpv4, TCA_FLOWER_KEY_ARP_TIP, TCA_FLOWER_KEY_ARP_TIP_MASK, 4},
    Key{F::kArpSenderEthernet, TCA_FLOWER_KEY_ARP_SHA, TCA_FLOWER_KEY_ARP_SHA_MASK, 6},
    Key{F::kArpTargetEthernet, TCA_FLOWER_KEY_ARP_THA, TCA_FLOWER_KEY_ARP_THA_MASK, 6},
    Key{F::kTcpFlags, TCA_FLOWER_KEY_TCP_FLAGS, TCA_FLOWER_KEY_TCP_FLAGS_MASK, 2},
    Key{F::kTunnelIpv4Src, TCA_FLOWER_KEY_ENC_IPV4_SRC, TCA_FLOWER_KEY_ENC_IPV4_SRC_MASK, 4},
    Key{F::kTunnelIpv4Dst, TCA_FLOWER_KEY_ENC_IPV4_DST, TCA_FLOWER_KEY_ENC_IPV4_DST_MASK, 4},
    Key{F::kVxlanVni, TCA_FLOWER_KEY_ENC_KEY_ID, kNoMask, 4},
    Key{F::kCtZone, TCA_FLOWER_KEY_CT_ZONE, TCA_FLOWER_KEY_CT_ZONE_MASK, 2, Order::kNative},
    Key{F::kCtMark, TCA_FLOWER_KEY_CT_MARK, TCA_FLOWER_KEY_CT_MARK_MASK, 4, Order::kNative},
    Key{F::kCtLabel, TCA_FLOWER_KEY_CT_LABELS, TCA_FLOWER_KEY_CT_LABELS_MASK, 16, Order::kNative}};

/// Fields whose attribute depends on a header of the same match.
struct HeaderKey {
  MatchField field;
  MatchField header;
  unsigned header_value;
  std::uint16_t value;
  std::uint16_t mask;
  std::uint8_t width_bytes;
};
constexpr unsigned kTcp = 6;
constexpr std::array kHeaderKeys = {
    HeaderKey{F::kL4SrcPort, F::kIpProtocol, kTcp, TCA_FLOWER_KEY_TCP_SRC,
              TCA_FLOWER_KEY_TCP_SRC_MASK, 2},
    HeaderKey{F::kL4DstPort, F::kIpProtocol, kTcp, TCA_FLOWER_KEY_TCP_DST,
              TCA_FLOWER_KEY_TCP_DST_MASK, 2},
    HeaderKey{F::kL4SrcPort, F::kIpProtocol, ip_protocol::kUdp, TCA_FLOWER_KEY_UDP_SRC,
              TCA_FLOWER_KEY_UDP_SRC_MASK, 2},
    HeaderKey{F::kL4DstPort, F::kIpProtocol, ip_protocol::kUdp, TCA_FLOWER_KEY_UDP_DST,
              TCA_FLOWER_KEY_UDP_DST_MASK, 2},
    HeaderKey{F::kL4SrcPort, F::kIpProtocol, ip_protocol::kSctp, TCA_FLOWER_KEY_SCTP_SRC,
              TCA_FLOWER_KEY_SCTP_SRC_MASK, 2},
    HeaderKey{F::kL4DstPort, F::kIpProtocol, ip_protocol::kSctp, TCA_FLOWER_KEY_SCTP_DST,
              TCA_FLOWER_KEY_SCTP_DST_MASK, 2},
    HeaderKey{F::kIcmpType, F::kEtherType, ETH_P_IP, TCA_FLOWER_KEY_ICMPV4_TYPE,
              TCA_FLOWER_KEY_ICMPV4_TYPE_MASK, 1},
    HeaderKey{F::kIcmpCode, F::kEtherType, ETH_P_IP, TCA_FLOWER_KEY_ICMPV4_CODE,
              TCA_FLOWER_KEY_ICMPV4_CODE_MASK, 1},
    HeaderKey{F::kIcmpType, F::kEtherType, ETH_P_IPV6, TCA_FLOWER_KEY_ICMPV6_TYPE,
              TCA_FLOWER_KEY_ICMPV6_TYPE_MASK, 1},
    HeaderKey{F::kIcmpCode, F::kEtherType, ETH_P_IPV6, TCA_FLOWER_KEY_ICMPV6_CODE,
              TCA_FLOWER_KEY_ICMPV6_CODE_MASK, 1}};

/// Fields that are put by code of their own below.
constexpr std::array kOwnCode = {
    F::kEtherType,     F::kVlanPresent, F::kVlanId, F::kVlanPriority, F::kSvlanPresent, F::kSvlanId,
    F::kSvlanPriority, F::kIpDscp,      F::kIpEcn,  F::kIpFragment,   F::kCtState};
constexpr std::array kExactOnly = {F::kEtherType,    F::kVlanPresent,  F::kVlanId,
                                   F::kVlanPriority, F::kSvlanPresent, F::kSvlanId,
                                   F::kSvlanPriority};

/// Bits of ct_state: Open vSwitch's, which the field table uses, and tc's.
struct StateBit {
  unsigned ours;
  unsigned theirs;
};
constexpr std::array kStateBits = {StateBit{0x01, TCA_FLOWER_KEY_CT_FLAGS_NEW},
                                   StateBit{0x02, TCA_FLOWER_KEY_CT_FLAGS_ESTABLISHED},
                                   StateBit{0x04, TCA_FLOWER_KEY_CT_FLAGS_RELATED},
                                   StateBit{0x08, TCA_FLOWER_KEY_CT_FLAGS_REPLY},
                                   StateBit{0x10, TCA_FLOWER_KEY_CT_FLAGS_INVALID},
                                   StateBit{0x20, TCA_FLOWER_KEY_CT_FLAGS_TRACKED}};

/// ip_fragment: bit 0 is "a fragment", bit 1 "not the first one".
struct FragmentForm {
  unsigned value, bits;
  std::uint32_t flags, flags_mask;
};
constexpr std::uint32_t kFragment = TCA_FLOWER_KEY_FLAGS_IS_FRAGMENT;
constexpr std::uint32_t kFirst = TCA_FLOWER_KEY_FLAGS_FRAG_IS_FIRST;
constexpr std::array kFragmentForms = {FragmentForm{0, 3, 0, kFragment},
                                       FragmentForm{1, 1, kFragment, kFragment},
                                       FragmentForm{1, 3, kFragment | kFirst, kFragment | kFirst},
                                       FragmentForm{3, 3, kFragment, kFragment | kFirst}};

bool contains(const auto& list, MatchField field) {
  return std::find(list.begin(), list.end(), field) != list.end();
}

std::vector<std::uint8_t> bytes_of(U128 number, std::size_t width, Order order) {
  std::vector<std::uint8_t> bytes(width);
  for (std::size_t i = 0; i < width; ++i) {
    const std::size_t shift = 8 * (order == Order::kNetwork ? width - 1 - i : i);
    bytes[i] = static_cast<std::uint8_t>(number >> shift);
  }
  return bytes;
}

U128 number_of(os::ByteView bytes, Order order) {
  U128 number = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::size_t from = order == Order::kNetwork ? i : bytes.size() - 1 - i;
    number = number << 8 | bytes[from];
  }
  return number;
}

void put_number(os::NetlinkMessage& message, std::uint16_t attribute, U128 number,
                std::size_t width, Order order = Order::kNetwork) {
  message.put(attribute, bytes_of(number, width, order));
}

bool is_vlan_type(std::uint64_t type) { return type == ETH_P_8021Q || type == ETH_P_8021AD; }

/// Why the kernel would not take this connection state (fl_validate_ct_state).
std::optional<std::string> state_objection(const FieldMatch& part) {
  const auto is = [&](unsigned bit) { return (part.value & bit) != 0; };
  if ((part.bits & ~U128{0x3f}) != 0) return "only new, est, rel, rpl, inv and trk exist there";
  if (part.value != 0 && !is(0x20)) return "without trk no other state can be asked for";
  if (is(0x01) && is(0x02)) return "it takes new or est, not both";
  if (is(0x10) && (part.value & ~U128{0x30}) != 0) return "with inv it takes trk only";
  if (is(0x01) && is(0x08)) return "it takes new or rpl, not both";
  return std::nullopt;
}

std::optional<std::string> objection(const Match& match, const FieldMatch& part) {
  if (part.field == F::kInPort) return "filters belong to an interface already";
  if (!tc_takes(part.field)) return "this driver knows no key for it";
  if (part.bits != full_mask(part.field) && !tc_takes_any_mask(part.field)) {
    return "it takes no mask, only an exact value";
  }
  if ((part.field == F::kVlanPresent || part.field == F::kSvlanPresent) && part.value == 0) {
    return "only a tag can be asked for, not its absence; an exact ether_type means no tag there";
  }
  if (part.field == F::kSvlanPresent && !exact_value(match, F::kVlanPresent)) {
    return "it needs vlan_present=1 in the same rule";
  }
  if (part.field == F::kArpOperation && part.value > 255) return "operations end at 255 there";
  if (part.field == F::kCtState) return state_objection(part);
  if (part.field == F::kIpFragment &&
      std::none_of(kFragmentForms.begin(), kFragmentForms.end(), [&](const FragmentForm& form) {
        return form.value == part.value && form.bits == part.bits;
      })) {
    return "it knows only " + tc_forms(part.field);
  }
  // Tunnel keys are metadata of the packet there: no outer header has to be named.
  if (info(part.field).layer != FieldLayer::kTunnel) return missing_header(match, part.field);
  return std::nullopt;
}

/// Types of the tags and of what is behind them.
void put_types(os::NetlinkMessage& message, const Match& match) {
  const auto type = exact_value(match, F::kEtherType);
  const auto put = [&](std::uint16_t attribute, U128 value) {
    put_number(message, attribute, value, 2);
  };
  if (!exact_value(match, F::kVlanPresent)) {
    if (type) put(TCA_FLOWER_KEY_ETH_TYPE, *type);
    return;
  }
  put(TCA_FLOWER_KEY_ETH_TYPE, ETH_P_8021Q);
  if (const auto id = exact_value(match, F::kVlanId)) {
    message.put_value(TCA_FLOWER_KEY_VLAN_ID, static_cast<std::uint16_t>(*id));
  }
  if (const auto priority = exact_value(match, F::kVlanPriority)) {
    message.put_value(TCA_FLOWER_KEY_VLAN_PRIO, static_cast<std::uint8_t>(*priority));
  }
  if (!exact_value(match, F::kSvlanPresent)) {
    if (type) put(TCA_FLOWER_KEY_VLAN_ETH_TYPE, *type);
    return;
  }
  put(TCA_FLOWER_KEY_VLAN_ETH_TYPE, ETH_P_8021Q);
  if (const auto id = exact_value(match, F::kSvlanId)) {
    message.put_value(TCA_FLOWER_KEY_CVLAN_ID, static_cast<std::uint16_t>(*id));
  }
  if (const auto priority = exact_value(match, F::kSvlanPriority)) {
    message.put_value(TCA_FLOWER_KEY_CVLAN_PRIO, static_cast<std::uint8_t>(*priority));
  }
  if (type) put(TCA_FLOWER_KEY_CVLAN_ETH_TYPE, *type);
}

/// DSCP and ECN are one byte there.
void put_tos(os::NetlinkMessage& message, const Match& match) {
  unsigned value = 0;
  unsigned bits = 0;
  for (const FieldMatch& part : match.fields()) {
    if (part.field != F::kIpDscp && part.field != F::kIpEcn) continue;
    const unsigned shift = part.field == F::kIpDscp ? 2 : 0;
    value |= static_cast<unsigned>(part.value) << shift;
    bits |= static_cast<unsigned>(part.bits) << shift;
  }
  if (bits == 0) return;
  put_number(message, TCA_FLOWER_KEY_IP_TOS, value, 1);
  put_number(message, TCA_FLOWER_KEY_IP_TOS_MASK, bits, 1);
}

void put_state(os::NetlinkMessage& message, const FieldMatch& part) {
  std::uint16_t value = 0;
  std::uint16_t bits = 0;
  for (const StateBit& bit : kStateBits) {
    if ((part.value & bit.ours) != 0) value |= static_cast<std::uint16_t>(bit.theirs);
    if ((part.bits & bit.ours) != 0) bits |= static_cast<std::uint16_t>(bit.theirs);
  }
  message.put_value(TCA_FLOWER_KEY_CT_STATE, value);
  message.put_value(TCA_FLOWER_KEY_CT_STATE_MASK, bits);
}

using Attributes = std::map<std::uint16_t, os::ByteView>;

/// The value of an attribute, if it is there.
std::optional<U128> number_at(const Attributes& attributes, std::uint16_t key,
                              Order order = Order::kNetwork) {
  const auto found = attributes.find(key);
  if (found == attributes.end()) return std::nullopt;
  return number_of(found->second, order);
}

void read_key(const Attributes& attributes, Match& match, MatchField field, std::uint16_t value,
              std::uint16_t mask, Order order = Order::kNetwork) {
  const auto number = number_at(attributes, value, order);
  if (!number) return;
  const U128 bits =
      mask == kNoMask ? full_mask(field) : number_at(attributes, mask, order).value_or(0);
  const U128 kept = bits & full_mask(field);
  match.set(field, *number & kept, kept);
}

/// The kernel shows the innermost type as the filter's own; that there is a tag follows from what
/// the filter is filed under, or from keys of the tag.
void read_types(const Attributes& attributes, Match& match, std::uint16_t filed_under) {
  const auto has_one = [&](std::initializer_list<std::uint16_t> keys) {
    return std::any_of(keys.begin(), keys.end(),
                       [&](std::uint16_t key) { return attributes.contains(key); });
  };
  std::optional<U128> type;
  bool tagged = is_vlan_type(filed_under);
  bool tagged_twice =
      has_one({TCA_FLOWER_KEY_CVLAN_ID, TCA_FLOWER_KEY_CVLAN_PRIO, TCA_FLOWER_KEY_CVLAN_ETH_TYPE});
  for (const std::uint16_t key :
       {TCA_FLOWER_KEY_ETH_TYPE, TCA_FLOWER_KEY_VLAN_ETH_TYPE, TCA_FLOWER_KEY_CVLAN_ETH_TYPE}) {
    const auto shown = number_at(attributes, key);
    if (!shown) continue;
    if (!is_vlan_type(static_cast<std::uint64_t>(*shown))) {
      type = shown;
    } else if (key == TCA_FLOWER_KEY_ETH_TYPE) {
      tagged = true;
    } else {
      tagged_twice = true;
    }
  }
  tagged =
      tagged || tagged_twice ||
      has_one({TCA_FLOWER_KEY_VLAN_ID, TCA_FLOWER_KEY_VLAN_PRIO, TCA_FLOWER_KEY_VLAN_ETH_TYPE});
  if (tagged) match.set(F::kVlanPresent, 1);
  if (tagged_twice) match.set(F::kSvlanPresent, 1);
  if (type) match.set(F::kEtherType, *type);
  const auto read = [&](MatchField field, std::uint16_t attribute) {
    if (const auto number = number_at(attributes, attribute, Order::kNative)) {
      match.set(field, *number);
    }
  };
  read(F::kVlanId, TCA_FLOWER_KEY_VLAN_ID);
  read(F::kVlanPriority, TCA_FLOWER_KEY_VLAN_PRIO);
  read(F::kSvlanId, TCA_FLOWER_KEY_CVLAN_ID);
  read(F::kSvlanPriority, TCA_FLOWER_KEY_CVLAN_PRIO);
}

void read_tos(const Attributes& attributes, Match& match) {
  const auto value = number_at(attributes, TCA_FLOWER_KEY_IP_TOS);
  if (!value) return;
  const U128 bits = number_at(attributes, TCA_FLOWER_KEY_IP_TOS_MASK).value_or(0);
  match.set(F::kIpDscp, *value >> 2, bits >> 2);
  match.set(F::kIpEcn, *value & 3, bits & 3);
}

void read_state(const Attributes& attributes, Match& match) {
  const auto value = number_at(attributes, TCA_FLOWER_KEY_CT_STATE, Order::kNative);
  if (!value) return;
  const U128 mask = number_at(attributes, TCA_FLOWER_KEY_CT_STATE_MASK, Order::kNative).value_or(0);
  U128 ours = 0;
  U128 bits = 0;
  for (const StateBit& bit : kStateBits) {
    if ((*value & bit.theirs) != 0) ours |= bit.ours;
    if ((mask & bit.theirs) != 0) bits |= bit.ours;
  }
  match.set(F::kCtState, ours & bits, bits);
}

bool read_fragment(const Attributes& attributes, Match& match) {
  const auto flags = number_at(attributes, TCA_FLOWER_KEY_FLAGS);
  if (!flags) return true;
  const U128 mask = number_at(attributes, TCA_FLOWER_KEY_FLAGS_MASK).value_or(0);
  for (const FragmentForm& form : kFragmentForms) {
    if (form.flags != (*flags & mask) || form.flags_mask != mask) continue;
    match.set(F::kIpFragment, form.value, form.bits);
    return true;
  }
  return false;
}

}  // namespace

bool tc_takes(MatchField field) {
  const auto is_it = [&](const auto& key) { return key.field == field; };
  return contains(kOwnCode, field) || std::any_of(kKeys.begin(), kKeys.end(), is_it) ||
         std::any_of(kHeaderKeys.begin(), kHeaderKeys.end(), is_it);
}

bool tc_takes_any_mask(MatchField field) {
  const auto key =
      std::find_if(kKeys.begin(), kKeys.end(), [&](const Key& row) { return row.field == field; });
  if (key != kKeys.end()) return key->mask != kNoMask;
  return !contains(kExactOnly, field);
}

std::set<MatchField> tc_whole_fields() {
  std::set<MatchField> whole;
  for (const MatchFieldInfo& row : match_fields()) {
    const bool any = tc_takes_any_mask(row.field) && tc_forms(row.field).empty();
    if (tc_takes(row.field) && !any) whole.insert(row.field);
  }
  return whole;
}

std::string tc_forms(MatchField field) {
  if (field == F::kIpFragment) return "no, yes, first and later";
  if (field == F::kCtState) return "new, est, rel, rpl, inv with trk, as docs/flows.md says";
  return "";
}

std::uint16_t tc_protocol(const Match& match) {
  if (exact_value(match, F::kVlanPresent)) return ETH_P_8021Q;
  const auto type = exact_value(match, F::kEtherType);
  return type ? static_cast<std::uint16_t>(*type) : std::uint16_t{ETH_P_ALL};
}

Result<void> put_flower_match(os::NetlinkMessage& message, const Match& match) {
  for (const FieldMatch& part : match.fields()) {
    if (const auto why = objection(match, part)) return kTcRefusal.of(part.field, *why);
  }
  put_types(message, match);
  put_tos(message, match);
  for (const FieldMatch& part : match.fields()) {
    for (const Key& key : kKeys) {
      if (key.field != part.field) continue;
      put_number(message, key.value, part.value, key.width_bytes, key.order);
      if (key.mask != kNoMask) put_number(message, key.mask, part.bits, key.width_bytes, key.order);
    }
    for (const HeaderKey& key : kHeaderKeys) {
      if (key.field != part.field || exact_value(match, key.header) != U128{key.header_value}) {
        continue;
      }
      put_number(message, key.value, part.value, key.width_bytes);
      put_number(message, key.mask, part.bits, key.width_bytes);
    }
    for (const FragmentForm& form : kFragmentForms) {
      if (part.field != F::kIpFragment || form.value != part.value || form.bits != part.bits) {
        continue;
      }
      put_number(message, TCA_FLOWER_KEY_FLAGS, form.flags, 4);
      put_number(message, TCA_FLOWER_KEY_FLAGS_MASK, form.flags_mask, 4);
    }
    if (part.field == F::kCtState) put_state(message, part);
  }
  return {};
}

Result<Match> read_flower_match(os::ByteView options, std::uint16_t filed_under) {
  Attributes attributes;
  os::each_attribute(options,
                     [&](std::uint16_t type, os::ByteView value) { attributes[type] = value; });
  Match match;
  read_types(attributes, match, filed_under);
  read_tos(attributes, match);
  read_state(attributes, match);
  if (!read_fragment(attributes, match)) {
    return fail(ErrorCode::kUnsupported, "a filter matches IP flags that no match field can hold");
  }
  for (const Key& key : kKeys) {
    read_key(attributes, match, key.field, key.value, key.mask, key.order);
  }
  for (const HeaderKey& key : kHeaderKeys) {
    read_key(attributes, match, key.field, key.value, key.mask);
  }
  for (const auto& [type, value] : attributes) {
    const auto one_of = [known = type](std::initializer_list<int> list) {
      return std::find(list.begin(), list.end(), known) != list.end();
    };
    if (one_of({TCA_FLOWER_INDEV, TCA_FLOWER_KEY_ENC_IPV6_SRC, TCA_FLOWER_KEY_ENC_IPV6_DST,
                TCA_FLOWER_KEY_ENC_UDP_SRC_PORT, TCA_FLOWER_KEY_ENC_UDP_DST_PORT,
                TCA_FLOWER_KEY_ENC_OPTS, TCA_FLOWER_KEY_MPLS_LABEL, TCA_FLOWER_KEY_MPLS_OPTS,
                TCA_FLOWER_KEY_PORT_SRC_MIN, TCA_FLOWER_KEY_PORT_DST_MIN, TCA_FLOWER_KEY_ENC_IP_TOS,
                TCA_FLOWER_KEY_ENC_IP_TTL, TCA_FLOWER_KEY_HASH})) {
      return fail(ErrorCode::kUnsupported,
                  fmt::format("a filter has a key (attribute {} of flower) that no match field can "
                              "hold",
                              type));
    }
  }
  for (const FieldMatch& part : match.fields()) {
    if (((part.value | part.bits) & ~full_mask(part.field)) != 0) {
      return fail(
          ErrorCode::kUnsupported,
          fmt::format("a filter's key for {} is wider than the field", info(part.field).name));
    }
  }
  return match;
}

}  // namespace greynic::flows
