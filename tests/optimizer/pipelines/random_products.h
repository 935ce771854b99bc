#pragma once

/// Small pipelines one table of which is made of products: sets of sources, each with a set of destinations.

#include <algorithm>
#include <string>
#include <vector>

#include "random_pipelines.h"

namespace greynic {

/// Any masks on either side, one or several effects, protocols apart or one within the other. Other rules stand before
/// and behind, told apart by a field that is 0 in all packets of the small space.
inline std::vector<FlowRule> small_product_rules(std::uint32_t table, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<FlowRule> rules;
  const auto below = [&](std::uint64_t end) { return random() % end; };
  const auto add = [&](Match match, unsigned effect) {
    FlowRule rule;
    rule.match = std::move(match);
    rule.priority = static_cast<RulePriority>(rules.size());
    rule.table = table;
    rule.actions = {Action::forward("p" + std::to_string(effect))};
    rule.from = {static_cast<std::uint32_t>(rules.size())};
    rules.push_back(std::move(rule));
  };
  const auto others = [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      Match match;
      match.set(MatchField::kIpv4Src, below(16), below(16));
      match.set(MatchField::kIpv4Dst, below(16), below(16));
      match.set(MatchField::kReg1, below(8) == 0 ? 1 : 0, 1);
      add(match, static_cast<unsigned>(below(4)));
    }
  };
  others(below(4));
  const std::uint64_t effects = below(2) == 0 ? 1 : 3;
  std::vector<std::vector<FieldMatch>> lists;  // of destinations, met again and again
  for (int list = 0; list < 2; ++list) {
    lists.emplace_back();
    const std::uint64_t length = 3 + below(4);
    for (std::uint64_t i = 0; i < length; ++i) {
      const U128 bits = below(4) == 0 ? below(16) : 15;
      lists.back().push_back({MatchField::kIpv4Dst, below(16) & bits, bits});
    }
  }
  for (int set = 0; set < 16; ++set) {
    const auto& list = lists[below(lists.size())];
    const unsigned effect = 4 + static_cast<unsigned>(below(effects));
    const bool any_protocol = below(16) == 0;
    const std::uint64_t protocol = below(4);
    const std::uint64_t sources = 3 + below(4);
    for (std::uint64_t i = 0; i < sources; ++i) {
      const std::uint64_t bits = below(3) == 0 ? below(16) : 15;
      const std::uint64_t source = below(16);
      for (const FieldMatch& part : list) {
        Match match;
        match.set(MatchField::kIpv4Src, source & bits, bits);
        match.set(part.field, part.value, part.bits);
        if (!any_protocol) match.set(MatchField::kIpProtocol, protocol, 3);
        add(match, effect);
      }
    }
  }
  others(below(6));
  if (below(4) != 0) add({}, 3);
  return rules;
}

/// Other tables are those of small_random_pipeline.
inline RuleSet small_product_pipeline(std::size_t count, std::uint32_t tables, std::uint64_t seed) {
  RuleSet set = small_random_pipeline(count, tables, seed);
  const auto table = static_cast<std::uint32_t>(seed % tables);
  std::erase_if(set.rules, [&](const FlowRule& rule) { return rule.table == table; });
  for (FlowRule& rule : small_product_rules(table, seed)) {
    const std::uint32_t left = tables - table - 1;
    if (left > 0 && rule.actions.front().text.back() % 2 == 0) {
      rule.actions = {Action::jump(table + 1 + rule.actions.front().text.back() % left)};
    }
    set.rules.push_back(std::move(rule));
  }
  std::uint32_t line = 0;
  for (FlowRule& rule : set.rules) rule.from = {line++};
  return set;
}

/// Three tables, of which the first and the last are one product: what the first lets by marks packets and goes on, what the
/// last lets by ends. Other rules stand before and behind in both, and in between some look at marks; now and
/// then a rule of the product is missing in the last.
inline RuleSet small_repeated_product(std::uint64_t seed) {
  std::mt19937_64 random(seed ^ 0x2e9ea7);
  const auto is_product = [](const FlowRule& rule) { return rule.actions.front().text >= "p4"; };
  RuleSet set;
  for (FlowRule& rule : small_product_rules(0, seed)) {
    if (is_product(rule) || random() % 3 == 0) {
      rule.actions = {{.kind = ActionKind::kSetField,
                       .field = MatchField::kReg2,
                       .value = 1 + random() % (seed % 3 + 1),
                       .bits = 3},
                      Action::jump(1)};
    }
    set.rules.push_back(std::move(rule));
  }
  for (unsigned i = 0; i < random() % 4; ++i) {
    FlowRule rule;
    rule.table = 1;
    rule.priority = static_cast<RulePriority>(i);
    const bool marked = random() % 2 == 0;
    const MatchField field = marked ? MatchField::kReg2 : MatchField::kIpProtocol;
    rule.match.set(field, random() & 3, 3);
    if (random() % 3 == 0) rule.actions.push_back(Action::other("learn"));
    rule.actions.push_back(random() % 2 == 0 ? Action::jump(2) : Action::forward("p8"));
    set.rules.push_back(std::move(rule));
  }
  FlowRule on;
  on.table = 1;
  on.priority = 9;
  on.actions = {Action::jump(2)};
  set.rules.push_back(std::move(on));
  for (FlowRule& rule : small_product_rules(2, seed)) {
    if (random() % 200 == 0 && seed % 4 == 0) continue;
    if (!is_product(rule) && random() % 2 == 0) rule.match.set(MatchField::kReg2, random() & 3, 3);
    set.rules.push_back(std::move(rule));
  }
  std::uint32_t line = 0;
  for (FlowRule& rule : set.rules) rule.from = {line++};
  return set;
}

}  // namespace greynic
