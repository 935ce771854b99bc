#include "src/spend/written_out.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "src/key_table.h"

namespace greynic::optimizer::spend {
namespace {

using chained::kNowhere;
using chained::PlanEntry;
using chained::PlanMatcher;
using ranged::Spans;

constexpr std::uint32_t kNone = 0xffffffff;
constexpr std::size_t kFewPairs = 128;  // of entries: are held against each other

std::uint64_t what_does(const PlanEntry& entry, const std::vector<std::uint32_t>& effect) {
  return entry.unit != kNowhere ? effect[entry.unit] : std::uint64_t{1} << 32 | entry.table;
}

/// Entries of one key, as a list that goes on at `next` of each.
template <typename Key, typename Hash = std::hash<Key>>
class ByKey {
 public:
  /// The entry that was put there last, kNone where none was.
  std::uint32_t& last(const Key& key) { return last_.try_emplace(key, kNone).first->second; }
  [[nodiscard]] std::uint32_t find(const Key& key) const {
    const auto at = last_.find(key);
    return at == last_.end() ? kNone : at->second;
  }
  void put(std::uint32_t& last, std::uint32_t entry) {
    next_.resize(entry + 1, kNone);
    next_[entry] = last;
    last = entry;
  }
  [[nodiscard]] std::uint32_t next(std::uint32_t entry) const { return next_[entry]; }

