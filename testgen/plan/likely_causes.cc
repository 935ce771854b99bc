#include "plan/likely_causes.h"

#include <algorithm>

namespace greynic::testgen {
namespace {

constexpr double kMostSteps = 1e9;
constexpr double kMostBytes = 256e6;

}  // namespace

Conditions::Conditions(const std::vector<Axis>& axes) : axes_(axes), first_(1, 0) {
  for (std::uint32_t p = 0; p < axes.size(); ++p) {
    const std::uint32_t levels = axes[p].levels;
    const std::uint32_t here = !axes[p].ordered ? levels : levels > 0 ? 2 * (levels - 1) : 0;
    parameter_.resize(parameter_.size() + here, p);
    first_.push_back(first_.back() + here);
  }
}

std::vector<std::uint32_t> Conditions::met_by(const LevelRow& row) const {
  std::vector<std::uint32_t> met;
  for (std::size_t p = 0; p < row.size(); ++p) {
    if (row[p] < 0) continue;
    const auto level = static_cast<std::uint32_t>(row[p]);
    if (!axes_[p].ordered) {
      met.push_back(first_[p] + level);
      continue;
    }
    const std::uint32_t steps = axes_[p].levels - 1;
    for (std::uint32_t l = 0; l < level; ++l) met.push_back(first_[p] + l);  // at least l + 1
    for (std::uint32_t l = level; l < steps; ++l) met.push_back(first_[p] + steps + l);  // at most
  }
  return met;
}

LikelyCauses::LikelyCauses(Conditions conditions, std::size_t rows)
    : conditions_(std::move(conditions)),
      words_((conditions_.count() + 63) / 64),
      singles_(words_, 0),
      pairs_(conditions_.count() * words_, 0),
      row_(words_, 0) {
  const auto count = static_cast<double>(conditions_.count());
  const auto words = static_cast<double>(words_);
  // A row meets half of an ordered parameter's conditions, so a quarter of the pairs.
  const double steps = static_cast<double>(rows) * count * count / 8 * words;
  if (steps < kMostSteps && 8 * count * count * words < kMostBytes) {
    triples_.assign(std::size_t{conditions_.count()} * conditions_.count() * words_, 0);
  }
}

double LikelyCauses::meet(const LevelRow& row, bool take) {
  const std::vector<std::uint32_t> met = conditions_.met_by(row);
  std::fill(row_.begin(), row_.end(), 0);
  for (const std::uint32_t c : met) set_bit(row_.data(), c);
  const double singles = count_fresh(singles_.data(), conditions_.count(), take);
  double pairs = 0;
  double triples = 0;
  for (std::size_t i = 0; i < met.size(); ++i) {
    const std::uint32_t end = conditions_.first_beside(met[i]);
    pairs += count_fresh(&pairs_[met[i] * words_], end, take);
    if (triples_.empty()) continue;
    Word* with = &triples_[std::size_t{met[i]} * conditions_.count() * words_];
    for (std::size_t j = 0; j < i && met[j] < end; ++j) {
      triples += count_fresh(with + met[j] * words_, conditions_.first_beside(met[j]), take);
    }
  }
  // Up to one factor, how many sets of one, two and three parameters there are.
  const auto n = static_cast<double>(conditions_.parameters());
  return singles + 2 / std::max(1.0, n - 1) * (pairs + 3 / std::max(1.0, n - 2) * triples);
}

/// Of the row's conditions below `end`, those not in `seen`.
int LikelyCauses::count_fresh(Word* seen, std::size_t end, bool take) const {
  int count = 0;
  for (std::size_t w = 0; w * 64 < end; ++w) {
    Word fresh = row_[w] & ~seen[w];
    if (end - w * 64 < 64) fresh &= (Word{1} << (end - w * 64)) - 1;
    if (take) seen[w] |= fresh;
    count += std::popcount(fresh);
  }
  return count;
}

}  // namespace greynic::testgen
