#include "src/ranged/matchers.h"

#include <algorithm>

namespace greynic::optimizer::ranged {

using chained::PlanEntry;
using chained::PlanMatcher;
using chained::Units;

PlanMatcher matcher_on(const Units& units, const Word* mask) {
  const std::size_t words = units.ranged.size();
  PlanMatcher matcher(mask, words);
  for (std::size_t w = 0; w < words; ++w) matcher.mask[w] &= ~units.ranged[w];
  matcher.as_range = units.as_range;
  return matcher;
}

PlanEntry& add_entry(const Units& units, const Word* value, const Word* mask,
                     PlanMatcher& matcher) {
  Word* const bits = matcher.values.add();
  for (std::size_t w = 0; w < matcher.mask.size(); ++w) bits[w] = value[w] & matcher.mask[w];
  PlanEntry& entry = matcher.entries.emplace_back();
  for (std::size_t i = 0; i < kPortFields; ++i) {
    if (!units.as_range[i]) continue;
    const std::uint32_t fixed = units.slot[i].get(mask);
    entry.spans[i] = units.code[i].span_of({units.slot[i].get(value), fixed});
  }
  return entry;
}

PlanMatcher with_masks(const Units& units, const PlanMatcher& matcher) {
  PlanMatcher written = matcher;
  std::array<std::uint32_t, kPortFields> mask{};
  for (std::size_t i = 0; i < kPortFields; ++i) {
    if (!matcher.as_range[i]) continue;
    OneLength length;
    for (const PlanEntry& entry : matcher.entries) length.add(entry.spans[i]);
    written.as_range[i] = !length.holds();
    if (length.holds()) mask[i] = length.mask(units.slot[i].all());
    if (mask[i] != 0) units.slot[i].set(mask[i], written.mask.data());
  }
  if (mask[0] == 0 && mask[1] == 0) return written;
  written.values = Rows(matcher.mask.size());
  for (std::size_t entry = 0; entry < matcher.entries.size(); ++entry) {
    Word* const value = written.values.add();
    std::copy_n(matcher.values[entry], matcher.mask.size(), value);
    for (std::size_t i = 0; i < kPortFields; ++i) {
      if (mask[i] != 0) units.slot[i].set(matcher.entries[entry].spans[i].low & mask[i], value);
    }
  }
  return written;
}

void allow_ranges(const Units& units, chained::Plan& plan) {
  for (std::size_t number = 0; number < plan.size(); ++number) {
    chained::PlanTable& table = plan.edit(number);
    for (PlanMatcher& matcher : table.matchers) {
      for (std::size_t i = 0; i < kPortFields; ++i) {
        const chained::Slot& slot = units.slot[i];
        const std::uint32_t fixed = slot.get(matcher.mask.data());
        const std::uint32_t open = slot.all() & ~fixed;
        const bool prefix = (open & (open + 1)) == 0;
        matcher.as_range[i] = units.may_range[i] && prefix;
        if (!matcher.as_range[i]) {
          for (PlanEntry& entry : matcher.entries) entry.spans[i] = {0, slot.all()};
          continue;
        }
        Rows values(matcher.mask.size());
        for (std::size_t k = 0; k < matcher.entries.size(); ++k) {
          Word* const bits = values.add();
          std::copy_n(matcher.values[k], matcher.mask.size(), bits);
          const std::uint32_t low = slot.get(bits);
          slot.set(0, bits);
          matcher.entries[k].spans[i] = {low, low | open};
        }
        matcher.values = std::move(values);
        slot.set(0, matcher.mask.data());
      }
    }
  }
}

}  // namespace greynic::optimizer::ranged
