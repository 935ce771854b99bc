/// Layouts with tags, judged.

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "../optimizer/nightly.h"
#include "../optimizer/random_rules.h"
#include "greynic/verify/verify.h"
#include "sized.h"

namespace greynic::verify {
namespace {

constexpr MatchField kTags[] = {MatchField::kMetadata, MatchField::kReg3};

Action set_tag(MatchField field, U128 value, U128 bits) {
  return {.kind = ActionKind::kSetField, .field = field, .value = value & bits, .bits = bits};
}

/// What a layout does to a packet, with the tags that it sets: walked table by table. The actions of
/// the rule that ends it; null when nothing matches.
const FlowRule* walked(const Layout& layout, Packet packet) {
  std::uint64_t at = 0;
  while (true) {
    const FlowRule* hit = nullptr;
    for (const LayoutTable& table : layout.tables) {
      if (table.id != at) continue;
      for (const Matcher& matcher : table.matchers) {
        for (const FlowRule& rule : matcher.rules) {
          if (hit == nullptr && rule.match.matches(packet)) hit = &rule;
        }
      }
    }
    if (hit == nullptr) return nullptr;
    bool jumped = false;
    for (const Action& action : hit->actions) {
      if (action.kind == ActionKind::kSetField) {
        packet.set(action.field, (packet.value(action.field) & ~action.bits) | action.value);
      }
      jumped = jumped || action.kind == ActionKind::kJump;
      if (action.kind == ActionKind::kJump) at = action.number;
    }
    if (!jumped) return hit;
  }
}

bool tagged_alike(const RuleSet& rules, const Layout& layout, const Packet& packet) {
  const FlowRule* const wanted = look_up(rules, 0, packet);
  const FlowRule* const got = walked(layout, packet);
  if (wanted == nullptr || got == nullptr) return wanted == got;
  return wanted->actions == got->actions;
}

bool tagged_alike_for_all(const RuleSet& rules, const Layout& layout) {
  for (unsigned number = 0; number < 1U << SmallSpace::kBits; ++number) {
    if (!tagged_alike(rules, layout, SmallSpace::packet(number))) return false;
  }
  return true;
}

/// Table 0 tags packets by their protocol, table 11 by two bits of their source; table 12 matches
/// the tags in the place of these bits, and holds a rule once for each tag that it may meet.
Layout tagged(const RuleSet& rules, std::mt19937_64& random) {
  const U128 all = random() % 2 == 0 ? U128{0xff} : U128{0x7};
  const unsigned turn = random() & 3U;  // tags are not what they stand for
  const auto first = [&](unsigned value) { return U128{value ^ turn}; };
  const auto second = [&](unsigned value) { return U128{4U | (value + turn) % 4}; };
  Layout layout;
  const auto classes = [&](std::uint32_t table, MatchField from, unsigned bits, MatchField tag,
                           std::uint32_t to, const auto& number) {
    Matcher matcher{{}, 0, {}};
    for (unsigned value = 0; value < 4; ++value) {
      FlowRule rule;
      rule.table = table;
      rule.match.set(from, value, bits);
      rule.actions = {set_tag(tag, number(value), all), Action::jump(to)};
      matcher.mask = rule.match.mask();
      matcher.rules.push_back(rule);
    }
    layout.tables.push_back({table, {matcher}});
  };
  classes(0, MatchField::kIpProtocol, 3, kTags[0], 11, first);
  classes(11, MatchField::kIpv4Src, 3, kTags[1], 12, second);
  LayoutTable last{12, {}};
  std::vector<const FlowRule*> in_order;
  for (const FlowRule& rule : rules.rules) in_order.push_back(&rule);
  std::stable_sort(in_order.begin(), in_order.end(),
                   [](const FlowRule* a, const FlowRule* b) { return a->priority < b->priority; });
  for (const FlowRule* const rule : in_order) {
    Matcher matcher{{}, static_cast<RulePriority>(last.matchers.size()), {}};
    for (unsigned protocol = 0; protocol < 4; ++protocol) {
      for (unsigned source = 0; source < 4; ++source) {
        FlowRule part = *rule;
        bool meets = true;
        for (const FieldMatch& entry : rule->match.fields()) {
          if (entry.field == MatchField::kIpProtocol) {
            meets = meets && (protocol & entry.bits) == entry.value;
            part.match.set(entry.field, 0, 0);
          }
          if (entry.field == MatchField::kIpv4Src) {
            meets = meets && (source & entry.bits & 3) == (entry.value & 3);
            part.match.set(entry.field, entry.value & ~U128{3}, entry.bits & ~U128{3});
          }
        }
        if (!meets) continue;
        part.match.set(kTags[0], first(protocol), all);
        part.match.set(kTags[1], second(source), all);
        matcher.mask = part.match.mask();
        matcher.rules.push_back(std::move(part));
      }
    }
    last.matchers.push_back(std::move(matcher));
  }
  layout.tables.push_back(std::move(last));
  return layout;
}

Layout with_changed_tag(Layout layout, std::mt19937_64& random) {
  LayoutTable& table = layout.tables[random() % layout.tables.size()];
  Matcher& matcher = table.matchers[random() % table.matchers.size()];
  if (matcher.rules.empty()) return layout;
  FlowRule& rule = matcher.rules[random() % matcher.rules.size()];
  Action& front = rule.actions.front();
  if (front.kind == ActionKind::kSetField) {
    switch (random() % 4) {
      case 0:
        front.value ^= 1;
        break;
      case 1:  // one bit is not set, and stays what it was
        front.bits &= ~U128{2};
        front.value &= front.bits;
        break;
      case 2:
        front.field = front.field == kTags[0] ? kTags[1] : kTags[0];
        break;
      default:
        rule.actions.erase(rule.actions.begin());
        break;
    }
    return layout;
  }
  const MatchField tag = kTags[random() % 2];
  switch (random() % 4) {
    case 0:
      std::swap(matcher, table.matchers[random() % table.matchers.size()]);
      break;
    case 1:
      matcher.rules.erase(matcher.rules.begin());
      break;
    case 2:
      rule.actions = {Action::forward("p" + std::to_string(random() % 4))};
      break;
    default:
      for (const FieldMatch& entry : rule.match.fields()) {
        if (entry.field != tag) continue;
        rule.match.set(tag, entry.value ^ 1, entry.bits);
        break;
      }
      break;
  }
  return layout;
}

// Claim:  a layout that tags packets and matches the tags is judged exactly: as it is made it is right;
//         of planted faults in tags, rules and order each real one is shown by a packet that proves it,
//         and what changes nothing is no fault.
// Oracle: every packet there is, walked through the tables with its tags; the walk shares nothing with
//         the verifier. A tag that nothing set is zero, or comes with the counterexample.
TEST(VerifyTags, FindsPlantedFaultsAndRaisesNoFalseAlarm) {
  const int wanted = greynic::by_night() ? 10'000 : sized(500, 60);
  int faults = 0;
  int harmless = 0;
  for (std::uint64_t seed = 1; faults + harmless < wanted; ++seed) {
    const RuleSet rules = small_random_rules(4 + seed % 30, 4, seed);
    std::mt19937_64 random(seed);
    const Layout whole = tagged(rules, random);
    const auto right = verify(rules, whole);
    ASSERT_TRUE(right) << "seed " << seed << ": " << right.error().message;
    ASSERT_TRUE(tagged_alike_for_all(rules, whole)) << "seed " << seed;
    EXPECT_TRUE(right->equivalent)
        << "seed " << seed << ": " << to_string(right->counterexample->packet);
    for (int i = 0; i < 10; ++i) {
      const Layout layout = with_changed_tag(whole, random);
      const auto verdict = verify(rules, layout);
      ASSERT_TRUE(verdict) << "seed " << seed << ": " << verdict.error().message;
      if (!tagged_alike_for_all(rules, layout)) {
        ASSERT_FALSE(verdict->equivalent) << "seed " << seed << ", change " << i;
      }
      ++(verdict->equivalent ? harmless : faults);
      if (verdict->equivalent) continue;
      EXPECT_FALSE(tagged_alike(rules, layout, verdict->counterexample->packet))
          << "seed " << seed << ", change " << i << ": "
          << to_string(verdict->counterexample->packet);
    }
  }
  EXPECT_GT(faults, wanted / 3);
  EXPECT_GT(harmless, wanted / 50);
}

// Claim:  a field of which the rules know something is no tag: to set it is to change the packet, and a
//         layout that does so on its way is not followed.
// Oracle: the rules, which match the field, or set it, or name it in a foreign action.
TEST(VerifyTags, AreFieldsOfWhichTheRulesKnowNothing) {
  std::mt19937_64 random(1);
  const RuleSet rules = small_random_rules(10, 4, 1);
  const Layout layout = tagged(rules, random);
  RuleSet matches = rules;
  matches.rules[0].match.set(kTags[1], 1, 1);
  RuleSet sets = rules;
  sets.rules[0].actions.insert(sets.rules[0].actions.begin(), set_tag(kTags[0], 1, 1));
  RuleSet names = rules;
  names.rules[0].actions.push_back(Action::other("move:NXM_NX_REG3[]->NXM_OF_IP_DST[]"));
  for (const RuleSet& set : {matches, sets, names}) {
    const auto verdict = verify(set, layout);
    ASSERT_FALSE(verdict);
    EXPECT_EQ(verdict.error().code, ErrorCode::kUnsupported) << verdict.error().message;
  }
}

}  // namespace
}  // namespace greynic::verify
