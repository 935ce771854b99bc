#include "src/fronts/front_table.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "src/key_table.h"

namespace greynic::optimizer {

FrontTable::FrontTable(const LayoutTable& table, const std::vector<Arrival>& arrivals,
                       const Traffic& traffic, double all, const std::set<MatchField>& whole_fields)
    : problem(problem_of(table, first_row, by_row)), words(problem.rows.words()), bits(words) {
  find_fields(whole_fields);
  take_in(arrivals, traffic, all);
}

Problem FrontTable::problem_of(const LayoutTable& table, std::vector<std::size_t>& first_row,
                               std::vector<const FlowRule*>& by_row) {
  RuleSet rules;
  for (const Matcher& matcher : table.matchers) {
    if (matcher.rules.empty()) continue;
    first_row.push_back(rules.rules.size());
    for (const FlowRule& rule : matcher.rules) {
      rules.rules.push_back(rule);
      rules.rules.back().priority = static_cast<RulePriority>(rules.rules.size());
      by_row.push_back(&rule);
    }
  }
  std::vector<std::uint32_t> members(rules.rules.size());
  std::iota(members.begin(), members.end(), 0U);
  Effects effects;
  return make_problem(rules, members, effects);
}

void FrontTable::find_fields(const std::set<MatchField>& whole_fields) {
  const std::vector<Word> every(words, ~Word{0});
  const Mask looked_at = problem.columns.unpack_mask(every.data());
  for (const FieldMask& part : looked_at.fields()) {
    Match match;
    match.set(part.field, 0, part.bits);
    std::vector<Word> value(words, 0);
    std::vector<Word> mask(words, 0);
    problem.columns.pack(match, value.data(), mask.data());
    fields.push_back(std::move(mask));
    whole.push_back(whole_fields.contains(part.field));
  }
}

void FrontTable::take_in(const std::vector<Arrival>& arrivals, const Traffic& traffic, double all) {
  std::unordered_map<std::vector<Word>, std::uint32_t, RowHash> known;
  std::vector<Word> key(words);
  for (const Arrival& arrival : arrivals) {
    std::ranges::fill(key, Word{0});
    problem.columns.pack(arrival.packet, key.data());
    const auto next = static_cast<std::uint32_t>(packets.size());
    const auto [place, fresh] = known.try_emplace(key, next);
    if (fresh) {
      bits.add(key.data());
      packets.push_back({arrival.row, arrival.tried, 0.0, 0.0});
    }
    Packets& alike = packets[place->second];
    const double weight = traffic.flows[arrival.flow].weight / all;
    alike.weight += weight;
    alike.heaviest = std::max(alike.heaviest, weight);
  }
}

}  // namespace greynic::optimizer
