/// Actions for ovs-ofctl, and whole rules.

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "common/action_limits.h"
#include "common/named_headers.h"
#include "common/refusal.h"
#include "greynic/flows/flow_driver.h"
#include "ovs/ovs_text.h"

namespace greynic::flows {
namespace {

using F = MatchField;

/// Every Open vSwitch flow counts. A note, which does nothing, remembers that it was asked for.
constexpr std::string_view kCountNote = "note:63.6f.75.6e.74.00";

/// Fields that ovs-fields(7) lets set_field write outside ct().
constexpr std::array kWritable = {F::kMetadata,
                                  F::kEthernetDst,
                                  F::kEthernetSrc,
                                  F::kIpv4Src,
                                  F::kIpv4Dst,
                                  F::kIpv6Src,
                                  F::kIpv6Dst,
                                  F::kIpv6FlowLabel,
                                  F::kIpDscp,
                                  F::kIpEcn,
                                  F::kIpTtl,
                                  F::kArpOperation,
                                  F::kArpSenderIpv4,
                                  F::kArpTargetIpv4,
                                  F::kArpSenderEthernet,
                                  F::kArpTargetEthernet,
                                  F::kNdTarget,
                                  F::kL4SrcPort,
                                  F::kL4DstPort,
                                  F::kTunnelIpv4Src,
                                  F::kTunnelIpv4Dst,
                                  F::kVxlanVni,
                                  F::kPacketMark,
                                  F::kReg0,
                                  F::kReg1,
                                  F::kReg2,
                                  F::kReg3,
                                  F::kReg4,
                                  F::kReg5,
                                  F::kReg6,
                                  F::kReg7,
                                  F::kReg8,
                                  F::kReg9,
                                  F::kReg10,
                                  F::kReg11,
                                  F::kReg12,
                                  F::kReg13,
                                  F::kReg14,
                                  F::kReg15};

/// set_field names ports by protocol: "tp_dst" would mean TCP's whatever the packet is.
Result<std::string> written_name(const Action& action, const Match& match) {
  if (action.field != F::kL4SrcPort && action.field != F::kL4DstPort) {
    return std::string(info(action.field).ovs);
  }
  const std::string_view side = action.field == F::kL4SrcPort ? "src" : "dst";
  const auto protocol = exact_value(match, F::kIpProtocol);
  if (protocol == U128{6}) return fmt::format("tcp_{}", side);
  if (protocol == U128{17}) return fmt::format("udp_{}", side);
  if (protocol == U128{132}) return fmt::format("sctp_{}", side);
  return kOvsRefusal.of(action, "it needs ip_protocol=6, 17 or 132 in the match");
}

Result<std::string> set_field_text(const Action& action, const Match& match) {
  if (std::find(kWritable.begin(), kWritable.end(), action.field) == kWritable.end()) {
    return kOvsRefusal.of(action, "the field cannot be written");
  }
  if (ovs_misreads_mask(action.field, action.bits)) {
    return kOvsRefusal.of(
        action, "ovs-ofctl takes a mask that begins with a decimal digit for a prefix length");
  }
  auto name = written_name(action, match);
  if (!name) return name;
  const bool whole = action.bits == full_mask(action.field);
  return fmt::format("set_field:{}{}->{}", field_value_to_string(action.field, action.value),
                     whole ? "" : "/" + field_value_to_string(action.field, action.bits), *name);
}

Result<std::string> port_text(const std::string& port, const PortNumbers& ports) {
  if (const auto found = ports.find(port); found != ports.end()) {
    return fmt::format("output:{}", found->second);
  }
  const bool number = !port.empty() && port.find_first_not_of("0123456789") == std::string::npos;
  if (number) return "output:" + port;
  std::string names;
  for (const auto& [name, unused] : ports) names += (names.empty() ? "" : ", ") + name;
  return fail(ErrorCode::kBadInput,
              fmt::format("the bridge has no port {}; its ports are {}", port, names));
}

Result<std::string> action_text(const Action& action, bool last, const FlowRule& rule,
                                const PortNumbers& ports) {
  if (const auto why = too_large(action)) return kOvsRefusal.of(action, *why);
  switch (action.kind) {
    case ActionKind::kForward:
      return port_text(action.text, ports);
    case ActionKind::kDrop:
      return std::string("drop");
    case ActionKind::kJump:
      if (action.number > kOvsLastTable) {
        return kOvsRefusal.of(action, fmt::format("tables end at {}", kOvsLastTable));
      }
      // goto_table leads forward only and ends the actions; resubmit does what is left.
      if (last && action.number > rule.table) return fmt::format("goto_table:{}", action.number);
      return fmt::format("resubmit(,{})", action.number);
    case ActionKind::kSetField:
      return set_field_text(action, rule.match);
    case ActionKind::kPushVlan:
      return fmt::format("push_vlan:0x8100,set_field:{}->vlan_vid",
                         action.number | kOvsVlanPresent);
    case ActionKind::kPopVlan:
      return std::string("pop_vlan");
    case ActionKind::kCount:
      return std::string(kCountNote);
    case ActionKind::kMeter:
      return fmt::format("meter:{}", action.number);
    case ActionKind::kVxlanEncap:
    case ActionKind::kVxlanDecap:
      return kOvsRefusal.of(
          action, "it wraps packets at tunnel ports; set the tunnel fields and forward to one");
    case ActionKind::kOther:
      return action.text;
  }
  return kOvsRefusal.of(action, "unknown kind");
}

}  // namespace

Result<std::string> ovs_actions_text(const FlowRule& rule, const PortNumbers& ports) {
  if (rule.actions.empty()) return std::string("drop");
  std::string text;
  for (std::size_t i = 0; i < rule.actions.size(); ++i) {
    if (rule.actions[i].kind == ActionKind::kDrop && rule.actions.size() > 1) {
      return kOvsRefusal.of(rule.actions[i], "a drop stands alone");
    }
    if (rule.actions[i].kind == ActionKind::kMeter && i > 0) {
      return kOvsRefusal.of(rule.actions[i], "a meter comes before all other actions");
    }
    auto word = action_text(rule.actions[i], i + 1 == rule.actions.size(), rule, ports);
    if (!word) return word;
    text += (text.empty() ? "" : ",") + *word;
  }
  return text;
}

Result<std::string> ovs_rules_text(const RuleSet& rules, const PortNumbers& ports) {
  std::string text;
  for (std::size_t i = 0; i < rules.rules.size(); ++i) {
    const FlowRule& rule = rules.rules[i];
    const std::string where = place_of(rules, i);
    if (rule.priority > kOvsLastPriority) {
      return fail(ErrorCode::kUnsupported,
                  fmt::format("{}: priority {} is beyond Open vSwitch's {}", where, rule.priority,
                              kOvsLastPriority));
    }
    if (rule.table > kOvsLastTable) {
      return fail(ErrorCode::kUnsupported, fmt::format("{}: table {} is beyond Open vSwitch's {}",
                                                       where, rule.table, kOvsLastTable));
    }
    auto match = ovs_match_text(rule.match);
    if (!match) return match.error().while_doing(where);
    auto actions = ovs_actions_text(rule, ports);
    if (!actions) return actions.error().while_doing(where);
    text +=
        fmt::format("cookie={:#x},table={},priority={}{}{},actions={}\n", i + 1, rule.table,
                    kOvsLastPriority - rule.priority, match->empty() ? "" : ",", *match, *actions);
  }
  return text;
}

}  // namespace greynic::flows
