#include "dpdk/rte_defects.h"

#include <fmt/core.h>

#include "common/named_headers.h"

namespace greynic::flows {
namespace {

using F = MatchField;

/// net_tap puts rules of its own, for a remote interface, at the end of the last group.
constexpr std::uint32_t kTapLastGroup = 15;
constexpr RulePriority kTapLastPriority = 4087;

/// DPDK 22.11, found by comparing rules with the tc filters that net_tap makes of them.
std::optional<std::string> tap_defect(const FlowRule& rule) {
  const Match& match = rule.match;
  if (rule.table == kTapLastGroup && rule.priority > kTapLastPriority) {
    return fmt::format("net_tap keeps the priorities above {} of table {} for rules of its own",
                       kTapLastPriority, kTapLastGroup);
  }
  const auto type = exact_value(match, F::kEtherType);
  const bool ip = type == U128{0x0800} || type == U128{0x86dd};
  for (const FieldMatch& part : match.fields()) {
    if (part.field == F::kIpProtocol && part.bits != full_mask(part.field)) {
      return "net_tap takes a mask for ip_protocol and leaves the field out of its filter";
    }
    const bool left_out = part.field == F::kIpProtocol || part.field == F::kEtherType ||
                          info(part.field).layer == FieldLayer::kL4;
    if (left_out && (part.value & part.bits) == 0) {
      return fmt::format("net_tap leaves {}=0 out of its filter", info(part.field).name);
    }
    if (info(part.field).layer != FieldLayer::kVlan) continue;
    if (part.field != F::kVlanPresent) {
      return std::string("net_tap cuts the tag's number, so that its filter asks for another ") +
             std::string(info(part.field).name);
    }
    if (!ip) {
      return "net_tap's filter for tagged packets asks for Ethernet type 3, which no packet has, "
             "unless the rule names ether_type=0x0800 or 0x86dd";
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> rte_defect(std::string_view driver, const FlowRule& rule) {
  return driver == "net_tap" ? tap_defect(rule) : std::nullopt;
}

}  // namespace greynic::flows
