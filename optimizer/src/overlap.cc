#include "overlap.h"

#include <algorithm>
#include <bit>
#include <memory>

#include "key_table.h"

namespace greynic::optimizer {
namespace {

const auto kRankIsRow = [](std::uint32_t row) { return row; };

struct Pair {
  std::uint32_t a;
  std::uint32_t b;
};

/// Which of two groups must come before the other, by their keys under one mask.
void join(const KeyTable& a, const KeyTable& b, bool& a_first, bool& b_first) {
  const bool a_smaller = a.size() <= b.size();
  const KeyTable& small = a_smaller ? a : b;
  const KeyTable& large = a_smaller ? b : a;
  for (std::size_t i = 0; i < small.size() && !(a_first && b_first); ++i) {
    const Ranks& mine = small.entry(i);
    const Ranks* theirs = large.lookup(mine.key);
    if (theirs == nullptr) continue;
    const bool small_first = mine.precedes(*theirs);
    const bool large_first = theirs->precedes(mine);
    a_first = a_first || (a_smaller ? small_first : large_first);
    b_first = b_first || (a_smaller ? large_first : small_first);
  }
}

/// The same for groups of few rows, each held against each.
void hold_against(const Problem& problem, const Group& a, const Group& b, bool& a_first,
                  bool& b_first) {
  const Ternaries& t = problem.rows;
  for (const std::uint32_t i : a.rows) {
    for (const std::uint32_t j : b.rows) {
      bool& first = i < j ? a_first : b_first;
      if (first || problem.effect[i] == problem.effect[j]) continue;
      first = overlap(t.value[i], t.mask[i], t.value[j], t.mask[j], t.words());
    }
  }
}

}  // namespace

std::vector<Group> groups_by_mask(const Problem& problem, const std::vector<std::uint32_t>& rows) {
  constexpr std::size_t kFew = 16;  // are looked through
  std::vector<Group> groups;
  ByMask<std::size_t> known;
  const auto group_of = [&](std::uint32_t row) {
    if (rows.size() > kFew) {
      return known.try_emplace(mask_of(problem.rows, row), groups.size()).first->second;
    }
    const Word* const mask = problem.rows.mask[row];
    const auto place = std::ranges::find_if(groups, [&](const Group& group) {
      return std::equal(mask, mask + problem.rows.words(), problem.rows.mask[group.rows.front()]);
    });
    return static_cast<std::size_t>(place - groups.begin());
  };
  for (const std::uint32_t row : rows) {
    const std::size_t number = group_of(row);
    if (number == groups.size()) groups.emplace_back();
    groups[number].rows.push_back(row);
    groups[number].weight += problem.weight[row];
  }
  return groups;
}

BitMatrix precedence(const Problem& problem, const std::vector<Group>& groups) {
  constexpr std::size_t kFew = 64;
  BitMatrix before(groups.size());
  const auto put = [&](std::uint32_t a, std::uint32_t b, bool a_first, bool b_first) {
    if (a_first) before.set(a, b);
    if (b_first) before.set(b, a);
  };
  // Pairs with the same common bits share their hash tables.
  ByMask<std::vector<Pair>> pairs_of;
  for (std::uint32_t a = 0; a < groups.size(); ++a) {
    for (std::uint32_t b = a + 1; b < groups.size(); ++b) {
      if (groups[a].rows.size() * groups[b].rows.size() > kFew) {
        const std::vector<Word> mask = mask_of(problem.rows, groups[a].rows.front());
        pairs_of[common(mask, mask_of(problem.rows, groups[b].rows.front()))].push_back({a, b});
        continue;
      }
      bool a_first = false;
      bool b_first = false;
      hold_against(problem, groups[a], groups[b], a_first, b_first);
      put(a, b, a_first, b_first);
    }
  }
  if (pairs_of.empty()) return before;
  std::vector<std::unique_ptr<KeyTable>> table(groups.size());
  for (const auto& entry : pairs_of) {
    const auto& mask = entry.first;
    const auto& pairs = entry.second;
    std::vector<std::uint32_t> used;
    const auto table_of = [&](std::uint32_t group) -> const KeyTable& {
      if (!table[group]) {
        table[group] = std::make_unique<KeyTable>(problem.rows, groups[group].rows, mask.data(),
                                                  kRankIsRow, problem.effect);
        used.push_back(group);
      }
      return *table[group];
    };
    for (const Pair& pair : pairs) {
      bool a_first = false;
      bool b_first = false;
      join(table_of(pair.a), table_of(pair.b), a_first, b_first);
      put(pair.a, pair.b, a_first, b_first);
    }
    for (const std::uint32_t group : used) table[group].reset();
  }
  return before;
}

BitMatrix precedence(const std::vector<RowPair>& pairs, std::size_t rows,
                     const std::vector<Group>& groups) {
  BitMatrix before(groups.size());
  if (pairs.empty()) return before;
  std::vector<std::uint32_t> group_of(rows, kNoRow);
  for (std::uint32_t group = 0; group < groups.size(); ++group) {
    for (const std::uint32_t row : groups[group].rows) group_of[row] = group;
  }
  for (const RowPair& pair : pairs) {
    const std::uint32_t first = group_of[pair.first];
    const std::uint32_t second = group_of[pair.second];
    if (first != second) before.set(first, second);
  }
  return before;
}

void count_blocked(const Problem& problem, const std::vector<std::uint32_t>& earlier,
                   const std::vector<std::uint32_t>& later, int step,
                   std::vector<std::int32_t>& counts) {
  if (earlier.empty() || later.empty()) return;
  const std::vector<Word> mask =
      common(mask_of(problem.rows, earlier.front()), mask_of(problem.rows, later.front()));
  const KeyTable table(problem.rows, earlier, mask.data(), kRankIsRow, problem.effect);
  const std::size_t words = problem.rows.words();
  for (const std::uint32_t row : later) {
    const Ranks* ranks = table.lookup(hash_under(problem.rows.value[row], mask.data(), words));
    if (ranks != nullptr && ranks->blocks(row, problem.effect[row])) counts[row] += step;
  }
}

namespace {

/// Rows of one mask, found by exact comparison behind the hash: open addressing, at most half full.
class ExactTable {
 public:
  ExactTable(const Problem& problem, const std::vector<std::uint32_t>& rows, const Word* mask)
      : problem_(problem),
        mask_(mask),
        rows_(rows),
        slots_(std::bit_ceil(2 * rows.size()), kNoRow),
        next_(rows.size(), kNoRow) {
    for (std::uint32_t i = 0; i < rows.size(); ++i) {
      std::uint32_t& slot = slots_[find(rows[i])];
      next_[i] = slot;
      slot = i;
    }
  }
  /// Calls visit(row) for each row whose value is that of `other` under the mask.
  template <typename Visit>
  void containing(std::uint32_t other, Visit visit) const {
    for (std::uint32_t i = slots_[find(other)]; i != kNoRow; i = next_[i]) visit(rows_[i]);
  }

