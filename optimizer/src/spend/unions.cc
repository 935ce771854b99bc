#include "src/spend/unions.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <unordered_map>

#include "src/key_table.h"

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

/// Bits of `a` that `b` does not look at.
int bits_beyond(const std::vector<Word>& a, const std::vector<Word>& b) {
  int count = 0;
  for (std::size_t w = 0; w < a.size(); ++w) count += std::popcount(a[w] & ~b[w]);
  return count;
}

double written_out(const PlanMatcher& matcher, int bits) {
  return static_cast<double>(matcher.entries.size() << static_cast<unsigned>(bits));
}

bool jumps(const PlanMatcher& matcher) {
  return std::ranges::any_of(matcher.entries,
                             [](const PlanEntry& entry) { return entry.table != kNowhere; });
}

bool has_ranges(const PlanMatcher& matcher) {
  return std::ranges::any_of(matcher.as_range, [](bool ranged) { return ranged; });
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
  ++table.version;
}

/// What two matchers have in common is hashed: of two that only look alike nothing is lost.
bool Unions::may_swap(std::uint32_t number, std::size_t a, std::size_t b) {
  Table& table = tables_[number];
  std::int8_t& known = table.order[std::min(a, b) * table.size() + std::max(a, b)];
  if (known != kUnknown) return known != 0;
  const PlanMatcher* few = &plan_[number].matchers[a];
  const PlanMatcher* many = &plan_[number].matchers[b];
  known = 0;
  if (has_ranges(*few) || has_ranges(*many)) return false;
  if (few->entries.size() > many->entries.size()) std::swap(few, many);
  std::vector<Word> common = few->mask;
  for (std::size_t w = 0; w < common.size(); ++w) common[w] &= many->mask[w];
  const auto does = [&](const PlanEntry& entry) -> std::uint64_t {
    return entry.unit != kNowhere ? effect_[entry.unit] : std::uint64_t{1} << 32 | entry.table;
  };
  std::unordered_map<std::uint64_t, std::uint64_t> does_by_key;
  for (std::size_t i = 0; i < few->entries.size(); ++i) {
    const auto [at, added] = does_by_key.emplace(
        hash_under(few->values[i], common.data(), common.size()), does(few->entries[i]));
    if (!added && at->second != does(few->entries[i])) at->second = ~std::uint64_t{0};
  }
  for (std::size_t i = 0; i < many->entries.size(); ++i) {
    const auto at = does_by_key.find(hash_under(many->values[i], common.data(), common.size()));
    if (at != does_by_key.end() && at->second != does(many->entries[i])) return false;
  }
  known = 1;
  return true;
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

/// The best of all pairs. Nothing in between may have to stay where it is, seen from the one that moves.
void Unions::offer(std::uint32_t number, double room) {
  const Table& table = tables_[number];
  const auto& matchers = plan_[number].matchers;
  if (table.size() < 2) return;
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
      const int more_first = bits_beyond(matchers[j].mask, matchers[i].mask);
      const int more_second = bits_beyond(matchers[i].mask, matchers[j].mask);
      if (more_first > kMostBits || more_second > kMostBits) continue;
      if ((more_first > kMostJumpBits && jumps(matchers[i])) ||
          (more_second > kMostJumpBits && jumps(matchers[j])))
        continue;
      if (has_ranges(matchers[i]) || has_ranges(matchers[j])) continue;
      const auto of_first = static_cast<double>(matchers[i].entries.size());
      const auto of_second = static_cast<double>(matchers[j].entries.size());
      const double of_both =
          written_out(matchers[i], more_first) + written_out(matchers[j], more_second);
      const bool were_few = std::max(of_first, of_second) <= kFewEntries;
      if (few_stay_few_ && were_few && of_both > kFewEntries) continue;
      const double price = of_both - of_first - of_second;
      const Offer offered = offer_of(spared, price, number);
      if (price > room || !(offered.worth > best.offer.worth)) continue;
      best = {offered, i, j, by_up >= by_down, table.version};
    }
  }
  if (best.offer.worth > 0.0) offers_.push(best);
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

/// All entries of both, for each value of the bits that they do not look at. Of two of the same value the earlier
/// decides.
PlanMatcher Unions::written_out_both(const PlanMatcher& first, const PlanMatcher& second) {
  const std::size_t words = first.mask.size();
  PlanMatcher both(first.mask.data(), words);
  for (std::size_t w = 0; w < words; ++w) both.mask[w] |= second.mask[w];
  std::unordered_map<std::vector<Word>, std::size_t, RowHash> known;
  for (const PlanMatcher* given : {&first, &second}) {
    std::vector<std::pair<std::size_t, Word>> bits;
    for (std::size_t w = 0; w < words; ++w) {
      for (Word open = both.mask[w] & ~given->mask[w]; open != 0; open &= open - 1) {
        bits.emplace_back(w, open & (~open + 1));
      }
    }
    const std::size_t choices = std::size_t{1} << bits.size();
    for (std::size_t i = 0; i < given->entries.size(); ++i) {
      PlanEntry entry = given->entries[i];
      entry.weight /= static_cast<double>(choices);
      if (entry.table != kNowhere) --entrances_[entry.table];
      for (std::size_t choice = 0; choice < choices; ++choice) {
        std::vector<Word> value(given->values[i], given->values[i] + words);
        for (std::size_t bit = 0; bit < bits.size(); ++bit) {
          if ((choice >> bit & 1) != 0) value[bits[bit].first] |= bits[bit].second;
        }
        const auto [at, added] = known.emplace(std::move(value), both.entries.size());
        if (!added) {
          both.entries[at->second].weight += entry.weight;
          continue;
        }
        both.values.add(at->first.data());
        both.entries.push_back(entry);
        if (entry.table != kNowhere) ++entrances_[entry.table];
      }
    }
  }
  return both;
}

/// Up to where heavier matchers stand, or some that must stay before.
void Unions::unite(std::uint32_t number, const Pair& pair) {
  Table& table = tables_[number];
  auto& matchers = plan_[number].matchers;
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
  matchers[pair.first] = written_out_both(matchers[pair.first], matchers[pair.second]);
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
