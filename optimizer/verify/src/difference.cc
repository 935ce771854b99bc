#include "difference.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

namespace greynic::verify {
namespace {

using List = std::vector<std::uint32_t>;
using Bits = std::uint64_t;

constexpr std::size_t kSmall = 200;     // lists this short are compared rule by rule at once
constexpr std::size_t kLargest = 3000;  // longer ones never: the comparison is quadratic
constexpr double kPoorSplit = 0.85;     // a half that keeps more than this share gains little
constexpr std::uint64_t kRegion = 100;  // comparisons that a region is worth besides its lists

class Search {
 public:
  Search(const Pool& pool, const Cube& whole, SearchLimits& limits)
      : pool_(pool), region_(whole), limits_(limits), words_(pool.words) {}

  Result<std::optional<Difference>> run(std::uint32_t first_table) {
    const auto table = pool_.tables.find(first_table);
    const bool equal =
        compare(pool_.rules, table == pool_.tables.end() ? List{} : table->second, 1.0, 1.0);
    if (failure_) return tl::unexpected<Error>(*failure_);
    if (equal) return std::optional<Difference>{};
    return std::optional<Difference>{found_};
  }

 private:
  [[nodiscard]] bool meets_region(std::uint32_t entry) const {
    const Bits* value = pool_.value(entry);
    const Bits* fixed = pool_.fixed(entry);
    for (std::size_t w = 0; w < words_; ++w) {
      if (((value[w] ^ region_.value[w]) & fixed[w] & region_.fixed[w]) != 0) return false;
    }
    return true;
  }

  [[nodiscard]] bool covers_region(std::uint32_t entry) const {
    const Bits* fixed = pool_.fixed(entry);
    for (std::size_t w = 0; w < words_; ++w) {
      if ((fixed[w] & ~region_.fixed[w]) != 0) return false;
    }
    return true;  // of entries that meet the region
  }

  /// What of a list can still match in the region; nothing after the first that covers it.
  [[nodiscard]] List cut(const List& list) const {
    List result;
    for (const std::uint32_t entry : list) {
      if (!meets_region(entry)) continue;
      result.push_back(entry);
      if (covers_region(entry)) break;
    }
    return result;
  }

  /// Replaces a jump that every packet of the region takes by the table that it leads to.
  bool follow(List& list) {
    for (int jumps = 0; !list.empty(); ++jumps) {
      const Entry& first = pool_.entries[list.front()];
      if (first.jump == kNoJump || !covers_region(list.front())) return true;
      if (jumps == kMostJumps) {
        failure_ = Error{ErrorCode::kUnsupported, "the jumps of the layout form a loop"};
        return false;
      }
      const auto table = pool_.tables.find(first.jump);
      list = table == pool_.tables.end() ? List{} : cut(table->second);
    }
    return true;
  }

  [[nodiscard]] bool decided(const List& list) const {
    return list.empty() || covers_region(list.front());
  }
  [[nodiscard]] std::uint32_t effect_of_first(const List& list) const {
    return list.empty() ? kMiss : pool_.entries[list.front()].effect;
  }

  [[nodiscard]] bool has_jump(const List& list) const {
    return std::any_of(list.begin(), list.end(),
                       [&](std::uint32_t entry) { return pool_.entries[entry].jump != kNoJump; });
  }

  // Within the region an entry looks at its own free-standing bits only.
  [[nodiscard]] bool contains(std::uint32_t wide, std::uint32_t narrow) const {
    const Bits* wide_value = pool_.value(wide);
    const Bits* wide_fixed = pool_.fixed(wide);
    const Bits* value = pool_.value(narrow);
    const Bits* fixed = pool_.fixed(narrow);
    for (std::size_t w = 0; w < words_; ++w) {
      const Bits open = wide_fixed[w] & ~region_.fixed[w];
      if ((open & ~fixed[w]) != 0 || ((wide_value[w] ^ value[w]) & open) != 0) return false;
    }
    return true;
  }
  [[nodiscard]] bool disjoint(std::uint32_t a, std::uint32_t b) const {
    const Bits* a_value = pool_.value(a);
    const Bits* a_fixed = pool_.fixed(a);
    const Bits* b_value = pool_.value(b);
    const Bits* b_fixed = pool_.fixed(b);
    for (std::size_t w = 0; w < words_; ++w) {
      if (((a_value[w] ^ b_value[w]) & a_fixed[w] & b_fixed[w] & ~region_.fixed[w]) != 0) {
        return true;
      }
    }
    return false;
  }
  [[nodiscard]] Bits fingerprint(std::uint32_t entry) const {
    Bits hash = pool_.entries[entry].effect;
    for (std::size_t w = 0; w < words_; ++w) {
      const Bits open = pool_.fixed(entry)[w] & ~region_.fixed[w];
      for (const Bits part : {pool_.value(entry)[w] & open, open}) {
        hash = (hash ^ part) * 0x2545f4914f6cdd1dULL;
        hash ^= hash >> 29;
      }
    }
    return hash;
  }

