#include "engine/row_builder.h"

#include <algorithm>
#include <limits>

namespace greynic::testgen {
namespace {

/// Dead ends in one row before the rest of it is left to whatever is valid.
constexpr std::uint64_t kMostConflicts = 1000;

}  // namespace

RowBuilder::RowBuilder(const Space& space, const ValueIndex& index, Validity& validity,
                       const std::vector<OpenTuples>& layers)
    : index_(index),
      validity_(validity),
      layers_(layers),
      gain_(index.values(), 0),
      held_(index.words(), 0),
      others_(index.words(), 0),
      filled_(index.parameters(), 0),
      preference_(index.values(), 0.0) {
  for (Value v = 0; v < index.values(); ++v) {
    const Parameter& parameter = space.parameters[index.parameter(v)];
    if (!parameter.level_weights.empty()) preference_[v] += parameter.level_weights[index.level(v)];
    if (!parameter.level_costs.empty()) preference_[v] -= parameter.level_costs[index.level(v)];
  }
}

void RowBuilder::start_over() {
  std::fill(gain_.begin(), gain_.end(), 0);
  std::fill(held_.begin(), held_.end(), 0);
  for (Value v = 0; v < index_.values(); ++v) set_bit(others_.data(), v);
  std::fill(filled_.begin(), filled_.end(), 0);
  list_.clear();
  taken_ = 0;
}

/// Brings the gains up to date with the values that validity put into the row.
void RowBuilder::take_in() {
  const auto& row = validity_.row();
  for (; taken_ < row.size(); ++taken_) {
    const Value v = row[taken_];
    const std::uint32_t p = index_.parameter(v);
    for (std::uint32_t l = 0; l < index_.level_count(p); ++l) {
      clear_bit(others_.data(), index_.first(p) + l);
    }
    // A level that costs is in few rows, so what it meets there counts more.
    constexpr int kDearGain = 8;
    const bool dear = !cost_.empty() && cost_[v] > cheapest_[p];
    for (int i = dear ? kDearGain : 1; i > 0; --i) {
      for (const OpenTuples& layer : layers_) layer.add_gain(v, held_, list_, others_, gain_);
    }
    set_bit(held_.data(), v);
    // Constraints may bring thousands of helpers, which nobody asks the list for.
    if (std::any_of(layers_.begin(), layers_.end(),
                    [&](const OpenTuples& layer) { return layer.concerns(v); })) {
      list_.insert(std::upper_bound(list_.begin(), list_.end(), v), v);
    }
    filled_[p] = 1;
  }
}

void RowBuilder::avoid(std::vector<double> cost) {
  cost_ = std::move(cost);
  cheapest_.assign(cost_.empty() ? 0 : index_.parameters(),
                   std::numeric_limits<double>::infinity());
  for (Value v = 0; v < cost_.size(); ++v) {
    double& cheapest = cheapest_[index_.parameter(v)];
    cheapest = std::min(cheapest, cost_[v]);
  }
}

/// Of the levels that are still allowed; infinite where costs do not matter.
double RowBuilder::least_cost(std::uint32_t parameter) const {
  double least = std::numeric_limits<double>::infinity();
  if (cost_.empty()) return least;
  const Value first = index_.first(parameter);
  for (Value v = first; v < first + index_.level_count(parameter); ++v) {
    if (validity_.allowed(v)) least = std::min(least, cost_[v]);
  }
  return least;
}

Value RowBuilder::best(SeededRandom& random) const {
  Value pick = kNoValue;
  std::int64_t most = 0;
  std::uint64_t open_most = 0;
  std::uint32_t ties = 0;
  for (std::uint32_t p = 0; p < index_.parameters(); ++p) {
    if (filled_[p]) continue;
    // A parameter with many levels is the harder one to serve later, so it goes first.
    const double least = least_cost(p);
    const auto weight = static_cast<std::int64_t>(index_.level_count(p)) + 3;
    for (Value v = index_.first(p); v < index_.first(p) + index_.level_count(p); ++v) {
      const std::int64_t score = gain_[v] * weight;
      if (score < most || score == 0 || !validity_.allowed(v)) continue;
      if (!cost_.empty() && cost_[v] > least) continue;
      std::uint64_t open = 0;
      for (const OpenTuples& layer : layers_) open += layer.open_with(v);
      if (score > most || open > open_most) {
        most = score;
        open_most = open;
        pick = v;
        ties = 1;
      } else if (open == open_most && random.below(++ties) == 0) {
        pick = v;
      }
    }
  }
  return pick;
}

std::vector<Value> RowBuilder::build(std::span<const Value> must, SeededRandom& random) {
  validity_.restart();
  if (!validity_.assume(must)) return {};
  start_over();
  take_in();
  while (validity_.conflicts() <= kMostConflicts) {
    const Value v = best(random);
    if (v == kNoValue) break;
    if (!validity_.choose(v)) {
      if (!validity_.alive()) return {};
      start_over();
    }
    take_in();
  }
  std::vector<Value> wish(index_.parameters());
  for (std::uint32_t p = 0; p < index_.parameters(); ++p) {
    const Value first = index_.first(p);
    const std::uint32_t levels = index_.level_count(p);
    const std::uint32_t turn = random.below(levels);
    const double least = least_cost(p);
    Value pick = kNoValue;
    std::uint64_t pick_open = 0;
    for (std::uint32_t l = 0; l < levels; ++l) {
      const Value v = first + (l + turn) % levels;
      if (!validity_.allowed(v) || (!cost_.empty() && cost_[v] > least)) continue;
      std::uint64_t open = 0;
      for (const OpenTuples& layer : layers_) open += layer.open_with(v);
      if (pick == kNoValue || open > pick_open ||
          (open == pick_open && preference_[v] > preference_[pick])) {
        pick = v;
        pick_open = open;
      }
    }
    wish[p] = pick == kNoValue ? first : pick;
  }
  if (!validity_.complete(wish.data())) return {};
  std::vector<Value> row = wish;
  for (const Value v : validity_.row()) row[index_.parameter(v)] = v;
  return row;
}

}  // namespace greynic::testgen
