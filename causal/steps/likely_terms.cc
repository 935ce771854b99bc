#include "likely_terms.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "whole/structures.h"

namespace greynic::causal {
namespace {

constexpr std::size_t kFewFactors = 13;  // every set of them may be looked at
constexpr double kTold = -0.5;           // log odds: less says too little
constexpr double kMayHeal = 0.02;  // odds that something heals a cause in a clear configuration
constexpr double kUntold = 0.01;   // share of the odds that follows no test

/// Clear configurations that are no step of the row, and how far each may be trusted.
std::vector<std::pair<Set, double>> told_elsewhere(Session& session, Settings& settings,
                                                   const std::vector<Id>& steps) {
  std::vector<std::pair<Set, double>> told;
  for (const Settings::Sides& clear : settings.clear(kTold)) {
    if (std::find(steps.begin(), steps.end(), clear.id) != steps.end()) continue;
    told.emplace_back(clear.as_wall, std::max(std::exp(session.evidence(clear.id)), kMayHeal));
  }
  return told;
}

using Mask = std::uint32_t;

Mask mask_of(const Set& set) {
  return static_cast<Mask>((set & Set((1U << kFewFactors) - 1)).to_ulong());
}

double odds_of_order(std::size_t terms) {
  return terms < kTermsBefore.size() ? kTermsBefore[terms] : 0.0;
}

/// Of every set of factors, the odds that it is a cause.
std::vector<double> weights_of_sets(const Settings& settings,
                                    const std::vector<std::pair<Set, double>>& told) {
  const std::size_t count = settings.size() + settings.shared();
  std::vector<double> weight(std::size_t{1} << count);
  for (Mask set = 0; set < weight.size(); ++set) {
    const auto order = static_cast<std::size_t>(std::popcount(set));
    weight[set] = odds_of_order(order) /
                  std::exp(log_choose(static_cast<double>(count), static_cast<double>(order)));
  }
  for (const auto& [as_wall, trust] : told) {
    const Mask held = mask_of(as_wall);
    for (Mask part = held;; part = (part - 1) & held) {
      weight[part] *= trust;
      if (part == 0) break;
    }
  }
  return weight;
}

void weigh_sets(const Settings& settings, const Growth& growth, const Set& terms,
                const std::vector<std::pair<Set, double>>& told, std::vector<double>& odds) {
  const std::vector<double> weight = weights_of_sets(settings, told);
  const Mask differ = (Mask{1} << settings.size()) - 1;
  const Mask needed = mask_of(terms);
  std::vector<Mask> steps;
  for (const Set& set : growth.sets) steps.push_back(mask_of(set));
  std::vector<double> found(odds.size(), 0.0);
  double sum = 0.0;
  for (Mask set = 0; set < weight.size(); ++set) {
    const Mask in = set & differ;
    if ((needed & ~in) != 0 || (in & ~steps.back()) != 0) continue;
    std::size_t step = 0;
    while ((in & ~steps[step]) != 0) ++step;
    found[step] += weight[set];
    sum += weight[set];
  }
  if (!(sum > 0.0)) return;
  for (std::size_t i = 0; i < odds.size(); ++i) {
    odds[i] = kUntold * odds[i] + (1.0 - kUntold) * found[i] / sum;
  }
}

}  // namespace

void weigh_by_clear(Session& session, Settings& settings, const Growth& growth, const Set& terms,
                    std::vector<double>& odds) {
  if (settings.size() + settings.shared() > kFewFactors) return;
  std::vector<Id> steps;
  for (const Set& set : growth.sets) steps.push_back(settings.known_id(set));
  weigh_sets(settings, growth, terms, told_elsewhere(session, settings, steps), odds);
}

}  // namespace greynic::causal
