#include "told_by_clear.h"

#include <algorithm>
#include <bitset>

namespace greynic::causal {
namespace {

constexpr double kClear = -1.0;  // log odds
constexpr std::size_t kMostFactors = 256;
constexpr std::size_t kMostChoices = 200'000;
using Set = std::bitset<kMostFactors>;

bool is_in(const Configuration& part, const Configuration& whole) {
  return std::all_of(part.levels().begin(), part.levels().end(), [&](const auto& one) {
    const FactorValue* level = whole.find(one.first);
    return level != nullptr && *level == one.second;
  });
}

/// Every choice of `strength` of these is in one of `held`.
bool are_held(const std::vector<std::size_t>& of, std::size_t strength,
              const std::vector<Set>& held) {
  if (of.size() <= strength) strength = of.size();
  std::vector<std::size_t> places(strength);
  for (std::size_t i = 0; i < strength; ++i) places[i] = i;
  for (std::size_t count = 0; count < kMostChoices; ++count) {
    Set choice;
    for (const std::size_t place : places) choice.set(of[place]);
    const bool known = std::any_of(held.begin(), held.end(),
                                   [&](const Set& one) { return (choice & ~one).none(); });
    if (!known) return false;
    std::size_t i = strength;
    while (i > 0 && places[i - 1] == of.size() - strength + i - 1) --i;
    if (i == 0) return true;
    ++places[i - 1];
    for (; i < strength; ++i) places[i] = places[i - 1] + 1;
  }
  return false;
}

}  // namespace

bool ToldByClear::tells(const Session& session, const Configuration& row) const {
  const Design& design = campaign_.design;
  if (design.kind != DesignKind::kCovering || campaign_.factors.size() > kMostFactors) return false;
  const bool is_seed = std::any_of(campaign_.seeds.begin(), campaign_.seeds.end(),
                                   [&](const Configuration& seed) { return is_in(seed, row); });
  if (is_seed) return false;
  std::vector<Set> held;
  for (Id id = 0; id < session.asked(); ++id) {
    if (session.tests_of(id) == 0 || session.evidence(id) > kClear) continue;
    Set same;
    for (std::size_t i = 0; i < campaign_.factors.size(); ++i) {
      const FactorValue* mine = row.find(campaign_.factors[i].name);
      const FactorValue* other = session.configuration(id).find(campaign_.factors[i].name);
      same.set(i, mine == nullptr || other == nullptr ? mine == other : *mine == *other);
    }
    held.push_back(same);
  }
  std::vector<std::size_t> varied;
  for (std::size_t i = 0; i < campaign_.factors.size(); ++i) {
    if (campaign_.factors[i].levels.size() > 1) varied.push_back(i);
  }
  if (!are_held(varied, static_cast<std::size_t>(design.strength), held)) return false;
  return std::all_of(design.groups.begin(), design.groups.end(), [&](const StrengthGroup& group) {
    std::vector<std::size_t> of;
    for (const std::size_t i : varied) {
      const auto& names = group.factors;
      if (std::find(names.begin(), names.end(), campaign_.factors[i].name) != names.end())
        of.push_back(i);
    }
    return are_held(of, static_cast<std::size_t>(group.strength), held);
  });
}

}  // namespace greynic::causal
