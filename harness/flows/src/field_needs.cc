#include "field_needs.h"

#include <fmt/format.h>

#include <set>

namespace greynic::flows {
namespace {

using F = MatchField;

constexpr unsigned kIpv4Type = 0x0800;
constexpr unsigned kIcmp = 1;
constexpr unsigned kIcmpv6 = 58;

/// Does the match hold exactly "field=value"?
bool holds(const Match& match, std::string_view condition) {
  const std::size_t equals = condition.find('=');
  const auto field = match_field_named(condition.substr(0, equals));
  if (!field) return false;
  const auto wanted = field_value_from_string(*field, condition.substr(equals + 1));
  return wanted && exact_value(match, *field) == wanted;
}

}  // namespace

std::optional<U128> exact_value(const Match& match, MatchField field) {
  for (const FieldMatch& part : match.fields()) {
    if (part.field == field && part.bits == full_mask(field)) return part.value;
  }
  return std::nullopt;
}

std::optional<std::string> missing_header(const Match& match, MatchField field) {
  const std::string_view needs = info(field).needs;
  if (needs.empty()) return std::nullopt;
  bool met = false;
  for (std::string_view rest = needs; !met;) {
    const std::size_t bar = rest.find('|');
    met = holds(match, rest.substr(0, bar));
    if (bar == std::string_view::npos) break;
    rest.remove_prefix(bar + 1);
  }
  if (!met) {
    std::string readable(needs);
    for (std::size_t bar = 0; (bar = readable.find('|', bar)) != std::string::npos;) {
      readable.replace(bar, 1, " or ");
    }
    return fmt::format("it needs {} in the same rule", readable);
  }
  const bool icmp = info(field).layer == FieldLayer::kIcmp;
  const auto type = exact_value(match, F::kEtherType);
  const auto protocol = exact_value(match, F::kIpProtocol);
  const bool v4 = type == U128{kIpv4Type};
  if (icmp && !(protocol == U128{v4 ? kIcmp : kIcmpv6})) {
    return "it needs ip_protocol=1 with IPv4 or ip_protocol=58 with IPv6";
  }
  const bool neighbour =
      field == F::kNdTarget || field == F::kNdSourceEthernet || field == F::kNdTargetEthernet;
  if (neighbour && (v4 || exact_value(match, F::kIcmpCode) != U128{0})) {
    return "it needs ether_type=0x86dd and icmp_code=0 in the same rule";
  }
  return std::nullopt;
}

RuleSet with_address_family(RuleSet rules) {
  std::set<std::uint32_t> outspoken;  // tables that name a type
  for (const FlowRule& rule : rules.rules) {
    if (rule.match.mask().bits(F::kEtherType) != 0) outspoken.insert(rule.table);
  }
  for (FlowRule& rule : rules.rules) {
    if (outspoken.contains(rule.table)) continue;
    const Mask mask = rule.match.mask();
    const bool v6 = mask.bits(F::kIpv6Src) != 0 || mask.bits(F::kIpv6Dst) != 0 ||
                    mask.bits(F::kIpv6FlowLabel) != 0;
    rule.match.set(F::kEtherType, v6 ? 0x86dd : 0x0800);
  }
  return rules;
}

}  // namespace greynic::flows
