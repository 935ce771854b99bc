#include "chain.h"

#include <algorithm>
#include <numeric>

namespace greynic::optimizer {
namespace {

using Members = std::vector<std::uint32_t>;

/// Strongly connected components with more than one group (Tarjan, without recursion).
std::vector<Members> circles(const BitMatrix& before) {
  const auto n = static_cast<std::uint32_t>(before.size());
  constexpr std::uint32_t kUnseen = 0xffffffff;
  std::vector<std::uint32_t> number(n, kUnseen);
  std::vector<std::uint32_t> low(n, 0);
  std::vector<bool> stacked(n, false);
  Members stack;
  struct Frame {
    std::uint32_t node;
    std::uint32_t next;
  };
  std::vector<Frame> frames;
  std::vector<Members> result;
  std::uint32_t counter = 0;
  const auto enter = [&](std::uint32_t node) {
    number[node] = low[node] = counter++;
    stack.push_back(node);
    stacked[node] = true;
    frames.push_back({node, 0});
  };
  for (std::uint32_t start = 0; start < n; ++start) {
    if (number[start] != kUnseen) continue;
    enter(start);
    while (!frames.empty()) {
      const std::uint32_t node = frames.back().node;
      std::uint32_t& next = frames.back().next;
      while (next < n && !before.test(node, next)) ++next;
      if (next < n) {
        const std::uint32_t other = next++;
        if (number[other] == kUnseen) {
          enter(other);
        } else if (stacked[other]) {
          low[node] = std::min(low[node], number[other]);
        }
        continue;
      }
      frames.pop_back();
      if (!frames.empty()) {
        low[frames.back().node] = std::min(low[frames.back().node], low[node]);
      }
      if (low[node] != number[node]) continue;
      Members component;
      do {
        component.push_back(stack.back());
        stacked[stack.back()] = false;
        stack.pop_back();
      } while (component.back() != node);
      if (component.size() > 1) result.push_back(std::move(component));
    }
  }
  return result;
}

/// Splits the groups of one circle until an order exists: groups that nothing holds back leave;
/// when none is left, the one with the largest share of free rows gives those up as a group of its
/// own.
class CircleBreaker {
 public:
  CircleBreaker(const Problem& problem, const std::vector<Group>& groups, const BitMatrix& before,
                const Members& circle)
      : problem_(problem), before_(before), circle_(circle) {
    for (const std::uint32_t member : circle) rows_.push_back(groups[member].rows);
    blockers_.assign(problem.rows.size(), 0);
    for (std::size_t a = 0; a < circle.size(); ++a) {
      for (std::size_t b = 0; b < circle.size(); ++b) block(a, rows_[a], b, +1);
    }
  }

  /// For each member of the circle the groups that it falls into; at least one is split.
  std::vector<std::vector<std::vector<std::uint32_t>>> run() {
    std::vector<std::vector<std::vector<std::uint32_t>>> parts(circle_.size());
    std::size_t left = circle_.size();
    while (left > 0) {
      std::size_t best = circle_.size();
      double best_share = -1.0;
      for (std::size_t i = 0; i < circle_.size(); ++i) {
        if (rows_[i].empty()) continue;
        const double share = free_share(i);
        if (share > best_share) {
          best = i;
          best_share = share;
        }
      }
      parts[best].push_back(release(best));
      if (rows_[best].empty()) --left;
    }
    return parts;
  }

 private:
  void block(std::size_t a, const std::vector<std::uint32_t>& rows_of_a, std::size_t b, int step) {
    if (a == b || !before_.test(circle_[a], circle_[b])) return;
    count_blocked(problem_, rows_of_a, rows_[b], step, blockers_);
  }

  [[nodiscard]] double free_share(std::size_t i) const {
    const auto free = std::count_if(rows_[i].begin(), rows_[i].end(),
                                    [&](std::uint32_t row) { return blockers_[row] == 0; });
    return static_cast<double>(free) / static_cast<double>(rows_[i].size());
  }

  std::vector<std::uint32_t> release(std::size_t i) {
    std::vector<std::uint32_t> free;
    std::vector<std::uint32_t> rest;
    for (const std::uint32_t row : rows_[i]) (blockers_[row] == 0 ? free : rest).push_back(row);
    for (std::size_t b = 0; b < circle_.size(); ++b) {
      block(i, rows_[i], b, -1);
      block(i, rest, b, +1);
    }
    rows_[i] = std::move(rest);
    return free;
  }

  const Problem& problem_;
  const BitMatrix& before_;
  const Members& circle_;
  std::vector<std::vector<std::uint32_t>> rows_;  ///< still held, for each member of the circle
  std::vector<std::int32_t> blockers_;  ///< by row: groups of the circle that hold it back
};

Group group_of(const Problem& problem, std::vector<std::uint32_t> rows) {
  Group group{std::move(rows), 0.0};
  for (const std::uint32_t row : group.rows) group.weight += problem.weight[row];
  return group;
}

}  // namespace

Chain build_chain(const Problem& problem, const std::vector<std::uint32_t>& rows) {
  std::vector<Group> groups = groups_by_mask(problem, rows);
  BitMatrix before = precedence(problem, groups);
  const std::vector<Members> found = circles(before);
  if (!found.empty()) {
    std::vector<Group> split;
    std::vector<bool> in_circle(groups.size(), false);
    for (const Members& circle : found) {
      for (const std::uint32_t member : circle) in_circle[member] = true;
      for (auto& parts : CircleBreaker(problem, groups, before, circle).run()) {
        for (auto& part : parts) split.push_back(group_of(problem, std::move(part)));
      }
    }
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (!in_circle[i]) split.push_back(std::move(groups[i]));
    }
    groups = std::move(split);
    before = precedence(problem, groups);
  }
  std::vector<double> weights;
  weights.reserve(groups.size());
  for (const Group& group : groups) weights.push_back(group.weight);
  Chain chain;
  chain.reserve(groups.size());
  for (const std::uint32_t index : order_groups(weights, before)) {
    chain.push_back(std::move(groups[index]));
  }
  return chain;
}

double weighted_position(const Chain& chain) {
  double sum = 0.0;
  for (std::size_t i = 0; i < chain.size(); ++i)
    sum += chain[i].weight * static_cast<double>(i + 1);
  return sum;
}

}  // namespace greynic::optimizer
