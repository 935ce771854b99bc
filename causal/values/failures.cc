#include "failures.h"

#include <algorithm>
#include <cmath>

namespace greynic::causal {
namespace {

// How often tests fail by chance: mostly never, at times one in twenty.
constexpr double kRate[] = {0.0003, 0.002, 0.004, 0.007, 0.012, 0.02,
                            0.03,   0.045, 0.065, 0.1,   0.16,  0.25};
constexpr double kRateBefore[] = {6.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 0.2, 0.05, 0.02};
constexpr double kShare[] = {0.02, 0.1, 0.3, 0.6, 0.9};
constexpr double kShareBefore[] = {1.0, 1.0, 1.0, 0.7, 0.5};

/// Of so many failures among so many tests, in one order, where every rate is as likely as any other.
double by_any_rate(double failed, double valued) {
  return std::exp(std::lgamma(failed + 1.0) + std::lgamma(valued + 1.0) -
                  std::lgamma(failed + valued + 2.0));
}

}  // namespace

Failures::Failures() { fit({}); }

Failures::Chance Failures::chance_of(const Outcomes& one, std::size_t cell) {
  const double rate = kRate[cell / kShares];
  const double share = kShare[cell % kShares];
  const auto failed = static_cast<double>(one.failed);
  const auto valued = static_cast<double>(one.valued);
  const double by_chance = std::pow(rate, failed) * std::pow(1.0 - rate, valued);
  return {by_chance, share * by_any_rate(failed, valued) + (1.0 - share) * by_chance};
}

void Failures::fit(std::span<const Outcomes> all) {
  all_.assign(all.begin(), all.end());
  for (std::size_t cell = 0; cell < log_chances_.size(); ++cell) {
    log_chances_[cell] = std::log(kRateBefore[cell / kShares] * kShareBefore[cell % kShares]);
  }
  const bool any = std::ranges::any_of(all_, [](const Outcomes& one) { return one.failed > 0; });
  for (std::size_t cell = 0; cell < log_chances_.size() && any; ++cell) {
    for (const Outcomes& one : all_) {
      const Chance chance = chance_of(one, cell);
      log_chances_[cell] += std::log(one.wall * chance.wall + (1.0 - one.wall) * chance.clear);
    }
  }
}

/// Of each pair of rates, by all others than this one.
Failures::Grid Failures::without(const Outcomes* one) const {
  Grid chances = log_chances_;
  for (std::size_t cell = 0; cell < chances.size() && one != nullptr; ++cell) {
    const Chance chance = chance_of(*one, cell);
    chances[cell] -= std::log(one->wall * chance.wall + (1.0 - one->wall) * chance.clear);
  }
  const double best = *std::ranges::max_element(chances);
  for (double& chance : chances) chance = std::exp(chance - best);
  return chances;
}

double Failures::log_odds(const Outcomes& one, const Grid& chances) {
  Chance sum{0.0, 0.0};
  for (std::size_t cell = 0; cell < chances.size(); ++cell) {
    const Chance chance = chance_of(one, cell);
    sum.clear += chances[cell] * chance.clear;
    sum.wall += chances[cell] * chance.wall;
  }
  return std::log(sum.wall / sum.clear);
}

double Failures::evidence_of(std::size_t one) const {
  return all_[one].failed == 0 ? 0.0 : log_odds(all_[one], without(&all_[one]));
}

double Failures::evidence_of_next() const {
  return log_odds({.failed = 1, .valued = 0}, without(nullptr));
}

}  // namespace greynic::causal