 private:
  std::unordered_map<Key, std::uint32_t, Hash> last_;
  std::vector<std::uint32_t> next_;
};

/// As may_swap, where ports are compared as ranges.
bool may_swap_ranges(const PlanMatcher& few, const PlanMatcher& many,
                     const std::vector<Word>& common, const std::vector<std::uint32_t>& effect) {
  constexpr std::size_t kMostLooks = 16;  // for an entry, on the mean
  std::size_t looks = kMostLooks * (few.entries.size() + many.entries.size());
  ByKey<std::uint64_t> by_key;
  for (std::uint32_t i = 0; i < few.entries.size(); ++i) {
    by_key.put(by_key.last(hash_under(few.values[i], common.data(), common.size())), i);
  }
  for (std::size_t i = 0; i < many.entries.size(); ++i) {
    const PlanEntry& entry = many.entries[i];
    const std::uint64_t does = what_does(entry, effect);
    std::uint32_t at = by_key.find(hash_under(many.values[i], common.data(), common.size()));
    for (; at != kNone; at = by_key.next(at)) {
      if (looks-- == 0) return false;
      const PlanEntry& other = few.entries[at];
      if (!disjoint(entry.spans, other.spans) && what_does(other, effect) != does) return false;
    }
  }
  return true;
}

/// Makes an earlier entry of the same bits one with this, where their boxes are one.
template <typename Known>
bool join_adjacent(PlanMatcher& both, const Known& known, std::uint32_t last,
                   const PlanEntry& entry, const Spans& box) {
  for (std::uint32_t at = last; at != kNone; at = known.next(at)) {
    PlanEntry& earlier = both.entries[at];
    if (earlier.unit != entry.unit || earlier.table != entry.table) continue;
    for (std::size_t i = 0; i < box.size(); ++i) {
      if (earlier.spans[1 - i] != box[1 - i]) continue;
      ranged::Span& span = earlier.spans[i];
      if (span.high + 1 != box[i].low && box[i].high + 1 != span.low) continue;
      span = {std::min(span.low, box[i].low), std::max(span.high, box[i].high)};
      earlier.weight += entry.weight;
      return true;
    }
  }
  return false;
}

}  // namespace

int bits_beyond(const std::vector<Word>& a, const std::vector<Word>& b) {
  int count = 0;
  for (std::size_t w = 0; w < a.size(); ++w) count += std::popcount(a[w] & ~b[w]);
  return count;
}

bool has_ranges(const PlanMatcher& matcher) {
  return std::ranges::any_of(matcher.as_range, [](bool ranged) { return ranged; });
}

bool may_swap(const PlanMatcher& a, const PlanMatcher& b,
              const std::vector<std::uint32_t>& effect) {
  const PlanMatcher* few = &a;
  const PlanMatcher* many = &b;
  if (few->entries.size() > many->entries.size()) std::swap(few, many);
  std::vector<Word> common = few->mask;
  for (std::size_t w = 0; w < common.size(); ++w) common[w] &= many->mask[w];
  if (has_ranges(a) || has_ranges(b)) return may_swap_ranges(*few, *many, common, effect);
  if (few->entries.size() * many->entries.size() <= kFewPairs) {
    for (std::size_t i = 0; i < few->entries.size(); ++i) {
      const std::uint64_t does = what_does(few->entries[i], effect);
      for (std::size_t j = 0; j < many->entries.size(); ++j) {
        if (matches(few->values[i], common.data(), many->values[j], common.size()) &&
            what_does(many->entries[j], effect) != does) {
          return false;
        }
      }
    }
    return true;
  }
  std::unordered_map<std::uint64_t, std::uint64_t> does_by_key;
  for (std::size_t i = 0; i < few->entries.size(); ++i) {
    const std::uint64_t does = what_does(few->entries[i], effect);
    const auto [at, added] =
        does_by_key.emplace(hash_under(few->values[i], common.data(), common.size()), does);
    if (!added && at->second != does) at->second = ~std::uint64_t{0};
  }
  for (std::size_t i = 0; i < many->entries.size(); ++i) {
    const auto at = does_by_key.find(hash_under(many->values[i], common.data(), common.size()));
    if (at != does_by_key.end() && at->second != what_does(many->entries[i], effect)) return false;
  }
  return true;
}

std::optional<PlanMatcher> as_one(const PlanMatcher& first, const PlanMatcher& second,
                                  const std::vector<std::uint32_t>& effect) {
  constexpr std::size_t kMostBoxes = 4;   // that an entry may become to give way
  constexpr std::size_t kMostLooks = 64;  // for an entry, at entries of the same bits
  const std::size_t words = first.mask.size();
  PlanMatcher both(first.mask.data(), words);
  both.as_range = first.as_range;
  for (std::size_t w = 0; w < words; ++w) both.mask[w] |= second.mask[w];
  ByKey<std::vector<Word>, RowHash> known;
  std::vector<Word> value;
  std::vector<Spans> left;
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
      const std::uint64_t does = what_does(entry, effect);
      for (std::size_t choice = 0; choice < choices; ++choice) {
        value.assign(given->values[i], given->values[i] + words);
        for (std::size_t bit = 0; bit < bits.size(); ++bit) {
          if ((choice >> bit & 1) != 0) value[bits[bit].first] |= bits[bit].second;
        }
        std::uint32_t& last = known.last(value);
        left.assign(1, entry.spans);
        std::size_t looks = 0;
        for (std::uint32_t at = last; at != kNone && !left.empty(); at = known.next(at)) {
          if (++looks > kMostLooks) return std::nullopt;
          PlanEntry& earlier = both.entries[at];
          std::vector<Spans> rest = without(left, {earlier.spans});
          if (rest.empty()) earlier.weight += entry.weight;
          if (rest.empty() || what_does(earlier, effect) != does) left = std::move(rest);
        }
        if (left.size() > kMostBoxes) return std::nullopt;
        if (left.size() == 1 && join_adjacent(both, known, last, entry, left.front())) continue;
        for (const Spans& box : left) {
          both.values.add(value.data());
          both.entries.push_back(entry);
          both.entries.back().spans = box;
          both.entries.back().weight /= static_cast<double>(left.size());
          known.put(last, static_cast<std::uint32_t>(both.entries.size() - 1));
        }
      }
    }
  }
  return both;
}

}  // namespace greynic::optimizer::spend