  /// The list without entries that change nothing: those that an earlier one contains, and those
  /// that a later one contains that does the same, with nothing else meeting them in between.
  [[nodiscard]] List deciding(const List& list) const {
    List kept = not_hidden(list);
    for (std::size_t i = kept.size(); i-- > 0;) {
      if (has_heir(kept, i)) kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return kept;
  }

  [[nodiscard]] bool has_heir(const List& list, std::size_t i) const {
    const std::uint32_t effect = pool_.entries[list[i]].effect;
    for (std::size_t j = i + 1; j < list.size(); ++j) {
      const bool same = pool_.entries[list[j]].effect == effect;
      if (same && contains(list[j], list[i])) return true;
      if (!same && !disjoint(list[j], list[i])) return false;
    }
    return false;
  }

  [[nodiscard]] List not_hidden(const List& list) const {
    List result;
    for (const std::uint32_t entry : list) {
      const bool hidden = std::any_of(result.begin(), result.end(), [&](std::uint32_t earlier) {
        return contains(earlier, entry);
      });
      if (!hidden) result.push_back(entry);
    }
    return result;
  }

  /// Both sides hold the same rules here, and those that changed places are disjoint or of one
  /// effect. False says nothing.
  [[nodiscard]] bool same_but_for_harmless_order(const List& rules, const List& layout) const {
    const List a = deciding(rules);
    const List b = deciding(layout);
    if (a.size() != b.size()) return false;
    std::unordered_multimap<Bits, std::size_t> places;  // in a
    for (std::size_t i = 0; i < a.size(); ++i) places.emplace(fingerprint(a[i]), i);
    std::vector<std::size_t> place_of(b.size());
    for (std::size_t i = 0; i < b.size(); ++i) {
      const auto [begin, end] = places.equal_range(fingerprint(b[i]));
      const auto twin = std::find_if(begin, end, [&](const auto& candidate) {
        return pool_.entries[a[candidate.second]].effect == pool_.entries[b[i]].effect &&
               contains(a[candidate.second], b[i]) && contains(b[i], a[candidate.second]);
      });
      if (twin == end) return false;
      place_of[i] = twin->second;
    }
    for (std::size_t i = 0; i < b.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (place_of[j] > place_of[i] && pool_.entries[b[i]].effect != pool_.entries[b[j]].effect &&
            !disjoint(b[i], b[j])) {
          return false;
        }
      }
    }
    return true;
  }

  /// The open bit by which to halve: one that many entries of both lists fix, on both sides. The
  /// first jump that is not decided comes before all when lists are short.
  [[nodiscard]] int halving_bit(const List& rules, const List& layout) const {
    if (rules.size() + layout.size() <= 2 * kSmall) {
      for (const std::uint32_t entry : layout) {
        if (pool_.entries[entry].jump == kNoJump) continue;
        if (const int bit = open_bit(entry); bit >= 0) return bit;
      }
    }
    std::vector<std::uint32_t> ones(words_ * 64, 0);
    std::vector<std::uint32_t> zeros(words_ * 64, 0);
    for (const List* list : {&rules, &layout}) {
      constexpr std::size_t kLookedAt = 100;
      const std::size_t step = list->size() / kLookedAt + 1;
      for (std::size_t i = 0; i < list->size(); i += step) count((*list)[i], ones, zeros);
    }
    int best = -1;
    std::uint32_t best_score = 0;
    for (std::size_t bit = 0; bit < ones.size(); ++bit) {
      const std::uint32_t score = ones[bit] + zeros[bit] + 2 * std::min(ones[bit], zeros[bit]);
      if (score > best_score) {
        best_score = score;
        best = static_cast<int>(bit);
      }
    }
    return best;
  }

