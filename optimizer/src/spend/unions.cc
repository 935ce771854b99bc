#include "src/spend/unions.h"

#include <algorithm>
#include <limits>

#include "src/spend/written_out.h"

namespace greynic::optimizer::spend {
namespace {

using chained::kNowhere;
using chained::PlanEntry;
using chained::PlanMatcher;

constexpr std::size_t kMostMatchers = 300;  // of a table; those behind stay as they are
constexpr int kMostBits = 4;                // that an entry is written out for
constexpr int kMostJumpBits = 2;            // that a jump is
constexpr double kFewEntries = 16.0;        // see Uniting; as verify's kFewToMiss
constexpr std::int8_t kUnknown = -1;

double written_out(const PlanMatcher& matcher, int bits) {
  return static_cast<double>(matcher.entries.size() << static_cast<unsigned>(bits));
}

bool jumps(const PlanMatcher& matcher) {
  return std::ranges::any_of(matcher.entries,
                             [](const PlanEntry& entry) { return entry.table != kNowhere; });
}

}  // namespace

Unions::Unions(chained::Plan& plan, Entrances& entrances, const std::vector<std::uint32_t>& effect,
               bool few_stay_few)
    : plan_(plan),
      entrances_(entrances),
      effect_(effect),
      few_stay_few_(few_stay_few),
      tables_(plan.size()) {
  for (std::uint32_t table = 0; table < plan.size(); ++table) {
    look_at(table);
    offer(table, std::numeric_limits<double>::infinity());
  }
}

void Unions::look_at(std::uint32_t number) {
  Table& table = tables_[number];
  const auto& matchers = plan_[number].matchers;
  table.weight.resize(std::min(matchers.size(), kMostMatchers));
  for (std::size_t i = 0; i < table.size(); ++i) table.weight[i] = weight_of(matchers[i]);
  table.order.assign(table.size() * table.size(), kUnknown);
  table.price.clear();
  ++table.version;
}

bool Unions::may_swap(std::uint32_t number, std::size_t a, std::size_t b) {
  Table& table = tables_[number];
  std::int8_t& known = table.order[std::min(a, b) * table.size() + std::max(a, b)];
  const auto& matchers = plan_[number].matchers;
  if (known == kUnknown) known = spend::may_swap(matchers[a], matchers[b], effect_) ? 1 : 0;
  return known != 0;
}

void Unions::count_entrances(const PlanMatcher& matcher, std::int32_t by) {
  for (const PlanEntry& entry : matcher.entries) {
    if (entry.table != kNowhere) entrances_[entry.table] += static_cast<std::uint32_t>(by);
  }
}

void Unions::find_reach(std::uint32_t number, std::vector<std::size_t>& up,
                        std::vector<std::size_t>& down) {
  const std::size_t count = tables_[number].size();
  up.resize(count);
  down.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    for (up[i] = i; up[i] > 0 && may_swap(number, up[i] - 1, i);) --up[i];
    for (down[i] = i; down[i] + 1 < count && may_swap(number, i, down[i] + 1);) ++down[i];
  }
}

void Unions::offer(std::uint32_t number, double room) {
  constexpr int kMostTries = 16;
  Table& table = tables_[number];
  const auto& matchers = plan_[number].matchers;
  if (table.size() < 2) return;
  for (int tries = 0; tries < kMostTries; ++tries) {
    const Pair best = best_pair(number, room);
    if (!(best.offer.worth > 0.0)) return;
    const std::pair<std::size_t, std::size_t> both = {best.first, best.second};
    if (!has_ranges(matchers[best.first]) || table.price.contains(both)) {
      offers_.push(best);
      return;
    }
    // Entries that give way may become more, and neighbours one.
    const PlanMatcher& first = matchers[best.first];
    const PlanMatcher& second = matchers[best.second];
    const std::optional<PlanMatcher> one = as_one(first, second, effect_);
    double& price = table.price[both];
    price = std::numeric_limits<double>::infinity();
    if (one) {
      price = static_cast<double>(one->entries.size());
      price -= static_cast<double>(first.entries.size() + second.entries.size());
    }
  }
}

