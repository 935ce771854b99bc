/// Layouts for one model of a fleet, which may have few lookup recipes.

#include "greynic/optimizer/for_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "greynic/optimizer/split.h"
#include "greynic/rules/traffic.h"
#include "greynic/verify/verify.h"
#include "made_rules.h"
#include "random_rules.h"

namespace greynic::optimizer {
namespace {

/// A wide mask takes two recipes and one that joins them.
ModelLimits device_of(std::size_t recipes) {
  ModelLimits model{{"small"}, {}, 50.0};
  model.limits.most_recipes = recipes;
  model.limits.most_chained = 3;
  model.limits.recipes_of = [](const Mask& mask) {
    return mask.fields().size() > 1 ? std::size_t{3} : std::size_t{1};
  };
  return model;
}

std::size_t recipes_in(const Layout& layout, const LayoutLimits& limits) {
  std::size_t sum = 0;
  for (const LayoutTable& table : hardware_of(layout).tables) {
    for (const Matcher& matcher : table.matchers) sum += limits.recipes(matcher.mask);
  }
  return sum;
}

/// What a packet meets on a device that holds matchers until recipes are used up: a slow and obvious
/// version.
struct Met {
  double tried = 0.0;
  bool slow = false;
};
Met met_by(const Layout& layout, const Packet& packet, const LayoutLimits& limits) {
  std::vector<std::pair<const Matcher*, bool>> all;
  std::size_t used = 0;
  for (const LayoutTable& table : layout.tables) {
    if (table.software) continue;
    bool held = true;
    for (const Matcher& matcher : table.matchers) {
      const std::size_t own = limits.recipes(matcher.mask);
      held = held && own <= limits.most_chained && used + own <= limits.most_recipes;
      if (held) used += own;
      all.emplace_back(&matcher, held);
    }
  }
  Met met;
  std::uint64_t at = 0;
  for (int jumps = 0; jumps < 64; ++jumps) {
    const auto table = std::ranges::find(layout.tables, at, &LayoutTable::id);
    if (table == layout.tables.end()) return met;
    if (table->software) {
      met.slow = true;
      return met;
    }
    const FlowRule* hit = nullptr;
    for (const Matcher& matcher : table->matchers) {
      const auto place = std::ranges::find(all, &matcher, &std::pair<const Matcher*, bool>::first);
      if (!place->second) {
        met.slow = true;
        return met;
      }
      met.tried += 1;
      const auto rule = std::ranges::find_if(
          matcher.rules, [&](const FlowRule& one) { return one.match.matches(packet); });
      if (rule == matcher.rules.end()) continue;
      hit = &*rule;
      break;
    }
    if (hit == nullptr) return met;
    const auto jump = std::ranges::find(hit->actions, ActionKind::kJump, &Action::kind);
    if (jump == hit->actions.end()) return met;
    at = jump->number;
  }
  return met;
}

// Claim:  whatever recipes there are, each packet gets what the rules say, the hardware's part keeps to
//         them unless it is the rules in their order, what it costs is told as it is, and it never
//         costs more than the rules in their order.
// Oracle: core's lookup of every packet there is; a walk by hand.
TEST(ForModel, IsRightForEveryPacketAndNeverDearerThanTheOrderGiven) {
  std::size_t cheaper = 0;
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    const RuleSet rules = small_random_rules(8 + seed % 60, 5, seed);
    const Traffic traffic = rules::zipf_traffic(rules, 1.1, seed);
    const ModelLimits model = device_of(1 + seed % 24);
    const auto made = optimize_for(rules, traffic, {}, model);
    ASSERT_TRUE(made) << "seed " << seed << ": " << made.error().message;
    const Layout& layout = made->made.layout;
    if (layout != layout_in_rule_order(rules)) {
      EXPECT_LE(recipes_in(layout, model.limits), model.limits.most_recipes) << seed;
    }
    for (unsigned number = 0; number < 1U << SmallSpace::kBits; ++number) {
      const Packet packet = SmallSpace::packet(number);
      const FlowRule* const wanted = look_up(rules, 0, packet);
      const FlowRule* got = look_up(layout, packet).rule;
      if (got != nullptr && !got->actions.empty() &&
          got->actions.front().kind == ActionKind::kJump) {
        got = nullptr;
      }
      ASSERT_EQ(wanted == nullptr, got == nullptr) << seed << ": " << to_string(packet);
      if (wanted != nullptr) ASSERT_EQ(wanted->actions, got->actions) << seed;
    }
    const auto by_hand = [&](const Layout& of) {
      HeldCost cost;
      double all = 0.0;
      for (const TrafficFlow& flow : traffic.flows) {
        const Met met = met_by(of, flow.packet, model.limits);
        cost.tried += flow.weight * met.tried;
        cost.slow_share += met.slow ? flow.weight : 0.0;
        all += flow.weight;
      }
      return HeldCost{cost.tried / all, cost.slow_share / all,
                      (cost.tried + cost.slow_share * model.slow_path) / all};
    };
    const HeldCost before = by_hand(layout_in_rule_order(rules));
    const HeldCost after = by_hand(layout);
    EXPECT_NEAR(made->before.cost, before.cost, 1e-9) << seed;
    EXPECT_NEAR(made->before.slow_share, before.slow_share, 1e-9) << seed;
    EXPECT_NEAR(made->after.cost, after.cost, 1e-9) << seed;
    EXPECT_NEAR(made->after.tried, after.tried, 1e-9) << seed;
    EXPECT_LE(after.cost, before.cost + 1e-9) << seed;
    cheaper += after.cost < 0.9 * before.cost ? 1 : 0;
  }
  EXPECT_GE(cheaper, 60U);
}

// Claim:  where recipes do for all, the layout is as good as that of optimize(), within a hundredth;
//         without limits it is that of optimize().
// Oracle: optimize().
TEST(ForModel, IsTheWholeLayoutWhereThereIsRoom) {
  const RuleSet rules = made_rules("made:acl:60:3");
  const Traffic traffic = rules::uniform_traffic(rules, 1);
  const auto whole = optimize(rules, traffic);
  ASSERT_TRUE(whole) << whole.error().message;
  const auto free = optimize_for(rules, traffic, {}, {{"any"}, {}, 50.0});
  ASSERT_TRUE(free) << free.error().message;
  EXPECT_EQ(free->made.layout, whole->layout);
  EXPECT_EQ(free->after.slow_share, 0.0);
  const auto roomy = optimize_for(rules, traffic, {}, device_of(100'000));
  ASSERT_TRUE(roomy) << roomy.error().message;
  EXPECT_LE(roomy->after.cost, 1.01 * whole->after.matchers_tried);
}

/// What a layout does to a packet, tags followed: the rule that ends its way.
const FlowRule* ended_by(const Layout& layout, Packet packet) {
  std::uint64_t at = 0;
  while (true) {
    const auto table = std::ranges::find(layout.tables, at, &LayoutTable::id);
    const FlowRule* hit = nullptr;
    for (const Matcher& matcher : table->matchers) {
      for (const FlowRule& rule : matcher.rules) {
        if (hit == nullptr && rule.match.matches(packet)) hit = &rule;
      }
    }
    if (hit == nullptr) return nullptr;
    const auto jump = std::ranges::find(hit->actions, ActionKind::kJump, &Action::kind);
    for (const Action& action : hit->actions) {
      if (action.kind != ActionKind::kSetField) continue;
      packet.set(action.field,
                 (packet.value(action.field) & ~action.bits) | (action.value & action.bits));
    }
    if (jump == hit->actions.end()) return hit;
    at = jump->number;
  }
}

bool alike_for_all(const RuleSet& rules, const Layout& layout) {
  for (unsigned number = 0; number < 1U << SmallSpace::kBits; ++number) {
    for (const std::uint32_t port : {0U, 1U, 2U, 3U}) {
      Packet packet = SmallSpace::packet(number);
      packet.set(MatchField::kInPort, port);
      const FlowRule* const wanted = look_up(rules, 0, packet);
      const FlowRule* const got = ended_by(layout, packet);
      if ((wanted == nullptr) != (got == nullptr)) return false;
      if (wanted != nullptr && wanted->actions != got->actions) return false;
    }
  }
  return true;
}

void plant_fault(Layout& layout, std::mt19937_64& random) {
  LayoutTable& table = layout.tables[random() % layout.tables.size()];
  Matcher& matcher = table.matchers[random() % table.matchers.size()];
  const std::size_t place = random() % matcher.rules.size();
  FlowRule& rule = matcher.rules[place];
  switch (random() % 4) {
    case 0:
      rule.actions = {Action::forward("p" + std::to_string(random() % 4))};
      break;
    case 1:
      if (matcher.rules.size() > 1) {
        matcher.rules.erase(matcher.rules.begin() + static_cast<std::ptrdiff_t>(place));
      }
      break;
    case 2: {
      if (rule.match.fields().empty()) break;
      const FieldMatch part = rule.match.fields()[random() % rule.match.fields().size()];
      rule.match.set(part.field, part.value ^ (part.bits & (~part.bits + 1)), part.bits);
      break;
    }
    default:
      for (Action& action : rule.actions) {
        if (action.kind == ActionKind::kSetField) action.value ^= 1;
      }
  }
}

// Claim:  where masks are too wide for the device, rules ask for a tag that a first table sets, and more
//         packets stay in hardware than without; every packet gets what the rules say, and of faults
//         planted in such layouts verify finds the real ones, and no other.
// Oracle: a walk of every packet that follows tags.
TEST(ForModel, SetsTagsWhereMasksAreTooWide) {
  std::mt19937_64 random(5);
  std::size_t tagged = 0;
  std::size_t real = 0;
  for (std::uint64_t seed = 1; seed <= 16; ++seed) {
    RuleSet rules = small_random_rules(20 + seed % 40, 4, seed);
    for (FlowRule& rule : rules.rules) {
      rule.match.set(MatchField::kInPort, 1 + random() % 2);
      rule.match.set(MatchField::kIpProtocol, random() % 4, 3);
    }
    const Traffic traffic = rules::zipf_traffic(rules, 1.1, seed);
    ModelLimits model = device_of(20);
    model.limits.recipes_of = [](const Mask& mask) {
      return std::max<std::size_t>(1, mask.fields().size());
    };
    const auto without = optimize_for(rules, traffic, {}, model);
    ASSERT_TRUE(without) << without.error().message;
    model.tags = true;
    const auto made = optimize_for(rules, traffic, {}, model);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_LE(made->after.cost, without->after.cost + 1e-9) << seed;
    const Layout& layout = made->made.layout;
    ASSERT_TRUE(alike_for_all(rules, layout)) << seed;
    const bool has_tags =
        layout.tables.front().matchers.front().rules.front().actions.front().kind ==
        ActionKind::kSetField;
    if (!has_tags) continue;
    ++tagged;
    EXPECT_LE(recipes_in(layout, model.limits), model.limits.most_recipes) << seed;
    for (int i = 0; i < 25; ++i) {
      Layout faulty = layout;
      plant_fault(faulty, random);
      for (LayoutTable& table : faulty.tables) {
        for (Matcher& matcher : table.matchers) {
          std::erase_if(matcher.rules,
                        [&](const FlowRule& rule) { return rule.match.mask() != matcher.mask; });
        }
      }
      const bool right = alike_for_all(rules, faulty);
      const auto verdict = verify::verify(rules, faulty);
      ASSERT_TRUE(verdict) << verdict.error().message;
      EXPECT_EQ(verdict->equivalent, right) << seed << ", fault " << i;
      real += right ? 0 : 1;
    }
  }
  EXPECT_GE(tagged, 6U);
  EXPECT_GE(real, 40U);
}

// Claim:  a device without software behind it gets no layout that does not fit, and is told what it
//         would take.
// Oracle: the error.
TEST(ForModel, RefusesWhatDoesNotFitWhereNoSoftwareIs) {
  const RuleSet rules = made_rules("made:acl:200:3");
  ModelLimits model = device_of(2);
  model.slow_path = 0.0;
  const auto made = optimize_for(rules, rules::uniform_traffic(rules, 1), {}, model);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kTooBig);
  EXPECT_NE(made.error().message.find("recipes"), std::string::npos) << made.error().message;
}

}  // namespace
}  // namespace greynic::optimizer
