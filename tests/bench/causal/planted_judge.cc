/// Whether an answer is right: it allows the very levels that were planted.

#include <fmt/core.h>

#include <algorithm>

#include "planted.h"

namespace greynic::bench {

/// Two thresholds that no pair of the campaign's levels tells from the sum.
bool PlantedCase::same_pairs(const PlantedCause& planted, const causal::Cause& cause) const {
  const Factor& a = campaign.factors[planted.sum[0]];
  const Factor& b = campaign.factors[planted.sum[1]];
  if (cause.all_of.size() != planted.terms.size() + 2) return false;
  for (const FactorValue& x : a.levels) {
    for (const FactorValue& y : b.levels) {
      const bool holds =
          std::all_of(cause.all_of.begin(), cause.all_of.end(), [&](const causal::Condition& one) {
            return (one.factor != a.name || one.holds(x)) && (one.factor != b.name || one.holds(y));
          });
      if (holds != (std::get<double>(x) + std::get<double>(y) >= planted.least)) return false;
    }
  }
  return true;
}

/// The terms bring no wall beside what heals it, so to say that this stays as in the baseline is right too.
bool PlantedCase::names_healer(const PlantedCause& planted, const causal::Condition& one) const {
  return std::any_of(
      planted.healers.begin(), planted.healers.end(), [&](const PlantedTerm& healer) {
        const Factor& factor = campaign.factors[healer.factor];
        return one.factor == factor.name && one.holds(factor.levels[of_baseline_[healer.factor]]) &&
               std::none_of(healer.levels.begin(), healer.levels.end(),
                            [&](std::size_t k) { return one.holds(factor.levels[k]); });
      });
}

bool PlantedCase::same(const PlantedCause& planted, const causal::Cause& cause) const {
  std::set<std::string> factors;
  for (const PlantedTerm& term : planted.terms) {
    const Factor& factor = campaign.factors[term.factor];
    factors.insert(factor.name);
    const auto told =
        std::find_if(cause.all_of.begin(), cause.all_of.end(),
                     [&](const causal::Condition& one) { return one.factor == factor.name; });
    if (told == cause.all_of.end() || !told->with.empty()) return false;
    for (std::size_t k = 0; k < factor.levels.size(); ++k) {
      if (told->holds(factor.levels[k]) != term.levels.contains(k)) return false;
    }
  }
  const auto healers =
      std::count_if(cause.all_of.begin(), cause.all_of.end(),
                    [&](const causal::Condition& one) { return names_healer(planted, one); });
  if (planted.sum.empty()) {
    return cause.all_of.size() == factors.size() + static_cast<std::size_t>(healers) &&
           cause.unless.empty();
  }
  const Factor& a = campaign.factors[planted.sum[0]];
  const Factor& b = campaign.factors[planted.sum[1]];
  const auto told =
      std::find_if(cause.all_of.begin(), cause.all_of.end(),
                   [&](const causal::Condition& one) { return one.with.size() == 1; });
  if (told == cause.all_of.end()) return same_pairs(planted, cause);
  if (cause.all_of.size() != factors.size() + 1) return false;
  // Within the levels that the wall and the baseline span, the sum must part the same.
  for (std::size_t i = of_baseline_[planted.sum[0]]; i <= of_witness_[planted.sum[0]]; ++i) {
    for (std::size_t j = of_baseline_[planted.sum[1]]; j <= of_witness_[planted.sum[1]]; ++j) {
      const double sum = std::get<double>(a.levels[i]) + std::get<double>(b.levels[j]);
      Configuration pair;
      pair.set(a.name, a.levels[i]);
      pair.set(b.name, b.levels[j]);
      if (told->holds(pair) != (sum >= planted.least)) return false;
    }
  }
  return true;
}

bool PlantedCase::right(const causal::Cause& cause) const {
  return std::any_of(causes.begin(), causes.end(),
                     [&](const PlantedCause& planted) { return same(planted, cause); });
}

bool PlantedCase::exact(const causal::Explanation& explanation) const {
  if (explanation.causes.size() != causes.size()) return false;
  return std::all_of(causes.begin(), causes.end(), [&](const PlantedCause& planted) {
    return std::any_of(explanation.causes.begin(), explanation.causes.end(),
                       [&](const causal::Cause& cause) { return same(planted, cause); });
  });
}

bool PlantedCase::structure(const causal::Explanation& explanation) const {
  std::multiset<std::set<std::string>> planted;
  std::multiset<std::set<std::string>> told;
  for (const PlantedCause& cause : causes) {
    std::set<std::string> factors;
    for (const PlantedTerm& term : cause.terms) factors.insert(campaign.factors[term.factor].name);
    for (const std::size_t i : cause.sum) factors.insert(campaign.factors[i].name);
    planted.insert(factors);
  }
  for (const causal::Cause& cause : explanation.causes) {
    std::set<std::string> factors;
    for (const causal::Condition& one : cause.all_of) {
      factors.insert(one.factor);
      factors.insert(one.with.begin(), one.with.end());
    }
    told.insert(factors);
  }
  return planted == told;
}

std::string PlantedCase::truth() const {
  std::string text;
  for (const PlantedCause& cause : causes) {
    text += cause.emergent ? "  emergent:" : "  cause:";
    for (const PlantedTerm& term : cause.terms) {
      const Factor& factor = campaign.factors[term.factor];
      text += fmt::format(" {} {}..{} ({})", factor.name,
                          to_string(factor.levels[*term.levels.begin()]),
                          to_string(factor.levels[*term.levels.rbegin()]), term.levels.size());
    }
    for (const std::size_t i : cause.sum) text += " +" + campaign.factors[i].name;
    for (const PlantedTerm& one : cause.healers) {
      text += " healed by " + campaign.factors[one.factor].name;
    }
    for (const PlantedTerm& one : cause.undoers) {
      text += " unless " + campaign.factors[one.factor].name;
    }
    if (!cause.sum.empty()) text += fmt::format(" >= {}", cause.least);
    text += fmt::format(" drop {:.2f}\n", cause.drop);
  }
  if (slow_after_ > 0) text += fmt::format("  slow for {} tests after a wall\n", slow_after_);
  return text;
}

}  // namespace greynic::bench
