#pragma once

/// Bugs planted in layouts, and rewrites that change no packet, for tests of verify(); core's slow lookup
/// of all packets of a small space says which is which.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>

#include "../optimizer/nightly.h"
#include "../optimizer/random_rules.h"
#include "greynic/verify/verify.h"
#include "sized.h"

namespace greynic::verify {

/// What the layout does to a packet, by core's slow lookup; null when nothing matches.
inline const FlowRule* by_layout(const Layout& layout, std::uint32_t table, const Packet& packet) {
  const FlowRule* rule = look_up(layout, packet, table).rule;
  const bool jumped =
      rule != nullptr && !rule->actions.empty() && rule->actions.front().kind == ActionKind::kJump;
  return jumped ? nullptr : rule;
}

inline bool treated_alike(const RuleSet& rules, const Layout& layout, std::uint32_t table,
                          const Packet& packet) {
  const FlowRule* wanted = look_up(rules, table, packet);
  const FlowRule* got = by_layout(layout, table, packet);
  if (wanted == nullptr || got == nullptr) return wanted == got;
  return wanted->actions == got->actions;
}

inline bool equivalent_by_trying(const RuleSet& rules, const Layout& layout) {
  for (unsigned number = 0; number < 1U << SmallSpace::kBits; ++number) {
    if (!treated_alike(rules, layout, 0, SmallSpace::packet(number))) return false;
  }
  return true;
}

/// By night the tests of planted faults take this many times the cases.
inline int more_by_night(int by_day, int by_night) {
  return greynic::by_night() ? by_night : sized(by_day, by_day / 10 + 1);
}

inline FlowRule* any_jump(Layout& layout, std::mt19937_64& random) {
  std::vector<FlowRule*> jumps;
  for (LayoutTable& table : layout.tables) {
    for (Matcher& matcher : table.matchers) {
      for (FlowRule& rule : matcher.rules) {
        if (!rule.actions.empty() && rule.actions.front().kind == ActionKind::kJump) {
          jumps.push_back(&rule);
        }
      }
    }
  }
  return jumps.empty() ? nullptr : jumps[random() % jumps.size()];
}

/// Breaks a layout in one of five ways, or leaves it whole where that way is not open.
inline Layout broken(Layout layout, std::mt19937_64& random) {
  if (random() % 5 == 0) {  // a jump goes to another table, or matches no more
    FlowRule* const jump = any_jump(layout, random);
    if (jump == nullptr) return layout;
    const FlowRule* const other = any_jump(layout, random);
    jump->actions = random() % 2 == 0 ? other->actions : std::vector<Action>{Action::drop()};
    return endless_jumps(layout) ? Layout{} : layout;
  }
  LayoutTable& table = layout.tables[random() % layout.tables.size()];
  if (table.matchers.empty()) return layout;
  const std::size_t at = random() % table.matchers.size();
  Matcher& matcher = table.matchers[at];
  const std::size_t rule_at = random() % matcher.rules.size();
  switch (random() % 4) {
    case 0:  // two matchers change places
      std::swap(matcher, table.matchers[random() % table.matchers.size()]);
      break;
    case 1:  // a rule is lost
      matcher.rules.erase(matcher.rules.begin() + static_cast<std::ptrdiff_t>(rule_at));
      if (matcher.rules.empty()) {
        table.matchers.erase(table.matchers.begin() + static_cast<std::ptrdiff_t>(at));
      }
      break;
    case 2: {  // one bit of a mask is no longer looked at
      if (matcher.mask.fields().empty()) return layout;
      const FieldMask part = matcher.mask.fields()[random() % matcher.mask.fields().size()];
      Matcher changed{{}, matcher.priority, {}};
      for (FlowRule rule : matcher.rules) {
        for (const FieldMatch& entry : rule.match.fields()) {
          if (entry.field != part.field) continue;
          const U128 bits = entry.bits & (entry.bits - 1);  // without its lowest bit
          rule.match.set(entry.field, entry.value, bits);
          break;
        }
        changed.mask = rule.match.mask();
        changed.rules.push_back(std::move(rule));
      }
      matcher = std::move(changed);
      break;
    }
    default:  // one bit of a value is turned
      for (const FieldMatch& entry : matcher.rules[rule_at].match.fields()) {
        const U128 lowest = entry.bits & (~entry.bits + 1);
        matcher.rules[rule_at].match.set(entry.field, entry.value ^ lowest, entry.bits);
        break;
      }
      break;
  }
  return layout;
}

/// Rewrites a layout in one of four ways that change no packet.
inline Layout rewritten(Layout layout, std::mt19937_64& random) {
  LayoutTable& table = layout.tables[random() % layout.tables.size()];
  if (table.matchers.empty()) return layout;
  const std::size_t at = random() % table.matchers.size();
  const auto place = table.matchers.begin() + static_cast<std::ptrdiff_t>(at);
  Matcher& matcher = *place;
  const std::size_t rule_at = random() % matcher.rules.size();
  const FlowRule rule = matcher.rules[rule_at];
  const std::uint64_t way = random() % 4;
  // Of two rules with one match the first decides; neither may leave its place.
  const bool twice = std::ranges::count(matcher.rules, rule.match, &FlowRule::match) > 1;
  if (twice && (way == 1 || way == 2)) return layout;
  switch (way) {
    case 0: {  // a jump gets a table of its own
      FlowRule* const jump = any_jump(layout, random);
      if (jump == nullptr) return layout;
      std::uint32_t free = 0;
      for (const LayoutTable& other : layout.tables) free = std::max(free, other.id + 1);
      for (const LayoutTable& other : layout.tables) {
        if (other.id != jump->actions.front().number) continue;
        LayoutTable copy = other;
        copy.id = free;
        jump->actions = {Action::jump(free)};
        layout.tables.push_back(std::move(copy));
        break;
      }
      return layout;
    }
    case 1: {  // a rule becomes two that look at one more bit
      for (const MatchField field : {MatchField::kIpv4Src, MatchField::kIpv4Dst}) {
        const U128 open = ~rule.match.mask().bits(field) & 0xf;  // of the small space
        const U128 bit = open & (~open + 1);
        if (bit == 0) continue;
        const U128 mask = rule.match.mask().bits(field);
        U128 value = 0;
        for (const FieldMatch& part : rule.match.fields()) {
          if (part.field == field) value = part.value;
        }
        FlowRule low = rule;
        FlowRule high = rule;
        low.match.set(field, value, mask | bit);
        high.match.set(field, value | bit, mask | bit);
        const Matcher halves{low.match.mask(), 0, {low, high}};
        matcher.rules.erase(matcher.rules.begin() + static_cast<std::ptrdiff_t>(rule_at));
        const bool empty = matcher.rules.empty();
        const auto next = empty ? table.matchers.erase(place) : place + 1;
        table.matchers.insert(next, halves);
        return layout;
      }
      return layout;
    }
    case 2: {  // a rule comes again, in front: alike ones are alone in their matchers
      if (at > 0) return layout;
      table.matchers.insert(place, {rule.match.mask(), 0, {rule}});
      return layout;
    }
    default: {  // the last jump of a table becomes what it leads to
      const Matcher last = table.matchers.back();
      if (!last.mask.fields().empty() || last.rules.front().actions.empty() ||
          last.rules.front().actions.front().kind != ActionKind::kJump) {
        return layout;
      }
      for (const LayoutTable& other : layout.tables) {
        if (other.id != last.rules.front().actions.front().number) continue;
        const std::vector<Matcher> copied = other.matchers;
        table.matchers.pop_back();
        table.matchers.insert(table.matchers.end(), copied.begin(), copied.end());
        break;
      }
      return layout;
    }
  }
}

struct Judged {
  int different = 0;
  int rewrites = 0;
};

/// Rewrites the layout four times, then plants a bug, and has each judged twice: from matcher to
/// matcher, and by the search of all packets.
inline void judge_rewritten_and_broken(const RuleSet& rules, const Layout& made,
                                       std::mt19937_64& random, Judged& judged) {
  Layout layout = made;
  for (int i = 0; i < 4; ++i) layout = rewritten(std::move(layout), random);
  if (!(layout == made)) {
    const auto verdict = verify(rules, layout);
    ASSERT_TRUE(verdict) << verdict.error().message;
    ASSERT_TRUE(verdict->equivalent);
    ++judged.rewrites;
  }
  layout = broken(std::move(layout), random);
  if (layout.tables.empty()) return;  // jumps in a circle, which is refused
  const Layout left = without_idle(layout);
  const bool alike = equivalent_by_trying(rules, layout) && equivalent_by_trying(rules, left);
  judged.different += alike ? 0 : 1;
  for (const std::uint64_t most : {VerifyOptions{}.most_comparisons, std::uint64_t{0}}) {
    VerifyOptions limits;
    limits.most_comparisons = most;
    const auto verdict = verify(rules, layout, limits);
    ASSERT_TRUE(verdict) << verdict.error().message;
    ASSERT_EQ(verdict->equivalent, alike);
    if (alike) continue;
    const auto& [packet, table] =
        std::tie(verdict->counterexample->packet, verdict->counterexample->table);
    EXPECT_FALSE(treated_alike(rules, layout, table, packet) &&
                 treated_alike(rules, left, table, packet))
        << to_string(packet);
  }
}

}  // namespace greynic::verify
