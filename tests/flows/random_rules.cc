#include "random_rules.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "common/named_headers.h"

namespace greynic::flows {
namespace {

using F = MatchField;

/// One alternative of `needs`, at random: its field and value.
FieldMatch one_need(std::string_view needs, std::mt19937_64& random) {
  std::vector<std::string_view> ways;
  while (true) {
    const std::size_t bar = needs.find('|');
    ways.push_back(needs.substr(0, bar));
    if (bar == std::string_view::npos) break;
    needs.remove_prefix(bar + 1);
  }
  const std::string_view way = ways[random() % ways.size()];
  const std::size_t equals = way.find('=');
  const MatchField field = *match_field_named(way.substr(0, equals));
  return exactly(field, *field_value_from_string(field, way.substr(equals + 1)));
}

bool has(const Match& match, MatchField field) { return match.mask().bits(field) != 0; }

void set(Match& match, MatchField field, U128 value) { match.set(field, value); }

}  // namespace

std::uint64_t seed_or(std::uint64_t usual) {
  const char* other = std::getenv("GREYNIC_SEED");
  return other == nullptr ? usual : std::strtoull(other, nullptr, 10);
}

U128 random_value(MatchField field, std::mt19937_64& random) {
  return (static_cast<U128>(random()) << 64 | random()) & full_mask(field);
}

FieldMatch exactly(MatchField field, U128 value) { return {field, value, full_mask(field)}; }

FieldMatch any_masked(MatchField field, std::mt19937_64& random) {
  const U128 all = full_mask(field);
  U128 bits = all;
  if (random() % 3 == 1) bits = all & ~(random_value(field, random) >> (random() % 8));
  if (random() % 3 == 2) bits = all & ~(all >> (random() % info(field).width_bits));
  if (bits == 0) bits = all;
  return {field, random_value(field, random) & bits, bits};
}

void add_with_needs(Match& match, const FieldMatch& part, std::mt19937_64& random) {
  // ICMP and neighbour discovery hang together tighter than one need each can say.
  const bool neighbour = part.field == F::kNdTarget || part.field == F::kNdSourceEthernet ||
                         part.field == F::kNdTargetEthernet;
  if (neighbour) {
    set(match, F::kEtherType, 0x86dd);
    set(match, F::kIpProtocol, 58);
    set(match, F::kIcmpType, part.field == F::kNdTargetEthernet ? 136 : 135);
    set(match, F::kIcmpCode, 0);
  } else if (info(part.field).layer == FieldLayer::kIcmp && !has(match, F::kIpProtocol)) {
    const bool v4 = random() % 2 == 0;
    set(match, F::kEtherType, v4 ? 0x0800 : 0x86dd);
    set(match, F::kIpProtocol, v4 ? 1 : 58);
  } else if (const std::string_view needs = info(part.field).needs; !needs.empty()) {
    const FieldMatch need = one_need(needs, random);
    if (!has(match, need.field)) add_with_needs(match, need, random);
  }
  match.set(part.field, part.value, part.bits);
}

RuleSet random_rules(const RandomRules& kind, std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  RuleSet set;
  std::set<std::pair<std::uint32_t, RulePriority>> taken;
  std::size_t turn = 0;  // each rule starts from the next field, so that all come up
  while (set.rules.size() < count) {
    FlowRule rule;
    const std::size_t fields = 1 + random() % 3;
    for (std::size_t i = 0; i < fields; ++i) {
      const std::size_t index = i == 0 ? turn++ % kMatchFieldCount : random() % kMatchFieldCount;
      const auto part = kind.part(static_cast<MatchField>(index), random);
      if (!part || has(rule.match, part->field)) continue;
      Match grown = rule.match;
      add_with_needs(grown, *part, random);
      // A second field may need another header than the first: then the rule stays as it is.
      bool contradicts = false;
      for (const FieldMatch& old : rule.match.fields()) {
        for (const FieldMatch& now : grown.fields()) {
          if (old.field == now.field && !(old == now)) contradicts = true;
        }
      }
      for (const FieldMatch& now : grown.fields()) {
        const bool tunnel = info(now.field).layer == FieldLayer::kTunnel;
        if (!tunnel && missing_header(grown, now.field)) contradicts = true;
      }
      if (!contradicts) rule.match = std::move(grown);
    }
    if (rule.match.fields().empty()) continue;
    do {
      rule.table = static_cast<std::uint32_t>(random() % kind.tables);
      rule.priority = static_cast<RulePriority>(random() % kind.priorities);
    } while (!taken.emplace(rule.table, rule.priority).second);
    rule.actions = kind.actions(rule.match, random);
    set.rules.push_back(std::move(rule));
  }
  return set;
}

std::vector<std::string> missing_from(const Offer& offer, const RuleSet& rules) {
  std::set<MatchField> exact;
  std::set<MatchField> masked;
  std::set<ActionKind> done;
  for (const FlowRule& rule : rules.rules) {
    for (const FieldMatch& part : rule.match.fields()) {
      (part.bits == full_mask(part.field) ? exact : masked).insert(part.field);
    }
    for (const Action& action : rule.actions) done.insert(action.kind);
  }
  std::vector<std::string> missing;
  for (const OfferedField& field : offer.fields) {
    const std::string name(info(field.field).name);
    const bool some_masks = field.any_mask || !field.forms.empty();
    if (exact.erase(field.field) == 0 && field.forms.empty())
      missing.push_back(name + " never came up");
    const bool came_masked = masked.erase(field.field) != 0;
    if (some_masks && !came_masked) missing.push_back(name + " never came up under a mask");
    if (!some_masks && came_masked)
      missing.push_back(name + " came up under a mask without being offered so");
  }
  for (const auto* left : {&exact, &masked}) {
    for (const MatchField field : *left) {
      missing.push_back(std::string(info(field).name) + " came up without being offered");
    }
  }
  for (const ActionKind kind : offer.actions) {
    if (!done.contains(kind))
      missing.push_back(fmt::format("action {} never came up", static_cast<int>(kind)));
  }
  return missing;
}

std::vector<Action> count_and_mark(std::mt19937_64& random) {
  std::vector<Action> actions;
  if (random() % 4 == 0) actions.push_back({.kind = ActionKind::kCount});
  if (random() % 4 == 0) {
    const U128 bits = std::max<U128>(1, random() & 0xffffffff);
    actions.push_back({.kind = ActionKind::kSetField,
                       .field = F::kPacketMark,
                       .value = random() & bits,
                       .bits = bits});
  }
  return actions;
}

}  // namespace greynic::flows
