#include "src/joined/pipeline.h"

#include <algorithm>
#include <numeric>

namespace greynic::optimizer::joined {
namespace {

constexpr std::size_t kMostActions =
    64;  ///< of a rule that is written out, once for each behind it

bool is_jump(const Action& action) { return action.kind == ActionKind::kJump; }

/// What these do to a packet is known.
bool is_clear(const Action& action) {
  return action.kind == ActionKind::kSetField || action.kind == ActionKind::kForward ||
         action.kind == ActionKind::kCount;
}

std::vector<std::uint32_t> every(const RuleSet& rules) {
  std::vector<std::uint32_t> all(rules.rules.size());
  std::iota(all.begin(), all.end(), 0U);
  return all;
}

}  // namespace

std::int64_t table_behind(const std::vector<Action>& actions) {
  if (actions.empty() || !is_jump(actions.back())) return -1;
  if (std::ranges::count_if(actions, is_jump) != 1) return -1;
  return static_cast<std::int64_t>(actions.back().number);
}

Cube both(Cube cube, const Cube& common) {
  for (std::size_t w = 0; w < cube.value.size(); ++w) {
    cube.value[w] |= common.value[w] & ~cube.mask[w];
    cube.mask[w] |= common.mask[w];
  }
  return cube;
}

std::vector<Action> followed_by(std::vector<Action> actions, const std::vector<Action>& then) {
  actions.pop_back();
  const bool drops = then.size() == 1 && then.front() == Action::drop();
  if (!drops || actions.empty()) actions.insert(actions.end(), then.begin(), then.end());
  return actions;
}

Pipeline::Pipeline(const RuleSet& rules)
    : rules_(rules),
      tables_(rules_by_table(rules)),
      columns_(all_bits(rules, every(rules))),
      words_(columns_.words()) {
  for (const auto& [id, members] : tables_) {
    Ternaries& rows = rows_.try_emplace(id, Ternaries(words_)).first->second;
    for (const std::uint32_t rule : members) {
      columns_.pack(rules.rules[rule].match, rows.value.add(), rows.mask.add());
    }
  }
}

std::optional<std::vector<std::uint32_t>> Pipeline::order() const {
  std::map<std::uint32_t, std::vector<std::uint32_t>> leads_to;
  for (const auto& [id, members] : tables_) {
    auto& to = leads_to[id];
    for (const std::uint32_t rule : members) {
      for (const Action& action : rules_.rules[rule].actions) {
        const auto target = static_cast<std::uint32_t>(action.number);
        if (is_jump(action) && tables_.contains(target)) to.push_back(target);
      }
    }
    std::sort(to.begin(), to.end());
    to.erase(std::unique(to.begin(), to.end()), to.end());
  }
  enum class State : std::uint8_t { kNew, kOpen, kDone };
  std::map<std::uint32_t, State> state;
  std::vector<std::uint32_t> order;
  std::vector<std::pair<std::uint32_t, std::size_t>> way;
  for (const auto& entry : tables_) {
    if (state[entry.first] == State::kDone) continue;
    way.emplace_back(entry.first, 0);
    while (!way.empty()) {
      auto& [id, at] = way.back();
      state[id] = State::kOpen;
      if (at == leads_to[id].size()) {
        state[id] = State::kDone;
        order.push_back(id);
        way.pop_back();
        continue;
      }
      const std::uint32_t target = leads_to[id][at++];
      if (state[target] == State::kOpen) return std::nullopt;
      if (state[target] == State::kNew) way.emplace_back(target, 0);
    }
  }
  std::reverse(order.begin(), order.end());
  return order;
}

std::map<std::uint32_t, Cube> Pipeline::common_of_added(const std::vector<std::uint32_t>& order,
                                                        std::uint32_t first_added) const {
  std::map<std::uint32_t, Cube> common_of;
  for (const std::uint32_t id : order) {
    const auto here = common_of.find(id);
    const std::vector<std::uint32_t>& members = tables_.at(id);
    for (std::uint32_t row = 0; row < members.size(); ++row) {
      const std::int64_t to = table_behind(rules_.rules[members[row]].actions);
      if (to < std::int64_t{first_added}) continue;
      Cube all = cube(id, row);
      if (here != common_of.end()) all = both(std::move(all), here->second);
      const auto [known, fresh] = common_of.try_emplace(static_cast<std::uint32_t>(to), all);
      for (std::size_t w = 0; w < words_ && !fresh; ++w) {
        Cube& common = known->second;
        common.mask[w] &= all.mask[w] & ~(common.value[w] ^ all.value[w]);
        common.value[w] &= common.mask[w];
      }
    }
  }
  return common_of;
}

std::set<std::uint32_t> Pipeline::added_with_misses(const std::vector<std::uint32_t>& order,
                                                    std::uint32_t first_added) const {
  std::set<std::uint32_t> found;
  for (auto id = order.rbegin(); id != order.rend(); ++id) {
    if (*id < first_added) continue;
    const auto leads_to_misses = [&](std::uint32_t rule) {
      const std::int64_t to = table_behind(rules_.rules[rule].actions);
      return to >= std::int64_t{first_added} && found.contains(static_cast<std::uint32_t>(to));
    };
    const std::vector<std::uint32_t>& members = tables_.at(*id);
    if (!rules_.rules[members.back()].match.fields().empty() ||
        std::ranges::any_of(members, leads_to_misses)) {
      found.insert(*id);
    }
  }
  return found;
}

Cube Pipeline::written(const std::vector<Action>& actions) const {
  Match match;
  for (const Action& action : actions) {
    if (action.kind != ActionKind::kSetField) continue;
    U128 value = action.value & action.bits;
    U128 bits = action.bits;
    for (const FieldMatch& part : match.fields()) {
      if (part.field != action.field) continue;
      value |= part.value & ~action.bits;
      bits |= part.bits;
    }
    match.set(action.field, value, bits);
  }
  Cube result = any();
  columns_.pack(match, result.value.data(), result.mask.data());
  return result;
}

std::optional<std::uint32_t> Pipeline::next(const std::vector<Action>& actions,
                                            std::size_t most_rules) const {
  const std::int64_t behind = table_behind(actions);
  const auto id = static_cast<std::uint32_t>(behind);
  if (behind < 0 || !tables_.contains(id) || tables_.at(id).size() > most_rules ||
      actions.size() > kMostActions) {
    return std::nullopt;
  }
  const Word* const first = rows_.at(id).mask[0];
  const bool takes_all = std::all_of(first, first + words_, [](Word word) { return word == 0; });
  const bool clear = std::all_of(actions.begin(), actions.end() - 1, is_clear);
  return takes_all || clear ? std::optional(id) : std::nullopt;
}

}  // namespace greynic::optimizer::joined
