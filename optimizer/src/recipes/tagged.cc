#include "src/recipes/tagged.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <map>
#include <set>

namespace greynic::optimizer::recipes {
namespace {

constexpr std::size_t kMostTags = 0xffff;

/// Metadata or a register that no rule looks at, sets, or may name in a foreign action.
std::optional<MatchField> free_field(const RuleSet& rules) {
  std::set<MatchField> used;
  bool foreign = false;
  for (const FlowRule& rule : rules.rules) {
    for (const FieldMatch& part : rule.match.fields()) used.insert(part.field);
    for (const Action& action : rule.actions) {
      used.insert(action.field);
      if (action.kind != ActionKind::kOther) continue;
      std::string text = action.text;
      std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
      foreign = foreign || text.find("reg") != std::string::npos ||
                text.find("metadata") != std::string::npos;
    }
  }
  if (foreign) return std::nullopt;
  for (const MatchField field : {MatchField::kMetadata, MatchField::kReg0, MatchField::kReg15}) {
    if (!used.contains(field)) return field;
  }
  return std::nullopt;
}

Mask looked_at_by_all(const RuleSet& rules) {
  Mask common = rules.rules.front().match.mask();
  for (const FlowRule& rule : rules.rules) {
    const Mask mask = rule.match.mask();
    Mask both;
    for (const FieldMask& part : common.fields()) {
      both.add(part.field, part.bits & mask.bits(part.field));
    }
    common = std::move(both);
  }
  return common;
}

std::vector<U128> values_under(const Mask& mask, const Match& match) {
  std::vector<U128> values;
  for (const FieldMask& part : mask.fields()) {
    const auto own = std::ranges::find(match.fields(), part.field, &FieldMatch::field);
    values.push_back(own->value & part.bits);
  }
  return values;
}

std::vector<U128> values_under(const Mask& mask, const Packet& packet) {
  std::vector<U128> values;
  for (const FieldMask& part : mask.fields()) {
    values.push_back(packet.value(part.field) & part.bits);
  }
  return values;
}

FlowRule without(const FlowRule& rule, const Mask& mask) {
  FlowRule left = rule;
  for (const FieldMask& part : mask.fields()) {
    const auto own = std::ranges::find(rule.match.fields(), part.field, &FieldMatch::field);
    left.match.set(part.field, own->value, own->bits & ~part.bits);
  }
  return left;
}

}  // namespace

std::optional<Tagged> tag_rules(const RuleSet& rules, const Traffic& traffic,
                                const LayoutLimits& limits, std::uint32_t behind) {
  const auto tag = free_field(rules);
  Tagged made{{{}, rules.source}, {}, looked_at_by_all(rules), rules.rules.front().table, {}};
  if (!tag || made.asked_first.fields().empty() ||
      limits.recipes(made.asked_first) > limits.most_chained) {
    return std::nullopt;
  }
  std::map<std::vector<U128>, std::uint32_t> numbers;
  for (const FlowRule& rule : rules.rules) {
    const auto next = static_cast<std::uint32_t>(numbers.size() + 1);
    numbers.try_emplace(values_under(made.asked_first, rule.match), next);
  }
  if (numbers.size() > kMostTags) return std::nullopt;
  const U128 bits = (U128{1} << std::bit_width(numbers.size())) - 1;
  made.values.resize(numbers.size());
  bool saves = false;
  for (const FlowRule& rule : rules.rules) {
    const std::uint32_t number = numbers.at(values_under(made.asked_first, rule.match));
    FlowRule asks = without(rule, made.asked_first);
    asks.match.set(*tag, number, bits);
    asks.table = behind;
    saves = saves || limits.recipes(asks.match.mask()) < limits.recipes(rule.match.mask());
    made.rules.rules.push_back(std::move(asks));
    FlowRule& value = made.values[number - 1];
    if (!value.actions.empty()) continue;
    value.table = made.first;
    for (const FieldMask& part : made.asked_first.fields()) {
      const auto own = std::ranges::find(rule.match.fields(), part.field, &FieldMatch::field);
      value.match.set(part.field, own->value & part.bits, part.bits);
    }
    value.actions = {{.kind = ActionKind::kSetField, .field = *tag, .value = number, .bits = bits},
                     Action::jump(behind)};
  }
  if (!saves) return std::nullopt;
  for (const TrafficFlow& flow : traffic.flows) {
    const auto number = numbers.find(values_under(made.asked_first, flow.packet));
    if (flow.table != made.first || number == numbers.end()) continue;
    made.traffic.flows.push_back({flow.packet, flow.weight, behind});
    Packet& packet = made.traffic.flows.back().packet;
    packet.set(*tag, (packet.value(*tag) & ~bits) | number->second);
    made.values[number->second - 1].weight += flow.weight;
  }
  if (made.traffic.flows.empty()) return std::nullopt;
  double all = 0.0;
  for (const TrafficFlow& flow : traffic.flows) all += flow.weight;
  for (FlowRule& value : made.values) value.weight /= all;
  return made;
}

LayoutTable first_table(const Tagged& tagged, const Layout& hardware, std::uint32_t slow) {
  const Action& sets = tagged.values.front().actions.front();
  std::set<U128> asked;
  for (const LayoutTable& table : hardware.tables) {
    for (const Matcher& matcher : table.matchers) {
      for (const FlowRule& rule : matcher.rules) {
        for (const FieldMatch& part : rule.match.fields()) {
          if (part.field == sets.field && part.bits == sets.bits) asked.insert(part.value);
        }
      }
    }
  }
  LayoutTable first{tagged.first, {{tagged.asked_first, 0, {}}, {{}, 1, {}}}};
  for (const FlowRule& value : tagged.values) {
    if (asked.contains(value.actions.front().value)) first.matchers[0].rules.push_back(value);
  }
  FlowRule rest;
  rest.table = tagged.first;
  rest.priority = 1;
  rest.actions = {Action::jump(slow)};
  first.matchers[1].rules.push_back(std::move(rest));
  return first;
}

}  // namespace greynic::optimizer::recipes
