#include "src/circles/split.h"

#include <algorithm>

#include "src/circles/bound.h"
#include "src/circles/freest_first.h"
#include "src/circles/parts.h"

namespace greynic::optimizer::circles {

namespace {

using RowsOfParts = std::vector<std::vector<std::uint32_t>>;

RowsOfParts rows_of(const ListedRows& listed, const Parts& parts) {
  RowsOfParts rows;
  std::vector<std::size_t> place(parts.size(), kNoRow);
  for (std::uint32_t node = 0; node < parts.size(); ++node) {
    std::size_t& of_part = place[parts[node]];
    if (of_part == kNoRow) {
      of_part = rows.size();
      rows.emplace_back();
    }
    rows[of_part].push_back(listed.row[node]);
  }
  return rows;
}

Parts parts_of(const ListedRows& listed, const RowsOfParts& rows) {
  Parts parts(listed.row.size());
  const auto node_of = [&](std::uint32_t row) {
    const auto place = std::lower_bound(listed.row.begin(), listed.row.end(), row);
    return static_cast<std::uint32_t>(place - listed.row.begin());
  };
  for (const auto& part : rows) {
    for (const std::uint32_t row : part) parts[node_of(row)] = node_of(part.front());
  }
  return parts;
}

}  // namespace

SplitCircle split_circle(const Problem& problem, const std::vector<Group>& circle,
                         const BitMatrix& before, const std::vector<double>& others, Care care) {
  constexpr std::size_t kMostEdges = 12'000'000;  // 144 MiB while they are sorted
  const auto listed = row_graph(problem, circle, before, kMostEdges);
  if (!listed) return {freest_first(problem, circle, before), circle.size()};
  const RowGraph& graph = listed->graph;
  std::vector<double> weight;
  for (const std::uint32_t row : listed->row) weight.push_back(problem.weight[row]);

  Parts few = one_by_one(graph, false);
  if (Parts other = one_by_one(graph, true); count(other) < count(few)) few = std::move(other);
  if (care == Care::kQuick) {
    cheapen(graph, weight, others, few, 0);
    return {rows_of(*listed, few), circle.size()};
  }
  const std::size_t enough = count(few);
  const std::size_t least = least_parts(graph, split_masks(graph, few));
  improve(graph, least, few);
  const double cost_of_few = cheapen(graph, weight, others, few);

  // Free rows early are cheap at times, though they are more parts.
  Parts early = parts_of(*listed, freest_first(problem, circle, before));
  double cost_of_early = cheapen(graph, weight, others, early);
  if (count(early) > enough) {
    improve(graph, enough, early);
    cost_of_early = cheapen(graph, weight, others, early);
  }
  const bool cheaper = count(early) <= enough && cost_of_early < cost_of_few;
  return {rows_of(*listed, cheaper ? early : few), least};
}

}  // namespace greynic::optimizer::circles
