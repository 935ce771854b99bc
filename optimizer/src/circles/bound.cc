#include "src/circles/bound.h"

#include <algorithm>
#include <array>

namespace greynic::optimizer::circles {
namespace {

/// Takes circles out of a graph of masks, until none is left that is as short.
class Circles {
 public:
  Circles(const RowGraph& graph, std::vector<bool> there)
      : leads_(graph.nodes.size(), std::vector<bool>(graph.nodes.size())),
        there_(std::move(there)) {
    for (std::uint32_t node = 0; node < graph.size(); ++node) {
      for (const std::uint32_t after : graph.after_node(node)) {
        leads_[graph.mask[node]][graph.mask[after]] = true;
      }
    }
  }
  std::size_t take_out(std::size_t longest) {
    std::size_t taken = 0;
    for (std::uint32_t mask = 0; mask < there_.size(); ++mask) {
      if (!there_[mask]) continue;
      const std::vector<std::uint32_t> circle = shortest_through(mask);
      if (circle.empty() || circle.size() > longest) continue;
      ++taken;
      for (const std::uint32_t member : circle) there_[member] = false;
    }
    return taken;
  }

 private:
  [[nodiscard]] std::vector<std::uint32_t> shortest_through(std::uint32_t mask) const {
    std::vector<std::uint32_t> from(there_.size(), kNoRow);
    std::vector<std::uint32_t> reached{mask};
    for (std::size_t at = 0; at < reached.size(); ++at) {  // grows behind
      const std::uint32_t here = reached[at];
      if (here != mask && leads_[here][mask]) {
        std::vector<std::uint32_t> circle{mask};
        for (std::uint32_t step = here; step != mask; step = from[step]) circle.push_back(step);
        return circle;
      }
      for (std::uint32_t next = 0; next < there_.size(); ++next) {
        if (!there_[next] || next == mask || from[next] != kNoRow || !leads_[here][next]) continue;
        from[next] = here;
        reached.push_back(next);
      }
    }
    return {};
  }

  std::vector<std::vector<bool>> leads_;
  std::vector<bool> there_;
};

}  // namespace

std::vector<std::uint32_t> longest_paths(const RowGraph& graph,
                                         const std::vector<std::uint32_t>& masks) {
  constexpr std::size_t kAtATime = 16;  // what the graph costs to read, they share
  using Levels = std::array<std::uint16_t, kAtATime>;
  std::vector<std::uint32_t> longest(masks.size(), 1);
  std::vector<std::uint8_t> lane(graph.nodes.size());
  std::vector<Levels> level(graph.size());
  for (std::size_t begin = 0; begin < masks.size(); begin += kAtATime) {
    const std::size_t end = std::min(masks.size(), begin + kAtATime);
    std::fill(lane.begin(), lane.end(), kAtATime);
    for (std::size_t i = begin; i < end; ++i) lane[masks[i]] = static_cast<std::uint8_t>(i - begin);
    std::fill(level.begin(), level.end(), Levels{});
    for (std::uint32_t node = 0; node < graph.size(); ++node) {
      const std::size_t own = lane[graph.mask[node]];
      if (own < kAtATime) {
        ++level[node][own];
        std::uint32_t& most = longest[begin + own];
        most = std::max<std::uint32_t>(most, level[node][own]);
      }
      const Levels here = level[node];
      for (const std::uint32_t after : graph.after_node(node)) {
        Levels& there = level[after];
        for (std::size_t i = 0; i < kAtATime; ++i) there[i] = std::max(there[i], here[i]);
      }
    }
  }
  return longest;
}

std::size_t least_parts(const RowGraph& graph, const std::vector<std::uint32_t>& split) {
  std::size_t least = graph.nodes.size() - split.size();
  std::vector<bool> once(graph.nodes.size(), true);
  const std::vector<std::uint32_t> longest = longest_paths(graph, split);
  for (std::size_t i = 0; i < split.size(); ++i) {
    least += longest[i];
    once[split[i]] = longest[i] == 1;
  }
  Circles left(graph, std::move(once));
  for (const std::size_t length : {std::size_t{2}, std::size_t{3}, graph.nodes.size()}) {
    least += left.take_out(length);
  }
  return least;
}

}  // namespace greynic::optimizer::circles
