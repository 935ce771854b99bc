#include <algorithm>
#include <cmath>

#include "structures.h"

namespace greynic::causal {
namespace {

constexpr double kFurtherBefore = 0.12;  // odds that the healed walls hold one more
// Where it shows: in all of them; where one term of the others is kept, or two, or where one is
// healed; in a single one.
constexpr double kInAll = 0.45;
constexpr double kWithOne = 0.22;
constexpr double kWithTwo = 0.08;
constexpr double kWithoutOne = 0.1;
constexpr double kInOne = 0.15;
constexpr std::size_t kMostHealings = 60;

}  // namespace

/// An emergent cause sleeps unless what must be absent is healed, so it comes after the others.
void Structures::heal() {
  const auto healed_in = [](const std::vector<std::size_t>& healing, const Term& term) {
    return std::find(healing.begin(), healing.end(), term.setting) != healing.end();
  };
  std::vector<Conjunction> causes = likely_.front().causes;
  std::stable_partition(causes.begin(), causes.end(), [&](const Conjunction& cause) {
    return std::none_of(cause.begin(), cause.end(),
                        [&](const Term& term) { return is_absent(term); });
  });
  std::vector<std::vector<std::size_t>> healings = {{}};
  for (const Conjunction& cause : causes) {
    std::vector<std::vector<std::size_t>> next;
    for (const auto& one : healings) {
      const bool met = std::any_of(cause.begin(), cause.end(), [&](const Term& term) {
        return healed_in(one, term) != is_absent(term);
      });
      if (met) next.push_back(one);
      for (std::size_t t = 0; t < cause.size() && !met; ++t) {
        if (is_absent(cause[t])) continue;
        next.push_back(one);
        next.back().push_back(cause[t].setting);
      }
    }
    for (auto& one : next) std::sort(one.begin(), one.end());
    std::sort(next.begin(), next.end(),
              [](const auto& a, const auto& b) { return a.size() < b.size(); });
    healings.clear();
    for (const auto& one : next) {
      const bool needless = std::any_of(healings.begin(), healings.end(), [&](const auto& less) {
        return std::includes(one.begin(), one.end(), less.begin(), less.end());
      });
      if (!needless && healings.size() < kMostHealings) healings.push_back(one);
    }
  }
  healed_.clear();
  std::vector<std::vector<double>> told;  // by each view
  for (const auto& healing : healings) {
    Positions healed = all_at_wall();
    for (const std::size_t setting : healing) {
      healed[setting] = static_cast<std::uint16_t>(axes_[setting].base);
    }
    std::vector<double>& evidence = told.emplace_back(views_.clear.size(), 0.0);
    for (std::size_t i = 0; i < tests_.size(); ++i) {
      if (tests_[i] != healed) continue;
      for (std::size_t v = 0; v < evidence.size(); ++v) evidence[v] += views_.evidence[v][i];
    }
    healed_.push_back(std::move(healed));
  }
  doubt(healings, told);
}

/// A further cause that shares no term with the others shows in every healed wall, so all of them
/// speak against it together; one that shares terms shows where these are kept.
void Structures::doubt(const std::vector<std::vector<std::size_t>>& healings,
                       const std::vector<std::vector<double>>& told) {
  std::vector<std::size_t> terms;
  for (const auto& healing : healings) terms.insert(terms.end(), healing.begin(), healing.end());
  std::sort(terms.begin(), terms.end());
  terms.erase(std::unique(terms.begin(), terms.end()), terms.end());
  further_ = 0.0;
  further_at_.assign(healings.size(), 0.0);
  const std::vector<double> views = odds_of_views(likely_.front().walls);
  const double best = *std::max_element(views.begin(), views.end());
  double all = 0.0;
  for (const double view : views) all += std::exp(view - best);
  std::vector<double> sums;
  const auto add = [&](double weight, const auto& shows) {
    sums.assign(views.size(), 0.0);
    bool shown = false;
    for (std::size_t h = 0; h < healings.size(); ++h) {
      if (!shows(healings[h])) continue;
      for (std::size_t v = 0; v < sums.size(); ++v) sums[v] += told[h][v];
      shown = true;
    }
    if (!shown) return;  // it would hold one of the others
    double told_by_views = 0.0;
    for (std::size_t v = 0; v < sums.size(); ++v)
      told_by_views += std::exp(std::min(views[v] - best + sums[v], 50.0)) / all;
    const double odds = kFurtherBefore * weight * told_by_views;
    further_ += odds;
    for (std::size_t h = 0; h < healings.size(); ++h) {
      if (shows(healings[h])) further_at_[h] += odds;
    }
  };
  const auto heals = [](const auto& healing, std::size_t term) {
    return std::binary_search(healing.begin(), healing.end(), term);
  };
  const double count = static_cast<double>(terms.size());
  add(kInAll, [](const auto&) { return true; });
  for (const std::size_t a : terms) {
    add(kWithOne / count, [&](const auto& healing) { return !heals(healing, a); });
    add(kWithoutOne / count, [&](const auto& healing) { return heals(healing, a); });
    for (const std::size_t b : terms) {
      if (a >= b) continue;
      add(2.0 * kWithTwo / (count * (count - 1.0)),
          [&](const auto& healing) { return !heals(healing, a) && !heals(healing, b); });
    }
  }
  for (const auto& one : healings) {
    add(kInOne / static_cast<double>(healings.size()),
        [&](const auto& healing) { return &healing == &one; });
  }
  for (double& odds : further_at_) odds /= 1.0 + further_;
}

}  // namespace greynic::causal
