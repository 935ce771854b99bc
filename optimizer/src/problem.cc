#include "problem.h"

#include <algorithm>

namespace greynic::optimizer {

std::uint32_t Effects::number(const std::vector<Action>& actions) {
  static const std::vector<Action> kNothing;
  const bool drop = actions.size() == 1 && actions.front().kind == ActionKind::kDrop;
  const auto next = static_cast<std::uint32_t>(known_.size());
  return known_.try_emplace(drop ? kNothing : actions, next).first->second;
}

RulesOfTable rules_by_table(const RuleSet& rules) {
  RulesOfTable tables;
  for (std::uint32_t i = 0; i < rules.rules.size(); ++i) tables[rules.rules[i].table].push_back(i);
  for (auto& [id, members] : tables) {
    std::stable_sort(members.begin(), members.end(), [&](std::uint32_t a, std::uint32_t b) {
      return rules.rules[a].priority < rules.rules[b].priority;
    });
  }
  return tables;
}

Mask all_bits(const RuleSet& rules, const std::vector<std::uint32_t>& members) {
  Mask all;
  for (const std::uint32_t index : members) {
    for (const FieldMatch& entry : rules.rules[index].match.fields()) {
      all.add(entry.field, entry.bits);
    }
  }
  return all;
}

Problem make_problem(const RuleSet& rules, const std::vector<std::uint32_t>& members,
                     Effects& effects) {
  Columns columns(all_bits(rules, members));
  const std::size_t words = columns.words();
  Problem problem(std::move(columns), words);
  for (const std::uint32_t index : members) {
    const FlowRule& rule = rules.rules[index];
    Word* const value = problem.rows.value.add();
    Word* const mask = problem.rows.mask.add();
    problem.columns.pack(rule.match, value, mask);
    problem.effect.push_back(effects.number(rule.actions));
    problem.rule.push_back(index);
  }
  problem.weight.assign(members.size(), 0.0);
  return problem;
}

Problem part_of(const Problem& problem, const std::vector<std::uint32_t>& members) {
  Problem part(problem.columns, problem.rows.words());
  for (const std::uint32_t row : members) {
    part.rows.add(problem.rows.value[row], problem.rows.mask[row]);
    part.effect.push_back(problem.effect[row]);
    part.rule.push_back(problem.rule[row]);
    part.weight.push_back(problem.weight[row]);
  }
  return part;
}

}  // namespace greynic::optimizer
