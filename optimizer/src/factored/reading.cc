#include "src/factored/reading.h"

#include <algorithm>
#include <iterator>
#include <set>

namespace greynic::optimizer::factored {
namespace {

constexpr std::size_t kMostContexts = 4000;    ///< what rules say of all but the two fields
constexpr std::size_t kMostSteps = 4'000'000;  ///< of reading a table's rules bit by bit

std::size_t bits_in(const Match& match) {
  std::size_t bits = 0;
  for (const FieldMatch& part : match.fields()) {
    for (U128 left = part.bits; left != 0; left &= left - 1) ++bits;
  }
  return bits;
}

}  // namespace

Reading::Reading(const std::vector<const FlowRule*>& table, const Run& run)
    : first(bits_of(table, run, run.first)),
      second(bits_of(table, run, run.second)),
      table_(table),
      run_(run) {}

std::optional<std::vector<std::vector<Prefix>>> Reading::lists() {
  if (!find_contexts()) return std::nullopt;
  std::vector<std::vector<Prefix>> lists;
  for (const Context& context : contexts) {
    const std::uint32_t root = read_first(0, context.parts, {});
    if (steps_ > kMostSteps) return std::nullopt;
    auto list = prefixes_of(regions_, root, first, classes.leaf(kNothing));
    if (!list) return std::nullopt;
    lists.push_back(std::move(*list));
  }
  return lists;
}

FieldBits Reading::bits_of(const std::vector<const FlowRule*>& table, const Run& run,
                           MatchField field) {
  U128 all = 0;
  for (std::size_t i = run.begin; i < run.end; ++i) all |= part_of(table[i]->match, field).bits;
  return field_bits(all);
}

void Reading::find_keys() {
  for (std::size_t i = run_.begin; i < run_.end; ++i) {
    effect.push_back(effects.number(table_[i]->actions));
    actions.try_emplace(effect.back(), table_[i]->actions);
  }
  one_effect = actions.size() == 1;
  std::map<Item, std::uint32_t> known;
  for (std::size_t i = run_.begin; i < run_.end; ++i) {
    const FieldMatch part = part_of(table_[i]->match, run_.second);
    const Item item{part.value, part.bits, effect[i - run_.begin]};
    auto key = static_cast<std::uint32_t>(items.size());
    if (one_effect) key = known.try_emplace(item, key).first->second;
    if (key == items.size()) items.push_back(item);
    key_of_rule.push_back(key);
  }
}

bool Reading::find_contexts() {
  find_keys();
  std::map<Match, std::vector<std::size_t>> rules;
  for (std::size_t i = run_.begin; i < run_.end; ++i) {
    rules[without(without(table_[i]->match, run_.first), run_.second)].push_back(i);
  }
  if (rules.size() > kMostContexts) return false;
  for (const auto& entry : rules) contexts.push_back({entry.first, {}, {}});
  // The narrow ones first: these are told apart before those that hold them.
  std::ranges::stable_sort(contexts, std::greater{},
                           [](const Context& context) { return bits_in(context.match); });
  for (Context& context : contexts) {
    std::map<std::pair<U128, U128>, std::vector<std::uint32_t>> parts;
    for (const auto& [match, members] : rules) {
      if (!match.overlaps(context.match)) continue;
      const bool holds = match.contains(context.match);
      if (!holds && !context.match.contains(match)) return false;
      if (!holds) continue;
      for (const std::size_t i : members) {
        const FieldMatch part = part_of(table_[i]->match, run_.first);
        parts[{part.value, part.bits}].push_back(static_cast<std::uint32_t>(i));
      }
    }
    for (const auto& [part, members] : parts) {
      std::set<std::uint32_t> keys;
      for (const std::uint32_t i : members) keys.insert(key_of_rule[i - run_.begin]);
      context.parts.push_back({part.first, part.second, {keys.begin(), keys.end()}});
      context.rules.push_back(members);
    }
  }
  return true;
}

std::uint32_t Reading::read_first(unsigned bit, const std::vector<Part>& parts,
                                  std::vector<std::uint32_t> held) {
  steps_ += parts.size() + 1;
  if (steps_ > kMostSteps) return regions_.leaf(kNothing);
  const U128 below = ~first.first(bit);
  std::vector<Part> open;
  for (const Part& part : parts) {
    if ((part.bits & below) != 0) {
      open.push_back(part);
      continue;
    }
    std::vector<std::uint32_t> both;
    std::ranges::set_union(held, part.keys, std::back_inserter(both));
    held = std::move(both);
  }
  if (one_effect) {
    std::erase_if(open, [&](const Part& part) { return std::ranges::includes(held, part.keys); });
  }
  if (open.empty()) return regions_.leaf(class_of(held));
  std::uint32_t sides[2];
  const U128 here = first.bit[bit];
  for (const unsigned side : {0U, 1U}) {
    std::vector<Part> there;
    for (const Part& part : open) {
      if ((part.bits & here) != 0 && ((part.value & here) != 0) != (side == 1)) continue;
      there.push_back(part);
    }
    sides[side] = read_first(bit + 1, there, held);
  }
  return regions_.both(sides[0], sides[1]);
}

std::uint32_t Reading::class_of(const std::vector<std::uint32_t>& keys) {
  const auto known = class_of_keys_.find(keys);
  if (known != class_of_keys_.end()) return known->second;
  const std::uint32_t root = read_second(0, keys);
  class_of_keys_.emplace(keys, root);
  return root;
}

std::uint32_t Reading::read_second(unsigned bit, const std::vector<std::uint32_t>& keys) {
  steps_ += keys.size() + 1;
  if (steps_ > kMostSteps) return classes.leaf(kNothing);
  const U128 below = ~second.first(bit);
  std::vector<std::uint32_t> open;
  std::uint32_t decided = kNothing;
  for (const std::uint32_t key : keys) {
    open.push_back(key);
    if ((items[key].bits & below) != 0) continue;
    decided = items[key].effect;
    open.pop_back();
    break;  // none behind it counts
  }
  const bool settled = decided != kNothing && std::ranges::all_of(open, [&](std::uint32_t key) {
                         return items[key].effect == decided;
                       });
  if (open.empty() || settled) return classes.leaf(decided);
  if (decided != kNothing) open.push_back(keys[open.size()]);  // for what those before it leave
  std::uint32_t sides[2];
  const U128 here = second.bit[bit];
  for (const unsigned side : {0U, 1U}) {
    std::vector<std::uint32_t> there;
    for (const std::uint32_t key : open) {
      const Item& item = items[key];
      if ((item.bits & here) != 0 && ((item.value & here) != 0) != (side == 1)) continue;
      there.push_back(key);
    }
    sides[side] = read_second(bit + 1, there);
  }
  return classes.both(sides[0], sides[1]);
}

}  // namespace greynic::optimizer::factored