 private:
  /// The slot of the rows whose value is that of `other`, or the one where they would be.
  [[nodiscard]] std::size_t find(std::uint32_t other) const {
    const std::size_t words = problem_.rows.words();
    const Word* value = problem_.rows.value[other];
    for (std::size_t i = hash_under(value, mask_, words);; ++i) {
      const std::size_t place = i & (slots_.size() - 1);
      if (slots_[place] == kNoRow) return place;
      if (matches(problem_.rows.value[rows_[slots_[place]]], mask_, value, words)) return place;
    }
  }

  const Problem& problem_;
  const Word* mask_;
  const std::vector<std::uint32_t>& rows_;
  std::vector<std::uint32_t> slots_;  ///< places in rows_
  std::vector<std::uint32_t> next_;   ///< by place: another of equal value
};

bool covers(const Word* wide, const Word* narrow, std::size_t words) {
  for (std::size_t w = 0; w < words; ++w) {
    if ((narrow[w] & ~wide[w]) != 0) return false;
  }
  return true;
}

/// May `row` be left to `later`, which contains it and does the same? Not if a row between them
/// that does something else would then take its packets.
bool nothing_between(const Problem& problem, const std::vector<bool>& gone, std::uint32_t row,
                     std::uint32_t later, std::size_t& budget) {
  const Ternaries& t = problem.rows;
  for (std::uint32_t between = row + 1; between < later; ++between) {
    if (budget == 0) return false;
    --budget;
    if (gone[between] || problem.effect[between] == problem.effect[row]) continue;
    if (overlap(t.value[row], t.mask[row], t.value[between], t.mask[between], t.words())) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::vector<bool> redundant_rows(const Problem& problem) {
  const Ternaries& t = problem.rows;
  std::vector<std::uint32_t> all(t.size());
  for (std::uint32_t i = 0; i < all.size(); ++i) all[i] = i;
  const std::vector<Group> groups = groups_by_mask(problem, all);
  std::vector<bool> gone(t.size(), false);
  std::vector<std::vector<std::uint32_t>> same_later(t.size());
  for (const Group& wide : groups) {
    const Word* wide_mask = t.mask[wide.rows.front()];
    const ExactTable table(problem, wide.rows, wide_mask);
    for (const Group& narrow : groups) {
      if (!covers(t.mask[narrow.rows.front()], wide_mask, t.words())) continue;
      for (const std::uint32_t row : narrow.rows) {
        table.containing(row, [&](std::uint32_t other) {
          if (other < row) gone[row] = true;
          if (other > row && problem.effect[other] == problem.effect[row]) {
            same_later[row].push_back(other);
          }
        });
      }
    }
  }
  // From the last row up, so that a row kept as another's heir is itself kept. Each comparison
  // costs; what the budget leaves unexamined stays, which is never wrong.
  std::size_t budget = 200'000'000;
  for (auto row = static_cast<std::uint32_t>(t.size()); row-- > 0;) {
    if (gone[row]) continue;
    auto& heirs = same_later[row];
    std::sort(heirs.begin(), heirs.end());
    for (const std::uint32_t heir : heirs) {
      if (gone[heir] || !nothing_between(problem, gone, row, heir, budget)) continue;
      gone[row] = true;
      break;
    }
  }
  return gone;
}

}  // namespace greynic::optimizer