  [[nodiscard]] int open_bit(std::uint32_t entry) const {
    for (std::size_t w = 0; w < words_; ++w) {
      const Bits open = pool_.fixed(entry)[w] & ~region_.fixed[w];
      if (open != 0) return static_cast<int>(w * 64) + std::countr_zero(open);
    }
    return -1;
  }

  void count(std::uint32_t entry, std::vector<std::uint32_t>& ones,
             std::vector<std::uint32_t>& zeros) const {
    for (std::size_t w = 0; w < words_; ++w) {
      for (Bits open = pool_.fixed(entry)[w] & ~region_.fixed[w]; open != 0; open &= open - 1) {
        const auto shift = static_cast<std::size_t>(std::countr_zero(open));
        const bool one = (pool_.value(entry)[w] >> shift & 1) != 0;
        ++(one ? ones : zeros)[w * 64 + shift];
      }
    }
  }

  /// True when both lists treat every packet of the region alike. `kept` is the share of the
  /// parent's entries that came down here, `share` that of the packet space, for the progress.
  bool compare(const List& all_rules, const List& all_layout, double kept, double share) {
    if (limits_.regions_left == 0) {
      failure_ = Error{ErrorCode::kTooBig, "ran out of regions"};
      return false;
    }
    --limits_.regions_left;
    if (!spend(kRegion + 2 * (all_rules.size() + all_layout.size()))) return false;
    const List rules = cut(all_rules);
    List layout = cut(all_layout);
    if (!follow(layout)) return false;
    if (decided(rules) && decided(layout)) return settle(rules, layout, share);
    const std::size_t longer = std::max(rules.size(), layout.size());
    if (!has_jump(layout) && (longer <= kSmall || (kept > kPoorSplit && longer <= kLargest))) {
      if (!spend(2 * longer * longer)) return false;
      if (same_but_for_harmless_order(rules, layout)) return done(share);
    }
    return halve(rules, layout, share);
  }

  bool spend(std::uint64_t comparisons) {
    if (comparisons <= limits_.comparisons_left) {
      limits_.comparisons_left -= comparisons;
      return true;
    }
    limits_.comparisons_left = 0;
    failure_ = Error{ErrorCode::kTooBig, "ran out of comparisons"};
    return false;
  }

  bool settle(const List& rules, const List& layout, double share) {
    if (effect_of_first(rules) == effect_of_first(layout)) return done(share);
    found_ = {region_, effect_of_first(rules), effect_of_first(layout)};
    return false;
  }

  bool done(double share) {
    settled_ += share;
    if (limits_.progress && settled_ - told_ >= 0.001) {
      told_ = settled_;
      limits_.progress(settled_);
    }
    return true;
  }

  bool halve(const List& rules, const List& layout, double share) {
    const int bit = halving_bit(rules, layout);
    const auto w = static_cast<std::size_t>(bit) / 64;
    const Bits mark = Bits{1} << bit % 64;
    region_.fixed[w] |= mark;
    const std::size_t size = rules.size() + layout.size();
    bool equal = true;
    for (const Bits side : {Bits{0}, mark}) {
      region_.value[w] = (region_.value[w] & ~mark) | side;
      const List half_rules = cut(rules);
      const List half_layout = cut(layout);
      const auto half = static_cast<double>(half_rules.size() + half_layout.size());
      equal = compare(half_rules, half_layout, half / static_cast<double>(size), share / 2);
      if (!equal) break;
    }
    region_.fixed[w] &= ~mark;
    region_.value[w] &= ~mark;
    return equal;
  }

  const Pool& pool_;
  Cube region_;
  SearchLimits& limits_;
  std::size_t words_;
  Difference found_{};
  std::optional<Error> failure_;
  double settled_ = 0.0;
  double told_ = 0.0;
};

}  // namespace

std::uint32_t Pool::add(const Cube& cube, Entry entry) {
  bits.insert(bits.end(), cube.value.begin(), cube.value.end());
  bits.insert(bits.end(), cube.fixed.begin(), cube.fixed.end());
  entries.push_back(entry);
  return static_cast<std::uint32_t>(entries.size() - 1);
}

Result<std::optional<Difference>> find_difference(const Pool& pool, std::uint32_t first_table,
                                                  const Cube& whole, SearchLimits& limits) {
  return Search(pool, whole, limits).run(first_table);
}

}  // namespace greynic::verify
