#include <algorithm>
#include <bit>
#include <cmath>

#include "structures.h"

/// What answers are worth where neither the baseline's mean nor the depth of walls is known (views.h). An
/// answer is judged by all views together. A chain walks by one of them, for that is many times faster, and
/// what it finds is kept with what all say.

namespace greynic::causal {
namespace {

constexpr double kHeatOfViews = 1.5;
constexpr std::size_t kMostForViews = 20;  // answers that tell what each view is worth

double odds_of_either(double a, double b) {
  return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
}

}  // namespace

/// How likely all tests are, as a logarithm, by the view of the chain that walks.
double Structures::told_by(const TestSet& walls) const {
  const std::size_t count = views_.clear.size();
  double sum = views_.clear[view_];
  for (std::size_t w = 0; w < words_; ++w) {
    std::uint64_t word = walls.word(w);
    for (std::size_t byte = 8 * w; word != 0; ++byte, word >>= 8)
      sum += static_cast<double>(sums_[(256 * byte + (word & 255)) * count + view_]);
  }
  return sum;
}

void Structures::add_up(const TestSet& walls, std::vector<float>& sums) const {
  const std::size_t count = views_.clear.size();
  sums.assign(count, 0.0F);
  for (std::size_t w = 0; w < words_; ++w) {
    std::uint64_t word = walls.word(w);
    for (std::size_t byte = 8 * w; word != 0; ++byte, word >>= 8) {
      if ((word & 255) == 0) continue;
      const float* more = &sums_[(256 * byte + (word & 255)) * count];
      for (std::size_t v = 0; v < count; ++v) sums[v] += more[v];
    }
  }
}

std::vector<double> Structures::odds_of_views(const TestSet& walls) const {
  std::vector<float> sums;
  add_up(walls, sums);
  std::vector<double> odds = views_.clear;
  for (std::size_t v = 0; v < odds.size(); ++v) odds[v] += static_cast<double>(sums[v]);
  return odds;
}

/// By all views together.
double Structures::told_by_all(const TestSet& walls) const {
  std::vector<float>& sums = sums_of_views_;
  add_up(walls, sums);
  double best = -1e300;
  for (std::size_t v = 0; v < sums.size(); ++v)
    best = std::max(best, views_.clear[v] + static_cast<double>(sums[v]));
  double sum = 0.0;
  for (std::size_t v = 0; v < sums.size(); ++v) {
    const double behind = views_.clear[v] + static_cast<double>(sums[v]) - best;
    if (behind > -kFarBehind) sum += std::exp(behind);
  }
  return best + std::log(sum);
}

/// Each view as often as the likely answers make it likely; at a heat, others too.
void Structures::choose_view(double heat) {
  view_ = view_chances_.size() == views_.clear.size() ? draw(view_chances_, heat)
                                                      : draw(views_.clear, heat);
}

double Structures::baseline_error() const {
  if (view_chances_.empty()) return 0.0;
  const double best = *std::max_element(view_chances_.begin(), view_chances_.end());
  double all = 0.0, sum = 0.0, squares = 0.0;
  for (std::size_t v = 0; v < view_chances_.size(); ++v) {
    const double chance = std::exp(view_chances_[v] - best);
    all += chance;
    sum += chance * views_.baselines[v];
    squares += chance * views_.baselines[v] * views_.baselines[v];
  }
  return std::sqrt(std::max(0.0, squares / all - sum / all * (sum / all)));
}

/// What each view is worth by the likeliest answers.
void Structures::weigh_views() {
  view_chances_.assign(views_.clear.size(), -1e300);
  for (std::size_t i = 0; i < likely_.size() && i < kMostForViews; ++i) {
    const std::vector<double> odds = odds_of_views(likely_[i].walls);
    for (std::size_t v = 0; v < odds.size(); ++v)
      view_chances_[v] = odds_of_either(view_chances_[v], likely_[i].before + odds[v]);
  }
}

void Structures::weigh(const std::vector<double>& evidence, int steps) {
  weigh(Views{.clear = {0.0}, .baselines = {0.0}, .evidence = {evidence}}, steps);
}

void Structures::weigh(const Views& views, int steps) {
  views_ = views;
  const std::size_t count = views.clear.size();
  sums_.assign(8 * words_ * 256 * count, 0.0F);
  for (std::size_t byte = 0; byte < 8 * words_; ++byte) {
    float* sums = &sums_[256 * byte * count];
    for (std::size_t set = 1; set < 256; ++set) {
      const std::size_t low = static_cast<std::size_t>(std::countr_zero(set));
      const std::size_t test = 8 * byte + low;
      for (std::size_t v = 0; v < count; ++v) {
        const double one = test < tests_.size() ? views.evidence[v][test] : 0.0;
        sums[set * count + v] = sums[(set & (set - 1)) * count + v] + static_cast<float>(one);
      }
    }
  }
  best_ = -1e300;
  for (auto& [key, structure] : kept_) {
    structure.score = structure.before + told_by_all(structure.walls);
    best_ = std::max(best_, structure.score);
  }
  settle();
  if (steps == 0) return;
  for (Chain& chain : chains_) {
    restart(chain);
    choose_view(kHeatOfViews * chain.heat);
    chain.score = odds_before(chain.causes) + told_by(walls_of(chain.causes, kNoTerm));
    for (int i = 0; i < steps; ++i) step(chain);
  }
  prune(kMostKept);
  settle();
}

}  // namespace greynic::causal
