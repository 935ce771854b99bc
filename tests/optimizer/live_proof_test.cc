/// What a live layout rests on: the search for cubes, and the proof of a step.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "greynic/optimizer/optimize.h"
#include "random_rules.h"
#include "src/live/proof.h"

namespace greynic::optimizer::live {
namespace {

Cube random_cube(std::mt19937_64& random, std::size_t words) {
  Cube cube{};
  for (std::size_t w = 0; w < words; ++w) {
    cube[w].mask = random() & random() & random();
    cube[w].value = random() & random() & random() & cube[w].mask;
  }
  return cube;
}

// Claim:  the index finds exactly the cubes that meet a cube, while cubes come and go.
// Oracle: all of them, one by one.
// Method: 2,000 steps over two words, half of the cubes built in at first; many cubes of few values,
//         some alike.
TEST(CubeIndex, FindsWhatMeets) {
  constexpr std::size_t kWords = 2;
  std::mt19937_64 random(11);
  Columns columns{[] {
    Mask mask;
    mask.add(MatchField::kIpv6Src, full_mask(MatchField::kIpv6Src));
    return mask;
  }()};
  const CubeSpace space{std::move(columns)};
  ASSERT_EQ(space.words(), kWords);
  std::vector<Cube> cubes;
  Ids present;
  for (std::uint32_t i = 0; i < 500; ++i) {
    cubes.push_back(i % 7 == 6 ? cubes[i / 2] : random_cube(random, kWords));
    present.push_back(i);
  }
  CubeIndex index;
  index.build(present, cubes, kWords);
  std::size_t met = 0;
  for (int step = 0; step < 2000; ++step) {
    if (random() % 2 == 0) {
      const auto id = static_cast<std::uint32_t>(cubes.size());
      cubes.push_back(random_cube(random, kWords));
      index.insert(id, cubes, kWords);
      present.push_back(id);
    } else {
      std::swap(present[random() % present.size()], present.back());
      index.erase(present.back(), cubes);
      present.pop_back();
    }
    const Cube asked = random_cube(random, kWords);
    Ids found;
    index.meeting(asked, cubes, kWords, found);
    std::sort(found.begin(), found.end());
    Ids wanted;
    for (const std::uint32_t id : present) {
      if (space.overlap(cubes[id], asked)) wanted.push_back(id);
    }
    std::sort(wanted.begin(), wanted.end());
    ASSERT_EQ(found, wanted) << "step " << step;
    met += found.size();
  }
  EXPECT_GT(met, 2000U);
}

/// Does the layout treat all 1,024 packets as the rules say, the rules in their order?
bool all_alike(const State& state, const Layout& layout) {
  std::vector<const KeptRule*> rules;
  for (const KeptRule& rule : state.rules()) {
    if (rule.present) rules.push_back(&rule);
  }
  std::sort(rules.begin(), rules.end(),
            [](const KeptRule* a, const KeptRule* b) { return a->order < b->order; });
  for (unsigned number = 0; number < 1U << SmallSpace::kBits; ++number) {
    const Packet packet = SmallSpace::packet(number);
    const auto wanted = std::find_if(rules.begin(), rules.end(), [&](const KeptRule* rule) {
      return rule->rule.match.matches(packet);
    });
    const FlowRule* got = look_up(layout, packet).rule;
    if (got != nullptr && got->actions.front().kind == ActionKind::kJump) got = nullptr;
    if ((wanted == rules.end()) != (got == nullptr)) return false;
    if (got != nullptr && got->actions != (*wanted)->rule.actions) return false;
  }
  return true;
}

// Claim:  the proof of a step is exact: it holds when all packets are treated as the rules say, and
//         fails when one is not.
// Oracle: all 1,024 packets.
// Method: in 600 layouts a rule comes or goes and nothing is mended; or an entry is added for it at
//         a random place, which is right now and then.
TEST(StepProof, SeesEveryFaultAndNoOther) {
  int right = 0;
  int wrong = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    std::mt19937_64 random(seed);
    const RuleSet set = small_random_rules(12 + seed % 30, 2, seed);
    OptimizeOptions options;
    options.max_growth = 3.0;
    const auto made = optimize(set, {}, options);
    ASSERT_TRUE(made);
    std::vector<KeptRule> rules;
    for (const FlowRule& rule : set.rules) {
      const auto order = (std::uint64_t{rule.priority} << 32) + 2 * rules.size();
      rules.push_back({.rule = rule, .order = order, .present = true});
    }
    auto state = State::create(rules, made->layout);
    ASSERT_TRUE(state) << state.error().message;
    Changes changes;
    const std::uint32_t root = state->root_of(0);
    std::uint32_t came = kNothing;
    Cube cube;
    const auto chosen = static_cast<std::uint32_t>(random() % rules.size());
    if (seed % 3 == 0) {
      cube = state->cube_of_rule(chosen);
      state->remove_rule(chosen, changes);
    } else {
      came = static_cast<std::uint32_t>(rules.size());
      KeptRule rule{.rule = small_random_rules(1, 2, seed + 9999).rules.front(),
                    .order = rules[chosen].order + 1,
                    .present = true};
      if (!state->can_hold(rule.rule)) continue;
      state->add_rule(came, rule);
      cube = state->cube_of_rule(came);
      if (seed % 3 == 1) {
        const auto places = static_cast<std::uint32_t>(state->table(root).matchers.size() + 1);
        const auto matcher =
            state->add_matcher(root, static_cast<std::uint32_t>(random() % places), cube, changes);
        state->add_entry(matcher, cube, came, changes);
      }
    }
    StepProof proof(
        *state, changes, [](const Fault&) { return false; },
        std::numeric_limits<std::uint64_t>::max());
    const bool holds = proof.holds(root, cube, came);
    ASSERT_EQ(holds, all_alike(*state, state->layout())) << "seed " << seed;
    ++(holds ? right : wrong);
  }
  EXPECT_GT(right, 100);
  EXPECT_GT(wrong, 100);
}

}  // namespace
}  // namespace greynic::optimizer::live
