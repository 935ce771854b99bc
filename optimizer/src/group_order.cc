/// order_groups: blocks by mean weight.

#include <algorithm>
#include <bit>
#include <numeric>
#include <queue>

#include "chain.h"

namespace greynic::optimizer {
namespace {

using GroupOrder = std::vector<std::uint32_t>;

double cost_in(const GroupOrder& order, const std::vector<double>& weights) {
  double cost = 0.0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    cost += weights[order[i]] * static_cast<double>(i + 1);
  }
  return cost;
}

/// A valid order: of the groups that may come next, always that with the largest key.
GroupOrder greedy(const std::vector<double>& key, const BitMatrix& before) {
  const std::size_t n = key.size();
  std::vector<std::uint32_t> waiting(n, 0);
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t b = 0; b < n; ++b) waiting[b] += before.test(a, b) ? 1 : 0;
  }
  // Ties go to the group that came first in the input, so that the result does not wander.
  const auto worse = [&](std::uint32_t a, std::uint32_t b) {
    return key[a] != key[b] ? key[a] < key[b] : a > b;
  };
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, decltype(worse)> ready(worse);
  for (std::uint32_t i = 0; i < n; ++i) {
    if (waiting[i] == 0) ready.push(i);
  }
  GroupOrder order;
  order.reserve(n);
  while (!ready.empty()) {
    const std::uint32_t next = ready.top();
    ready.pop();
    order.push_back(next);
    for (std::uint32_t b = 0; b < n; ++b) {
      if (before.test(next, b) && --waiting[b] == 0) ready.push(b);
    }
  }
  return order;
}

/// A run of groups that stays together, with the union of what must come after its members.
struct Block {
  GroupOrder members;
  double weight = 0.0;
  std::vector<Word> is_member;
  std::vector<Word> after;

  [[nodiscard]] bool lighter_than(const Block& other) const {
    return weight * static_cast<double>(other.members.size()) <
           other.weight * static_cast<double>(members.size());
  }
  [[nodiscard]] bool must_precede(const Block& other) const {
    for (std::size_t w = 0; w < after.size(); ++w) {
      if ((after[w] & other.is_member[w]) != 0) return true;
    }
    return false;
  }
  void append(const Block& other) {
    members.insert(members.end(), other.members.begin(), other.members.end());
    weight += other.weight;
    for (std::size_t w = 0; w < after.size(); ++w) {
      is_member[w] |= other.is_member[w];
      after[w] |= other.after[w];
    }
  }
};

Block single(std::uint32_t group, double weight, const BitMatrix& before) {
  Block block{{group}, weight, std::vector<Word>(before.words(), 0), {}};
  block.is_member[group / 64] |= Word{1} << group % 64;
  block.after.assign(before.row(group), before.row(group) + before.words());
  return block;
}

/// Takes the groups in order. Each is moved ahead of lighter blocks; where precedence forbids that,
/// it joins the block that holds it back, and the two go on together. Blocks end up sorted.
GroupOrder pass(const GroupOrder& order, const std::vector<double>& weights,
                const BitMatrix& before) {
  std::vector<Block> blocks;
  std::vector<Block> overtaken;
  for (const std::uint32_t group : order) {
    Block block = single(group, weights[group], before);
    while (!blocks.empty() && blocks.back().lighter_than(block)) {
      if (blocks.back().must_precede(block)) {
        blocks.back().append(block);
        block = std::move(blocks.back());
      } else {
        overtaken.push_back(std::move(blocks.back()));
      }
      blocks.pop_back();
    }
    blocks.push_back(std::move(block));
    for (; !overtaken.empty(); overtaken.pop_back()) blocks.push_back(std::move(overtaken.back()));
  }
  GroupOrder result;
  for (const Block& block : blocks) {
    result.insert(result.end(), block.members.begin(), block.members.end());
  }
  return result;
}

GroupOrder improved(GroupOrder order, const std::vector<double>& weights, const BitMatrix& before) {
  constexpr int kMostPasses = 30;
  double cost = cost_in(order, weights);
  for (int i = 0; i < kMostPasses; ++i) {
    GroupOrder next = pass(order, weights, before);
    const double next_cost = cost_in(next, weights);
    if (!(next_cost < cost * (1.0 - 1e-9))) break;
    order = std::move(next);
    cost = next_cost;
  }
  return order;
}

/// Weight that waits behind a group: its own and, shared among their predecessors, its successors'.
std::vector<double> pull(const std::vector<double>& weights, const BitMatrix& before) {
  const std::size_t n = weights.size();
  std::vector<double> predecessors(n, 0.0);
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t b = 0; b < n; ++b) predecessors[b] += before.test(a, b) ? 1.0 : 0.0;
  }
  std::vector<double> key = weights;
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t b = 0; b < n; ++b) {
      if (before.test(a, b)) key[a] += weights[b] / predecessors[b];
    }
  }
  return key;
}

}  // namespace

std::vector<std::uint32_t> order_groups(const std::vector<double>& weights,
                                        const BitMatrix& before) {
  if (before.none()) {
    GroupOrder order(weights.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, [&](auto a, auto b) { return weights[a] > weights[b]; });
    return order;
  }
  const GroupOrder by_weight = improved(greedy(weights, before), weights, before);
  const GroupOrder by_pull = improved(greedy(pull(weights, before), before), weights, before);
  return cost_in(by_pull, weights) < cost_in(by_weight, weights) ? by_pull : by_weight;
}

}  // namespace greynic::optimizer
