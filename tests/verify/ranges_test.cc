/// Layouts with ranges, judged.

#include <gtest/gtest.h>

#include <random>

#include "../optimizer/nightly.h"
#include "../optimizer/range_rules.h"
#include "greynic/optimizer/optimize.h"
#include "greynic/rules/traffic.h"
#include "greynic/verify/verify.h"
#include "sized.h"

namespace greynic::verify {
namespace {

bool alike(const RuleSet& rules, const Layout& layout, const Packet& packet) {
  const FlowRule* const wanted = look_up(rules, 0, packet);
  const FlowRule* got = look_up(layout, packet).rule;
  if (got != nullptr && got->actions.front().kind == ActionKind::kJump) got = nullptr;
  if (wanted == nullptr || got == nullptr) return wanted == got;
  return wanted->actions == got->actions;
}

/// The least value of a port that the match takes: ranges and prefixes are intervals.
U128 least(const Match& match, MatchField port) {
  for (const FieldRange& range : match.ranges()) {
    if (range.field == port) return range.low;
  }
  for (const FieldMatch& part : match.fields()) {
    if (part.field == port) return part.value;
  }
  return 0;
}

/// Some packet matches both: then one does whose ports are the greater of the two least ones.
bool meet(const Match& a, const Match& b) {
  Packet packet;
  for (const MatchField port : {MatchField::kL4SrcPort, MatchField::kL4DstPort}) {
    packet.set(port, std::max(least(a, port), least(b, port)));
  }
  for (unsigned address = 0; address < RangeSpace::kAddresses; ++address) {
    packet.set(MatchField::kIpv4Dst, address);
    if (a.matches(packet) && b.matches(packet)) return true;
  }
  return false;
}

/// Some packet matches two rules of one matcher that differ.
bool has_rivals(const Layout& layout) {
  for (const LayoutTable& table : layout.tables) {
    for (const Matcher& matcher : table.matchers) {
      for (const FlowRule& a : matcher.rules) {
        for (const FlowRule& b : matcher.rules) {
          if (a.actions != b.actions && meet(a.match, b.match)) return true;
        }
      }
    }
  }
  return false;
}

/// Changes an end of a range, or something else; ends stay where packets of the small space tell.
Layout changed(Layout layout, std::mt19937_64& random) {
  LayoutTable& table = layout.tables[random() % layout.tables.size()];
  if (table.matchers.empty()) return layout;
  Matcher& matcher = table.matchers[random() % table.matchers.size()];
  if (matcher.rules.empty()) return layout;
  FlowRule& rule = matcher.rules[random() % matcher.rules.size()];
  if (!rule.match.ranges().empty() && random() % 5 != 0) {
    FieldRange range = rule.match.ranges()[random() % rule.match.ranges().size()];
    switch (random() % 5) {
      case 0:
        range.low += range.low < range.high && range.low < 15 ? 1 : 0;
        break;
      case 1:
        range.low -= range.low > 0 ? 1 : 0;
        break;
      case 2:
        range.high = range.high > 15 ? 15 : range.high - (range.high > range.low ? 1 : 0);
        break;
      case 3:
        range.high = range.high < 15 ? range.high + 1 : 65535;
        break;
      default:
        range = {range.field, 0, 65535};
        break;
    }
    rule.match.set_range(range.field, range.low, std::max(range.low, range.high));
    return layout;
  }
  switch (random() % 3) {
    case 0:
      std::swap(matcher, table.matchers[random() % table.matchers.size()]);
      break;
    case 1:
      matcher.rules.erase(matcher.rules.begin() +
                          static_cast<std::ptrdiff_t>(&rule - matcher.rules.data()));
      break;
    default:
      rule.actions = {Action::forward("p" + std::to_string(random() % 4))};
      break;
  }
  return endless_jumps(layout) ? Layout{} : layout;
}

// Claim:  a layout with ranges is judged exactly: faults in the ends of ranges are shown by a packet
//         that proves them, what changes nothing is no fault, and rules of one matcher that stand
//         against each other are refused.
// Oracle: every packet there is, looked up in core, where a range is two comparisons.
TEST(VerifyRanges, FindsPlantedFaultsAndRaisesNoFalseAlarm) {
  const int wanted = greynic::by_night() ? 10'000 : sized(600, 60);
  int faults = 0;
  int harmless = 0;
  int rivals = 0;
  for (std::uint64_t seed = 1; faults + harmless + rivals < wanted; ++seed) {
    const RuleSet rules = range_rules(5 + seed % 20, 4, seed);
    optimizer::OptimizeOptions options;
    options.limits.most_ranges = 2;
    options.max_growth = 2.0;
    const auto made = optimizer::optimize(rules, rules::uniform_traffic(rules, 1), options);
    ASSERT_TRUE(made) << made.error().message;
    std::mt19937_64 random(seed);
    for (int i = 0; i < 10; ++i) {
      const Layout layout = changed(made->layout, random);
      if (layout == made->layout) continue;
      bool right = true;
      for (unsigned number = 0; right && number < RangeSpace::kPackets; ++number) {
        right = alike(rules, layout, RangeSpace::packet(number));
      }
      const auto verdict = verify(rules, layout);
      if (!verdict) {
        ASSERT_EQ(verdict.error().code, ErrorCode::kBadInput) << verdict.error().message;
        ASSERT_TRUE(has_rivals(layout)) << "seed " << seed << ": " << verdict.error().message;
        ++rivals;
        continue;
      }
      ASSERT_FALSE(has_rivals(layout)) << "seed " << seed << ", change " << i;
      // A fault beyond the small space is one, too: its packet shows it.
      if (!right) ASSERT_FALSE(verdict->equivalent) << "seed " << seed << ", change " << i;
      ++(verdict->equivalent ? harmless : faults);
      if (verdict->equivalent) continue;
      ASSERT_FALSE(alike(rules, layout, verdict->counterexample->packet))
          << "seed " << seed << ", change " << i << ": "
          << to_string(verdict->counterexample->packet);
    }
  }
  EXPECT_GT(faults, wanted / 4);
  EXPECT_GT(harmless, wanted / 50);
  EXPECT_GT(rivals, wanted / 50);
}

}  // namespace
}  // namespace greynic::verify
