#include "src/entering.h"

#include <algorithm>

namespace greynic::optimizer {

Entering entering(const Traffic& traffic, const Columns& columns) {
  Entering result{Rows(columns.words()), {}};
  for (const TrafficFlow& flow : traffic.flows) {
    columns.pack(flow.packet, result.packets.add());
    result.weight.push_back(flow.weight);
  }
  // As shares of the table's traffic, so that rules get shares for weights.
  double all = 0.0;
  for (const double weight : result.weight) all += weight;
  for (double& weight : result.weight) weight /= all;
  return result;
}

std::vector<std::uint32_t> weigh(Problem& problem, const Entering& traffic) {
  double all = 0.0;
  auto hits = first_matches(problem.rows, traffic.packets);
  for (std::size_t i = 0; i < hits.size(); ++i) {
    if (hits[i] == kNoRow) continue;
    problem.weight[hits[i]] += traffic.weight[i];
    all += traffic.weight[i];
  }
  const double part = 1.0 / static_cast<double>(problem.weight.size());
  for (double& weight : problem.weight) {
    weight = all > 0.0 ? (weight / all + kWeightTrace * part) / (1.0 + kWeightTrace) : part;
  }
  return hits;
}

std::vector<std::uint32_t> among_kept(std::vector<std::uint32_t> hits, std::size_t rows,
                                      const std::vector<std::uint32_t>& kept,
                                      const Problem& deciding, const Rows& packets) {
  std::vector<std::uint32_t> number(rows, kNoRow);
  for (std::uint32_t i = 0; i < kept.size(); ++i) number[kept[i]] = i;
  Rows again(packets.words());
  std::vector<std::size_t> asked;
  for (std::size_t i = 0; i < hits.size(); ++i) {
    if (hits[i] == kNoRow) continue;
    hits[i] = number[hits[i]];
    if (hits[i] != kNoRow) continue;
    again.add(packets[i]);
    asked.push_back(i);
  }
  const auto found = first_matches(deciding.rows, again);
  for (std::size_t i = 0; i < asked.size(); ++i) hits[asked[i]] = found[i];
  return hits;
}

std::uint32_t first_free_table(const RuleSet& rules) {
  std::uint64_t highest = 0;
  for (const FlowRule& rule : rules.rules) {
    highest = std::max<std::uint64_t>(highest, rule.table);
    for (const Action& action : rule.actions) {
      if (action.kind == ActionKind::kJump) highest = std::max(highest, action.number);
    }
  }
  return static_cast<std::uint32_t>(highest) + 1;
}

}  // namespace greynic::optimizer
