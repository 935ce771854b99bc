#include "rte_defects.h"

#include "field_needs.h"

namespace greynic::flows {
namespace {

using F = MatchField;

/// DPDK 22.11, found by comparing rules with the tc filters that net_tap makes of them.
std::optional<std::string> tap_defect(const Match& match) {
  const auto type = exact_value(match, F::kEtherType);
  const bool ip = type == U128{0x0800} || type == U128{0x86dd};
  for (const FieldMatch& part : match.fields()) {
    if (part.field == F::kIpProtocol && part.bits != full_mask(part.field)) {
      return "net_tap takes a mask for ip_protocol and leaves the field out of its filter";
    }
    if (info(part.field).layer != FieldLayer::kVlan) continue;
    if (part.field != F::kVlanPresent) {
      return std::string("net_tap cuts the tag's number, so that its filter asks for another ") +
             std::string(info(part.field).name);
    }
    if (!ip) {
      return "net_tap's filter for tagged packets asks for Ethernet type 3, which none has, unless "
             "the rule names ether_type=0x0800 or 0x86dd";
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> rte_defect(std::string_view driver, const Match& match) {
  return driver == "net_tap" ? tap_defect(match) : std::nullopt;
}

}  // namespace greynic::flows
