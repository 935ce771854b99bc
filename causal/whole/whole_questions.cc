#include <algorithm>
#include <cmath>

#include "whole_search.h"

/// What a search by all tests at once may ask next: what its likely answers disagree on, the tests that
/// prove the likeliest, and levels.

namespace greynic::causal {
namespace {

constexpr std::size_t kSample = 256;
constexpr int kOrders = 16;       // in which settings are added, to find a half
constexpr double kSettled = 0.8;  // of the settings, before levels are asked for
constexpr std::size_t kLevelsAtOnce = 3;

}  // namespace

/// Likely answers, each as often as it is likely.
void WholeSearch::draw_sample() {
  sample_.clear();
  double all = 0.0;
  for (const Structure& one : structures_.likely()) all += one.chance;
  double passed = 0.0;
  std::size_t drawn = 0;
  const double first = random_.uniform();
  for (std::size_t i = 0; i < structures_.likely().size(); ++i) {
    const Structure& one = structures_.likely()[i];
    if (i < kSample / 4) {  // with its own weight
      sample_.emplace_back(&one, one.chance);
      all -= one.chance;
      continue;
    }
    passed += one.chance;
    const double each = all / (kSample * 3 / 4);
    while (each > 1e-12 && (static_cast<double>(drawn) + first) * each < passed) {
      if (sample_.back().first == &one) {
        sample_.back().second += each;
      } else {
        sample_.emplace_back(&one, each);
      }
      ++drawn;
    }
  }
  double sum = 0.0;
  for (const auto& [one, weight] : sample_) sum += weight;
  for (auto& [one, weight] : sample_) weight /= sum;
}

double WholeSearch::chance_in_sample(const Positions& positions) const {
  double chance = 0.0;
  for (const auto& [structure, weight] : sample_) {
    chance += weight * structures_.chance_of(*structure, positions);
  }
  return chance;
}

void WholeSearch::ask(Candidate& one) const {
  one.walls.clear();
  for (const auto& [structure, weight] : sample_) {
    one.walls.push_back(static_cast<float>(structures_.chance_of(*structure, one.positions)));
  }
}

void WholeSearch::add(std::vector<Candidate>& all, Positions positions, const char* why,
                      double further) {
  for (Candidate& known : all) {
    if (known.positions != positions) continue;
    known.further = std::max(known.further, further);
    return;
  }
  all.push_back({std::move(positions), why, {}, further});
  ask(all.back());
}

/// Settings are added in some order; somewhere half of the sample says wall.
void WholeSearch::add_halves(std::vector<Candidate>& all) {
  std::vector<std::size_t> order(lanes_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (int tries = 0; tries < kOrders; ++tries) {
    for (std::size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[random_.below(static_cast<std::uint32_t>(i))]);
    }
    const auto first = [&](std::size_t count) {
      Positions positions = structures_.all_at_base();
      for (std::size_t i = 0; i < count; ++i) {
        positions[order[i]] = static_cast<std::uint16_t>(lanes_[order[i]].axis.wall);
      }
      return positions;
    };
    std::size_t low = 0, high = order.size();
    while (high - low > 1) {
      const std::size_t middle = (low + high) / 2;
      (chance_in_sample(first(middle)) >= 0.5 ? high : low) = middle;
    }
    add(all, first(high), "halving what is likely");
    if (low > 0) add(all, first(low), "halving what is likely");
  }
}

Positions WholeSearch::terms_alone(const Conjunction& cause) const {
  Positions alone = structures_.all_at_base();
  for (const Term& term : cause) {
    const Axis& axis = lanes_[term.setting].axis;
    const int level = structures_.is_absent(term) ? axis.base : axis.wall;
    alone[term.setting] = static_cast<std::uint16_t>(level);
  }
  return alone;
}

std::vector<Positions> WholeSearch::terms_but_one(const Conjunction& cause) const {
  std::vector<Positions> all;
  for (const Term& term : cause) {
    const Axis& axis = lanes_[term.setting].axis;
    const int level = structures_.is_absent(term) ? axis.wall : axis.base;
    all.push_back(terms_alone(cause));
    all.back()[term.setting] = static_cast<std::uint16_t>(level);
  }
  return all;
}

void WholeSearch::add_checks(std::vector<Candidate>& all) {
  for (std::size_t i = 0; i < structures_.healed().size(); ++i) {
    add(all, structures_.healed()[i], "healing all known causes", structures_.further_at()[i]);
  }
  for (const Conjunction& cause : structures_.likely().front().causes) {
    add(all, terms_alone(cause), "the terms alone");
    for (Positions& less : terms_but_one(cause)) add(all, std::move(less), "the terms but one");
  }
}

/// A level of one term, all others at the wall's levels or where they seem to begin or to end: a
/// wall there confirms several ends at once.
void WholeSearch::add_levels(std::vector<Candidate>& all, const Conjunction& cause,
                             const Term& term) {
  const Axis& axis = lanes_[term.setting].axis;
  std::vector<Positions> contexts(3, structures_.all_at_base());
  for (const Term& other : cause) {
    if (structures_.is_absent(other)) continue;
    const Axis& lane = lanes_[other.setting].axis;
    contexts[0][other.setting] = static_cast<std::uint16_t>(lane.wall);
    contexts[1][other.setting] = static_cast<std::uint16_t>(lane.ordered ? other.from : lane.wall);
    contexts[2][other.setting] = static_cast<std::uint16_t>(lane.ordered ? other.to : lane.wall);
  }
  const int below = term.from - structures_.open_before(term) / 2;
  const int above = term.to + structures_.open_after(term) / 2;
  for (const Positions& context : contexts) {
    std::vector<std::pair<double, Positions>> far;  // from an even chance
    for (int p = axis.ordered ? axis.base + 1 : 0; p <= axis.last; ++p) {
      const bool useful = !axis.ordered || p == below || p == above || p == axis.last ||
                          structures_.was_tested(term.setting, p);
      if (p == axis.base || !useful) continue;
      Positions at = context;
      at[term.setting] = static_cast<std::uint16_t>(p);
      far.emplace_back(std::abs(chance_in_sample(at) - 0.5), std::move(at));
    }
    std::sort(far.begin(), far.end());
    if (far.size() > kLevelsAtOnce) far.resize(kLevelsAtOnce);
    for (auto& [distance, at] : far) add(all, std::move(at), "where a term begins and ends");
  }
}

std::vector<WholeSearch::Candidate> WholeSearch::candidates() {
  std::vector<Candidate> all;
  add_halves(all);
  add_checks(all);
  if (structures_.chance_of_settings() < kSettled) return all;
  for (const Conjunction& cause : structures_.likely().front().causes) {
    for (const Term& term : cause) {
      if (!structures_.is_absent(term)) add_levels(all, cause, term);
    }
  }
  return all;
}

}  // namespace greynic::causal
