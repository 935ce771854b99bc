#include "ovs_fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <span>

namespace greynic::rules {
namespace {

using F = MatchField;

struct Protocol {
  std::string_view name;
  std::uint16_t ether_type;
  std::uint8_t ip_protocol;  ///< 0: any
};
constexpr std::array kProtocols = {
    Protocol{"ip", 0x0800, 0},      Protocol{"ipv6", 0x86dd, 0},  Protocol{"arp", 0x0806, 0},
    Protocol{"rarp", 0x8035, 0},    Protocol{"mpls", 0x8847, 0},  Protocol{"icmp", 0x0800, 1},
    Protocol{"icmp6", 0x86dd, 58},  Protocol{"tcp", 0x0800, 6},   Protocol{"tcp6", 0x86dd, 6},
    Protocol{"udp", 0x0800, 17},    Protocol{"udp6", 0x86dd, 17}, Protocol{"sctp", 0x0800, 132},
    Protocol{"sctp6", 0x86dd, 132},
};

/// Names beside the one in the field table; ovs-fields(7) lists them all.
struct Alias {
  std::string_view name;
  MatchField field;
};
constexpr std::array kAliases = {
    Alias{"dl_src", F::kEthernetSrc},   Alias{"dl_dst", F::kEthernetDst},
    Alias{"dl_type", F::kEtherType},    Alias{"ip_src", F::kIpv4Src},
    Alias{"ip_dst", F::kIpv4Dst},       Alias{"ip_proto", F::kIpProtocol},
    Alias{"nw_dscp", F::kIpDscp},       Alias{"ip_ecn", F::kIpEcn},
    Alias{"ip_frag", F::kIpFragment},   Alias{"tcp_src", F::kL4SrcPort},
    Alias{"tcp_dst", F::kL4DstPort},    Alias{"udp_src", F::kL4SrcPort},
    Alias{"udp_dst", F::kL4DstPort},    Alias{"sctp_src", F::kL4SrcPort},
    Alias{"sctp_dst", F::kL4DstPort},   Alias{"arp_op", F::kArpOperation},
    Alias{"icmpv6_type", F::kIcmpType}, Alias{"tunnel_id", F::kVxlanVni},
    Alias{"icmpv6_code", F::kIcmpCode},
};

std::optional<MatchField> field_of(std::string_view key) {
  for (const Alias& alias : kAliases) {
    if (alias.name == key) return alias.field;
  }
  for (const MatchFieldInfo& row : match_fields()) {
    if (!row.ovs.empty() && row.ovs == key) return row.field;
  }
  return std::nullopt;
}

struct Flag {
  std::string_view name;
  unsigned bit;
};
constexpr std::array kCtFlags = {Flag{"new", 0}, Flag{"est", 1}, Flag{"rel", 2},  Flag{"rpl", 3},
                                 Flag{"inv", 4}, Flag{"trk", 5}, Flag{"snat", 6}, Flag{"dnat", 7}};
constexpr std::array kTcpFlagNames = {Flag{"fin", 0}, Flag{"syn", 1}, Flag{"rst", 2},
                                      Flag{"psh", 3}, Flag{"ack", 4}, Flag{"urg", 5},
                                      Flag{"ece", 6}, Flag{"cwr", 7}, Flag{"ns", 8}};

std::optional<U128> wide_number(std::string_view text) {
  return field_value_from_string(F::kCtLabel, text);  // any number of at most 128 bits
}

/// The bit of a flag's name, or of "[200]", which is how a bit without a name is printed.
std::optional<U128> flag_bit(std::string_view name, std::span<const Flag> names) {
  if (name.size() > 2 && name.front() == '[' && name.back() == ']') {
    return wide_number("0x" + std::string(name.substr(1, name.size() - 2)));
  }
  for (const Flag& row : names) {
    if (row.name == name) return U128{1} << row.bit;
  }
  return std::nullopt;
}

/// "+new-est" looks at the flags it names, "syn|ack" at all of them; or a number with or without
/// mask.
std::optional<Masked> flags_from(std::string_view text, std::span<const Flag> names,
                                 MatchField field) {
  const bool signs = text.starts_with('+') || text.starts_with('-');
  if (!signs && (text.empty() || (text.front() >= '0' && text.front() <= '9'))) {
    return masked_from(field, text);
  }
  Masked result;
  bool set = true;
  while (!text.empty()) {
    if (signs) {
      set = text.front() == '+';
      text.remove_prefix(1);
    }
    const std::size_t end = text.find_first_of(signs ? "+-" : "|");
    const auto bit = flag_bit(text.substr(0, end), names);
    if (!bit || (*bit & ~full_mask(field)) != 0 || (result.bits & *bit) != 0) return std::nullopt;
    result.bits |= *bit;
    if (set) result.value |= *bit;
    if (end == std::string_view::npos) break;
    text.remove_prefix(signs ? end : end + 1);
  }
  if (!signs) result.bits = full_mask(field);
  return result;
}

/// Adds bits to a field that may be constrained already; false when the two contradict.
bool constrain(Match& match, MatchField field, const Masked& masked) {
  Masked sum = masked;
  for (const FieldMatch& entry : match.fields()) {
    if (entry.field != field) continue;
    if (((entry.value ^ masked.value) & entry.bits & masked.bits) != 0) return false;
    sum.value |= entry.value;
    sum.bits |= entry.bits;
  }
  match.set(field, sum.value, sum.bits);
  return true;
}

/// One OpenFlow field that is laid over several of ours: its bits, from the lowest up.
struct Slice {
  MatchField field;
  unsigned width;
};

bool constrain_slices(Match& match, U128 value, U128 bits, std::span<const Slice> slices) {
  for (const Slice& slice : slices) {
    const U128 all = slice.width == 128 ? ~U128{0} : (U128{1} << slice.width) - 1;
    if (!constrain(match, slice.field, {value & bits & all, bits & all})) return false;
    value >>= slice.width;
    bits >>= slice.width;
  }
  return bits == 0;
}

struct WideMasked {
  U128 value;
  U128 bits;
};
std::optional<WideMasked> wide_masked(std::string_view text, unsigned width) {
  const U128 all = width == 128 ? ~U128{0} : (U128{1} << width) - 1;
  const std::size_t slash = text.find('/');
  const auto value = wide_number(text.substr(0, slash));
  const auto bits =
      slash == std::string_view::npos ? std::optional(all) : wide_number(text.substr(slash + 1));
  if (!value || !bits || (*value & ~all) != 0 || (*bits & ~all) != 0) return std::nullopt;
  return WideMasked{*value & *bits, *bits};
}

MatchField reg(unsigned index) {
  return static_cast<MatchField>(static_cast<unsigned>(F::kReg0) + index);
}

enum class Added { kYes, kNo, kBadValue, kContradiction };

Added verdict(bool consistent) { return consistent ? Added::kYes : Added::kContradiction; }

/// xreg0 is reg0 (high half) and reg1; xxreg0 is reg0 (highest) to reg3.
Added add_register_pair(std::string_view key, std::string_view value, Match& match) {
  const bool quad = key.starts_with("xxreg");
  if (!quad && !key.starts_with("xreg")) return Added::kNo;
  const unsigned count = quad ? 4 : 2;
  const auto index = number_from(key.substr(quad ? 5 : 4));
  if (!index || *index >= 16 / count) return Added::kNo;
  const auto masked = wide_masked(value, 32 * count);
  if (!masked) return Added::kBadValue;
  std::array<Slice, 4> slices{};
  const unsigned first = static_cast<unsigned>(*index) * count;
  for (unsigned i = 0; i < count; ++i) slices[i] = {reg(first + count - 1 - i), 32};
  return verdict(
      constrain_slices(match, masked->value, masked->bits, std::span(slices).first(count)));
}

/// VLAN fields: OpenFlow packs presence (bit 12), priority and id into one number.
Added add_vlan(std::string_view key, std::string_view value, Match& match) {
  constexpr std::array kTci = {Slice{F::kVlanId, 12}, Slice{F::kVlanPresent, 1},
                               Slice{F::kVlanPriority, 3}};
  if (key == "vlan_tci" || key == "vlan_vid") {
    const bool tci = key == "vlan_tci";
    const auto masked = wide_masked(value, tci ? 16 : 13);
    if (!masked) return Added::kBadValue;
    return verdict(
        constrain_slices(match, masked->value, masked->bits, std::span(kTci).first(tci ? 3 : 2)));
  }
  if (key == "dl_vlan") {
    const auto id = number_from(value);
    if (!id || (*id > 4095 && *id != 0xffff)) return Added::kBadValue;
    if (*id == 0xffff) return verdict(constrain(match, F::kVlanPresent, {0, 1}));
    return verdict(constrain(match, F::kVlanPresent, {1, 1}) &&
                   constrain(match, F::kVlanId, {*id, 0xfff}));
  }
  if (key == "dl_vlan_pcp") {
    const auto priority = number_from(value);
    if (!priority || *priority > 7) return Added::kBadValue;
    return verdict(constrain(match, F::kVlanPresent, {1, 1}) &&
                   constrain(match, F::kVlanPriority, {*priority, 7}));
  }
  return Added::kNo;
}

/// Fields whose text is not just a masked number.
Added add_special(std::string_view key, std::string_view value, Match& match) {
  const auto add = [&](MatchField field, const std::optional<Masked>& masked) {
    return masked ? verdict(constrain(match, field, *masked)) : Added::kBadValue;
  };
  if (key == "ct_state") return add(F::kCtState, ct_state_from(value));
  if (key == "nw_frag" || key == "ip_frag") return add(F::kIpFragment, fragment_from(value));
  if (key == "tcp_flags") return add(F::kTcpFlags, tcp_flags_from(value));
  if (key == "nw_tos") {  // the DSCP bits where they stand in the byte
    const auto tos = number_from(value);
    if (!tos || *tos > 255 || (*tos & 3) != 0) return Added::kBadValue;
    return verdict(constrain(match, F::kIpDscp, {*tos >> 2, full_mask(F::kIpDscp)}));
  }
  return Added::kNo;
}

/// tp_src and tp_dst of ICMP flows are its type and code.
MatchField after_protocol(MatchField field, const Match& match) {
  if (field != F::kL4SrcPort && field != F::kL4DstPort) return field;
  for (const FieldMatch& entry : match.fields()) {
    if (entry.field == F::kIpProtocol && entry.bits == full_mask(F::kIpProtocol) &&
        (entry.value == 1 || entry.value == 58)) {
      return field == F::kL4SrcPort ? F::kIcmpType : F::kIcmpCode;
    }
  }
  return field;
}

Added add_plain(std::string_view key, std::string_view value, Match& match) {
  const auto field = field_of(key);
  if (!field) return Added::kNo;
  const auto masked = masked_from(after_protocol(*field, match), value);
  if (!masked) return Added::kBadValue;
  return verdict(constrain(match, after_protocol(*field, match), *masked));
}

Added add_protocol(std::string_view name, Match& match) {
  for (const Protocol& protocol : kProtocols) {
    if (protocol.name != name) continue;
    const bool type_fits =
        constrain(match, F::kEtherType, {protocol.ether_type, full_mask(F::kEtherType)});
    const bool protocol_fits =
        protocol.ip_protocol == 0 ||
        constrain(match, F::kIpProtocol, {protocol.ip_protocol, full_mask(F::kIpProtocol)});
    return verdict(type_fits && protocol_fits);
  }
  return Added::kNo;
}

}  // namespace

std::optional<Masked> ct_state_from(std::string_view text) {
  return flags_from(text, kCtFlags, F::kCtState);
}

std::optional<Masked> tcp_flags_from(std::string_view text) {
  return flags_from(text, kTcpFlagNames, F::kTcpFlags);
}

std::optional<Masked> fragment_from(std::string_view text) {
  struct Named {
    std::string_view name;
    Masked masked;
  };
  constexpr unsigned kAny = 1;
  constexpr unsigned kLater = 2;
  const std::array<Named, 5> names = {{{"no", {0, kAny | kLater}},
                                       {"yes", {kAny, kAny}},
                                       {"first", {kAny, kAny | kLater}},
                                       {"later", {kAny | kLater, kAny | kLater}},
                                       {"not_later", {0, kLater}}}};
  for (const Named& row : names) {
    if (row.name == text) return row.masked;
  }
  return std::nullopt;
}

std::optional<Complaint> add_ovs_match(std::string_view part, Match& match) {
  const std::size_t equals = part.find('=');
  const std::string_view key = trimmed(part.substr(0, equals));
  Added added = Added::kNo;
  if (equals == std::string_view::npos) {
    added = add_protocol(key, match);
  } else {
    const std::string_view value = trimmed(part.substr(equals + 1));
    for (auto* const add : {add_special, add_vlan, add_register_pair, add_plain}) {
      added = add(key, value, match);
      if (added != Added::kNo) break;
    }
  }
  switch (added) {
    case Added::kYes:
      return std::nullopt;
    case Added::kNo:
      return fmt::format("'{}' is no match field that greynic knows (docs/formats/rules.md)",
                         shown(key));
    case Added::kBadValue:
      return fmt::format("'{}' is no value of {}", shown(part.substr(equals + 1)), shown(key));
    case Added::kContradiction:
      return fmt::format("'{}' contradicts what the flow says before it", shown(part));
  }
  return std::nullopt;
}

}  // namespace greynic::rules
