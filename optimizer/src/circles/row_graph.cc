#include "src/circles/row_graph.h"

#include <algorithm>
#include <unordered_map>

#include "src/key_table.h"

namespace greynic::optimizer::circles {
namespace {

using Nodes = std::vector<std::uint32_t>;

}  // namespace

RowGraph graph_of(std::vector<std::uint32_t> mask, std::size_t masks, std::vector<Edge> edges) {
  RowGraph graph{std::move(mask), std::vector<Nodes>(masks), {}, {}, {}};
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    graph.nodes[graph.mask[node]].push_back(node);
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  graph.before.assign(graph.size(), 0);
  graph.first.assign(graph.size() + 1, 0);
  graph.after.reserve(edges.size());
  for (const Edge& edge : edges) {
    ++graph.before[edge.to];
    ++graph.first[edge.from + 1];
    graph.after.push_back(edge.to);
  }
  for (std::size_t node = 0; node < graph.size(); ++node)
    graph.first[node + 1] += graph.first[node];
  return graph;
}

std::optional<ListedRows> row_graph(const Problem& problem, const std::vector<Group>& groups,
                                    const BitMatrix& before, std::size_t most_edges) {
  std::vector<std::uint32_t> rows;
  for (const Group& group : groups) rows.insert(rows.end(), group.rows.begin(), group.rows.end());
  std::sort(rows.begin(), rows.end());
  std::vector<std::uint32_t> mask(rows.size());
  std::vector<Nodes> nodes(groups.size());
  std::vector<std::vector<Word>> bits;
  for (std::uint32_t group = 0; group < groups.size(); ++group) {
    bits.push_back(mask_of(problem.rows, groups[group].rows.front()));
    for (const std::uint32_t row : groups[group].rows) {
      const auto place = std::lower_bound(rows.begin(), rows.end(), row);
      nodes[group].push_back(static_cast<std::uint32_t>(place - rows.begin()));
      mask[nodes[group].back()] = group;
    }
  }
  const std::size_t words = problem.rows.words();
  std::vector<Edge> edges;
  std::unordered_map<std::uint64_t, Nodes> by_key;
  for (std::size_t a = 0; a < groups.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      if (!before.test(a, b) && !before.test(b, a)) continue;
      const std::vector<Word> both = common(bits[a], bits[b]);
      by_key.clear();
      for (const std::uint32_t node : nodes[a]) {
        by_key[hash_under(problem.rows.value[rows[node]], both.data(), words)].push_back(node);
      }
      for (const std::uint32_t node : nodes[b]) {
        const auto met =
            by_key.find(hash_under(problem.rows.value[rows[node]], both.data(), words));
        if (met == by_key.end()) continue;
        for (const std::uint32_t other : met->second) {
          if (problem.effect[rows[node]] == problem.effect[rows[other]]) continue;
          edges.push_back({std::min(node, other), std::max(node, other)});
        }
        if (edges.size() > most_edges) return std::nullopt;
      }
    }
  }
  return ListedRows{std::move(rows), graph_of(std::move(mask), groups.size(), std::move(edges))};
}

}  // namespace greynic::optimizer::circles
