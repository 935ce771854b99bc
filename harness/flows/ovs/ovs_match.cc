/// Matches for ovs-ofctl: ovs-fields(7) says which field takes which mask and needs which header.

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>

#include "common/named_headers.h"
#include "common/refusal.h"
#include "ovs/ovs_text.h"

namespace greynic::flows {
namespace {

using F = MatchField;

/// Fields that ovs-fields(7) calls "not maskable".
constexpr std::array kExactOnly = {
    F::kInPort, F::kEtherType, F::kVlanPriority, F::kIpProtocol,   F::kIpDscp, F::kIpEcn,
    F::kIpTtl,  F::kIcmpType,  F::kIcmpCode,     F::kArpOperation, F::kCtZone, F::kConjunctionId};

struct FragmentWord {
  unsigned value;
  unsigned bits;
  std::string_view word;
};
/// The only five forms that nw_frag has: bit 0 says "a fragment", bit 1 "not the first one".
constexpr std::array kFragmentWords = {FragmentWord{0, 3, "no"}, FragmentWord{1, 1, "yes"},
                                       FragmentWord{1, 3, "first"}, FragmentWord{3, 3, "later"},
                                       FragmentWord{0, 2, "not_later"}};

constexpr U128 kCtStateBits = 0xff;  // new est rel rpl inv trk snat dnat
constexpr unsigned kVlanIdBits = 0x0fff;
constexpr unsigned kVlanPriorityShift = 13;

/// Length of a mask that is a prefix; empty for any other.
std::optional<unsigned> prefix_length(MatchField field, U128 bits) {
  const unsigned width = info(field).width_bits;
  unsigned length = 0;
  while (length < width && (bits >> (width - 1 - length) & 1) != 0) ++length;
  if (length == width) return length;
  const U128 rest = full_mask(field) >> length;
  return (bits & rest) == 0 ? std::optional(length) : std::nullopt;
}

std::string masked(MatchField field, std::string_view name, U128 value, U128 bits) {
  std::string text = fmt::format("{}={}", name, field_value_to_string(field, value));
  if (bits == full_mask(field)) return text;
  const auto length = prefix_length(field, bits);
  if (info(field).format == FieldFormat::kIpv6 && length) {
    return fmt::format("{}/{}", text, *length);
  }
  return text + "/" + field_value_to_string(field, bits);
}

/// Vlan id, priority and presence are one field of 16 bits there.
bool is_vlan(MatchField field) {
  return field == F::kVlanPresent || field == F::kVlanId || field == F::kVlanPriority;
}

std::string vlan_text(const Match& match) {
  unsigned value = 0;
  unsigned bits = 0;
  for (const FieldMatch& part : match.fields()) {
    const auto from = static_cast<unsigned>(part.value);
    const auto mask = static_cast<unsigned>(part.bits);
    const unsigned shift = part.field == F::kVlanPriority ? kVlanPriorityShift : 0;
    if (part.field == F::kVlanPresent) {
      value |= from != 0 ? kOvsVlanPresent : 0;
      bits |= kOvsVlanPresent;
    } else if (is_vlan(part.field)) {
      value |= (from & kVlanIdBits) << shift;
      bits |= (mask & kVlanIdBits) << shift;
    }
  }
  return bits == 0 ? "" : fmt::format("vlan_tci={:#06x}/{:#06x}", value, bits);
}

/// Why this part cannot be matched; empty when it can.
std::optional<std::string> objection(const FieldMatch& part) {
  if (info(part.field).ovs.empty()) return "it has no such field";
  if (!ovs_takes(part.field)) return "the switch keeps it for itself and permits no rule on it";
  if (part.bits != full_mask(part.field) && !ovs_takes_any_mask(part.field)) {
    return "it takes no mask, only an exact value";
  }
  if (ovs_misreads_mask(part.field, part.bits)) {
    return "ovs-ofctl takes a mask that begins with a decimal digit for a prefix length";
  }
  if (part.field == F::kArpOperation && part.value > 255) return "operations end at 255 there";
  if (part.field == F::kInPort && part.value > 65535) return "port numbers end at 65535 there";
  if (part.field == F::kCtState && (part.bits & ~kCtStateBits) != 0) {
    return "only the lower 8 bits of the connection state exist there";
  }
  return std::nullopt;
}

}  // namespace

bool ovs_misreads_mask(MatchField field, U128 bits) {
  if (info(field).format != FieldFormat::kIpv6 || prefix_length(field, bits)) return false;
  const char first = field_value_to_string(field, bits).front();
  return first >= '0' && first <= '9';
}

bool ovs_takes(MatchField field) {
  return !info(field).ovs.empty() && field != F::kRecirculationId && field != F::kDatapathHash;
}

bool ovs_takes_any_mask(MatchField field) {
  return std::find(kExactOnly.begin(), kExactOnly.end(), field) == kExactOnly.end();
}

std::set<MatchField> ovs_whole_fields() {
  std::set<MatchField> whole(kExactOnly.begin(), kExactOnly.end());
  whole.insert(F::kIpFragment);
  return whole;
}

std::string ovs_forms(MatchField field) {
  if (field == F::kIpFragment) return "no, yes, first, later and not_later";
  if (field == F::kCtState) return "the lower 8 bits";
  return "";
}

Result<std::string> ovs_match_text(const Match& match) {
  std::string text = vlan_text(match);
  const bool later_fragment = exact_value(match, F::kIpFragment) == U128{3};
  for (const FieldMatch& part : match.fields()) {
    if (const auto why = objection(part)) return kOvsRefusal.of(part.field, *why);
    // Tunnel fields are metadata of the port in Open vSwitch: no outer header has to be named.
    if (info(part.field).layer != FieldLayer::kTunnel) {
      if (const auto missing = missing_header(match, part.field))
        return kOvsRefusal.of(part.field, *missing);
    }
    if (is_vlan(part.field)) continue;
    const FieldLayer layer = info(part.field).layer;
    if (later_fragment && (layer == FieldLayer::kL4 || layer == FieldLayer::kIcmp)) {
      return kOvsRefusal.of(part.field, "a later fragment (ip_fragment=3) does not carry it");
    }
    std::string word = masked(part.field, info(part.field).ovs, part.value, part.bits);
    if (part.field == F::kIpFragment) {
      const auto* form = std::find_if(
          kFragmentWords.begin(), kFragmentWords.end(), [&](const FragmentWord& candidate) {
            return candidate.value == part.value && candidate.bits == part.bits;
          });
      if (form == kFragmentWords.end()) {
        return kOvsRefusal.of(part.field, "it knows only " + ovs_forms(part.field));
      }
      word = fmt::format("nw_frag={}", form->word);
    }
    text += (text.empty() ? "" : ",") + word;
  }
  return text;
}

}  // namespace greynic::flows
