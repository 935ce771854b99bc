#include "chain.h"

#include <algorithm>
#include <numeric>

#include "src/circles/split.h"

namespace greynic::optimizer {
namespace {

using Members = std::vector<std::uint32_t>;

/// Strongly connected components with more than one group (Tarjan, without recursion).
std::vector<Members> circles_of(const BitMatrix& before) {
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

Group group_of(const Problem& problem, std::vector<std::uint32_t> rows) {
  Group group{std::move(rows), 0.0};
  for (const std::uint32_t row : group.rows) group.weight += problem.weight[row];
  return group;
}

BitMatrix within(const BitMatrix& before, const Members& members) {
  BitMatrix inside(members.size());
  for (std::size_t a = 0; a < members.size(); ++a) {
    for (std::size_t b = 0; b < members.size(); ++b) {
      if (before.test(members[a], members[b])) inside.set(a, b);
    }
  }
  return inside;
}

std::vector<double> weights_outside(const std::vector<Group>& groups, const Members& members) {
  std::vector<double> weights;
  for (const Group& group : groups) weights.push_back(group.weight);
  for (const std::uint32_t member : members) weights[member] = -1.0;
  weights.erase(std::remove(weights.begin(), weights.end(), -1.0), weights.end());
  return weights;
}

}  // namespace

Chain build_chain(const Problem& problem, const std::vector<std::uint32_t>& rows,
                  circles::Care care, const std::vector<RowPair>* known) {
  std::vector<Group> groups = groups_by_mask(problem, rows);
  const auto order_of = [&] {
    return known == nullptr ? precedence(problem, groups)
                            : precedence(*known, problem.rows.size(), groups);
  };
  BitMatrix before = order_of();
  Chain chain;
  chain.least = groups.size();
  const std::vector<Members> found = before.none() ? std::vector<Members>{} : circles_of(before);
  if (!found.empty()) {
    chain.quick = care == circles::Care::kQuick;
    std::vector<Group> split;
    std::vector<bool> in_circle(groups.size(), false);
    for (const Members& members : found) {
      std::vector<Group> circle;
      for (const std::uint32_t member : members) {
        in_circle[member] = true;
        circle.push_back(groups[member]);
      }
      circles::SplitCircle apart = circles::split_circle(problem, circle, within(before, members),
                                                         weights_outside(groups, members), care);
      chain.least += apart.least - circle.size();
      for (auto& part : apart.parts) split.push_back(group_of(problem, std::move(part)));
    }
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (!in_circle[i]) split.push_back(std::move(groups[i]));
    }
    groups = std::move(split);
    before = order_of();
  }
  std::vector<double> weights;
  weights.reserve(groups.size());
  for (const Group& group : groups) weights.push_back(group.weight);
  chain.groups.reserve(groups.size());
  for (const std::uint32_t index : order_groups(weights, before)) {
    chain.groups.push_back(std::move(groups[index]));
  }
  return chain;
}

double weighted_position(const Chain& chain) {
  double sum = 0.0;
  for (std::size_t i = 0; i < chain.groups.size(); ++i)
    sum += chain.groups[i].weight * static_cast<double>(i + 1);
  return sum;
}

}  // namespace greynic::optimizer
