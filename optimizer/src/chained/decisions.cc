/// What was decided on large nodes, and the plan with one of these decided otherwise.

#include <set>

#include "src/chained/grower.h"

namespace greynic::optimizer::chained {

std::uint32_t Grower::keep(const Node& node, std::uint32_t table, std::uint32_t exit, Way way) {
  if (node.all_weight < options_.kept_from) return kNowhere;
  decisions_.push_back({std::make_shared<const Node>(node), table, exit, way,
                        plan_[table].matchers.size(), deciding_, std::nullopt});
  return deciding_ = static_cast<std::uint32_t>(decisions_.size() - 1);
}

std::vector<double> Grower::tried_behind() const {
  std::vector<double> tried(decisions_.size(), 0.0);
  for (std::size_t table = 0; table < plan_.size(); ++table) {
    if (owner_[table] != kNowhere) tried[owner_[table]] += tried_from(plan_[table], 0);
  }
  for (std::size_t i = decisions_.size(); i-- > 0;) {  // those above have lower numbers
    const Decision& decision = decisions_[i];
    if (!decision.gone && decision.above != kNowhere) tried[decision.above] += tried[i];
  }
  for (std::size_t i = 0; i < decisions_.size(); ++i) {
    const Decision& decision = decisions_[i];
    tried[i] = decision.gone ? 0.0
                             : tried[i] + tried_from(plan_[decision.table], decision.matchers) -
                                   decision.node->all_weight;
  }
  return tried;
}

std::vector<Step> Grower::steps_at(std::uint32_t decision, const StepsAt& wanted) const {
  constexpr std::size_t kCuts = 60;  // that are looked through
  constexpr double kAlike = 1.002;
  const Node& node = *decisions_[decision].node;
  const Columns& columns = units_.problem->columns;
  std::vector<Step> steps;
  std::set<std::vector<MatchField>> known;
  double last = -1.0;
  const std::vector<Cut> cuts = chooser_.best_cuts(node, chooser_.chain(node), kCuts);
  for (const Cut& cut : cuts) {
    if (steps.size() >= wanted.most || cut.cost > wanted.dearest * cuts.front().cost) break;
    if (cut.cost <= last * kAlike) continue;  // it parts packets much as the one before
    last = cut.cost;
    std::vector<MatchField> fields;
    const Mask mask = columns.unpack_mask(cut.mask.data());
    for (const FieldMask& part : mask.fields()) fields.push_back(part.field);
    if (!known.insert(std::move(fields)).second && steps.size() >= wanted.cheapest) continue;
    steps.push_back({false, cut.mask});
  }
  if (chooser_.best_guard(node)) {
    const std::size_t place = std::min(wanted.cheapest, steps.size());
    steps.insert(steps.begin() + static_cast<std::ptrdiff_t>(place), Step{true, {}});
  }
  return steps;
}

void Grower::take_out(std::uint32_t number) {
  std::vector<bool> out(decisions_.size(), false);
  for (std::uint32_t i = number; i < decisions_.size(); ++i) {
    const std::uint32_t above = decisions_[i].above;
    out[i] = i == number || (above != kNowhere && out[above]);
    if (out[i]) decisions_[i].gone = true;
  }
  const Decision& decision = decisions_[number];
  auto& matchers = plan_.edit(decision.table).matchers;
  matchers.erase(matchers.begin() + static_cast<std::ptrdiff_t>(decision.matchers), matchers.end());
  const auto made = [&](std::uint32_t table) {
    return owner_[table] != kNowhere && out[owner_[table]];
  };
  std::erase_if(quick_, [&](const QuickChain& chain) {
    return made(chain.table) || (chain.table == decision.table && chain.begin >= decision.matchers);
  });
  for (std::uint32_t table = 0; table < plan_.size(); ++table) {
    if (!made(table)) continue;
    plan_.clear(table);
    owner_[table] = kNowhere;
    free_.push_back(table);
  }
}

std::optional<std::uint32_t> Grower::regrow(std::uint32_t number, const Step* step,
                                            double entry_price, double most_cost) {
  const Decision decision = decisions_[number];
  take_out(number);
  plan_.edit(decision.table).exit = kNowhere;
  plan_.edit(decision.table).missing = 0.0;
  entries_ = entries_of(plan_);
  tried_ = tried_in(plan_) + decision.node->all_weight * static_cast<double>(decision.matchers);
  chooser_.set_price(entry_price);
  options_.entry_price = entry_price;
  options_.most_cost = most_cost;
  told_ = step;
  deciding_ = decision.above;
  const auto again = static_cast<std::uint32_t>(decisions_.size());
  grow(*decision.node, decision.table, decision.exit, decision.way);
  if (too_much()) return std::nullopt;
  return again;
}

}  // namespace greynic::optimizer::chained
