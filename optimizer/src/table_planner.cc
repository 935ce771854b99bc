#include "src/table_planner.h"

#include <algorithm>

#include "greynic/optimizer/optimize.h"
#include "src/cut_tree.h"
#include "src/spend/share.h"
#include "src/table_cut.h"

namespace greynic::optimizer {
namespace {

/// Tables of more rules than a device's may have go on in further ones, to which a miss jumps. New
/// tables get ids above all others.
std::vector<LayoutTable> split_tall(std::vector<LayoutTable> tables, std::uint32_t first_free,
                                    std::size_t most_rules) {
  std::uint32_t next = first_free;
  for (const LayoutTable& table : tables) next = std::max(next, table.id + 1);
  for (std::size_t i = 0; i < tables.size(); ++i) {  // grows behind
    std::size_t rules = 0;
    for (const Matcher& matcher : tables[i].matchers) rules += matcher.rules.size();
    if (rules <= most_rules) continue;
    LayoutTable first{tables[i].id, {}};
    LayoutTable rest{next++, {}};
    std::size_t room = most_rules - 1;  // and the jump
    for (Matcher& matcher : tables[i].matchers) {
      const std::size_t taken = std::min(room, matcher.rules.size());
      room -= taken;
      const auto cut = matcher.rules.begin() + static_cast<std::ptrdiff_t>(taken);
      Matcher behind{matcher.mask,
                     static_cast<RulePriority>(rest.matchers.size()),
                     {std::make_move_iterator(cut), std::make_move_iterator(matcher.rules.end())}};
      matcher.rules.erase(cut, matcher.rules.end());
      for (FlowRule& rule : behind.rules) {
        rule.table = rest.id;
        rule.priority = behind.priority;
      }
      if (!behind.rules.empty()) rest.matchers.push_back(std::move(behind));
      if (!matcher.rules.empty()) first.matchers.push_back(std::move(matcher));
    }
    FlowRule jump;
    jump.actions = {Action::jump(rest.id)};
    jump.priority = static_cast<RulePriority>(first.matchers.size());
    jump.table = first.id;
    first.matchers.push_back({{}, jump.priority, {jump}});
    tables[i] = std::move(first);
    tables.push_back(std::move(rest));
  }
  return tables;
}

/// Fewer matchers on the mean; and 99 % of the packets try no more than with masks, or few.
bool better_than_masks(const Costed& ranges, const Costed& masks) {
  constexpr std::size_t kFew = 16;
  return ranges.cost < masks.cost && ranges.p99 <= std::max(kFew, masks.p99);
}

}  // namespace

RuleSet rules_of(const RuleSet& rules, const std::vector<std::uint32_t>& members) {
  RuleSet part{{}, rules.source};
  for (const std::uint32_t index : members) part.rules.push_back(rules.rules[index]);
  return part;
}

std::size_t recipes_of(const std::vector<LayoutTable>& tables, const LayoutLimits& limits) {
  std::size_t sum = 0;
  for (const LayoutTable& table : tables) {
    for (const Matcher& matcher : table.matchers) sum += limits.recipes(matcher.mask);
  }
  return sum;
}

TablePlanner::TablePlanner(const RuleSet& rules, const Problem& problem, const Entering& entering,
                           const Traffic& traffic, std::vector<std::uint32_t> decider,
                           TableRoom room)
    : rules_(rules),
      problem_(problem),
      entering_(entering),
      traffic_(traffic),
      decider_(std::move(decider)),
      room_(std::move(room)) {
  if (room_.limits.most_rules == LayoutLimits::kNoLimit) return;
  // Tall tables are split when all is laid out, which takes tables too.
  const std::size_t kept = room_.most_rules / std::max<std::size_t>(1, room_.limits.most_rules) + 1;
  room_.most_tables -= std::min(room_.most_tables, kept);
}

void TablePlanner::compare_ranges(const Problem& whole, std::vector<std::uint32_t> decider) {
  whole_ = &whole;
  whole_decider_ = std::move(decider);
}

std::vector<Costed> TablePlanner::joined(spend::Uniting uniting, bool filters) const {
  constexpr bool kCodes = true;
  const std::size_t most_ranges = whole_ == nullptr ? 0 : room_.limits.most_ranges;
  Found masks = joined(problem_, decider_, most_ranges, !kCodes, uniting, filters);
  std::vector<Costed> made;
  if (whole_ != nullptr) {
    Found ranges = joined(*whole_, whole_decider_, most_ranges, kCodes, uniting, filters);
    for (Costed* layout : {&masks.ranges, &ranges.best, &ranges.plain, &ranges.other}) {
      if (!layout->tables.empty()) made.push_back(std::move(*layout));
    }
  }
  std::stable_sort(made.begin(), made.end(),
                   [](const Costed& a, const Costed& b) { return a.cost < b.cost; });
  const auto worse = std::stable_partition(made.begin(), made.end(), [&](const Costed& layout) {
    return better_than_masks(layout, masks.best);
  });
  const auto place = made.insert(worse, std::move(masks.best));
  if (!masks.plain.tables.empty()) made.insert(place + 1, std::move(masks.plain));
  return made;
}

TablePlanner::Found TablePlanner::joined(const Problem& problem,
                                         const std::vector<std::uint32_t>& decider,
                                         std::size_t most_ranges, bool codes,
                                         spend::Uniting uniting, bool filters) const {
  constexpr std::size_t kLong = 16;
  constexpr std::size_t kMore = 9;
  constexpr double kClearly = 0.9;  // first plans that differ less may change places once improved
  constexpr std::size_t kMostListed =
      50'000'000;  // conflicts that count, of four bytes each; as many again may be kept
  chained::TableOptions options{room_.table, room_.first_free, room_.most_rules, room_.most_tables};
  options.limits = &room_.limits;
  options.chains_as_made = room_.chains_as_made;
  options.uniting = uniting;
  options.filters = filters;
  chained::TableSearch search(rules_, problem, entering_.packets, entering_.weight, decider,
                              most_ranges, codes);
  if (codes && !search.has_ranges()) return {};
  std::vector<chained::TableAttempt> attempts;
  attempts.push_back(search.attempt(options));
  Found best = with_filters_and_without(attempts.back().lay_out());
  const std::size_t rows = problem.rows.size();
  while (best.best.p99 > kLong && options.most_conflicts * kMore * rows <= kMostListed) {
    options.most_conflicts *= kMore;
    options.least_price =
        best.best.price;  // more rules leave rests, with copies: no lower price fits
    chained::TableAttempt more = search.attempt(options);
    Found again = with_filters_and_without(more.lay_out());
    if (!(again.best.cost < best.best.cost)) {
      options.most_conflicts /= kMore;
      break;
    }
    if (again.best.cost < kClearly * best.best.cost) attempts.clear();
    attempts.push_back(std::move(more));
    best = std::move(again);
  }
  if (room_.quick) {
    best.best.tables = share_equal_tables(std::move(best.best.tables));
    return best;
  }
  options.least_price = 0.0;
  best = improved(std::move(attempts), std::move(best));
  best.best = with_more_shared(search, options, std::move(best.best));
  return best;
}

/// Only the attempt that ends up best is refined: that takes as long as all before it.
TablePlanner::Found TablePlanner::improved(std::vector<chained::TableAttempt> attempts,
                                           Found best) const {
  chained::TableAttempt* leading = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (chained::TableAttempt& attempt : attempts) {
    attempt.improve();
    Found made = with_filters_and_without(attempt.lay_out());
    if (leading == nullptr || made.best.cost < least) {
      leading = &attempt;
      least = made.best.cost;
    }
    if (made.best.cost < best.best.cost) best = std::move(made);
  }
  leading->refine();
  Found refined = with_filters_and_without(leading->lay_out());
  if (refined.best.cost < best.best.cost) {
    refined.plain = std::move(best.best);
    return refined;
  }
  best.ranges = std::move(refined.ranges);
  return best;
}

/// What equal tables save is spent on further cuts, as long as these leave enough of them.
Costed TablePlanner::with_more_shared(chained::TableSearch& search, chained::TableOptions options,
                                      Costed best) const {
  constexpr double kMuch = 1.1;
  constexpr int kMostRounds = 4;
  Costed tried = std::move(best);
  best = {};
  for (int round = 0; round < kMostRounds && !tried.tables.empty(); ++round) {
    const auto before = static_cast<double>(rules_in(tried.tables));
    tried.tables = share_equal_tables(std::move(tried.tables));
    const auto after = static_cast<double>(rules_in(tried.tables));
    const bool fits = after <= static_cast<double>(room_.most_rules);
    if (best.tables.empty() || (fits && tried.cost <= best.cost)) best = std::move(tried);
    const double spare = static_cast<double>(room_.most_rules) / after;
    if (before < kMuch * after || spare < kMuch) break;
    options.most_rules = static_cast<std::size_t>(before * spare);
    tried = with_filters_and_without(search.lay_out(options)).best;
  }
  return best;
}

Costed TablePlanner::without_way_back(bool single_table) {
  Costed best = costed(layout_in_rule_order(rules_of(rules_, problem_.rule)).tables);
  consider(single_table, best);
  // A chain cannot do better than if no precedence stood against the weights.
  if (!single_table && !(best.cost <= hoped_cost(problem_, missing_weight()))) consider(true, best);
  return best;
}

bool TablePlanner::suffices(const Costed& layout) const {
  return layout.cost < 0.5 * hoped_cost(problem_, 0.0);
}

Costed TablePlanner::costed(std::vector<LayoutTable> tables) const {
  Layout layout{split_tall(std::move(tables), room_.first_free, room_.limits.most_rules)};
  if (!keeps_to(layout, room_.limits)) return {std::move(layout.tables)};
  const LayoutCost cost = cost_of(layout, traffic_);
  return {std::move(layout.tables), cost.matchers_tried, cost.matchers_tried_p99};
}

TablePlanner::Found TablePlanner::with_filters_and_without(chained::LaidOut made) const {
  Found found{costed(std::move(made.tables)), {}, {}};
  if (!made.other.empty()) {
    found.other = costed(std::move(made.other));
    if (found.other.cost < found.best.cost) std::swap(found.best, found.other);
  }
  if (!made.ranges.empty()) found.ranges = costed(std::move(made.ranges));
  found.best.price = made.price;
  return found;
}

/// Where limits are not kept, with fewer and fewer tables.
void TablePlanner::consider(bool single_table, Costed& best) {
  TreeOptions options{room_.table, room_.first_free, room_.most_rules, room_.most_tables,
                      single_table};
  constexpr std::size_t kFewer = 4;
  options.most_tables = std::min(options.most_tables, room_.most_rules);
  while (true) {
    Tree tree = build_tree(rules_, problem_, entering_.packets, entering_.weight, options);
    least_chain_ = std::max(least_chain_, tree.least_matchers);
    Costed made = costed(std::move(tree.tables));
    const bool fits = made.cost < std::numeric_limits<double>::infinity();
    // Where nothing fits, what comes nearest shows what it would take.
    const bool nearer =
        !fits && recipes_of(made.tables, room_.limits) < recipes_of(best.tables, room_.limits);
    if (made.cost < best.cost || (nearer && !(best.cost < made.cost))) best = std::move(made);
    if (fits || single_table || options.most_tables == 0) return;
    options.most_tables /= kFewer;
  }
}

double TablePlanner::missing_weight() const {
  double all = 0.0;
  for (const double weight : problem_.weight) all += weight;
  return std::max(0.0, 1.0 - all);
}

}  // namespace greynic::optimizer
