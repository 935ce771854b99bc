#include "src/live/step.h"

#include "src/live/repair.h"

namespace greynic::optimizer::live {
namespace {

bool settle(State& state, Changes& changes, std::uint32_t root, const Cube& cube, RuleId came,
            LiveStep& step, std::uint64_t most, std::vector<Match>* doubtful) {
  const std::uint64_t before = state.looked_at();
  StepProof proof(
      state, changes, [&](const Fault& fault) { return repair(state, fault, changes); }, most);
  const bool proven = proof.holds(root, cube, came);
  step.comparisons = state.looked_at() - before;
  step.entries_added = changes.added.size();
  step.entries_removed = changes.removed;
  step.matchers_added = changes.matchers_added;
  step.matchers_removed = changes.matchers_removed;
  if (!proven && doubtful != nullptr) {
    // Of entries that came, nobody has shown yet that they take no packets of earlier rules.
    for (const std::uint32_t id : changes.added) {
      if (state.has_entry(id)) doubtful->push_back(state.space().match(state.cube(id)));
    }
    for (const Cube& uncovered : changes.uncovered) {
      doubtful->push_back(state.space().match(uncovered));
    }
  }
  if (!proven) return false;
  state.count_lost();
  if (came != kNothing) {
    state.count(came);
    state.move_by_weight(came);
  }
  return true;
}

}  // namespace

bool put_in(State& state, RuleId id, KeptRule rule, LiveStep& step, std::uint64_t most,
            std::vector<Match>* doubtful) {
  if (!state.can_hold(rule.rule)) return false;
  Changes changes;
  state.add_rule(id, std::move(rule));
  const Cube cube = state.cube_of_rule(id);
  return settle(state, changes, state.root_of(id), cube, id, step, most, doubtful);
}

bool take_out(State& state, RuleId id, LiveStep& step, std::uint64_t most,
              std::vector<Match>* doubtful) {
  Changes changes;
  const std::uint32_t root = state.root_of(id);
  const Cube cube = state.cube_of_rule(id);
  state.remove_rule(id, changes);
  return settle(state, changes, root, cube, kNothing, step, most, doubtful);
}

void weigh_rule(State& state, RuleId id, double weight) {
  state.weigh(id, weight);
  state.move_by_weight(id);
}

void tell(std::vector<KeptRule>& rules, const Told& told) {
  if (rules.size() <= told.id) rules.resize(told.id + 1);
  KeptRule& rule = rules[told.id];
  switch (told.kind) {
    case Told::Kind::kPutIn:
      rule = told.rule;
      break;
    case Told::Kind::kTakeOut:
      rule = {};
      break;
    case Told::Kind::kWeigh:
      rule.weight = told.weight;
      break;
    case Told::Kind::kOrder:
      rule.order = told.order;
      break;
    case Told::Kind::kLines:
      rule.rule.from = told.lines;
      break;
  }
}

bool tell(State& state, const Told& told, std::uint64_t most) {
  LiveStep ignored;
  switch (told.kind) {
    case Told::Kind::kPutIn:
      return put_in(state, told.id, told.rule, ignored, most);
    case Told::Kind::kTakeOut:
      return take_out(state, told.id, ignored, most);
    case Told::Kind::kWeigh:
      weigh_rule(state, told.id, told.weight);
      break;
    case Told::Kind::kOrder:
      state.set_order(told.id, told.order);
      break;
    case Told::Kind::kLines:
      state.set_from(told.id, told.lines);
      break;
  }
  return true;
}

}  // namespace greynic::optimizer::live
