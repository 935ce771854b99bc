/// cheapen: parts that packets try earlier.

#include <algorithm>
#include <numeric>

#include "src/chain.h"
#include "src/circles/regrouping.h"

namespace greynic::optimizer::circles {
namespace {

/// Groups that stay together on a chain.
struct Block {
  double weight = 0.0;
  double count = 0.0;
  [[nodiscard]] double density() const { return weight / count; }
};

/// What groups of the circle and all others cost each other in the best order, if nothing but the
/// weights says how the others lie among them.
class Others {
 public:
  explicit Others(std::vector<double> weights) : weights_(std::move(weights)) {
    std::sort(weights_.begin(), weights_.end());
    lighter_.push_back(0.0);
    for (const double weight : weights_) lighter_.push_back(lighter_.back() + weight);
  }
  /// Heavier groups go before a block and lighter ones behind it.
  [[nodiscard]] double cost_with(const Block& block) const {
    const auto heavier = std::lower_bound(weights_.begin(), weights_.end(), block.density());
    return block.weight * static_cast<double>(weights_.end() - heavier) +
           block.count * lighter_[static_cast<std::size_t>(heavier - weights_.begin())];
  }

 private:
  std::vector<double> weights_;  ///< ascending
  std::vector<double> lighter_;  ///< sum of the first so many
};

double cost_in_order(const std::vector<double>& weights, const std::vector<std::uint32_t>& order,
                     const Others& others) {
  double cost = 0.0;
  double position = 0.0;
  std::vector<Block> blocks;
  for (const std::uint32_t group : order) {
    cost += weights[group] * ++position;
    Block block{weights[group], 1.0};
    for (; !blocks.empty() && blocks.back().density() < block.density(); blocks.pop_back()) {
      block = {blocks.back().weight + block.weight, blocks.back().count + block.count};
    }
    blocks.push_back(block);
  }
  for (const Block& block : blocks) cost += others.cost_with(block);
  return cost;
}

/// Parts in the best order that is found, and weight x position in it.
struct Ordered {
  std::vector<std::uint32_t> place;  ///< by node: that of its part
  double cost = 0.0;
};

Ordered in_best_order(const RowGraph& graph, const std::vector<double>& weight,
                      const Others& others, const Parts& parts) {
  std::vector<std::uint32_t> number(parts.size(), kNoRow);
  std::vector<double> weights;
  for (std::uint32_t node = 0; node < parts.size(); ++node) {
    std::uint32_t& of_part = number[parts[node]];
    if (of_part == kNoRow) {
      of_part = static_cast<std::uint32_t>(weights.size());
      weights.push_back(0.0);
    }
    weights[of_part] += weight[node];
  }
  BitMatrix before(weights.size());
  for (std::uint32_t node = 0; node < parts.size(); ++node) {
    for (const std::uint32_t after : graph.after_node(node)) {
      before.set(number[parts[node]], number[parts[after]]);
    }
  }
  const std::vector<std::uint32_t> order = order_groups(weights, before);
  std::vector<std::uint32_t> place(order.size());
  for (std::uint32_t at = 0; at < order.size(); ++at) place[order[at]] = at;
  Ordered ordered{std::vector<std::uint32_t>(parts.size()), cost_in_order(weights, order, others)};
  for (std::uint32_t node = 0; node < parts.size(); ++node) {
    ordered.place[node] = place[number[parts[node]]];
  }
  return ordered;
}

/// In this order, each node to the first part of its mask that it may be in.
void bring_forward(const RowGraph& graph, const Ordered& order, Parts& parts) {
  struct Place {
    std::uint32_t place;
    std::uint32_t first;  ///< node that goes there
  };
  std::vector<std::vector<Place>> places(graph.nodes.size());
  for (std::uint32_t node = 0; node < parts.size(); ++node) {
    if (parts[node] == node) places[graph.mask[node]].push_back({order.place[node], kNoRow});
  }
  for (auto& of_mask : places) {
    std::sort(of_mask.begin(), of_mask.end(),
              [](const Place& a, const Place& b) { return a.place < b.place; });
  }
  std::vector<std::uint32_t> from(parts.size(), 0);
  for (std::uint32_t node = 0; node < parts.size(); ++node) {
    auto& of_mask = places[graph.mask[node]];
    const auto found = std::find_if(of_mask.begin(), of_mask.end(), [&](const Place& candidate) {
      return candidate.place >= from[node];
    });
    if (found->first == kNoRow) found->first = node;
    parts[node] = found->first;
    for (const std::uint32_t after : graph.after_node(node)) {
      from[after] = std::max(from[after], found->place + 1);
    }
  }
}

}  // namespace

double cheapen(const RowGraph& graph, const std::vector<double>& weight,
               const std::vector<double>& others, Parts& parts, std::size_t most_tries) {
  constexpr std::size_t kMostWork = 8'000'000;  // so that the time has a bound
  const Others outside(others);
  Ordered best = in_best_order(graph, weight, outside, parts);
  // Returns whether parts that have changed are no more, and cheaper; else they are as before.
  const auto keeps = [&](Parts& before) {
    if (count(parts) <= count(before)) {
      Ordered next = in_best_order(graph, weight, outside, parts);
      if (next.cost < best.cost) {
        best = std::move(next);
        return true;
      }
    }
    parts = std::move(before);
    return false;
  };
  for (bool better = true; better;) {
    Parts before = parts;
    bring_forward(graph, best, parts);
    better = keeps(before);
  }
  std::vector<std::uint32_t> masks(graph.nodes.size());
  std::iota(masks.begin(), masks.end(), 0U);
  statistics::Random random(1);
  Regrouping regrouping(graph, parts);
  const std::size_t work = graph.size() + graph.after.size() + count(parts) * count(parts);
  for (std::size_t left = std::min(most_tries, kMostWork / work); left > 0; --left) {
    Parts before = parts;
    regrouping.regroup_some(masks, random);
    if (!keeps(before)) continue;
    before = parts;
    bring_forward(graph, best, parts);
    keeps(before);
  }
  return best.cost;
}

}  // namespace greynic::optimizer::circles
