#pragma once

/// The rules of the example in greynic/optimizer/optimize.h and greynic/verify/verify.h.

#include "greynic/core/flow_rule.h"

namespace greynic {

inline RuleSet example_rules() {
  RuleSet set;
  const auto add = [&](U128 ipv4_dst, U128 bits, unsigned port, Action action) {
    FlowRule rule;
    rule.match.set(MatchField::kIpv4Dst, ipv4_dst, bits);
    if (port != 0) rule.match.set(MatchField::kL4DstPort, port);
    rule.priority = static_cast<RulePriority>(set.rules.size());
    rule.from = {static_cast<std::uint32_t>(set.rules.size())};
    rule.actions = {std::move(action)};
    set.rules.push_back(std::move(rule));
  };
  add(0x0a010001, 0xffffffff, 22, Action::drop());
  add(0x0a010000, 0xffff0000, 0, Action::forward("p1"));
  add(0x0a020001, 0xffffffff, 80, Action::forward("p2"));
  add(0x0a030000, 0xffff0000, 0, Action::forward("p3"));
  return set;
}

/// The input rules that a matcher serves, in its order.
inline std::vector<std::uint32_t> served(const Matcher& matcher) {
  std::vector<std::uint32_t> rules;
  for (const FlowRule& rule : matcher.rules) rules.push_back(rule.from.front());
  return rules;
}

}  // namespace greynic
