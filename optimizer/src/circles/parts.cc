#include "src/circles/parts.h"

#include <algorithm>
#include <numeric>

#include "src/circles/regrouping.h"

namespace greynic::optimizer::circles {
namespace {

using Nodes = std::vector<std::uint32_t>;

/// A graph in which the masks that are in one part are one node each, and what became of the nodes.
struct Joined {
  RowGraph graph;
  Nodes node_of;
};

Joined join_whole_masks(const RowGraph& graph, const Nodes& split) {
  Joined joined;
  std::vector<bool> is_split(graph.nodes.size(), false);
  for (const std::uint32_t mask : split) is_split[mask] = true;
  std::vector<std::uint32_t> mask;
  Nodes latest(graph.nodes.size(), kNoRow);
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    const std::uint32_t of = graph.mask[node];
    if (is_split[of] || latest[of] == kNoRow) {
      latest[of] = static_cast<std::uint32_t>(mask.size());
      mask.push_back(of);
    }
    joined.node_of.push_back(latest[of]);
  }
  std::vector<Edge> edges;
  edges.reserve(graph.after.size());
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    for (const std::uint32_t after : graph.after_node(node)) {
      edges.push_back({joined.node_of[node], joined.node_of[after]});
    }
  }
  joined.graph = graph_of(std::move(mask), graph.nodes.size(), std::move(edges));
  return joined;
}

/// Regroups some of these masks again and again.
void search(const RowGraph& graph, const Nodes& masks, std::size_t enough, Parts& parts) {
  constexpr std::size_t kMostWork = 12'000'000;  // so that the time has a bound
  constexpr std::size_t kInVain = 20;            // for each mask
  statistics::Random random(1);
  Regrouping regrouping(graph, parts);
  std::size_t best = count(parts);
  std::size_t in_vain = 0;
  std::size_t work = 0;
  while (best > enough && in_vain < kInVain * masks.size() && work < kMostWork) {
    const Parts before = parts;
    regrouping.regroup_some(masks, random);
    work += graph.size() + graph.after.size();
    const std::size_t now = count(parts);
    in_vain = now < best ? 0 : in_vain + 1;
    if (now > best) parts = before;
    best = std::min(best, now);
  }
}

}  // namespace

std::size_t count(const Parts& parts) {
  std::size_t sum = 0;
  for (std::uint32_t node = 0; node < parts.size(); ++node) sum += parts[node] == node ? 1 : 0;
  return sum;
}

std::vector<std::uint32_t> split_masks(const RowGraph& graph, const Parts& parts) {
  std::vector<std::uint32_t> split;
  for (std::uint32_t mask = 0; mask < graph.nodes.size(); ++mask) {
    const Nodes& nodes = graph.nodes[mask];
    const bool whole = std::all_of(nodes.begin(), nodes.end(), [&](std::uint32_t node) {
      return parts[node] == parts[nodes.front()];
    });
    if (!whole) split.push_back(mask);
  }
  return split;
}

Parts one_by_one(const RowGraph& graph, bool reversed) {
  const auto n = static_cast<std::uint32_t>(graph.size());
  Parts parts(n);
  std::vector<Nodes> places(graph.nodes.size());  // of each mask's parts, ascending
  Nodes first;                                    // node of each part, by place
  Nodes from(n, 0);                               // by node: the first place that it may have
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint32_t node = reversed ? n - 1 - i : i;
    if (reversed) {
      for (const std::uint32_t after : graph.after_node(node)) {
        from[node] = std::max(from[node], from[after] + 1);
      }
    }
    Nodes& of_mask = places[graph.mask[node]];
    const auto found = std::lower_bound(of_mask.begin(), of_mask.end(), from[node]);
    const auto end = static_cast<std::uint32_t>(first.size());
    const std::uint32_t place = found == of_mask.end() ? end : *found;
    if (place == end) {
      of_mask.push_back(end);
      first.push_back(node);
    }
    parts[node] = first[place];
    from[node] = place;
    if (!reversed) {
      for (const std::uint32_t after : graph.after_node(node)) {
        from[after] = std::max(from[after], place + 1);
      }
    }
  }
  return parts;
}

void improve(const RowGraph& graph, std::size_t enough, Parts& parts) {
  if (count(parts) <= enough) return;
  // Masks that are split already, first: the others are one node each, so a look is cheap.
  const Nodes split = split_masks(graph, parts);
  const Joined joined = join_whole_masks(graph, split);
  Parts few(joined.graph.size());
  Nodes name(graph.size(), kNoRow);  // by part: the node of the joined graph that stands for it
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    std::uint32_t& first = name[parts[node]];
    if (first == kNoRow) first = joined.node_of[node];
    few[joined.node_of[node]] = first;
  }
  search(joined.graph, split, enough, few);
  name.assign(joined.graph.size(), kNoRow);
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    std::uint32_t& first = name[few[joined.node_of[node]]];
    if (first == kNoRow) first = node;
    parts[node] = first;
  }
  Nodes all(graph.nodes.size());
  std::iota(all.begin(), all.end(), 0U);
  search(graph, all, enough, parts);
}

}  // namespace greynic::optimizer::circles
