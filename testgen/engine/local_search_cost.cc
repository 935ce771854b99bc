/// The part of the local search that minds what rows cost.

#include <algorithm>

#include "engine/local_search.h"

namespace greynic::testgen {
namespace {

/// Steps to mend what one cheaper cell opened.
constexpr int kMendingSteps = 40;
/// Costs that differ by less are equal: sums are taken in different orders.
constexpr double kSameCost = 1e-9;

}  // namespace

void LocalSearch::weigh(std::vector<double> cost) {
  cost_ = std::move(cost);
  total_ = 0;
  for (const auto& row : rows_) {
    for (const Value v : row) total_ += cost_of(v);
  }
  best_total_ = total_;
}

/// Whether the search may spend so much more and still end with a better array: a cheaper one, or
/// one that costs the same and has fewer rows.
bool LocalSearch::affordable(double more) const {
  if (cost_.empty()) return true;
  const double slack = kSameCost * (1.0 + best_total_);
  return total_ + more < best_total_ + (count_ < best_.size() ? slack : -slack);
}

void LocalSearch::keep_if_better() {
  if (cost_.empty() ? count_ >= best_.size() : !affordable(0.0)) return;
  best_ = rows_;
  best_total_ = total_;
  ++improvements_;
}

/// Only cells may differ: as many rows as the best array has.
void LocalSearch::return_to_best() {
  std::vector<Value> values;
  for (std::uint32_t r = frozen_; r < count_; ++r) {
    values.clear();
    for (std::uint32_t p = 0; p < parameters_; ++p) {
      if (rows_[r][p] != best_[r][p]) values.push_back(best_[r][p]);
    }
    if (!values.empty()) change(r, values);
  }
  total_ = best_total_;
}

void LocalSearch::economise(const std::function<bool()>& stop) {
  if (count_ == frozen_) return;
  std::vector<std::uint32_t> costly;  // parameters whose levels differ in cost
  for (std::uint32_t p = 0; p < parameters_; ++p) {
    const double first = cost_of(index_.first(p));
    for (std::uint32_t l = 1; l < index_.level_count(p); ++l) {
      if (cost_of(index_.first(p) + l) == first) continue;
      costly.push_back(p);
      break;
    }
  }
  if (costly.empty()) return;
  while (!stop()) {
    const std::uint32_t row = frozen_ + random_.below(count_ - frozen_);
    const std::uint32_t p = costly[random_.below(static_cast<std::uint32_t>(costly.size()))];
    const Value v = index_.first(p) + random_.below(index_.level_count(p));
    ++work_;
    if (cost_of(v) >= cost_of(rows_[row][p]) || !rules_.allows(rows_[row].data(), v)) continue;
    ++step_;
    change(row, std::span(&v, 1));
    for (int i = 0; i < kMendingSteps && !open_.empty(); ++i) step();
    if (open_.empty()) keep_if_better();
    if (!open_.empty() || total_ > best_total_) return_to_best();
  }
}

}  // namespace greynic::testgen