/// The best of all pairs. Nothing in between may have to stay where it is, seen from the one that moves.
Unions::Pair Unions::best_pair(std::uint32_t number, double room) {
  const Table& table = tables_[number];
  const auto& matchers = plan_[number].matchers;
  std::vector<double> behind(table.size() + 1, plan_[number].missing);
  for (std::size_t i = table.size(); i < matchers.size(); ++i) {
    behind.back() += weight_of(matchers[i]);
  }
  for (std::size_t i = table.size(); i-- > 0;) behind[i] = behind[i + 1] + table.weight[i];
  std::vector<std::size_t> up;
  std::vector<std::size_t> down;
  find_reach(number, up, down);
  Pair best;
  for (std::size_t i = 0; i + 1 < table.size(); ++i) {
    for (std::size_t j = i + 1; j < table.size(); ++j) {
      const auto apart = static_cast<double>(j - i);
      const bool may_up = up[j] <= i + 1;
      const bool may_down = down[i] + 1 >= j;
      if (!may_up && !may_down) continue;
      const double by_up = may_up ? table.weight[j] * apart + behind[j + 1] : 0.0;
      const double by_down = may_down ? behind[i + 1] - table.weight[i] * (apart - 1.0) : 0.0;
      const double spared = std::max(by_up, by_down);
      if (!(spared > best.offer.worth * 0.5)) continue;
      if (matchers[i].as_range != matchers[j].as_range) continue;
      const int more_first = bits_beyond(matchers[j].mask, matchers[i].mask);
      const int more_second = bits_beyond(matchers[i].mask, matchers[j].mask);
      if (more_first > kMostBits || more_second > kMostBits) continue;
      if ((more_first > kMostJumpBits && jumps(matchers[i])) ||
          (more_second > kMostJumpBits && jumps(matchers[j])))
        continue;
      const auto of_first = static_cast<double>(matchers[i].entries.size());
      const auto of_second = static_cast<double>(matchers[j].entries.size());
      const double of_both =
          written_out(matchers[i], more_first) + written_out(matchers[j], more_second);
      const bool were_few = std::max(of_first, of_second) <= kFewEntries;
      if (few_stay_few_ && were_few && of_both > kFewEntries) continue;
      const auto known = table.price.find({i, j});
      const double price =
          known != table.price.end() ? known->second : of_both - of_first - of_second;
      const Offer offered = offer_of(spared, price, number);
      if (price > room || !(offered.worth > best.offer.worth)) continue;
      best = {offered, i, j, by_up >= by_down, table.version};
    }
  }
  return best;
}

std::optional<Offer> Unions::best(double room) {
  while (!offers_.empty()) {
    const Pair top = offers_.top();
    const bool stands = top.version == tables_[top.offer.table].version;
    if (stands && top.offer.price <= room) return top.offer;
    offers_.pop();
    if (stands) offer(top.offer.table, room);
  }
  return std::nullopt;
}

Taken Unions::take() {
  const Pair pair = offers_.top();
  offers_.pop();
  const std::size_t before = entries_in(plan_[pair.offer.table]);
  unite(pair.offer.table, pair);
  const std::size_t after = entries_in(plan_[pair.offer.table]);
  return {static_cast<double>(after) - static_cast<double>(before), pair.offer.table};
}

/// Up to where heavier matchers stand, or some that must stay before.
void Unions::unite(std::uint32_t number, const Pair& pair) {
  Table& table = tables_[number];
  auto& matchers = plan_.edit(number).matchers;
  const std::size_t count = table.size();
  std::vector<std::size_t> order;  // matchers by their places from now on
  for (std::size_t i = 0; i < count; ++i) {
    if (i != pair.first && i != pair.second) order.push_back(i);
  }
  const double weight = table.weight[pair.first] + table.weight[pair.second];
  std::size_t place = pair.up ? pair.first : pair.second - 1;
  while (place > 0 && table.weight[order[place - 1]] < weight &&
         may_swap(number, order[place - 1], pair.first) &&
         may_swap(number, order[place - 1], pair.second)) {
    --place;
  }
  order.insert(order.begin() + static_cast<std::ptrdiff_t>(place), pair.first);

  const auto known = [&](std::size_t a, std::size_t b) {
    return table.order[std::min(a, b) * count + std::max(a, b)];
  };
  Table after;
  after.version = table.version + 1;
  after.order.assign(order.size() * order.size(), kUnknown);
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (std::size_t j = i + 1; j < order.size(); ++j) {
      std::int8_t& now = after.order[i * order.size() + j];
      now = known(order[i], order[j]);
      if (i != place && j != place) continue;
      const std::int8_t other = known(order[i == place ? j : i], pair.second);
      now = now == 0 || other == 0 ? std::int8_t{0} : std::min(now, other);
    }
  }
  std::optional<PlanMatcher> both = as_one(matchers[pair.first], matchers[pair.second], effect_);
  count_entrances(matchers[pair.first], -1);
  count_entrances(matchers[pair.second], -1);
  count_entrances(*both, 1);
  matchers[pair.first] = std::move(*both);
  table.weight[pair.first] = weight;
  std::vector<PlanMatcher> placed;
  for (const std::size_t i : order) {
    placed.push_back(std::move(matchers[i]));
    after.weight.push_back(table.weight[i]);
  }
  for (std::size_t i = count; i < matchers.size(); ++i) placed.push_back(std::move(matchers[i]));
  matchers = std::move(placed);
  table = std::move(after);
}

}  // namespace greynic::optimizer::spend
