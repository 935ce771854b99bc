#include "src/circles/regrouping.h"

#include <algorithm>

namespace greynic::optimizer::circles {

Regrouping::Regrouping(const RowGraph& graph, Parts& parts)
    : graph_(graph),
      parts_(parts),
      next_(graph.size()),
      waiting_(graph.size()),
      level_(graph.size()) {
  order_.reserve(graph.size());
}

void Regrouping::regroup_some(const std::vector<std::uint32_t>& masks, statistics::Random& random) {
  std::vector<std::uint32_t> apart;
  for (std::uint32_t left = 1 + random.below(4); left > 0; --left) {
    const std::uint32_t mask = masks[random.below(static_cast<std::uint32_t>(masks.size()))];
    if (std::find(apart.begin(), apart.end(), mask) == apart.end()) apart.push_back(mask);
  }
  for (const std::uint32_t mask : apart) take_apart(mask);
  for (const std::uint32_t mask : apart) put_together(mask, random.below(2) == 1);
}

void Regrouping::take_apart(std::uint32_t mask) {
  for (const std::uint32_t node : graph_.nodes[mask]) parts_[node] = node;
}

/// Puts the nodes of a mask, which are parts by themselves, together in as few parts as the
/// others leave it: as many as the most of them that lie on one path. Each node goes to the
/// first part that it may be in, or the last.
void Regrouping::put_together(std::uint32_t mask, bool last) {
  sort_parts(mask);
  std::uint32_t count = 0;
  for (const std::uint32_t node : graph_.nodes[mask]) count = std::max(count, level_[node] + 1);
  if (last) {
    count_behind(mask);
    for (const std::uint32_t node : graph_.nodes[mask]) level_[node] = count - 1 - level_[node];
  }
  std::vector<std::uint32_t> first(count, kNoRow);
  for (const std::uint32_t node : graph_.nodes[mask]) {
    std::uint32_t& part = first[level_[node]];
    if (part == kNoRow) part = node;
    parts_[node] = part;
  }
}

/// Parts behind all that must precede them; level_: nodes of the mask on the longest path before.
void Regrouping::sort_parts(std::uint32_t mask) {
  const std::size_t n = graph_.size();
  std::fill(waiting_.begin(), waiting_.end(), 0);
  std::fill(level_.begin(), level_.end(), 0);
  for (std::uint32_t node = 0; node < n; ++node) {
    const std::uint32_t part = parts_[node];
    waiting_[part] += graph_.before[node];
    if (part == node) next_[node] = kNoRow;
  }
  for (std::uint32_t node = 0; node < n; ++node) {
    const std::uint32_t part = parts_[node];
    if (part == node) continue;
    next_[node] = next_[part];
    next_[part] = node;
  }
  order_.clear();
  for (std::uint32_t node = 0; node < n; ++node) {
    if (parts_[node] == node && waiting_[node] == 0) order_.push_back(node);
  }
  for (std::size_t at = 0; at < order_.size(); ++at) {  // grows behind
    const std::uint32_t part = order_[at];
    const std::uint32_t behind = level_[part] + (graph_.mask[part] == mask ? 1 : 0);
    for (std::uint32_t node = part; node != kNoRow; node = next_[node]) {
      for (const std::uint32_t after : graph_.after_node(node)) {
        const std::uint32_t other = parts_[after];
        level_[other] = std::max(level_[other], behind);
        if (--waiting_[other] == 0) order_.push_back(other);
      }
    }
  }
}

/// level_: nodes of the mask on the longest path behind.
void Regrouping::count_behind(std::uint32_t mask) {
  for (auto part = order_.rbegin(); part != order_.rend(); ++part) {
    std::uint32_t level = 0;
    for (std::uint32_t node = *part; node != kNoRow; node = next_[node]) {
      for (const std::uint32_t after : graph_.after_node(node)) {
        level = std::max(level, level_[parts_[after]] + (graph_.mask[after] == mask ? 1U : 0U));
      }
    }
    level_[*part] = level;
  }
}

}  // namespace greynic::optimizer::circles
