#include "needed_sets.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <utility>

#include "whole/structures.h"

namespace greynic::causal {
namespace {

constexpr double kMostLost = 14.0;      // log odds that tests may speak against a set
constexpr double kOpenTest = 0.3;       // log odds of a test that says nothing
constexpr double kSeveralCauses = 0.1;  // odds that no setting is needed, before any test
constexpr double kFarUnlikely = 16.0;   // behind the likeliest, in logarithms
constexpr std::size_t kMostTests = 64;
constexpr std::size_t kMostVisited = 400'000;
constexpr std::size_t kLeastCount = 3;  // of settings, where larger sets are too many
constexpr double kMostDrawn = 4096.0;

double before(std::size_t count) { return count == 0 ? kSeveralCauses : kTermsBefore[count]; }

}  // namespace

Set NeededSet::settings() const {
  Set all;
  for (std::size_t i = 0; i < count; ++i) all.set(members[i]);
  return all;
}

NeededSets::NeededSets(const Set& wall) : wall_(wall) {}

/// What walls say against a kind is known before anything else, so most kinds are left out here.
void NeededSets::make_kinds(std::span<const HealedTest> tests) {
  evidence_.clear();
  clear_ = faint_ = 0;
  for (const HealedTest& one : tests.first(std::min(tests.size(), kMostTests))) {
    if (one.evidence < 0.0)
      (one.evidence < -kOpenTest ? clear_ : faint_) |= Hits{1} << evidence_.size();
    evidence_.push_back(one.evidence);
  }
  std::map<Hits, Kind> kinds;
  for (std::size_t i = 0; i < wall_.size(); ++i) {
    if (!wall_.test(i)) continue;
    Hits hits = 0;
    for (std::size_t k = 0; k < evidence_.size(); ++k) {
      if (tests[k].healed.test(i)) hits |= Hits{1} << k;
    }
    if (lost(hits, 0) > kMostLost) continue;
    kinds[hits].hits = hits;
    kinds[hits].members.push_back(static_cast<std::uint8_t>(i));
  }
  kinds_.clear();
  for (auto& [hits, kind] : kinds) kinds_.push_back(std::move(kind));
}

bool NeededSets::counts() { return ++visited_ <= kMostVisited; }

/// How much the tests that were walls though they hit, and those that were clear though they missed, speak against
/// it.
double NeededSets::lost(Hits hit, Hits missed) const {
  double sum = 0.0;
  for (Hits left = hit; left != 0; left &= left - 1) {
    sum += std::max(0.0, evidence_[static_cast<std::size_t>(std::countr_zero(left))]);
  }
  for (Hits left = missed; left != 0; left &= left - 1) {
    sum -= evidence_[static_cast<std::size_t>(std::countr_zero(left))];
  }
  return sum;
}

/// Each clear test is hit by one kind at least, or it is wrong. The first of its kinds that a set has decides the way,
/// so each set is met once.
void NeededSets::visit(Chosen& chosen, Hits hit, Hits missed, Set barred) {
  if (!counts()) return;
  const Hits open = clear_ & ~hit & ~missed;
  if (open == 0) {
    add_others(chosen, hit, missed, barred, 0);
    return;
  }
  auto surest = static_cast<std::size_t>(std::countr_zero(open));
  for (Hits left = open; left != 0; left &= left - 1) {
    const auto test = static_cast<std::size_t>(std::countr_zero(left));
    if (evidence_[test] < evidence_[surest]) surest = test;
  }
  for (std::size_t i = 0; i < kinds_.size(); ++i) {
    if ((kinds_[i].hits >> surest & 1) == 0 || barred.test(i)) continue;
    const Hits more = hit | kinds_[i].hits;
    if (chosen.count < most_count_ && lost(more, missed) <= kMostLost) {
      chosen.kinds[chosen.count++] = static_cast<std::uint8_t>(i);
      visit(chosen, more, missed, barred);
      --chosen.count;
    }
    barred.set(i);
  }
  const Hits wrong = missed | Hits{1} << surest;
  if (lost(hit, wrong) <= kMostLost) visit(chosen, hit, wrong, barred);
}

/// Kinds that no clear test asks for.
void NeededSets::add_others(Chosen& chosen, Hits hit, Hits missed, const Set& barred,
                            std::size_t from) {
  keep(chosen, lost(hit, missed | (faint_ & ~hit)));
  for (std::size_t i = from; i < kinds_.size() && chosen.count < most_count_; ++i) {
    const Hits more = hit | kinds_[i].hits;
    if (barred.test(i) || lost(more, missed) > kMostLost) continue;
    if (!counts()) return;
    chosen.kinds[chosen.count++] = static_cast<std::uint8_t>(i);
    add_others(chosen, more, missed, barred, i);
    --chosen.count;
  }
}

void NeededSets::keep(Chosen chosen, double lost) {
  const auto all = static_cast<double>(wall_.count());
  chosen.lost = lost;
  chosen.weight = std::log(before(chosen.count)) - log_choose(all, chosen.count) - lost;
  std::sort(chosen.kinds.begin(), chosen.kinds.begin() + chosen.count);
  for (std::size_t i = 0, end = 0; i < chosen.count; i = end) {
    while (end < chosen.count && chosen.kinds[end] == chosen.kinds[i]) ++end;
    const std::size_t members = kinds_[chosen.kinds[i]].members.size();
    if (members < end - i) return;
    chosen.weight += log_choose(static_cast<double>(members), static_cast<double>(end - i));
  }
  chosen_.push_back(chosen);
}

/// All sets of these kinds.
void NeededSets::spread(const Chosen& chosen, double chance) {
  std::vector<NeededSet> sets = {{}};
  for (std::size_t i = 0; i < chosen.count; ++i) {
    const bool again = i > 0 && chosen.kinds[i] == chosen.kinds[i - 1];
    std::vector<NeededSet> longer;
    for (const NeededSet& one : sets) {
      for (const std::uint8_t member : kinds_[chosen.kinds[i]].members) {
        if (again && member <= one.members[i - 1]) continue;
        longer.push_back(one);
        longer.back().members[longer.back().count++] = member;
      }
    }
    sets = std::move(longer);
  }
  for (NeededSet& one : sets) {
    one.chance = chance / static_cast<double>(sets.size());
    likely_.push_back(one);
  }
}

/// One of them by chance.
void NeededSets::draw(const Chosen& chosen, double chance, statistics::Random& random) {
  NeededSet one;
  one.chance = chance;
  while (one.count < chosen.count) {
    const std::vector<std::uint8_t>& members = kinds_[chosen.kinds[one.count]].members;
    const std::uint8_t member = members[random.below(static_cast<std::uint32_t>(members.size()))];
    const auto end = one.members.begin() + one.count;
    if (std::find(one.members.begin(), end, member) == end) one.members[one.count++] = member;
  }
  likely_.push_back(one);
}

void NeededSets::make_likely(statistics::Random& random) {
  double best = -1e300;
  for (const Chosen& one : chosen_) {
    if (one.weight > best) against_ = one.lost;
    best = std::max(best, one.weight);
  }
  std::erase_if(chosen_, [&](const Chosen& one) { return one.weight < best - kFarUnlikely; });
  double all = 0.0;
  double sets = 0.0;
  const auto total = static_cast<double>(wall_.count());
  for (Chosen& one : chosen_) {
    all += std::exp(one.weight - best);
    double ways = 0.0;
    for (std::size_t i = 0, end = 0; i < one.count; i = end) {
      while (end < one.count && one.kinds[end] == one.kinds[i]) ++end;
      ways += log_choose(static_cast<double>(kinds_[one.kinds[i]].members.size()),
                         static_cast<double>(end - i));
    }
    sets += std::exp(std::min(ways, total));
  }
  const bool few = sets <= kMostDrawn;
  double sum = 0.0;
  double drawn = random.uniform();
  for (const Chosen& one : chosen_) {
    const double chance = std::exp(one.weight - best) / all;
    sum += chance;
    if (few) spread(one, chance);
    for (; !few && drawn < sum * kMostDrawn; drawn += 1.0) draw(one, 1.0 / kMostDrawn, random);
  }
  std::ranges::stable_sort(likely_, std::greater(), &NeededSet::chance);
}

/// Large sets are left out where they are too many: what is likely without them is told apart first.
void NeededSets::learn(std::span<const HealedTest> tests, statistics::Random& random) {
  make_kinds(tests);
  chosen_.clear();
  std::vector<Chosen> larger;
  for (most_count_ = kMostNeeded; most_count_ >= kLeastCount; --most_count_) {
    larger = std::exchange(chosen_, {});
    visited_ = 0;
    Chosen none;
    visit(none, 0, 0, Set());
    if (visited_ <= kMostVisited) break;
  }
  if (chosen_.empty()) chosen_ = std::move(larger);
  likely_.clear();
  make_likely(random);
}

}  // namespace greynic::causal
