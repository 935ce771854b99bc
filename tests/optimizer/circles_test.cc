/// Masks in a circle: how many matchers one chain has.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "random_rules.h"
#include "sized.h"
#include "src/chain.h"
#include "src/circles/freest_first.h"
#include "src/circles/parts.h"
#include "src/problem.h"

namespace greynic::optimizer {
namespace {

/// Rules of a few masks, of which no two are the same; each does something of its own.
RuleSet rules_of_few_masks(std::size_t count, std::size_t masks, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::array<unsigned, 3>> looks_at;
  for (std::size_t i = 0; i < masks; ++i) {
    looks_at.push_back({static_cast<unsigned>(random() & 0xf),
                        static_cast<unsigned>(random() & 0xf),
                        static_cast<unsigned>(random() & 0x3)});
  }
  RuleSet rules;
  std::set<std::array<unsigned, 6>> known;
  for (std::size_t i = 0; i < count; ++i) {
    const auto& mask = looks_at[random() % masks];
    FlowRule rule;
    std::array<unsigned, 6> key{};
    constexpr std::array kFields = {MatchField::kIpv4Src, MatchField::kIpv4Dst,
                                    MatchField::kIpProtocol};
    for (std::size_t field = 0; field < kFields.size(); ++field) {
      key[field] = mask[field];
      key[field + 3] = static_cast<unsigned>(random()) & mask[field];
      rule.match.set(kFields[field], key[field + 3], key[field]);
    }
    if (!known.insert(key).second) continue;
    rule.priority = static_cast<RulePriority>(i);
    rule.actions = {Action::forward("p" + std::to_string(i))};
    rules.rules.push_back(std::move(rule));
  }
  return rules;
}

/// The rules as the test sees them: masks by number, and who must stay before whom, found by looking
/// at all packets.
struct Seen {
  explicit Seen(const RuleSet& rules) : must_precede(rules.rules.size()) {
    std::map<Mask, std::size_t> numbers;
    for (const FlowRule& rule : rules.rules) {
      mask.push_back(numbers.try_emplace(rule.match.mask(), numbers.size()).first->second);
    }
    masks = numbers.size();
    std::vector<std::set<unsigned>> packets(rules.rules.size());
    for (unsigned number = 0; number < 1U << SmallSpace::kBits; ++number) {
      const Packet packet = SmallSpace::packet(number);
      for (std::size_t i = 0; i < rules.rules.size(); ++i) {
        if (rules.rules[i].match.matches(packet)) packets[i].insert(number);
      }
    }
    for (std::size_t b = 0; b < rules.rules.size(); ++b) {
      for (std::size_t a = 0; a < b; ++a) {
        const bool meet = std::any_of(packets[a].begin(), packets[a].end(), [&](unsigned packet) {
          return packets[b].count(packet) > 0;
        });
        if (meet) must_precede[b].push_back(a);
      }
    }
  }
  std::vector<std::size_t> mask;
  std::size_t masks = 0;
  std::vector<std::vector<std::size_t>> must_precede;  ///< by rule: those that it waits for
};

/// The fewest matchers of any chain: every set of rules that may be behind us, reached with as few
/// matchers as can be.
std::size_t fewest_matchers(const Seen& seen) {
  const std::size_t n = seen.mask.size();
  std::set<unsigned> reached{0};
  for (std::size_t matchers = 0;; ++matchers) {
    if (reached.count((1U << n) - 1) > 0) return matchers;
    std::set<unsigned> next;
    for (const unsigned behind : reached) {
      for (std::size_t mask = 0; mask < seen.masks; ++mask) {
        unsigned with = behind;
        for (std::size_t rule = 0; rule < n; ++rule) {
          const auto& waits = seen.must_precede[rule];
          const bool may = std::all_of(waits.begin(), waits.end(),
                                       [&](std::size_t other) { return behind >> other & 1; });
          if (seen.mask[rule] == mask && may) with |= 1U << rule;
        }
        next.insert(with);
      }
    }
    reached = std::move(next);
  }
}

/// Each rule in its order goes to the first matcher of its mask that it may be in, or to a new one
/// at the end.
std::size_t matchers_of_plain_greedy(const Seen& seen) {
  std::vector<std::size_t> place(seen.mask.size());
  std::vector<std::size_t> mask_at;
  for (std::size_t rule = 0; rule < seen.mask.size(); ++rule) {
    std::size_t at = 0;
    for (const std::size_t other : seen.must_precede[rule]) at = std::max(at, place[other] + 1);
    while (at < mask_at.size() && mask_at[at] != seen.mask[rule]) ++at;
    if (at == mask_at.size()) mask_at.push_back(seen.mask[rule]);
    place[rule] = at;
  }
  return mask_at.size();
}

struct Made {
  explicit Made(const RuleSet& rules) : problem(problem_of(rules)) {
    std::vector<std::uint32_t> all(rules.rules.size());
    std::iota(all.begin(), all.end(), 0U);
    groups = groups_by_mask(problem, all);
    chain = build_chain(problem, all);
  }
  static Problem problem_of(const RuleSet& rules) {
    std::vector<std::uint32_t> all(rules.rules.size());
    std::iota(all.begin(), all.end(), 0U);
    Effects effects;
    Problem problem = make_problem(rules, all, effects);
    problem.weight.assign(all.size(), 1.0);
    return problem;
  }
  Problem problem;
  std::vector<Group> groups;
  Chain chain;
};

/// What is wrong with a chain; empty when each rule is in it once, with its like, behind all that it
/// has to wait for.
std::string fault(const Seen& seen, const std::vector<Group>& chain) {
  std::vector<std::size_t> place(seen.mask.size(), chain.size());
  for (std::size_t at = 0; at < chain.size(); ++at) {
    for (const std::uint32_t rule : chain[at].rows) {
      if (place[rule] != chain.size()) return "a rule twice";
      if (seen.mask[rule] != seen.mask[chain[at].rows.front()]) return "two masks in a matcher";
      place[rule] = at;
    }
  }
  for (std::size_t rule = 0; rule < seen.mask.size(); ++rule) {
    if (place[rule] == chain.size()) return "a rule left out";
    for (const std::size_t other : seen.must_precede[rule]) {
      if (place[other] >= place[rule]) return "a rule before one that it has to wait for";
    }
  }
  return {};
}

std::vector<Group> chain_of_freest_first(const Made& made) {
  std::vector<Group> groups;
  std::vector<double> weights;
  for (const auto& part :
       circles::freest_first(made.problem, made.groups, precedence(made.problem, made.groups))) {
    groups.push_back({part, static_cast<double>(part.size())});
    weights.push_back(groups.back().weight);
  }
  std::vector<Group> chain;
  for (const std::uint32_t next : order_groups(weights, precedence(made.problem, groups))) {
    chain.push_back(groups[next]);
  }
  return chain;
}

FlowRule rule_for(unsigned source, unsigned source_bits, unsigned destination,
                  unsigned destination_bits, unsigned number) {
  FlowRule rule;
  rule.match.set(MatchField::kIpv4Src, source, source_bits);
  rule.match.set(MatchField::kIpv4Dst, destination, destination_bits);
  rule.priority = static_cast<RulePriority>(number);
  rule.actions = {Action::forward("p" + std::to_string(number))};
  return rule;
}

// Claim:  of two masks in a circle the one is split that has to be, though more of the rules of the
//         other are free.
// Oracle: worked out by hand. Rules of mask D (destination) stand before and behind one of mask S
//         (source), so D needs two matchers, and S fits between them. Three more rules of S are free
//         from the start; to take these first would make two matchers of S as well.
TEST(Circles, SplitsNoMaskForItsFreeRulesAlone) {
  RuleSet rules;
  rules.rules.push_back(rule_for(0, 0x1, 0, 0xf, 0));  // D'
  rules.rules.push_back(rule_for(0, 0xf, 0, 0x1, 1));  // S, behind D'
  rules.rules.push_back(rule_for(0, 0x1, 2, 0xf, 2));  // D', behind S
  rules.rules.push_back(rule_for(1, 0xf, 0, 0x1, 3));  // S alone: D' takes even sources
  rules.rules.push_back(rule_for(3, 0xf, 0, 0x1, 4));
  rules.rules.push_back(rule_for(5, 0xf, 0, 0x1, 5));
  const Made made(rules);
  EXPECT_EQ(made.groups.size(), 2U);
  EXPECT_EQ(made.chain.groups.size(), 3U);
  EXPECT_EQ(made.chain.least, 3U);
  EXPECT_EQ(fault(Seen(rules), made.chain.groups), "");
}

// Claim:  the search finds as few matchers for few rules as any chain of them has; the chain that is
//         taken, where fewer may cost more, lies between that and a plain greedy one; and the bound is
//         no higher.
// Oracle: all chains, by breadth; who meets whom is found by looking at all packets.
TEST(Circles, FewRulesHaveAsFewMatchersAsAnyChain) {
  std::size_t in_circles = 0;
  std::size_t bounded = 0;
  std::size_t matchers = 0;
  for (std::uint64_t seed = 1; seed <= sized(3000U, 300U); ++seed) {
    const RuleSet rules = rules_of_few_masks(4 + seed % 5, 2 + seed % 4, seed);
    const Seen seen(rules);
    const Made made(rules);
    const std::size_t fewest = fewest_matchers(seen);
    const auto listed =
        circles::row_graph(made.problem, made.groups, precedence(made.problem, made.groups), 100);
    ASSERT_TRUE(listed);
    circles::Parts parts = circles::one_by_one(listed->graph, seed % 2 == 0);
    circles::improve(listed->graph, 0, parts);
    ASSERT_EQ(circles::count(parts), fewest) << "seed " << seed;
    ASSERT_GE(made.chain.groups.size(), fewest) << "seed " << seed;
    ASSERT_LE(made.chain.groups.size(), matchers_of_plain_greedy(seen)) << "seed " << seed;
    ASSERT_LE(made.chain.least, fewest) << "seed " << seed;
    ASSERT_EQ(fault(seen, made.chain.groups), "") << "seed " << seed;
    in_circles += fewest > seen.masks ? 1 : 0;
    bounded += made.chain.least;
    matchers += fewest;
  }
  EXPECT_GT(in_circles, 10U);
  EXPECT_GT(bounded * 100, matchers * 98) << "a bound that says nothing";
}

// Claim:  no chain has more matchers than the plain greedy one, nor fewer than its bound; each rule
//         stays behind those that it has to wait for.
// Oracle: the greedy chain and a check of all pairs, on what looking at all packets says.
TEST(Circles, ManyRulesHaveNoMoreMatchersThanAPlainGreedyChain) {
  for (std::uint64_t seed = 1; seed <= sized(60U, 12U); ++seed) {
    const RuleSet rules = rules_of_few_masks(40 + seed, 6 + seed % 12, seed);
    const Seen seen(rules);
    const Made made(rules);
    EXPECT_LE(made.chain.groups.size(), matchers_of_plain_greedy(seen)) << "seed " << seed;
    EXPECT_LE(made.chain.least, made.chain.groups.size()) << "seed " << seed;
    EXPECT_EQ(fault(seen, made.chain.groups), "") << "seed " << seed;
  }
}

// Claim:  fewer matchers are not bought with packets that try more of them: a chain costs no more than
//         the same order of what leaves first as soon as nothing holds it back.
// Oracle: that chain, made here from the parts and the precedence of all groups.
TEST(Circles, CostNoMoreThanFreestFirst) {
  double ours = 0.0;
  double theirs = 0.0;
  for (std::uint64_t seed = 1; seed <= sized(60U, 12U); ++seed) {
    const RuleSet rules = rules_of_few_masks(40 + seed, 6 + seed % 12, seed);
    const Made made(rules);
    const std::vector<Group> freest = chain_of_freest_first(made);
    double cost = 0.0;
    for (std::size_t i = 0; i < freest.size(); ++i) {
      cost += freest[i].weight * static_cast<double>(i + 1);
    }
    EXPECT_LE(weighted_position(made.chain), 1.05 * cost) << "seed " << seed;
    ours += weighted_position(made.chain);
    theirs += cost;
  }
  EXPECT_LT(ours, theirs);
}

// Claim:  what splits circles of very many overlaps lets each rule stay behind those that it has to
//         wait for.
// Oracle: a check of all pairs.
TEST(Circles, FreestFirstLeavesNoCircle) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const RuleSet rules = rules_of_few_masks(30 + seed, 8, seed);
    const Made made(rules);
    EXPECT_EQ(fault(Seen(rules), chain_of_freest_first(made)), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace greynic::optimizer
